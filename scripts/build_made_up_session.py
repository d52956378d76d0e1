"""Write data/traces/made-up-session.jsonl: a session of a coding agent that nobody ever held, in Claude Code's format.

Its provider's numbers are made, too, by a plain rule: three characters are a token, 74,000 tokens of instructions and
tools stand in no line of the log, and a cache of five minutes reads what the request before read and wrote. So the
session shows what recorded ones show: two pauses that were too long, a compaction, and a bill. The same seed writes the
same bytes.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

TARGET = Path(__file__).parents[1] / "data" / "traces" / "made-up-session.jsonl"
MODEL = "claude-sonnet-4-5"
UNLOGGED = 74_000
HEAD = 16_500  # what many sessions share, and a cache nearly always has
LIFE = 300
COMPACTS_AT = 155_000  # as recorded sessions do on a window of 200,000
NOUNS = [
    "refund",
    "order",
    "parcel",
    "invoice",
    "customer",
    "address",
    "coupon",
    "stock",
    "label",
    "return",
]
VERBS = ["load", "save", "check", "merge", "split", "round", "print", "parse", "send", "close"]
TASKS = [
    "The tests of refunds fail since Friday. Find out why, and do not touch the public names.",
    "Please round the amounts as the invoice does, to two places.",
    "Parcels without an address end in an error that nobody understands. Make it say what to do.",
    "Look at how coupons are merged; a customer was given two of them.",
    "The label of a return has last year's text. Where does it come from?",
    "Write down what you changed, for the others.",
    "One more thing: stock is counted twice when an order is split.",
    "Stock is right now, but the report of last month still shows the old sums. Why?",
    "Customers without an order should not be listed. Take them out, with a test.",
    "Run everything again, and tell me what is left.",
]


class Story:
    """Records in the order in which they are written, with a clock and the provider's numbers."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clock = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
        self.records: list[dict[str, Any]] = []
        self.prompt = UNLOGGED
        self.cached = 0
        self.asked_at = self.clock
        self.requests = 0

    def add(
        self, kind: str, content: Any, message: dict[str, Any] | None = None, **more: Any
    ) -> None:
        """Write one record behind the others."""
        parent = self.records[-1]["uuid"] if self.records else None
        about = {
            "parentUuid": parent,
            "isSidechain": False,
            "sessionId": "made-up-session",
            "version": "made up",
        }
        self.records.append(
            {
                **about,
                "type": kind,
                "message": {"role": kind, "content": content, **(message or {})},
                "uuid": f"u{len(self.records):04}",
                "timestamp": self.clock.isoformat().replace("+00:00", "Z"),
                **more,
            }
        )
        self.prompt += tokens(content)

    def answer(self, blocks: list[dict[str, Any]]) -> None:
        """Ask the model: what the last request left in the cache is read, all else is written."""
        alive = (self.clock - self.asked_at).total_seconds() <= LIFE
        read = self.cached if alive and self.cached else HEAD
        fresh = self.random.randrange(4, 12)
        written = self.prompt - read - fresh
        self.asked_at = self.clock
        self.cached = read + written
        self.requests += 1
        usage = {
            "input_tokens": fresh,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "cache_creation": {
                "ephemeral_5m_input_tokens": written,
                "ephemeral_1h_input_tokens": 0,
            },
            "output_tokens": tokens(blocks) + 8,
        }
        self.clock += timedelta(seconds=self.random.randrange(4, 25))
        for place, block in enumerate(blocks):
            message = {"id": f"msg{self.requests:03}", "model": MODEL, "usage": usage}
            if place < len(blocks) - 1:
                message["usage"] = {**usage, "output_tokens": 1}
            self.add("assistant", [block], message, requestId=f"req{self.requests:03}")

    def compact(self) -> None:
        """Put a summary in the place of all that was said."""
        before = self.prompt
        self.clock += timedelta(seconds=70)
        self.add("system", "", subtype="compact_boundary")
        boundary = self.records[-1]
        del boundary["message"]
        boundary |= {"logicalParentUuid": boundary.pop("parentUuid"), "parentUuid": None}
        boundary |= {"content": "Conversation compacted"}
        boundary["compactMetadata"] = {"trigger": "auto", "preTokens": before}
        self.prompt = UNLOGGED
        self.cached = HEAD
        summary = "What was done so far. " + " ".join(sentence(self.random) for _ in range(90))
        self.add("user", summary, isCompactSummary=True)


def tokens(content: Any) -> int:
    """Count what a provider would: three characters are a token."""
    return len(content if isinstance(content, str) else json.dumps(content)) // 3


def sentence(random: Random) -> str:
    """Say something about a file."""
    noun, verb = random.choice(NOUNS), random.choice(VERBS)
    return f"{verb.capitalize()} the {noun} before the {random.choice(NOUNS)} in {path(random)}."


def path(random: Random) -> str:
    """Name a file."""
    return f"shop/{random.choice(NOUNS)}s/{random.choice(VERBS)}_{random.randrange(40):02}.py"


def source(random: Random, lines: int) -> str:
    """Write something that looks like a file."""
    written = []
    for number in range(1, lines + 1):
        noun, verb = random.choice(NOUNS), random.choice(VERBS)
        written.append(
            f"{number:5}  {noun}_{random.randrange(100):02} = {verb}({random.choice(NOUNS)}, {random.random():.4f})"
        )
    return "\n".join(written)


def build(seed: int = 25) -> list[dict[str, Any]]:
    """Tell the session: ten tasks, each of several steps."""
    story = Story(seed)
    random = story.random
    seen: list[str] = []
    pauses = {3: 660, 7: 1_500}
    for number, task in enumerate(TASKS):
        story.clock += timedelta(seconds=pauses.get(number, random.randrange(30, 120)))
        story.add("user", task)
        for step in range(random.randrange(11, 16)):
            if story.prompt > COMPACTS_AT:
                story.compact()
            place = random.choice(seen) if seen and random.random() < 0.3 else path(random)
            seen.append(place)
            id = f"call{number}{step:02}"
            name, arguments = ("Read", {"file_path": place})
            if step % 4 == 3:
                name, arguments = ("Bash", {"command": f"python -m pytest {place}"})
            call = {"type": "tool_use", "id": id, "name": name, "input": arguments}
            story.answer([{"type": "text", "text": sentence(random)}, call])
            story.clock += timedelta(seconds=random.randrange(1, 20))
            result = (
                source(random, random.randrange(40, 95)) if name == "Read" else source(random, 18)
            )
            story.add("user", [{"type": "tool_result", "tool_use_id": id, "content": result}])
        story.answer([{"type": "text", "text": " ".join(sentence(random) for _ in range(6))}])
    return story.records


if __name__ == "__main__":
    title = {
        "type": "custom-title",
        "customTitle": "a made-up session",
        "sessionId": "made-up-session",
    }
    lines = [json.dumps(record) for record in [title, *build()]]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
