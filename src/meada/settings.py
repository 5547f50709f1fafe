"""Settings are frozen, checked when they are made, and refuse keys that they do not know."""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from meada.errors import MeadaError, nearest

S = TypeVar("S", bound="Settings")


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise MeadaError(explain(type(self), error)) from None


def explain(model: type[BaseModel], error: ValidationError) -> str:
    """The first fault as one sentence that names the key."""
    fault = error.errors()[0]
    path = [str(part) for part in fault["loc"]]
    key = ".".join(path)
    if fault["type"] == "extra_forbidden":
        return f"unknown key '{key}': " + nearest(path[-1], _keys(model, path[:-1]))
    if fault["type"] == "missing":
        return f"key '{key}' is missing"
    message = fault["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    return f"key '{key}' is {fault['input']!r}: {message}" if key else message


def _keys(model: type[BaseModel], path: list[str]) -> list[str]:
    for part in path:
        field = model.model_fields.get(part)
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return list(model.model_fields)
