"""Every importer takes about twice the time for twice the file: ratios, on whatever machine.

What is linear takes four times as long for four times the file, what is quadratic sixteen times; the bound lies
between.
"""

import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

import budgetkit as bk
from budgetkit.lab.replay.prefix import requests_of
from budgetkit.models import resolve
from tests.messages import assistant, user

SAMPLES = Path(__file__).parents[1] / "formats"
TIMES, MOST = 4, 9.0
SAMPLE_SIZE, SHAPE_SIZE = 25_000, 200_000


def lists(value: Any) -> Iterator[list[Any]]:
    """List the lists of objects in plain data."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        yield value
    for entry in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from lists(entry)


def repeated(name: str, text: str, times: int) -> str | None:
    """Repeat what a file holds: its lines, its rows below the header, or the entries of its longest list."""
    suffix = Path(name).suffix
    if suffix == ".jsonl":
        return (text.rstrip("\n") + "\n") * times
    if suffix in (".csv", ".tsv"):
        header, _, rows = text.partition("\n")
        return f"{header}\n" + rows * times
    if suffix in (".md", ".txt"):
        return text * times
    document = json.loads(text) if suffix == ".json" else None
    longest = max(lists(document), key=lambda entries: len(json.dumps(entries)), default=None)
    if longest is None:
        return None
    longest[:] = longest * times
    return json.dumps(document)


def after(start: str, line: str) -> Callable[[int], str]:
    return lambda size: start + line * (size // len(line))


#: Shapes that a sample does not have: one long message, many sessions, lines without a word.
SHAPES: dict[str, Callable[[int], str]] = {
    "aider, one long answer": after("# aider chat started at 2026-01-01 10:00:00\n\n#### Why?\n\n", "A line of it.\n"),
    "aider, blank lines": after("# aider chat started at 2026-01-01 10:00:00\n\n#### Why?\nSo.\n", "\n"),
    "aider, many sessions": after("", "# aider chat started at 2026-01-01 10:00:00\n\n#### Why?\n\nSo.\n\n"),
    "cursor, rules and blank lines": after("# T\n_Exported on 1 from Cursor_\n\n**User**\n\nHi\n---", "\n"),
    "speakers, blank lines": after("User: Why?\nAssistant: So.\n", "\n"),
    "headings, blanks": after("## User\n\nWhy?\n\n## Assistant\n\nSo.\n", " \n"),
}  # fmt: skip


def seconds(text: str, name: str) -> float:
    stream = io.BytesIO(text.encode())
    stream.name = name
    start = time.process_time()
    with suppress(ValueError):  # a file with everything twice may be refused, at any length
        bk.load_traces(stream)
    return time.process_time() - start


def grows_evenly(make: Callable[[int], str], name: str, size: int) -> bool:
    """Tell whether time grows as size does, at one of some tries where something else is in the way."""
    seconds(make(1_000), name)
    small, large = make(size), make(TIMES * size)
    return any(seconds(large, name) < MOST * seconds(small, name) + 0.02 for _ in range(5))


@pytest.mark.parametrize("shape", SHAPES)
def test_no_shape_of_a_transcript_is_quadratic(shape: str) -> None:
    """In 0.2.0 a history of Aider's of 3.7 MB took 106 seconds."""
    assert grows_evenly(SHAPES[shape], "history.md", SHAPE_SIZE)


@pytest.mark.filterwarnings("ignore")  # a file with everything twice has much to be said about
@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir()))
def test_no_importer_is_quadratic(name: str) -> None:
    raw = (SAMPLES / name).read_bytes()
    text = raw.decode("utf-8", "replace")
    if repeated(name, text, 1) is None:
        pytest.skip("this sample has no list of objects to repeat")

    def make(size: int) -> str:
        return repeated(name, text, max(1, size // len(raw))) or ""

    assert grows_evenly(make, name, SAMPLE_SIZE)


def test_blocks_of_one_answer_are_read_once() -> None:
    """Each block asked all before it whether one of them was a call."""
    blocks = [
        {"type": "text", "text": "So."},
        {"type": "tool_use", "id": "c", "name": "look", "input": {}},
    ]
    answer = {"type": "tool_result", "tool_use_id": "c", "content": "Sun"}

    def make(size: int) -> str:
        content = [*blocks, answer] * (size // 150)
        return json.dumps({"messages": [user("Hi"), assistant(content)]})

    assert grows_evenly(make, "answer.json", SHAPE_SIZE)


def test_an_export_of_cursor_without_a_turn_is_refused_in_words() -> None:
    stream = io.BytesIO(b"# A title\n_Exported on 1 from Cursor_\n\n---\n")
    stream.name = "export.md"
    with pytest.raises(ValueError, match=r"export\.md"):
        bk.load_traces(stream)


def test_an_answer_over_many_records_is_not_quadratic() -> None:
    """Each record copied all blocks before it: 8,000 records took 7.6 seconds."""
    record = {"sessionId": "s", "cwd": "/", "uuid": "u", "requestId": "r", "version": "2.0.0"}
    message = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "So."}]}
    first = {**record, "type": "user", "message": user("Why?")}
    line = json.dumps({**record, "type": "assistant", "message": message}) + "\n"

    def make(size: int) -> str:
        return json.dumps(first) + "\n" + line * (size // 40)

    assert grows_evenly(make, "answer.jsonl", SHAPE_SIZE // 4)


def test_requests_of_one_turn_are_not_quadratic() -> None:
    """Each asked all messages of its turn for passages: 54,000 requests took minutes."""

    def seconds_for(requests: int) -> float:
        said = [user("Go."), *[assistant("So.")] * requests]
        trace = bk.Trace("agent", tuple(map(bk.Message, said)))
        tally = trace.tally(len, bk.trace.DEFAULT_ROLES, trace.framing)
        turns = requests_of(trace, "request")
        begun = time.process_time()
        tally.demand(turns, [])
        return time.process_time() - begun

    assert any(seconds_for(8_000) < MOST * seconds_for(2_000) + 0.02 for _ in range(5))


@pytest.mark.parametrize("unit", ["<tool_call>{}x", "<tool_call>{"])
def test_calls_that_never_end_are_not_quadratic(unit: str) -> None:
    """Each beginning of a call looked through the whole text for its end."""

    def make(size: int) -> str:
        said = [{"from": "human", "value": "x"}, {"from": "gpt", "value": unit * (size // 20)}]
        return json.dumps(said)

    assert grows_evenly(make, "chat.json", SHAPE_SIZE // 4)


def test_a_number_in_yaml_that_could_not_be_written_again_is_refused() -> None:
    stream = io.BytesIO(b"messages:\n- role: user\n  content: hi\n  size: 0x" + b"f" * 5_000)
    stream.name = "chat.yaml"
    with pytest.raises(ValueError, match="too many digits"):
        bk.load_traces(stream)


@pytest.mark.skipif(not hasattr(yaml, "CSafeLoader"), reason="PyYAML without its C extension")
def test_a_long_list_in_yaml_is_read_in_seconds() -> None:
    """750 kB of it took 18 s."""
    stream = io.BytesIO(
        b"messages:\n- role: user\n  content: hi\n  size: [" + b"a, " * 125_000 + b"a]"
    )
    stream.name = "chat.yaml"
    begun = time.process_time()
    assert len(bk.load_traces(stream)) == 1
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- " * 100_000 + "a", "nested deeper than 300 levels"),
        ("x: {a: " + "{a: " * 100_000, "nested deeper than 300 levels"),
        ("x: &a [1]\ny: *a", "aliases are not supported"),
    ],
    ids=["lists", "mappings", "alias"],
)
def test_yaml_that_nests_deeply_or_repeats_itself_is_refused(text: str, reason: str) -> None:
    """PyYAML's C extension would end the process."""
    stream = io.BytesIO(text.encode())
    stream.name = "chat.yaml"
    with pytest.raises(ValueError, match=rf"invalid YAML \({reason}"):
        bk.load_traces(stream)


def test_many_names_of_models_are_looked_up_in_seconds() -> None:
    """Each one took 40 ms, and a session may have hundreds of them."""
    begun = time.process_time()
    for number in range(800):
        assert not resolve(f"model-of-2030-{number}").is_known
    assert time.process_time() - begun < 4


def test_parts_that_cannot_be_counted_are_listed_once() -> None:
    """Every part listed all of them: 20,000 parts took minutes."""
    body = {"model": "gpt-4o", "messages": [user([{"type": "w"}] * 20_000)]}
    begun = time.process_time()
    assert bk.count_request(body).uncounted == ("w",)
    assert time.process_time() - begun < 10
