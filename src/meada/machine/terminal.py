"""Text for a terminal: names from files cannot move the cursor, change colours or be taken for Rich's markup."""

import unicodedata
from typing import Any

from rich.console import Console
from rich.text import Text

HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # Unicode's control, format, surrogate and separator characters


def printable(text: object) -> str:
    r"""Control characters as escapes; lines and tabs stay.

    >>> printable("a\x1b[31mred\nb")
    'a\\x1b[31mred\nb'
    """
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in HIDDEN else _escape(c) for c in str(text))


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()


class SafeConsole(Console):
    """Rich's console, for which a string is text and never markup."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **{**options, "markup": False, "emoji": False})
