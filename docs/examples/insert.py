"""Put the files of docs/examples into the pages that show them: python docs/examples/insert.py."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- (examples/\w+\.py) -->\n)```python\n.*?```\n", re.S)


def filled(page: str) -> str:
    """The page with every block after ``<!-- examples/NAME.py -->`` as the file now is."""
    return BLOCK.sub(lambda m: f"{m[1]}```python\n{(DOCS / m[2]).read_text()}```\n", page)


if __name__ == "__main__":
    for path in DOCS.glob("*.md"):
        path.write_text(filled(path.read_text()))
