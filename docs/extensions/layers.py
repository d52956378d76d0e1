"""Draw the picture of the layers from the tables of allowed imports in tests/core/test_api.py."""

import ast
import textwrap
from html import escape
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

TABLES = {"KIT", "LAB", "EXTRAS", "LAYERS", "SHOWN", "BOUNDARIES"}
WIDTH, HEIGHT, GAP, ROW, LEFT, TOP = 138, 36, 10, 84, 70, 12
FILLS = {"kit": "#0072B2", "lab": "#8A5A00", "extras": "#00694B"}


def tables(path: Path) -> dict[str, Any]:
    """Read the tables of packages from the test module, without running its tests."""
    found: dict[str, Any] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id in TABLES:
            exec(compile(ast.Module([node], []), str(path), "exec"), found)
    return found


def picture(packages: dict[str, Any]) -> str:
    """Draw the layers, the lowest at the bottom, each package in the colour of its kind with its outside libraries."""
    kinds = {package: kind for kind in FILLS for package in packages[kind.upper()]}
    libraries: dict[str, list[str]] = {}
    for world, users in packages["BOUNDARIES"].items():
        for package in sorted(users):
            libraries.setdefault(package, []).append(world.removeprefix("importlib."))
    layers: list[set[str]] = packages["LAYERS"]
    wide = max(map(len, layers)) * (WIDTH + GAP) + LEFT
    high = len(layers) * ROW + TOP + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img" font-family="sans-serif">',
        "<title>The packages of budgetkit in layers, with the outside libraries that each may use</title>",
        f'<rect width="{wide}" height="{high}" fill="#ffffff"/>',
    ]
    for number, layer in enumerate(layers):
        y = TOP + (len(layers) - 1 - number) * ROW
        parts.append(_text(8, y + 25, f"layer {number}", 13, "#404040"))
        for column, package in enumerate(
            sorted(layer, key=lambda package: (list(FILLS).index(kinds[package]), package))
        ):
            parts += _box(LEFT + column * (WIDTH + GAP), y, package, kinds[package], libraries.get(package, []))
    for column, (kind, fill) in enumerate(FILLS.items()):
        x = LEFT + column * (WIDTH + GAP)
        parts.append(f'<rect x="{x}" y="{high - 26}" width="14" height="14" fill="{fill}"/>')
        parts.append(_text(x + 20, high - 14, kind, 13, "#404040"))
    return "\n".join([*parts, "</svg>", ""])


def _box(x: int, y: int, package: str, kind: str, libraries: list[str]) -> list[str]:
    rect = f'<rect class="{kind}" x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="{FILLS[kind]}"/>'
    lines = textwrap.wrap(", ".join(libraries), 21)
    name = _text(x + WIDTH / 2, y + 23, package, 15, "#ffffff", "middle")
    return [rect, name, *(_text(x, y + HEIGHT + 12 * n, line, 10, "#404040") for n, line in enumerate(lines, 1))]


def _text(x: float, y: float, text: str, size: int, fill: str, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}">{escape(text)}</text>'


def draw_layers(app: Sphinx, _config: object) -> None:
    """Write the picture beside the page that shows it."""
    source = Path(app.srcdir)
    text = picture(tables(source.parent / "tests" / "core" / "test_api.py"))
    page = source / "images" / "layers.svg"
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw the layers before Sphinx looks for pictures."""
    app.connect("config-inited", draw_layers)
    return {"parallel_read_safe": True}
