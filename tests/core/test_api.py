"""The public names of budgetkit, the imports allowed between its packages, and the cost of importing it."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import budgetkit
from budgetkit.lab import figures

PACKAGE = Path(budgetkit.__file__).parent

# An application installs the kit. The lab adds the parts for a notebook, the extras those for a pipeline.
KIT = {
    *("budget", "message", "files", "frames", "models", "plan", "promise", "pruning", "counters"),
    *("requests", "presets"),
}
KIT |= {"state", "trace", "truncation", "conversation", "inputs", "plugins"}
LAB = {
    f"lab.{package}"
    for package in ("accuracy", "replay", "deciding", "figures", "explorers", "app", "sessions")
}
EXTRAS = {f"extras.{package}" for package in ("endpoints", "shell", "adapters", "redaction")}

# Layers, lowest first: a package may import from a lower layer.
LAYERS = [
    {"budget", "files", "frames"},
    {"plugins", "message", "models", "plan", "promise"},
    {"pruning"},
    {"counters", "presets", "state"},
    {"requests"},
    {"trace", "truncation"},
    {"inputs"},
    {"conversation"},
    {"lab.figures", "extras.redaction", "extras.adapters", "extras.endpoints"},
    {"lab.accuracy", "lab.replay"},
    {"lab.deciding", "lab.sessions"},
    {"lab.explorers"},
    {"lab.app"},
    {"extras.shell"},
]

# I/O boundaries: the packages that may use an outside library; an empty set means that none may. Packages with figures
# of their own may draw, as the shared figures do.
SHOWN = {"lab.figures", "lab.explorers", "lab.accuracy", "lab.replay"}
BOUNDARIES = {
    "tiktoken": {"counters"},
    **dict.fromkeys(
        ("tokenizers", "mistral_common", "litellm", "sentencepiece", "ctok"), {"counters"}
    ),
    "plotly": SHOWN,
    "ipywidgets": set(),
    "anywidget": {"lab.app", "lab.explorers"},
    "IPython": {"lab.app", "lab.explorers", "lab.figures"},
    "genai_prices": {"models", "lab.replay"},
    "importlib.resources": {"files"},
    **dict.fromkeys(("dask", "distributed"), set[str]()),
    **dict.fromkeys(("voila", "tornado", "webbrowser"), {"lab.app"}),
    **dict.fromkeys(("click", "rich", "pytest"), {"extras.shell"}),
    **dict.fromkeys(("httpx", "anyio", "socket"), {"extras.endpoints"}),
    "tqdm": {"lab.accuracy"},
    **dict.fromkeys(("agents", "langchain", "langchain_core", "pydantic_ai"), {"extras.adapters"}),
    **dict.fromkeys(("http", "urllib.request", "ftplib", "requests", "aiohttp"), set[str]()),
}
NOT_AT_IMPORT = {
    "numpy",
    "pandas",
    "plotly",
    "tiktoken",
    "ipywidgets",
    "anywidget",
    "yaml",
    "IPython",
    "regex",
    "pydantic",
    *("re", "typing", "pathlib"),
}

SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def place(path: Path) -> str:
    """Return the package that a file belongs to: plan, or lab.replay."""
    return package_of(module_name(path))


def package_of(module: str) -> str:
    """Return the package of a module, one level deeper under lab and extras."""
    _, *folders = module.split(".")
    depth = 2 if folders[0] in ("lab", "extras") else 1
    return ".".join(folders[:depth])


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(tree: ast.AST) -> tuple[tuple[str, ast.stmt], ...]:
    """List every imported name in full: `from budgetkit.plan import Plan` is budgetkit.plan.Plan."""
    found: list[tuple[str, ast.stmt]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += ((alias.name, node) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the import from budgetkit on"
            found += ((f"{node.module}.{alias.name}", node) for alias in node.names)
    return tuple(found)


def within(name: str, world: str) -> bool:
    return name == world or name.startswith(f"{world}.")


def layers() -> dict[str, int]:
    return {package: layer for layer, packages in enumerate(LAYERS) for package in packages}


def source_name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def own_imports(path: Path) -> Iterator[tuple[str, int]]:
    """List the packages of budgetkit that a file imports from, with the lines."""
    for name, node in imports(tree_of(path)):
        if within(name, "budgetkit") and name != "budgetkit":
            yield package_of(name), node.lineno


@pytest.mark.parametrize("path", SOURCES, ids=source_name)
def test_a_file_imports_from_lower_layers_and_libraries_at_their_boundary(path: Path) -> None:
    layer_of, package = layers(), place(path)
    if package not in ("lab", "extras", "__main__"):  # __main__ starts the shell, above all layers
        assert package in layer_of, f"{package} is missing from LAYERS; add it to a layer"
        for other, line in own_imports(path):
            assert other in layer_of, f"line {line}: import {other} from its own module"
            assert other == package or layer_of[other] < layer_of[package], (
                f"line {line}: {package} may not import {other}, which is not in a lower layer"
            )
    for name, node in imports(tree_of(path)):
        for world, packages in BOUNDARIES.items():
            if within(name, world):
                assert package in packages, (
                    f"line {node.lineno}: only {packages or 'nobody'} may import {world}"
                )
    for function in ast.walk(tree_of(path)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            hidden = [name for name, _ in imports(function) if within(name, "budgetkit")]
            assert hidden == [], f"{function.name}, line {function.lineno} hides an import"
        # The explorer reads its own script and style sheet; all other files lie under data/.
        if isinstance(function, ast.Name) and function.id == "__file__":
            assert package in {"files", "lab.explorers"}


def test_the_kit_needs_neither_lab_nor_extras() -> None:
    assert layers().keys() == KIT | LAB | EXTRAS, (
        "a new package belongs to the kit, to lab or to extras"
    )
    for path in SOURCES:
        if place(path) in KIT:
            needs = {package for package, _ in own_imports(path)}
            assert needs <= KIT, (
                f"{source_name(path)} belongs to the kit and imports {sorted(needs - KIT)}"
            )


def test_a_request_is_read_without_knowing_what_it_costs() -> None:
    """Two folders of one package: requests/reading imports nothing from requests/billing."""
    paths = sorted((PACKAGE / "requests" / "reading").glob("*.py"))
    assert paths
    for path in paths:
        names = [name for name, _ in imports(tree_of(path))]
        assert not any(within(name, "budgetkit.requests.billing") for name in names), path.name


def test_the_first_level_is_the_kit_and_two_folders() -> None:
    entries = {
        path.name.removesuffix(".py")
        for path in PACKAGE.iterdir()
        if not path.name.startswith("__")
    }
    assert entries - {"py.typed", "data", "frames.pyi"} == KIT | {"lab", "extras"}


def test_no_module_imports_a_private_name_of_another() -> None:
    names = {
        name.rpartition(".")[2]
        for path in SOURCES
        for name, _ in imports(tree_of(path))
        if within(name, "budgetkit")
    }
    assert "Budget" in names
    assert [name for name in sorted(names) if name.startswith("_")] == []


def test_no_module_imports_itself_by_a_detour() -> None:
    modules = {module_name(path): path for path in SOURCES}
    waiting = {
        module: {
            name if name in modules else name.rpartition(".")[0]
            for name, _ in imports(tree_of(path))
        }
        for module, path in modules.items()
    }
    while free := {module for module, needs in waiting.items() if not needs & waiting.keys()}:
        waiting = {module: needs for module, needs in waiting.items() if module not in free}
    assert waiting.keys() == set(), "these import one another in a circle"


def module_name(path: Path) -> str:
    return ".".join(("budgetkit", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )


#: What a program has done, and what it must not have loaded by then.
STEPS = {
    "import budgetkit": NOT_AT_IMPORT | {"genai_prices"},
    "import budgetkit.models; assert budgetkit.models.models.cache_info().currsize == 0": {
        "tiktoken"
    },
    "assert budgetkit.model('gpt-4o').window == 128_000": {"genai_prices", "tiktoken", "numpy"},
    "budgetkit.counter('chars/4')('x')": {"tiktoken", "regex", "numpy"},
    "count = budgetkit.counter('gpt-4o'); assert count.name == 'gpt-4o'": {"tiktoken", "regex"},
    "count('word ' * 1_000_000); count.many(['x'] * 9)": {"gigatoken", "numpy"},
    "count.many(['Hello, budget. ' * 400] * 50)": {"gigatoken", "numpy"},
}


def test_nothing_is_loaded_before_it_is_needed() -> None:
    lines = ["import sys; before = set(sys.modules)"]
    for step, absent in STEPS.items():
        lines += [step, "loaded = {name.partition('.')[0] for name in sys.modules.keys() - before}"]
        lines += [f"assert not loaded & {absent!r}, (loaded & {absent!r}, {step!r})"]
    lines += ["assert 'budgetkit' in loaded and 'tiktoken' in loaded"]
    lines += [
        "import budgetkit.lab.replay",
        "assert callable(budgetkit.replay), 'a module hides it'",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


def test_help_names_every_public_name() -> None:
    assert set(re.findall(r"`(\w+)`", str(budgetkit.__doc__))) == set(budgetkit.__all__)
    assert dir(budgetkit) == sorted([*budgetkit.__all__, "__version__"])


@pytest.mark.parametrize(
    "name", [name for name in budgetkit.__all__ if isinstance(getattr(budgetkit, name), ModuleType)]
)
def test_completion_offers_only_what_a_public_module_declares(name: str) -> None:
    module = getattr(budgetkit, name)
    assert sorted(dir(module)) == sorted(module.__all__)
    assert [inner for inner in module.__all__ if not hasattr(module, inner)] == []


def stub_names(package: ModuleType) -> dict[str, str]:
    """Read from a package's stub the module that a type checker takes each of its names from."""
    tree = ast.parse(Path(str(package.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    lines = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(line.module) for line in lines for alias in line.names}


@pytest.mark.parametrize("package", [budgetkit, figures], ids=["budgetkit", "figures"])
def test_a_type_checker_and_import_find_each_name_in_the_same_place(package: ModuleType) -> None:
    modules = stub_names(package)
    assert set(package.__all__) <= modules.keys()
    for name, module in modules.items():
        value = getattr(package, name)
        inner = f"{module}.{name}"
        is_module = isinstance(value, ModuleType)
        assert value is (
            import_module(inner) if is_module else getattr(import_module(module), name)
        ), name


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    refusal = r"'budgetkit' has no attribute 'Budgets'\. Choose one of: .*Budget, "
    with pytest.raises(AttributeError, match=refusal):
        budgetkit.Budgets  # type: ignore[attr-defined]  # noqa: B018


def documented() -> Iterator[tuple[str, object]]:
    """List the public functions and classes, those of the public modules among them."""
    for name in budgetkit.__all__:
        value = getattr(budgetkit, name)
        for inner, member in (
            public_members(value) if isinstance(value, ModuleType) else [("", value)]
        ):
            if inspect.isfunction(member) or inspect.isclass(member):
                yield f"{name}.{inner}".rstrip("."), member


def public_members(module: ModuleType) -> Iterator[tuple[str, object]]:
    """List the public members of a module: those it declares, else those it defines."""
    for name, member in inspect.getmembers(module):
        own = getattr(member, "__module__", None) == module.__name__
        if name in getattr(module, "__all__", [name] if own and not name.startswith("_") else []):
            yield name, member


def test_every_public_name_has_a_numpydoc_docstring_with_an_example() -> None:
    lacking = {}
    for name, value in documented():
        text = inspect.getdoc(value) or ""
        takes = bool(inspect.signature(value).parameters)  # type: ignore[arg-type]
        wanted = [">>> ", *(["Parameters\n----------"] * takes)]
        if inspect.isfunction(value) and inspect.signature(value).return_annotation not in (
            None,
            "None",
        ):
            wanted.append("Returns\n-------")
        if missing := [part.partition("\n")[0] for part in wanted if part not in text]:
            lacking[name] = missing
    assert lacking == {}


def test_every_module_says_what_is_in_it() -> None:
    for path in SOURCES:
        assert import_module(module_name(path)).__doc__, path
