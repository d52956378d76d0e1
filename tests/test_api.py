"""What budgetkit offers by name, what its modules may import, and what importing it costs."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import budgetkit

PACKAGE = Path(budgetkit.__file__).parent

PUBLIC = {
    *("Share", "Item", "Reserve", "Allocation", "Budget", "allocate", "allocate_many", "fit", "sweep"),
    *("Plan", "Grant", "Decision", "model", "counter", "Framing", "FRAMINGS", "truncate"),
    *("Message", "Trace", "list_traces", "load_trace", "load_traces", "BudgetExplorer", "AccuracyExplorer"),
    *("ConversationExplorer", "DesignCard", "App"),
    *("Replay", "replay", "rank_policies", "evidence", "losses", "evidence_shares", "outlook"),
    *("presets", "state", "assembly", "figures", "policies", "prompt_cache", "cost"),
    *("corpora", "accuracy", "calibrate", "streaming", "claims"),
    *("shipped_traces", "cutter", "cut_share", "count_request", "count_answer", "RequestCount", "fit_bill"),
    *("solve", "tune", "Conversation", "trim", "redact", "watch", "load_ipython_extension"),
    *("thinking", "section_orders", "near_duplicates"),
    *("build", "build_async", "memory_tokens", "MemoryTokens", "provider_counter"),
}

# The core is what an application installs; the wings stand on it, and the faces on both.
CORE = {"budget", "message", "files", "models", "plan", "pruning", "counters", "framing", "presets", "state", "trace"}
CORE |= {"truncation", "live"}
WINGS = {"accuracy", "replay", "deciding"}
FACES = {"figures", "explorer", "endpoints", "app", "commands"}

# Floors from the ground up: a room may import what stands on a lower floor.
FLOORS = [
    {"budget", "files"},
    {"message", "models", "plan", "pruning"},
    {"counters", "presets", "state", "figures"},
    {"framing"},
    {"trace", "truncation"},
    {"explorer", "live", "endpoints"},
    {"accuracy", "replay"},
    {"app", "commands", "deciding"},
]
MOST_FLOORS, MOST_ENTRIES = 8, 22

# Each outside world has one door; an empty set means that nobody goes there. A wing's own figures and its own
# explorer are doors like those that all share.
SHOWN = {"figures", "explorer", "accuracy.figures", "accuracy.explorer", "replay.figures", "replay.explorer"}
DOORS = {
    "tiktoken": {"counters"},
    **dict.fromkeys(("tokenizers", "mistral_common", "litellm"), {"counters"}),
    "plotly": SHOWN,
    **dict.fromkeys(("ipywidgets", "anywidget", "IPython"), {"app", *(d for d in SHOWN if d.endswith("explorer"))}),
    "genai_prices": {"models", "replay"},
    "importlib.resources": {"files"},
    **dict.fromkeys(("dask", "distributed"), set[str]()),
    "voila": {"app"},
    **dict.fromkeys(("click", "rich", "pytest"), {"commands"}),
    **dict.fromkeys(("httpx", "anyio", "socket"), {"endpoints"}),
    "tqdm": {"accuracy"},
    "rapidfuzz": {"trace"},
    "optuna": {"deciding"},
    **dict.fromkeys(("agents", "langchain", "langchain_core", "pydantic_ai"), {"live.adapters"}),
    **dict.fromkeys(("http", "urllib.request", "ftplib", "requests", "aiohttp"), set[str]()),
}
# Functions that the package gives to its own rooms.
GIVEN_BY_THE_PACKAGE = {"budgetkit.homes", "budgetkit.lazily"}
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
    """Name the module or folder right under the package that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def inner_place(path: Path) -> str:
    """Name the folder two levels under the package that a file belongs to: replay.figures."""
    return ".".join(path.relative_to(PACKAGE).parts[:2])


def imports(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """List every imported name in full: `from budgetkit.plan import Plan` is budgetkit.plan.Plan."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the import from budgetkit on"
            yield from ((f"{node.module}.{alias.name}", node) for alias in node.names)


def within(name: str, world: str) -> bool:
    return name == world or name.startswith(f"{world}.")


def floors() -> dict[str, int]:
    return {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def source_name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=source_name)
def test_imports_point_down(path: Path) -> None:
    stands, own = floors(), place(path)
    assert own in stands, f"{own} has no place in FLOORS yet: on which floor does it stand?"
    for name, node in imports(ast.parse(path.read_text(encoding="utf-8"))):
        if not within(name, "budgetkit") or name in GIVEN_BY_THE_PACKAGE or name.split(".")[1] == own:
            continue
        other = name.split(".")[1]
        assert other in stands, f"line {node.lineno}: import {other} from its own module, not through the package"
        assert stands[other] < stands[own], f"line {node.lineno}: {own} may not import {other}, which stands above it"


def test_no_room_of_the_core_needs_a_wing_or_a_face() -> None:
    rooms = floors().keys()
    assert rooms == CORE | WINGS | FACES, "a new room is core, wing or face"
    for path in SOURCES:
        needs = {name.split(".")[1] for name, _ in imports(ast.parse(path.read_text(encoding="utf-8"))) if "." in name}
        if place(path) in CORE:
            assert not needs & (WINGS | FACES), f"{source_name(path)} is core and imports {needs & (WINGS | FACES)}"


def test_the_first_level_is_small_enough_to_find_ones_way() -> None:
    entries = {path.name for path in PACKAGE.iterdir() if not path.name.startswith("__")} - {"py.typed", "data"}
    assert len(entries) <= MOST_ENTRIES, sorted(entries)
    assert len(FLOORS) <= MOST_FLOORS


@pytest.mark.parametrize("path", SOURCES, ids=source_name)
def test_no_import_is_hidden_in_a_function_to_dodge_a_circle(path: Path) -> None:
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            hidden = [name for name, _ in imports(function) if within(name, "budgetkit")]
            assert hidden == [], f"{function.name}, line {function.lineno}"


def test_no_module_imports_itself_by_a_detour() -> None:
    modules = {module_name(path): path for path in SOURCES}
    waiting = {
        module: {
            name if name in modules else name.rpartition(".")[0]
            for name, _ in imports(ast.parse(path.read_text(encoding="utf-8")))
        }
        for module, path in modules.items()
    }
    while free := {module for module, needs in waiting.items() if not needs & waiting.keys()}:
        waiting = {module: needs for module, needs in waiting.items() if module not in free}
    assert waiting.keys() == set(), "these import one another in a circle"


def module_name(path: Path) -> str:
    return ".".join(("budgetkit", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


@pytest.mark.parametrize("path", SOURCES, ids=source_name)
def test_each_outside_world_has_one_door(path: Path) -> None:
    for name, node in imports(ast.parse(path.read_text(encoding="utf-8"))):
        for world, doors in DOORS.items():
            if within(name, world):
                assert {place(path), inner_place(path)} & doors, (
                    f"line {node.lineno}: only {doors or 'nobody'} may import {world}"
                )


@pytest.mark.parametrize("path", SOURCES, ids=source_name)
def test_files_are_found_through_their_door(path: Path) -> None:
    """The explorer reads its own script and style sheet; all other files lie under data/."""
    looks = {node.id for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Name)}
    assert "__file__" not in looks or place(path) in {"files", "explorer"}


def test_import_loads_nothing_slow() -> None:
    program = "import sys; before = set(sys.modules); import budgetkit; print(*(sys.modules.keys() - before))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert "budgetkit" in loaded
    assert loaded & NOT_AT_IMPORT == set()


def test_public_names_are_pinned() -> None:
    assert set(budgetkit.__all__) == PUBLIC
    assert len(budgetkit.__all__) == len(PUBLIC)
    assert set(dir(budgetkit)) >= PUBLIC


def test_every_name_of_a_stub_is_found_where_it_says() -> None:
    for package in (budgetkit, budgetkit.figures):
        told = budgetkit.homes(package)
        assert set(package.__all__) == told.keys()
        for name, home in told.items():
            value = getattr(package, name)
            inner = f"{home}.{name}"
            module = isinstance(value, ModuleType)
            assert value is (import_module(inner) if module else getattr(import_module(home), name)), name


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(AttributeError, match=r"budgetkit has no 'Budgets'; it has .*Budget, .*; take one of these"):
        budgetkit.Budgets  # type: ignore[attr-defined]  # noqa: B018


def test_importing_a_module_never_hides_the_function_of_its_name() -> None:
    program = "import budgetkit.replay, budgetkit.presets; print(callable(budgetkit.replay), budgetkit.presets)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("True <module 'budgetkit.presets'")


def documented() -> Iterator[tuple[str, object]]:
    """List the public functions and classes, those of the public modules among them."""
    for name in sorted(PUBLIC):
        value = getattr(budgetkit, name)
        for inner, member in public_members(value) if isinstance(value, ModuleType) else [("", value)]:
            if inspect.isfunction(member) or inspect.isclass(member):
                yield f"{name}.{inner}".rstrip("."), member


def public_members(module: ModuleType) -> Iterator[tuple[str, object]]:
    """List what a module gives out: the names it declares, else those that it defines itself."""
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
        if inspect.isfunction(value) and inspect.signature(value).return_annotation not in (None, "None"):
            wanted.append("Returns\n-------")
        if missing := [part.partition("\n")[0] for part in wanted if part not in text]:
            lacking[name] = missing
    assert lacking == {}


def test_every_module_says_what_is_in_it() -> None:
    for path in SOURCES:
        assert import_module(module_name(path)).__doc__, path
