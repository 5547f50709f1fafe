"""The command line: verbs in files by subject; torch is imported inside the verbs, so help is quick."""

import os
import sys
import tempfile
import traceback
import warnings
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from meada import __version__
from meada.cli.data import app as data
from meada.cli.data import corrupt
from meada.cli.early_checks import answer_typos, missing
from meada.cli.info import BENCH_SETTINGS, bench, doctor, listing
from meada.cli.models import evaluate, export, perturb, predict, push
from meada.cli.reports import inspect, report, watch
from meada.cli.reproduce import reproduce, sweep
from meada.cli.train import quickstart, robustify, train
from meada.errors import MeadaError
from meada.lookup import own_line
from meada.machine.memory import keep_freed_memory
from meada.machine.terminal import printable

OUT_OF_MEMORY = ("can't allocate memory", "failed to map segment")  # the words of torch, and of the loader of libraries


class Verbs(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        """Report an EOFError as an error, since typer would treat it as an abort by the user."""
        try:
            return super().invoke(ctx)
        except EOFError as error:
            raise MeadaError(f"a file ended early ({error or 'it may be empty'})") from error


app = typer.Typer(
    cls=Verbs,
    name="meada",
    help="Train image classifiers that are robust to domain shift.",
    epilog="First steps: meada quickstart | meada list | meada train digits/meada --out runs/meada",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data, name="data")
app.command()(quickstart)
app.command("list")(listing)
for verb in (
    train, evaluate, reproduce, sweep, report, robustify, predict, export, push, perturb, watch, corrupt, inspect,
):  # fmt: skip
    app.command()(verb)
app.command(context_settings=BENCH_SETTINGS)(bench)
app.command()(doctor)
answer_typos(app)
answer_typos(data)


@app.callback(invoke_without_command=True)
def options(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        typer.echo(f"meada {__version__}")
        raise typer.Exit()


def main() -> None:
    run_app(app)


def run_app(chosen: typer.Typer) -> None:
    """Exit codes: 2 with one sentence for bad input, 130 for an interrupt, 70 for a bug.

    A fault in a file that the person named (FILE.py:function) is bad input.
    """
    keep_freed_memory()
    warnings.showwarning = _warn  # type: ignore[assignment]
    try:
        chosen()
    except MeadaError as error:
        _stop(str(error), 2)
    except BrokenPipeError:  # as when the output goes to `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _stop(f"{where}{error.strerror or error}", 2)
    except KeyboardInterrupt:
        _stop("interrupted", 130)
    except ModuleNotFoundError as error:
        _stop(missing(error), 2)
    except Exception as error:
        _unforeseen(error)


def _stop(sentence: str, code: int) -> NoReturn:
    print(f"meada: {printable(' '.join(sentence.split(chr(10))))}", file=sys.stderr)
    sys.exit(code)


def _warn(message: Warning | str, category: type[Warning], *_: object) -> None:
    """Show warnings of meada in one line; hide those of libraries."""
    if category is UserWarning:
        print(f"meada: warning: {printable(message)}", file=sys.stderr)


def _unforeseen(error: BaseException) -> NoReturn:
    """Report a bug: one sentence, and a file with the traceback for a developer."""
    if isinstance(error, MemoryError) or any(words in str(error) for words in OUT_OF_MEMORY):
        _stop(f"not enough memory ({' '.join(str(error).split())[:200] or 'no details'})", 2)
    handle, name = tempfile.mkstemp(prefix="meada-error-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"meada {__version__}, python {sys.version}\n{sys.argv}\n\n")
        file.writelines(traceback.format_exception(error))
    what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    if where := own_line(error):
        _stop(f"{where}: {what}; the traceback is in {name}", 2)
    _stop(f"an unexpected error ({what}); please report it with the file {name}", 70)
