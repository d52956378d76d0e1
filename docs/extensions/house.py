"""The picture of the house, drawn from the tables that tests/core/test_api.py holds the imports to."""

import ast
import textwrap
from html import escape
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

TABLES = {"KIT", "LAB", "EXTRAS", "FLOORS", "SHOWN", "DOORS"}
WIDTH, HEIGHT, GAP, ROW, LEFT, TOP = 138, 36, 10, 84, 70, 12
FILLS = {"kit": "#0072B2", "lab": "#8A5A00", "extras": "#00694B"}


def tables(path: Path) -> dict[str, Any]:
    """Read the tables of rooms from the test, without running its tests."""
    found: dict[str, Any] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id in TABLES:
            exec(compile(ast.Module([node], []), str(path), "exec"), found)
    return found


def picture(rooms: dict[str, Any]) -> str:
    """Draw the floors from the ground up, each room in the colour of its kind, with its doors to the outside."""
    kinds = {room: kind for kind in FILLS for room in rooms[kind.upper()]}
    doors: dict[str, list[str]] = {}
    for world, through in rooms["DOORS"].items():
        for room in sorted(through):
            doors.setdefault(room, []).append(world.removeprefix("importlib."))
    floors: list[set[str]] = rooms["FLOORS"]
    wide = max(map(len, floors)) * (WIDTH + GAP) + LEFT
    high = len(floors) * ROW + TOP + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img" font-family="sans-serif">',
        "<title>The rooms of budgetkit, floor by floor, and their doors to the outside</title>",
        f'<rect width="{wide}" height="{high}" fill="#ffffff"/>',
    ]
    for number, floor in enumerate(floors):
        y = TOP + (len(floors) - 1 - number) * ROW
        parts.append(_text(8, y + 25, f"floor {number}" if number else "ground", 13, "#404040"))
        for column, room in enumerate(sorted(floor, key=lambda room: (list(FILLS).index(kinds[room]), room))):
            parts += _room(LEFT + column * (WIDTH + GAP), y, room, kinds[room], doors.get(room, []))
    for column, (kind, fill) in enumerate(FILLS.items()):
        x = LEFT + column * (WIDTH + GAP)
        parts.append(f'<rect x="{x}" y="{high - 26}" width="14" height="14" fill="{fill}"/>')
        parts.append(_text(x + 20, high - 14, kind, 13, "#404040"))
    return "\n".join([*parts, "</svg>", ""])


def _room(x: int, y: int, room: str, kind: str, doors: list[str]) -> list[str]:
    rect = f'<rect class="{kind}" x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="{FILLS[kind]}"/>'
    lines = textwrap.wrap(", ".join(doors), 21)
    name = _text(x + WIDTH / 2, y + 23, room, 15, "#ffffff", "middle")
    return [rect, name, *(_text(x, y + HEIGHT + 12 * n, line, 10, "#404040") for n, line in enumerate(lines, 1))]


def _text(x: float, y: float, text: str, size: int, fill: str, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}">{escape(text)}</text>'


def draw_house(app: Sphinx, config: object) -> None:
    """Write the picture beside the page that shows it."""
    source = Path(app.srcdir)
    text = picture(tables(source.parent / "tests" / "core" / "test_api.py"))
    page = source / "images" / "house.svg"
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw the house before Sphinx looks for pictures."""
    app.connect("config-inited", draw_house)
    return {"parallel_read_safe": True}
