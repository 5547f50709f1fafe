"""Write the reference pages: the API, the command line and the recipe keys, from the code itself."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = "https://github.com/meada-project/meada/blob/main"
ROOT = Path(__file__).parents[1]
OUTSIDE = re.compile(r"\]\((?:\.\./)+((?:results|benchmarks|src|tests)/[^)#]*|[A-Z]+\.md|LICENSE)(#[^)]*)?\)")


def write_pages(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"api": api(), "command_line": command_line(), "recipe_keys": recipe_keys()}
    for name, lines in pages.items():
        (folder / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def link_to_repository(app: Any, name: str, source: list[str]) -> None:
    """A link to a file outside docs/ becomes a link to the repository."""
    source[0] = OUTSIDE.sub(lambda m: f"]({REPOSITORY}/{m[1]}{m[2] or ''})", source[0])


def api() -> Iterator[str]:
    """Every public name of ``meada``, by kind."""
    import meada
    from meada import integrations

    public = {name: getattr(meada, name) for name in sorted(meada.__all__) if not name.startswith("_")}
    tables = {name: value for name, value in public.items() if isinstance(value, dict)}
    yield "# Python API"
    yield "\nEverything below is an attribute of `meada`; importing `meada` loads torch only on first use.\n"
    for title, test in (("Functions", inspect.isfunction), ("Classes and exceptions", inspect.isclass)):
        yield f"\n## {title}\n"
        for name in (name for name, value in public.items() if test(value)):
            yield _documented(f"meada.{name}", test is inspect.isclass)
    yield "\n## What functions return\n\n`meada.load` gives a `Model`, `meada.robustify` an `Outcome`.\n"
    yield _documented("meada.deploy.model.Model", True)
    yield _documented("meada.robustify.outcome.Outcome", True)
    yield "\n## Other libraries\n\n[Training loops](../../loops.md) has an example of each.\n"
    for name in integrations.__all__:
        yield _documented(f"meada.integrations.{name}", inspect.isclass(getattr(integrations, name)), members=False)
    yield "\n## Tables of names\n"
    for name, table in tables.items():
        yield from _table_of(name, table)


def _documented(name: str, is_class: bool, members: bool = True) -> str:
    directive = "autoclass" if is_class else "autofunction"
    options = "\n   :members:\n   :exclude-members: model_config, model_post_init" if is_class and members else ""
    return f"```{{eval-rst}}\n.. {directive}:: {name}{options}\n```\n"


def _table_of(name: str, table: dict[str, Any]) -> Iterator[str]:
    yield f"\n### `meada.{name}`\n"
    yield "| name | what it is |\n| --- | --- |"
    for key, value in sorted(table.items()):
        yield f"| `{key}` | {_cell(_about(value))} |"


def _about(value: Any) -> str:
    """A method's own sentence; otherwise the first line of the docstring, or of the module's."""
    try:
        about = getattr(value(), "about", "")
    except Exception:  # a network needs its number of classes, a data set its files
        about = ""
    function = getattr(value, "func", value)
    module = inspect.getmodule(function)
    return about or first_line(function.__doc__) or first_line(getattr(module, "__doc__", ""))


def command_line() -> Iterator[str]:
    """Every command with its arguments and options, as its ``--help`` has them."""
    from benchmarks.__main__ import app as benchmarks
    from typer.main import get_command

    from meada.cli.main import app

    yield "# Command line"
    yield "\n`meada COMMAND --help` prints the same."
    yield "Exit codes: 0 success, 2 bad input, 70 a fault of meada itself, 130 interrupted.\n"
    commands = dict(get_command(app).commands)  # type: ignore[attr-defined]
    commands["bench"] = get_command(benchmarks)
    for name, command in commands.items():
        for words, leaf in _leaves(f"meada {name}", command):
            yield from _command(words, leaf)


def _leaves(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield words, command
        return
    for name, below in command.commands.items():
        yield from _leaves(f"{words} {name}", below)


def _command(words: str, command: Any) -> Iterator[str]:
    yield f"\n## `{words}`\n"
    text = inspect.cleandoc(command.help or "").replace("\b", "")
    about, _, example = text.partition("Example:")
    yield about.strip() + "\n"
    if example:
        yield f"```console\n$ {example.strip().splitlines()[0]}\n```\n"
    shown = [p for p in command.params if p.name != "help" and not getattr(p, "hidden", False)]
    if shown:
        yield "| argument or option | meaning |\n| --- | --- |"
    for parameter in shown:
        names = parameter.name.upper() if parameter.param_type_name == "argument" else ", ".join(parameter.opts)
        default = parameter.default
        plain = default not in (None, False, "", (), []) and not callable(default)
        note = f" Default: `{default}`." if plain and "[default" not in (getattr(parameter, "help", "") or "") else ""
        yield f"| `{names}` | {_cell((getattr(parameter, 'help', '') or '') + note)} |"


def recipe_keys() -> Iterator[str]:
    """Every key of a recipe with its default, from the settings classes and the methods' arguments."""
    from meada.methods import METHODS
    from meada.runs.recipe import SECTIONS, Recipe

    yield "# Recipe keys"
    yield "\nA recipe is a TOML file. `meada train RECIPE --set KEY=VALUE` changes a key;"
    yield "`extends` inherits from other recipes.\n"
    yield "\n## Top level\n"
    yield from _fields(Recipe, skip=set(SECTIONS))
    for name, section in SECTIONS.items():
        yield f"\n## `[{name}]`\n"
        yield from _fields(section)
    yield "\n## `[method]`: settings of each method\n"
    for name, make in sorted(METHODS.items()):
        settings = {} if inspect.isclass(make) else inspect.signature(make).parameters
        values = ", ".join(f"`{key} = {p.default!r}`" for key, p in settings.items() if p.default is not p.empty)
        yield f"- **`{name}`**: {values or 'no settings'}"


def _fields(settings: Any, skip: frozenset[str] | set[str] = frozenset()) -> Iterator[str]:
    notes = dict(re.findall(r"^    (\w+): .*?  # (.*)$", inspect.getsource(settings), re.M))
    yield "| key | type | default | meaning |\n| --- | --- | --- | --- |"
    for key, field in settings.model_fields.items():
        if key in skip:
            continue
        kind = getattr(field.annotation, "__name__", None) or str(field.annotation).replace("typing.", "")
        kind = kind if kind not in ("Literal", "dict") else str(field.annotation).replace("typing.", "")
        default = "required" if field.is_required() else f"`{field.default!r}`"
        yield f"| `{key}` | `{_cell(kind)}` | {default} | {_cell(notes.get(key, ''))} |"


def first_line(text: str | None) -> str:
    return inspect.cleandoc(text or "").split("\n")[0]


def _cell(text: str) -> str:
    """Text that stays inside one cell of a Markdown table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("``", "`").strip()
