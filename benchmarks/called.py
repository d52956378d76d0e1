"""Marks from what a call copies: ``python -m benchmarks.called FOLDER OUT``.

Reads conversations (JSONL, one a line) whose assistant calls tools, or whose ``meta.expected_calls_per_turn`` says
which calls each turn asks for, and writes those where a call needs an earlier turn, as ``NAME-called.jsonl``, for
`benchmarks.promised`. A value that a call passes on, and that no message of its own turn holds, was told in an earlier
turn: the message that makes the call (or asks for it) is marked with the newest message that holds it, as
`budgetkit.deciding.evidence` documents it. So nobody guesses what is needed: without that message, or an older one
that says the same, the call could not have been made. Values are whole strings and numbers of four characters and
more; what the
system message or a schema holds is always there, and needs nothing.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import budgetkit as bk

SHORTEST = 4
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
Raw = dict[str, Any]


def marked(raw: Raw, first: bool = False) -> Raw | None:
    """Return a conversation with marks; None where no call needs an earlier turn.

    Examples
    --------
    >>> call = {"function": {"name": "send", "arguments": '{"to": "Ada Byron"}'}}
    >>> said = [{"role": "user", "content": "I am Ada Byron."}, {"role": "assistant", "content": "Hello."}]
    >>> said += [{"role": "user", "content": "Send it to me."}, {"role": "assistant", "tool_calls": [call]}]
    >>> marked({"id": "a", "messages": said})["messages"][3]["evidence"]
    [0]
    """
    trace = bk.Trace("read", tuple(map(bk.Message, raw["messages"])))
    texts = [_text(message) for message in trace.messages]
    always = json.dumps(raw.get("tools") or "") + "".join(
        text
        for text, m in zip(texts, trace.messages, strict=True)
        if m.role in ("system", "developer")
    )
    expected = raw.get("meta", {}).get("expected_calls_per_turn") or []
    found: dict[int, set[int]] = {}
    for number, turn in enumerate(trace.turns):
        asked = [
            (turn.start, value)
            for value in _quoted(expected[number] if number < len(expected) else [])
        ]
        for index in range(turn.start, turn.end):
            asked += [
                (index, v)
                for call in trace.messages[index].tool_calls
                for v in _values(call.arguments)
            ]
        for index, value in asked:
            holds = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)").search
            own = texts[turn.start : max(index, turn.start + 1)]
            if len(value) < SHORTEST or holds(always) or any(map(holds, own)):
                continue
            earlier = [i for i, text in enumerate(texts[: turn.start]) if holds(text)]
            if earlier:
                found.setdefault(index, set()).add(earlier[0 if first else -1])
    if not found:
        return None
    messages = [
        {**each, "evidence": sorted(found[i])} if i in found else each
        for i, each in enumerate(raw["messages"])
    ]
    return {**raw, "messages": messages, "meta": {**raw.get("meta", {}), "copy": True}}


def _text(message: bk.Message) -> str:
    return " ".join([message.text, *(call.arguments for call in message.tool_calls)])


def _values(arguments: str) -> Iterator[str]:
    try:
        left = [json.loads(arguments)]
    except ValueError:
        return
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield str(value)


def _quoted(calls: list[str]) -> list[str]:
    return [one or other for call in calls for one, other in _QUOTED.findall(call)]


def main() -> None:
    """Read a folder and write the conversations that have marks."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.called", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--first", action="store_true", help="mark the oldest message that holds a value"
    )
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    for path in sorted(asked.folder.glob("*.jsonl")):
        raws = [
            json.loads(line)
            for line in path.read_text(encoding="utf-8").splitlines()
            if line.strip()
        ]
        found = [mark for raw in raws if raw.get("messages") and (mark := marked(raw, asked.first))]
        if found:
            lines = "\n".join(json.dumps(each, ensure_ascii=False) for each in found)
            (asked.out / f"{path.stem}-called.jsonl").write_text(lines + "\n", encoding="utf-8")
            pairs = sum(len(m.get("evidence", ())) for each in found for m in each["messages"])
            print(
                f"{path.stem}: {len(found):,} of {len(raws):,} conversations, {pairs:,} messages needed"
            )


if __name__ == "__main__":
    main()
