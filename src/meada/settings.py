"""Settings: frozen pydantic models that are validated when created and refuse unknown keys."""

import inspect
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from meada.errors import MeadaError, nearest


class BadSetting(MeadaError):
    """An invalid key. ``sentence`` has a placeholder for the key's full name."""

    def __init__(self, sentence: str, key: str) -> None:
        super().__init__(sentence.replace("{key}", key))
        self.sentence, self.key = sentence, key

    def under(self, section: str) -> "BadSetting":
        """The same error, with the key prefixed by the name of the outer table."""
        return BadSetting(self.sentence, f"{section}.{self.key}" if self.key else section)


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise own_fault(error) or explain(type(self), error) from None


def own_fault(error: ValidationError) -> MeadaError | None:
    """The MeadaError inside a pydantic error, which wraps it because it is a ValueError."""
    cause = error.errors()[0].get("ctx", {}).get("error")
    return cause if isinstance(cause, MeadaError) else None


def explain(model: type[BaseModel], error: ValidationError) -> BadSetting:
    """The first error as one sentence that names the key."""
    fault = error.errors()[0]
    key = ".".join(str(part) for part in fault["loc"])
    if own := own_fault(error):  # raised by the settings themselves: a sentence already
        return BadSetting(str(own), key)
    if fault["type"] == "extra_forbidden":
        return BadSetting("unknown key '{key}': " + nearest(key, model.model_fields), key)
    if fault["type"] == "missing":
        return BadSetting("key '{key}' is missing", key)
    wanted = re.sub(r"^\w+ should ", "must ", fault["msg"])  # as pydantic puts it: "Input should be ..."
    return BadSetting(f"key '{{key}}' {wanted}, got {fault['input']!r}", key)


def signature_model(
    parameters: Mapping[str, inspect.Parameter], more: Mapping[str, Any] | None = None
) -> type[BaseModel]:
    """A settings model of a function's parameters and of additional keys."""
    given = lambda value, otherwise: otherwise if value is inspect.Parameter.empty else value
    fields: dict[str, Any] = {
        name: (given(p.annotation, Any), given(p.default, ...))
        for name, p in parameters.items()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and name != "num_classes"  # it comes from the data
    }
    config = ConfigDict(extra="forbid", allow_inf_nan=False)
    return create_model("Arguments", __config__=config, **fields, **(more or {}))


def flattened(table: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Flatten a nested table, with keys as in ``--set``.

    >>> flattened({"plan": {"rounds": 1}, "seed": 3})
    {'plan.rounds': 1, 'seed': 3}
    """
    found: dict[str, Any] = {}
    for name, value in table.items():
        found |= flattened(value, f"{path}{name}.") if isinstance(value, dict) else {f"{path}{name}": value}
    return found
