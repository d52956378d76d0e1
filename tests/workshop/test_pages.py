"""The pages: they build without a warning and without a network, name every public thing, and their code runs."""

import doctest
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import budgetkit

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"
PACKAGE = CHECKOUT / "budgetkit"
WITH_CODE = [
    path for path in sorted(DOCS.rglob("*.md")) if ">>> " in path.read_text(encoding="utf-8")
]
ARCHITECTURE = (DOCS / "architecture.md").read_text(encoding="utf-8")
CONTRIBUTING = (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8")

# What a page loads by itself; a link that a reader may follow is none of these.
LOADED = re.compile(
    r"<(?:script|link|img|iframe|source|video)\b[^>]*?\s(?:src|href)=[\"'](?:https?:)?//[^\"']*",
    re.I,
)
STYLED = re.compile(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^\"')]*", re.I)
# A program that shuts the network and then builds the pages.
BUILD = """
import socket, sys
def refuse(*address, **options):
    raise AssertionError(f"the network is shut, and the build asked for {address}")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
from sphinx.cmd.build import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build all pages, the notebooks as they are stored, with warnings as errors and the network shut."""
    pytest.importorskip("sphinx", reason="the pages need the group docs")
    built = tmp_path_factory.mktemp("pages")
    options = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(built / ".doctrees")]
    command = [sys.executable, "-c", BUILD, *options, str(DOCS), str(built / "html")]
    run = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT, timeout=600)
    assert run.returncode == 0, run.stderr[-4000:]
    return built / "html"


def test_no_page_loads_anything_from_a_host(pages: Path) -> None:
    found = {
        path.name: LOADED.findall(path.read_text(encoding="utf-8"))
        for path in pages.rglob("*.html")
    }
    styles = {
        path.name: STYLED.findall(path.read_text(encoding="utf-8")) for path in pages.rglob("*.css")
    }
    assert len(found) > 100
    assert {name: hosts for name, hosts in {**found, **styles}.items() if hosts} == {}


def test_every_public_name_has_a_page(pages: Path) -> None:
    reference = (pages / "reference.html").read_text(encoding="utf-8")
    for name in budgetkit.__all__:
        own = pages / "api" / f"budgetkit.{name}.html"
        section = f'id="bk-{name.replace("_", "-")}"' in reference
        assert section or f'id="budgetkit.{name}"' in own.read_text(encoding="utf-8"), name
    for name in budgetkit.figures.__all__:
        assert f"budgetkit.lab.figures.{name}" in reference or f"bk.figures.{name}" in reference, (
            name
        )


def test_the_gallery_shows_its_figures(pages: Path) -> None:
    gallery = (pages / "gallery.html").read_text(encoding="utf-8")
    asked = (DOCS / "gallery.md").read_text(encoding="utf-8").count("\nbk.figures.")
    assert gallery.count('<div class="drawn"') == asked >= 9
    assert gallery.count("The table it is drawn from") == asked
    assert re.search(r'<script[^>]*src="_static/plotly\.min\.js', gallery)
    assert (pages / "_static" / "plotly.min.js").stat().st_size > 1_000_000


def test_the_notebooks_are_pages(pages: Path) -> None:
    numbered = [path.stem for path in (CHECKOUT / "notebooks").glob("0[1-9]*.ipynb")]
    assert len(numbered) >= 6
    assert sorted(numbered) == sorted(path.stem for path in (pages / "notebooks").glob("*.html"))


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_code_on_a_page_gives_what_stands_below_it(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_network: None
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```python\n(>>> .*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    assert test.examples
    said: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(
        test, out=said.append
    )
    assert results.failed == 0, "".join(said)


def named_places() -> Iterator[tuple[str, str]]:
    """List what the page of architecture names, with the file it says it is in."""
    return iter(re.findall(r"`(\w+)`\s+\(`([\w/]+\.(?:py|js))`\)", ARCHITECTURE))


def test_what_the_architecture_names_is_where_it_says() -> None:
    named = list(named_places())
    assert len(named) > 25
    for name, file in named:
        text = (PACKAGE / file).read_text(encoding="utf-8")
        assert re.search(
            rf"^\s*(?:def|class|function) {name}\b|^from .* import .*\b{name}\b", text, re.MULTILINE
        ), name


def test_the_picture_of_the_layers_is_the_plan_of_the_imports(pages: Path) -> None:
    from tests.core.test_api import BOUNDARIES, EXTRAS, KIT, LAB, LAYERS

    picture = (pages / "_images" / "layers.svg").read_text(encoding="utf-8")
    drawn = re.findall(
        r'<rect class="(\w+)" x="\d+" y="(\d+)".*\n<text[^>]*>([\w.]+)</text>', picture
    )
    kinds = {"kit": KIT, "lab": LAB, "extras": EXTRAS}
    assert {name for _, _, name in drawn} == KIT | LAB | EXTRAS
    assert all(name in kinds[kind] for kind, _, name in drawn)
    heights = {name: int(y) for _, y, name in drawn}
    levels = [{heights[package] for package in layer} for layer in LAYERS]
    assert all(len(level) == 1 for level in levels), "packages of one layer are drawn side by side"
    assert [*levels] == sorted(levels, key=min, reverse=True), "and each layer above the one before"
    for world, packages in BOUNDARIES.items():
        assert not packages or world.removeprefix("importlib.") in picture, world


def test_the_map_for_contributors_has_every_package_and_no_other() -> None:
    from tests.core.test_api import EXTRAS, KIT, LAB

    rows = re.findall(
        r"^\| `([\w./]+?)(?:\.py|/)` \| (kit|lab|extras) \| (.+) \|$", CONTRIBUTING, re.MULTILINE
    )
    said = {(package.replace("/", "."), kind) for package, kind, _ in rows}
    kinds = {"kit": KIT, "lab": LAB, "extras": EXTRAS}
    assert said == {(package, kind) for kind, packages in kinds.items() for package in packages}
    for package, _, inside in rows:
        for file in re.findall(r"`([\w/]+\.py)`", inside):
            assert (PACKAGE / package / file).is_file(), f"{package}/{file}"


def dotted_names(text: str) -> set[str]:
    """List the names in full of modules and what is in them: budgetkit.plan.allocating."""
    return {name.rstrip(".") for name in re.findall(r"`~?(budgetkit\.\w[\w.]*)(?:\(\))?`", text)}


def is_there(name: str) -> bool:
    """Say whether a dotted name leads to something."""
    import importlib

    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:size]))
        except ImportError:
            continue
        try:
            for part in parts[size:]:
                value = getattr(value, part)
        except AttributeError:
            fields = getattr(value, "__dataclass_fields__", {})
            return parts[-1] in fields
        return True
    return False


@pytest.mark.parametrize(
    "page",
    [
        *sorted(PACKAGE.rglob("*.py")),
        *sorted(DOCS.rglob("*.md")),
        CHECKOUT / "README.md",
        CHECKOUT / "CONTRIBUTING.md",
    ],
    ids=lambda path: path.relative_to(CHECKOUT).as_posix(),
)
def test_names_in_full_lead_somewhere(page: Path) -> None:
    named = dotted_names(page.read_text(encoding="utf-8"))
    assert [name for name in sorted(named) if not is_there(name)] == []
