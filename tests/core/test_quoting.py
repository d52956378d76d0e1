"""Errors quote a line of what they refuse, however much that is, and they are made in no time."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.counters import counter
from tests.hostile import any_text

SOURCES = sorted(Path(bk.__file__).parent.rglob("*.py"))
LEVELS = 5


def bomb(levels: int = LEVELS) -> str:
    """YAML in which each line names nine times the line before it."""
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n  ".join(["budgetkit: 1\nbudget:", *lines, f"window: *a{levels - 1}"])


def nested(levels: int = LEVELS) -> Any:
    """The same as a value: a few hundred bytes that print as megabytes."""
    value: Any = ["lol"] * 9
    for _ in range(levels):
        value = [value] * 9
    return value


def test_yaml_that_names_what_it_named_is_refused() -> None:
    """By its first alias; nothing is ever made of it."""
    sentence = r"^Invalid saved state. Alias \*a0 is not allowed. Write the value in its"
    for text in (
        bomb(),
        bomb(9),
        "budgetkit: 1\nbudget: {window: &w 9, constrained_below: *w, a: *a0}".replace("*w", "*a0"),
    ):
        with pytest.raises(ValueError, match=sentence):
            bk.state.from_yaml(text)


VALUES = {
    "nested": nested(),
    "long": "x" * 1_000_000,
    "key": {"x" * 90_000: 1},
    "number": -(10**5_000),
    "lines": ["x\n" * 500] * 500,
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize(
    "ask",
    [
        lambda value: bk.Share(value),
        lambda value: bk.Share(0.5, value),
        lambda value: bk.Reserve("output", value),
        lambda value: bk.Reserve(value, -1),
        lambda value: bk.Allocation(value, cap=-1),
        lambda value: bk.Allocation("a", importance=[value]),  # type: ignore[arg-type]
        lambda value: bk.Allocation("a", fill=value),
        lambda value: bk.Item("a", value),
        lambda value: bk.Budget(value),
        lambda value: bk.Budget(9, remainder=value),
        lambda value: bk.Budget(9, roles={"user": [value]}),  # type: ignore[dict-item]
        lambda value: bk.state.from_dict({"budgetkit": value}),
        lambda value: bk.state.from_dict({"budgetkit": 1, "budget": {"window": value}}),
        lambda value: bk.state.from_dict({"budgetkit": 1, "budget": {str(value)[:100_000]: 1}}),
        lambda value: bk.Message(
            {"role": value if not isinstance(value, str) else "user", "content": 3}
        ),
        lambda value: bk.Message({"role": "user", "content": [[value]]}),
        lambda value: counter(value if isinstance(value, str) else repr(brief(value))),
        lambda value: bk.model(value if isinstance(value, str) else 3, unknown="raise"),  # type: ignore[arg-type]
        lambda value: bk.presets.agent_prompt(None, {"context_budget": {"enabled": value}}),
    ],
)
def test_an_error_quotes_a_line_of_what_it_refuses(ask: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)) as refusal:
        ask(value)
    assert len(str(refusal.value)) < 1_000
    assert "\n" not in str(refusal.value)


def raised(tree: ast.AST) -> Iterator[ast.FormattedValue]:
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Raise):
            yield from (
                part for part in ast.walk(statement) if isinstance(part, ast.FormattedValue)
            )


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_error_writes_a_value_out(path: Path) -> None:
    """Whoever writes ``{value!r}`` into an error writes all of it, however large: `brief` shows a line."""
    whole = [
        part.lineno
        for part in raised(ast.parse(path.read_text(encoding="utf-8")))
        if part.conversion == ord("r")
    ]
    assert whole == [] or path == Path(bk.__file__)


def written_out(tree: ast.AST) -> Iterator[int]:
    """Give the lines that write ``{value!r}``, but for those of a repr."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FormattedValue) and node.conversion == ord("r"):
            yield node.lineno
        if not (
            isinstance(node, ast.FunctionDef) and node.name.strip("_") in ("repr", "repr_html")
        ):
            yield from written_out(node)


@pytest.mark.parametrize("package", ["conversation", "replay", "deciding"])
def test_no_sentence_writes_a_value_out(package: str) -> None:
    """Names in sentences stand in quotes as `brief` writes them; what texts.py writes is Python."""
    paths = [
        path for path in SOURCES if f"/{package}/" in path.as_posix() and path.name != "texts.py"
    ]
    assert paths
    assert {
        path.name: [*found]
        for path in paths
        if (found := [*written_out(ast.parse(path.read_text("utf-8")))])
    } == {}


def test_values_are_shown_as_python_shows_them_where_they_are_short() -> None:
    for value in ("a", "it's", 3, None, True, 0.5, [1, "a"], {"a": (1,)}, b"a", (), frozenset({1})):
        assert brief(value) == repr(value)
    assert brief(MappingProxyType({"a": 1})) == "{'a': 1}"
    assert brief(-(10**70)) == "a whole number of about 70 digits"
    assert quoted(range(25)).endswith("18, 19, and 5 more")


@given(
    any_text
    | st.recursive(
        st.integers() | any_text, lambda inner: st.lists(inner) | st.dictionaries(any_text, inner)
    )
)
def test_any_value_is_shown_in_one_short_line(value: object) -> None:
    for text in (brief(value), one_line(str(value))):
        assert len(text) <= 120 and len(text.splitlines()) <= 1
