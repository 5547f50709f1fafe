"""Options that several verbs share."""

from typing import Annotated

import typer

Trust = Annotated[
    list[str] | None,
    typer.Option(
        "--trust", "--network", "--method", "--space", "--data",
        help="Allow the code that the file names: FILE.py:function or module:function. It runs on this machine.",
    ),
]  # fmt: skip
