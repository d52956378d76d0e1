"""The API reference: a page for every public name, found where the package lists them."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx

import budgetkit


def public_names(module: ModuleType) -> list[str]:
    """Name what a module gives out: what it declares, else the functions and classes that it defines itself."""
    own = (
        name
        for name, value in inspect.getmembers(module)
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    )
    return sorted(getattr(module, "__all__", None) or own)


def groups() -> Iterator[tuple[str, str, list[str]]]:
    """Yield each package with public names, its summary and those names, then each public module."""
    packages: dict[str, list[str]] = {}
    modules: dict[str, ModuleType] = {}
    for name in budgetkit.__all__:
        value = getattr(budgetkit, name)
        if isinstance(value, ModuleType):
            modules[name] = value
            continue
        package = budgetkit._MODULE_OF[name].removeprefix("budgetkit.").split(".")
        depth = 2 if package[0] in ("lab", "extras") else 1
        packages.setdefault(".".join(package[:depth]), []).append(name)
    for package, names in sorted(packages.items()):
        summary = _first_line(import_module(f"budgetkit.{package}"))
        yield package, summary, [f"budgetkit.{name}" for name in sorted(names)]
    for name, module in sorted(modules.items()):
        yield f"bk.{name}", _first_line(module), [f"{module.__name__}.{inner}" for inner in public_names(module)]


def _question(name: str) -> str:
    """Return the question of a figure, empty for other names."""
    home, _, inner = name.rpartition(".")
    return str(getattr(getattr(import_module(home), inner), "title", "")) if home == "budgetkit.lab.figures" else ""


def _first_line(module: ModuleType) -> str:
    return inspect.getdoc(module).partition("\n")[0]  # type: ignore[union-attr]


def write_reference(app: Sphinx, _config: object) -> None:
    """Write the page that lists every name; autosummary makes the page of each."""
    lines = ["API reference", "=============", "", "Every public name, by package."]
    for title, summary, names in groups():
        figures = [name for name in names if _question(name)]
        lines += ["", title, "-" * len(title), "", summary, "", ".. autosummary::", "   :toctree: api", ""]
        lines += [f"   {name}" for name in names if name not in figures]
        lines += ["", *(f"- ``bk.figures.{name.rpartition('.')[2]}``: {_question(name)}" for name in figures)]
    for page in (Path(app.srcdir) / "api").glob("*.rst"):  # pages of names that have gone
        if f"   {page.stem}" not in lines:
            page.unlink()
    page, text = Path(app.srcdir) / "reference.rst", "\n".join(lines) + "\n"
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the list before autosummary reads it."""
    app.connect("config-inited", write_reference)
    return {"parallel_read_safe": True}
