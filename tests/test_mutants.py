"""Foreign files with one thing changed: each loads, or is refused in one sentence, whatever the change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import budgetkit as bk
from budgetkit.trace import list_traces, readings, to_line, usage_frame

FORMATS = Path(__file__).parent / "formats"
SAMPLES = sorted(path for path in FORMATS.iterdir() if path.suffix in (".json", ".jsonl", ".chat", ".traj"))

PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from([10**400, -(10**30), 1e308, 0.5]),
    st.sampled_from(["", "user", "x", "\ud83d", '{"role": "user"}', '[{"type": "text"}]', "[1, 2]", "messages", "0"]),
)
ANY = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "id", "messages", "0", "x.y"]), inner, max_size=3
        ),
    ),
    max_leaves=6,
)


def values(path: Path) -> list[Any]:
    text = path.read_text("utf-8")
    return [json.loads(text)] if path.suffix != ".jsonl" else [json.loads(line) for line in text.splitlines()]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """List every place in a value: what holds it, and under which key."""
    stack = [value]
    while stack:
        holder = stack.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], dict | list):
                stack.append(holder[key])


def mutated(draw: Callable[[st.SearchStrategy[Any]], Any], written: list[Any]) -> str:
    """Change one thing, or two: put anything in a place, take it away, double it, nest it."""
    held = deepcopy(written)
    for _ in range(draw(st.integers(1, 2))):
        found = list(places(held))
        if not found:
            break
        holder, key = draw(st.sampled_from(found))
        how = draw(st.sampled_from(["change", "change", "delete", "double", "nest", "rename"]))
        if how == "change":
            holder[key] = draw(ANY)
        elif how == "delete":
            del holder[key]
        elif how == "nest":
            holder[key] = [holder[key]] if draw(st.booleans()) else {"content": holder[key]}
        elif how == "double":
            holder[key] = [holder[key], deepcopy(holder[key])]
        elif isinstance(holder, dict):
            holder[draw(st.sampled_from(["messages", "content", "role", "parts", "input", "usage"]))] = holder.pop(key)
    return "\n".join(json.dumps(each) for each in held)


def use(stream: BytesIO) -> None:
    """Load, and look at everything that reads the file's own fields."""
    for trace in bk.load_traces(stream):
        assert int(trace.demand(len).to_numpy().sum()) >= 0
        assert trace.format and all("\n" not in note for note in trace.warnings)
        assert (usage_frame(trace)["context_tokens"].fillna(0) >= 0).all()
        readings(trace, len)
        to_line(trace).encode()


@pytest.mark.parametrize("sample", SAMPLES, ids=[path.name for path in SAMPLES])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore:.*there is no text in any message:UserWarning")
@given(data=st.data())
def test_a_file_with_one_thing_changed_loads_or_is_refused_in_words(sample: Path, data: st.DataObject) -> None:
    text = mutated(data.draw, values(sample))
    for read in (use, list_traces):
        stream = BytesIO(text.encode())
        stream.name = sample.name
        try:
            read(stream)
        except ValueError as refusal:
            assert str(refusal) and "\n" not in str(refusal) and len(str(refusal)) < 1_000
