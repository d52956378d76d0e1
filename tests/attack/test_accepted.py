"""What is accepted once works later: a loaded conversation is counted, requested, saved, loaded again and redacted.

Fed with the samples of all formats, each with one thing changed, as :mod:`tests.attack.test_mutants` changes them, or
with a few lines changed, where a format is no JSON.
`BUDGETKIT_EFFORT=40` tries forty times as many (see conftest).
"""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import budgetkit as bk
from budgetkit.trace import to_line
from tests.attack.test_mutants import FORMATS, SAMPLES, mutated, values
from tests.conftest import examples

TEXTS = sorted(path for path in FORMATS.iterdir() if path not in SAMPLES)
BUDGET = bk.Budget(
    1_000_000, (), [bk.Allocation("system"), bk.Allocation("history")], undeclared="pool"
)


def stream(text: str, name: str) -> BytesIO:
    written = BytesIO(text.encode("utf-8", "surrogatepass"))
    written.name = name
    return written


def use(trace: bk.Trace) -> None:
    """Do everything with a conversation that can be done with one."""
    counted = trace.counts(len)
    assert (counted >= 0).all()

    # it can be requested, saved between two requests, and taken up again
    talk = bk.Conversation(BUDGET, counter=len, overrun="tell")
    talk.add(*trace.messages)
    request = talk.request()
    again = bk.Conversation.from_json(talk.to_json(), counter=len, overrun="tell")
    assert again.request().messages == request.messages

    # it can be written to a file and read from there
    (loaded,) = bk.load_traces(stream(to_line(trace) + "\n", "saved.jsonl"))
    assert loaded.counts(len, trace.framing).tolist() == trace.counts(len, trace.framing).tolist()

    # it can be shown to others
    redacted = bk.redaction.redact(trace, len)
    assert redacted.counts(len, trace.framing).tolist() == trace.counts(len, trace.framing).tolist()


@pytest.mark.parametrize("sample", SAMPLES, ids=[path.name for path in SAMPLES])
@settings(max_examples=examples(6), deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore:.*No text in the:UserWarning")
@given(data=st.data())
def test_a_conversation_that_loads_is_used_to_the_end(sample: Path, data: st.DataObject) -> None:
    text = mutated(data.draw, values(sample))
    try:
        traces: list[Any] = bk.load_traces(stream(text, sample.name))
    except ValueError:
        return
    for trace in traces:
        use(trace)


@pytest.mark.parametrize("sample", TEXTS, ids=[path.name for path in TEXTS])
@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore:.*No text in the:UserWarning")
@given(data=st.data())
def test_a_text_or_table_that_loads_is_used_to_the_end(sample: Path, data: st.DataObject) -> None:
    """These formats have no tree to change a place of: lines leave, stand twice, are cut, or hold something else."""
    lines = sample.read_bytes().decode("utf-8", "replace").splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(lines) - 1))
        line = lines[place]
        cut = data.draw(st.integers(0, len(line)))
        others = [
            "",
            line * 2,
            line[:cut],
            line[cut:],
            "\n",
            "user: x\n",
            "#### \n",
            "> \n",
            ",,,\n",
            '"',
            "\ud83d\n",
        ]
        lines[place] = data.draw(st.sampled_from(others))
    try:
        traces = bk.load_traces(stream("".join(lines), sample.name))
    except ValueError:
        return
    for trace in traces:
        use(trace)


EVERY = [*SAMPLES, *TEXTS]


@pytest.mark.parametrize("sample", EVERY, ids=[path.name for path in EVERY])
@pytest.mark.filterwarnings("ignore:.*No text in the:UserWarning")
def test_every_sample_can_be_used_to_the_end(sample: Path) -> None:
    for trace in bk.load_traces(sample):
        use(trace)
        json.loads(to_line(trace))


def test_nan_in_a_file_is_nothing_and_all_that_comes_after_takes_it() -> None:
    """pandas writes NaN for what is missing: the conversation was loaded, and its request was no JSON."""
    line = '{"role": "user", "content": "Hello", "name": NaN, "contexts": [{"text": "a", "score": Infinity}]}'
    trace = bk.load_trace(stream(f"[{line}]", "saved.json"))
    assert trace.messages[0].raw["name"] is None
    json.loads(to_line(trace), parse_constant=pytest.fail)
    use(trace)


@pytest.mark.parametrize("field", ["time", "model", "tier", "output_tokens"])
def test_half_a_character_in_a_usage_record_is_replaced(field: str) -> None:
    """A codex log with one as its time was loaded, and pyarrow refused it in every later table of its usage."""
    usage = [{"message_index": 1, "context_tokens": 60, field: "\ud83d"}]
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    line = json.dumps({"messages": messages, "usage": usage})
    trace = bk.load_trace(stream(line, "saved.jsonl"))
    assert bk.trace.usage_frame(trace)["context_tokens"].tolist() == [60]
    use(trace)
    to_line(trace).encode()


@pytest.mark.parametrize("first", range(1, 5))
def test_a_session_whose_log_begins_with_an_answer_is_compared(first: int) -> None:
    """Its first request has no prompt in the log: the replay had one request fewer than the bill, and failed."""
    whole = bk.load_trace("made-up-session")
    start = [row["message_index"] for row in whole.fields["usage"]][first]
    rows = [
        {**row, "message_index": row["message_index"] - start}
        for row in whole.fields["usage"][:60]
        if row["message_index"] >= start
    ]
    session = bk.Session(bk.Trace("cut", whole.messages[start:], fields={"usage": rows}))
    assert session.requests()["prompt"].tolist() == [row["context_tokens"] for row in rows]
    assert bk.compare(session, ["claude-code"])["sent"].min() > 0
    assert not bk.what_if(session, threshold=100_000).empty
