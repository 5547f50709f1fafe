"""Draw the packages of ``src/meada`` and the imports between them as an SVG: scripts/draw_rooms.py docs/rooms.svg.

A room is a package or a module of the top level. Each stands above everything that it imports; a line means that the
upper one imports the lower one. The picture is made from the source files.
"""

import argparse
import ast
from collections import defaultdict
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "meada"
GROUND = {"types", "errors", "files", "streams", "settings", "lookup"}  # everybody uses these
WIDTH, BOX, HEIGHT, GAP = 960, 128, 34, 40


def rooms() -> dict[str, int]:
    """Name -> number of files."""
    found: dict[str, int] = defaultdict(int)
    for path in SOURCE.rglob("*.py"):
        found[home(path)] += 1
    return {name: n for name, n in found.items() if not name.startswith("__")}


def home(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def arrows() -> set[tuple[str, str]]:
    """(importer, imported) for every pair of different rooms."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found |= {(home(path), name.split(".")[1]) for name in names if name.startswith("meada.")}
    return {(a, b) for a, b in found if a != b and not a.startswith("__")}


def floors(names: dict[str, int], edges: set[tuple[str, str]]) -> list[list[str]]:
    """Rooms by the length of the longest way down, from the top; the ground floor is the last."""
    below = neighbours(edges)

    def depth(name: str) -> int:
        return 1 + max((depth(other) for other in below[name]), default=0)

    by_depth: dict[int, list[str]] = defaultdict(list)
    for name in sorted(set(names) - GROUND):
        by_depth[depth(name)].append(name)
    return [*(by_depth[level] for level in sorted(by_depth, reverse=True)), sorted(GROUND & set(names))]


def places(names: dict[str, int], edges: set[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Top-left corner of each room; on its floor a room stands near those that import it."""
    above = neighbours({(b, a) for a, b in edges})
    at: dict[str, tuple[float, float]] = {}
    for row, floor in enumerate(floors(names, edges)):
        middle = {name: [at[other][0] for other in above[name] if other in at] or [WIDTH / 2] for name in floor}
        step = WIDTH / len(floor)
        for column, name in enumerate(sorted(floor, key=lambda name: sum(middle[name]) / len(middle[name]))):
            at[name] = (round(step * (column + 0.5) - BOX / 2), 12 + row * (HEIGHT + GAP))
    return at


def neighbours(edges: set[tuple[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for a, b in edges:
        found[a].add(b)
    return found


def svg() -> str:
    names = rooms()
    edges = {(a, b) for a, b in arrows() if a in names and b in set(names) - GROUND and a not in GROUND}
    at = places(names, edges)
    height = max(y for _, y in at.values()) + HEIGHT + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for above, below in sorted(not_implied(edges)):
        (x1, y1), (x2, y2) = at[above], at[below]
        lines.append(
            f'<path d="M{x1 + BOX / 2} {y1 + HEIGHT} C{x1 + BOX / 2} {y1 + HEIGHT + GAP / 2} {x2 + BOX / 2} '
            f'{y2 - GAP / 2} {x2 + BOX / 2} {y2}" fill="none" stroke="#8a94a6" stroke-width="1"/>'
        )
    for name, (x, y) in sorted(at.items()):
        files = f"{names[name]} files" if names[name] > 1 else "1 file"
        lines.append(f'<rect x="{x}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="5" fill="#eef2f8" stroke="#4a5a78"/>')
        lines.append(f'<text x="{x + BOX / 2}" y="{y + 15}" text-anchor="middle">{escape(name)}</text>')
        lines.append(
            f'<text x="{x + BOX / 2}" y="{y + 28}" text-anchor="middle" font-size="10" fill="#4a5a78">{files}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def not_implied(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Edges without those that a longer way already implies."""
    below = neighbours(edges)
    return {(a, b) for a, b in edges if not any(b in reached(c, below) for c in below[a] - {b})}


def reached(start: str, below: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for name in below[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("out", type=Path)
    options.parse_args().out.write_text(svg(), encoding="utf-8")
