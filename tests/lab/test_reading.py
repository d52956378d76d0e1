"""The budget explorer's reader: what became of each message of a turn, and where a cut falls."""

import json

from hypothesis import given
from hypothesis import strategies as st

from budgetkit import Allocation, Budget, BudgetExplorer, Reserve, load_trace
from budgetkit.lab.explorers.budget.explorer import FIRST, GONE, NEWEST
from budgetkit.lab.explorers.reading import parted, seam
from budgetkit.message import replace_surrogates
from budgetkit.trace import Trace
from budgetkit.truncation.cutting import SECTION_MARKERS as MARKERS

ROLES = {"user": "history", "assistant": "history"}
LONG = " ".join(f"word{i}" for i in range(400))


def explorer(messages: list[dict[str, str]], cap: int, keep: str = "newest") -> BudgetExplorer:
    history = Allocation("history", cap, keep=keep, granularity="token")  # type: ignore[arg-type]
    return BudgetExplorer(
        Budget(8_000, [Reserve("output", 800)], [history], undeclared="pool", roles=ROLES), messages
    )


def turns(many: int, text: str = "Hello there.") -> list[dict[str, str]]:
    return [
        {"role": role, "content": f"{text} {i}"}
        for i in range(many)
        for role in ("user", "assistant")
    ]


def test_a_cut_message_shows_what_stays_and_strikes_what_does_not() -> None:
    messages = [{"role": "user", "content": LONG}, *turns(2)]
    found = explorer(messages, 200)
    (cut,) = [block for block in found.view.reader["blocks"] if block["level"] == "cut"]
    decision = next(each for each in found.plan.decisions if each.outcome == "cut")
    kept = decision.item.payload.text.removeprefix(MARKERS["newest"])
    assert LONG.endswith(kept)
    struck = [piece["text"] for piece in cut["pieces"] if piece.get("struck")]
    stays = [piece["text"] for piece in cut["pieces"] if not piece.get("struck")]
    assert LONG[: -len(kept)].endswith(struck[-1])
    assert kept.startswith(stays[1])
    assert cut["mark"] == f"{decision.kept} of {decision.tokens} tokens, cut"
    assert cut["why"].startswith("Cut: over its cap. history asks for ")


def test_messages_say_what_became_of_them_and_runs_of_them_are_counted() -> None:
    found = explorer(turns(80), 300)
    blocks = found.view.reader["blocks"]
    assert [block["level"] for block in blocks].count("gap") == 1
    (gap,) = [block for block in blocks if block["level"] == "gap"]
    shown = [block for block in blocks if block["level"] != "gap"]
    assert len(shown) <= FIRST + GONE + NEWEST + 1
    assert len(shown) + int(gap["label"].split(" ")[0]) == len(found.plan.decisions)
    assert blocks[0]["mark"] == "9 tokens, dropped"
    assert blocks[-1]["section"] == "history"
    json.dumps(found.view.reader)


def test_without_a_conversation_there_is_nothing_to_read() -> None:
    assert BudgetExplorer("chat").view.reader == {}


def test_a_preset_whose_requests_are_planned_one_by_one_opens() -> None:
    """On 0.1.0: assignment destination is read-only."""
    trace = load_trace("coding-agent")
    assert isinstance(trace, Trace)
    assert "loses" in BudgetExplorer("agent_prompt", trace, window=8_192).status


@given(st.text(), st.text(), st.text(), st.sampled_from(sorted(MARKERS.values())))
def test_a_seam_finds_the_parts_again(head: str, gone: str, tail: str, marker: str) -> None:
    before, after = head + gone + tail, head + marker + tail
    start, middle, end = seam(before, after, [marker])
    assert start + middle + end == before
    assert start + marker + end == after


@given(st.text(max_size=2_000), st.integers(0, 2_000))
def test_pieces_of_a_cut_are_short_and_touch_it(text: str, at: int) -> None:
    kept, gone = text[:at], text[at:]
    pieces = parted(text, kept + MARKERS["first"], MARKERS.values())
    assert sum(len(piece["text"]) for piece in pieces) <= 700
    struck = [piece["text"] for piece in pieces if piece.get("struck")]
    assert replace_surrogates(gone).startswith("".join(struck)[:300])
