"""Feed the readers of conversations, states and answers with bytes that find new ways through them.

    pip install atheris
    python -m tests.fuzz -max_total_time=600

An error in words (ValueError, LookupError) is an answer, and for what was saved only a ValueError; what loads can be
counted, looked at and saved again; an answer is a count or half a sentence. Anything else stops the run and leaves the
input in ``.fuzz/``. It starts from one sample of each format and saved states. Not collected by pytest; what it finds
becomes a test of its own.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

with atheris.instrument_imports(include=["budgetkit"]):
    import budgetkit as bk
    from budgetkit.budget import Budget
    from budgetkit.extras.endpoints.asking import ENDPOINTS, tokens_in
    from budgetkit.extras.endpoints.exchange import Answer, Key
    from budgetkit.plan import Plan
    from budgetkit.state import from_json, from_yaml, to_json, to_yaml
    from budgetkit.trace import load_traces

COUNT = bk.counter("chars/4")
FOUND = Path(".fuzz")
BODIES: tuple[Any, ...] = (
    {
        "messages": [{"role": "user", "content": "hello"}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
    },
    {
        "system": "be kind",
        "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}],
    },
    {
        "contents": [
            {
                "role": "user",
                "parts": [{"text": "hello"}, {"functionCall": {"name": "f", "args": {}}}],
            }
        ]
    },
    {
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "hello"}],
            }
        ]
    },
    {
        "trajectory": [{"role": "user", "content": "x"}],
        "traj": [{"role": "ai", "text": "y"}],
        "info": {},
    },
    {
        "request": {"model": "m", "messages": []},
        "response": {"usage": {"prompt_tokens": 3, "input_tokens": 4}},
    },
    {
        "type": "user",
        "message": {"role": "user", "content": "hello"},
        "uuid": "a",
        "parentUuid": None,
    },
)


def read(data: bytes) -> None:
    """Try one input; its first byte says by which reader."""
    if not data:
        return
    which, rest = data[0] % 5, data[1:]
    if which == 0:
        read_conversations(rest)
    elif which == 3:
        read_running(rest.decode("utf-8", "surrogateescape"))
    elif which == 4:
        read_answer(rest)
    else:
        read_state(rest.decode("utf-8", "surrogateescape"), from_json if which == 1 else from_yaml)


def read_conversations(written: bytes) -> None:
    """Load and count."""
    try:
        for trace in load_traces(io.BytesIO(written)):
            trace.demand(COUNT)
    except (
        ValueError,
        LookupError,
        ImportError,
    ) as refusal:  # the last for a table whose extra is not installed
        assert str(refusal)


def read_state(text: str, load: Callable[[str], Budget | Plan]) -> None:
    """Load, look at all of it, and save again."""
    try:
        state: Budget | Plan = load(text)
    except ValueError as refusal:
        assert str(refusal)
        return
    if isinstance(state, Plan):
        assert (
            repr(state) and len(state.frame()) == len(state.grants) and state.warnings is not None
        )
        assert len(state.decisions.frame()) == len([*state.decisions])
    saved = to_json(state)
    assert to_json(from_json(saved)) == saved == to_json(from_yaml(to_yaml(state)))


def read_running(text: str) -> None:
    """Take up a conversation, and save it again."""
    try:
        talk = bk.Conversation.from_json(text, counter=len, overrun="tell")
    except ValueError as refusal:
        assert str(refusal)
        return
    assert (
        bk.Conversation.from_json(talk.to_json(), counter=len, overrun="tell").to_json()
        == talk.to_json()
    )


def read_answer(body: bytes) -> None:
    """Find the count in an answer, with each provider's shape."""
    for endpoint in ENDPOINTS.values():
        found = tokens_in(
            Answer(200, "OK", "", body),
            endpoint,
            Key("KEY", lambda key: {"key": key}, "sk-0123456789"),
        )
        assert (0 <= found <= 10**9) if isinstance(found, int) else found.strip()


def start(folder: Path) -> None:
    """Write the inputs to start from."""
    budgets = [bk.presets.PRESETS[name](8_192) for name in bk.presets.PRESETS]
    plan = bk.fit(
        Budget(100, (), [bk.Allocation("a", 50, keep="best")]),
        [bk.Item("a", 30, 0.5), bk.Item("a", 40)],
    )
    conversations = [json.dumps(body) for body in BODIES]
    conversations += ["\n".join(json.dumps(body) for body in BODIES[::-1])]
    conversations += [
        path.read_text("utf-8") for path in sorted((Path(__file__).parent / "formats").iterdir())
    ]
    inputs = [b"\x00" + each.encode() for each in conversations]
    states: list[Budget | Plan] = [*budgets, plan]
    inputs += [b"\x01" + to_json(each).encode() for each in states]
    inputs += [b"\x02" + to_yaml(each).encode() for each in states]
    talk = bk.Conversation(
        bk.presets.working_memory(400, output=50), bk.policies.SlidingWindow(2), len, overrun="tell"
    )
    for turn in range(4):
        talk.add(
            {"role": "user", "content": "why " * turn}, {"role": "assistant", "content": "so " * 9}
        )
        talk.request()
    inputs += [b"\x03" + talk.to_json().encode()]
    answers = (
        {"input_tokens": 12},
        {"totalTokens": 12},
        {"error": {"message": "slow down", "code": 429}},
    )
    inputs += [b"\x04" + json.dumps(each).encode() for each in answers]
    for number, content in enumerate(inputs):
        (folder / f"{number}").write_bytes(content)


def main() -> None:
    """Run until the time is up or something breaks."""
    FOUND.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        start(Path(folder))
        options = ("-max_len=4096", f"-artifact_prefix={FOUND}/")
        atheris.Setup([sys.argv[0], folder, *options, *sys.argv[1:]], read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
