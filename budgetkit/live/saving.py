"""A running conversation as plain data and back: only what is still there, numbered anew, so that it stays small."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from budgetkit import state
from budgetkit.budget import Budget
from budgetkit.budget.amounts import MOST_TOKENS
from budgetkit.budget.quoting import brief, one_line
from budgetkit.live.returning import Archive
from budgetkit.live.running_ledger import Line, RunningLedger
from budgetkit.message import Message
from budgetkit.plan.allocating import with_undeclared
from budgetkit.plan.item import Item
from budgetkit.pruning.history import NEVER, SHRUNK, WAITING, WHOLE, History, Slots

VERSION = 1
Standing = dict[int, Line]
Filled = tuple[Standing, list[Message], list[int], int]
_PLAIN = ("turn", "entered", "stamps", "carrier")
_Whole = Annotated[int, Field(ge=-MOST_TOKENS, le=2 * MOST_TOKENS)]  # what comes back is stamped beyond MOST_TOKENS
_LINES = list[tuple[_Whole, dict[str, Any], _Whole, str, str, _Whole, bool]]
#: What the parts of a saved conversation are made of.
_KINDS: dict[str, Any] = {
    "slots": list[tuple[_Whole, _Whole, _Whole, bool, _Whole, _Whole, _Whole]],
    **dict.fromkeys(("gone", "closed", "results", "waiting"), list[_Whole]),
    **{
        "summaries": list[tuple[_Whole, _Whole]],
        "lines": _LINES,
        "standing": _LINES,
        "this_turn": list[tuple[_Whole, str, _Whole]],
    },
    **dict.fromkeys(("past", "present", "callers"), dict[str, _Whole]),
    **dict.fromkeys(("start", "turn", "entered", "stamps"), _Whole),
    **{"carrier": str, "unanswered": list[tuple[_Whole, list[str]]], "answers": list[tuple[_Whole, list[_Whole]]]},
    **{"passages": list[tuple[str, _Whole, float, dict[str, Any]]], "system": list[dict[str, Any]]},
}


def saved(
    budget: Budget, ledger: RunningLedger, standing: Standing, inbox: Sequence[Message], sent: list[int], requests: int
) -> str:
    """Return a conversation as JSON."""
    data = {
        "budgetkit": VERSION,
        "budget": state.to_dict(budget)["budget"],
        "section": ledger.rules.section,
        "tools": list(ledger.tools),
        "conversation": packed(ledger, standing),
        "inbox": [message.raw for message in inbox],
        "sent": sent,
        "requests": requests,
    }
    return json.dumps(data)


def restored(text: str) -> tuple[Budget, Callable[[RunningLedger], Filled]]:
    """Return the budget of a saved conversation, and a function that fills a ledger with what was said."""
    try:
        data = json.loads(text)
        budget = state.from_dict({"budgetkit": VERSION, "budget": data["budget"]})
        if data["budgetkit"] != VERSION or not isinstance(budget, Budget):
            raise ValueError(f"version {brief(data['budgetkit'])} is not known, {VERSION} is")
    except (ValueError, TypeError, LookupError) as error:
        raise refused(error) from error

    def fill(ledger: RunningLedger) -> Filled:
        if ledger.rules.section != data.get("section"):
            raise ValueError(
                f"the saved conversation prunes {brief(data.get('section'))}, this one {brief(ledger.rules.section)}; "
                "give the roles and the section that it had"
            )
        try:
            ledger.tools = list(data["tools"])
            for name, kind in _KINDS.items():
                TypeAdapter(kind).validate_json(json.dumps(data["conversation"][name]), strict=True)
            TypeAdapter(tuple[list[_Whole], _Whole]).validate_json(
                json.dumps([data["sent"], data["requests"]]), strict=True
            )
            standing = unpack(ledger, data["conversation"])
            _refuse_strangers(ledger, standing, data["conversation"])
            with_undeclared(replace(budget, deficit="signed"), _sections(ledger, standing))
            ledger.count_schemas()
            filled = standing, [Message(raw) for raw in data["inbox"]], list(data["sent"]), data["requests"]
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            raise refused(error) from error
        return filled

    return budget, fill


def _refuse_strangers(ledger: RunningLedger, standing: Standing, data: Mapping[str, Any]) -> None:
    """Refuse parts that name messages which the other parts do not have: a request would fail on them, or hang."""
    history, lines = ledger.history, ledger.lines
    slots = range(len(history.slots))
    inside = [slot for slot in slots if history.state[slot] in (WHOLE, SHRUNK)]
    waits = [slot for slot in slots if history.state[slot] == WAITING]
    left = [slot for slot in slots if history.state[slot] > SHRUNK]
    answers = [slot for found in ledger.results.values() for slot in found]
    numbers = [*lines, *standing, *ledger.this_turn, *ledger.callers.values(), *ledger.unanswered, *ledger.results]
    parts: list[tuple[str, Collection[int], Container[int]]] = [
        ("its parts name", {*numbers, *history.slots.unit, *history.closed, *history.whole_results}, slots),
        ("its summaries stand for", [place for place, _ in data["summaries"]], standing.keys() - {*inside}),
        ("its history holds", inside, lines),
        ("its history waits for", ledger.waiting, lines.keys() & {*waits}),
        ("its calls wait for", answers, ledger.apart),
        ("its history lost", data["gone"], left),
    ]
    for what, named, known in parts:
        strange = [slot for slot, times in Counter(named).items() if times > 1 or slot not in known]
        if strange:
            raise ValueError(f"{what} message {strange[0]}, which the other parts do not have, or not so")
    if not 0 <= ledger.start <= len(slots) or (ledger.archive and len(ledger.archive.messages) != len(slots)):
        raise ValueError(f"it begins a turn or keeps an archive for other messages than its {len(slots)}")


def _sections(ledger: RunningLedger, standing: Standing) -> list[str]:
    """List each section that the next requests may ask for."""
    lines = [name for line in (*ledger.lines.values(), *standing.values()) for name in (line.past, line.present)]
    turn = (past for past, _ in ledger.this_turn.values())
    return [*dict.fromkeys([*ledger.demand(), *ledger.past, *ledger.present, *lines, *turn])]


def refused(error: Exception) -> ValueError:
    """Say why a text is no saved conversation."""
    said = one_line(str(error) if isinstance(error, ValueError) else f"{type(error).__name__} {error}")
    return ValueError(f"no saved conversation: {said}; give the whole text that to_json made")


def packed(ledger: RunningLedger, standing: Standing) -> dict[str, Any]:
    """Return what is still there as plain data, its messages numbered from 0 on."""
    history, slots = ledger.history, ledger.history.slots
    kept = {*ledger.lines, *standing, *ledger.this_turn, *([ledger.start] if ledger.start < len(slots) else [])}
    kept |= {slots.unit[slot] for slot in kept} if ledger.archive is None else {*range(len(slots))}
    order = sorted(kept)
    new = {slot: number for number, slot in enumerate(order)}
    columns = (slots.tokens, slots.turn, slots.is_result, slots.importance, history.size, history.state)
    return {
        "slots": [[new[slots.unit[slot]], *(column[slot] for column in columns)] for slot in order],
        "gone": [new[slot] for slot in order if history.gone[slot] != NEVER],
        "closed": [new[slot] for slot in order if slot in history.closed],
        "results": [new[slot] for slot in order if slot in history.whole_results],
        "summaries": [[new[place], turn] for place, turn in history.summaries.items()],
        "lines": [[new[slot], *_line(line)] for slot, line in ledger.lines.items()],
        "standing": [[new[slot], *_line(line)] for slot, line in standing.items()],
        "this_turn": [[new[slot], *each] for slot, each in ledger.this_turn.items()],
        "waiting": [new[slot] for slot in ledger.waiting],
        "callers": {id: new[slot] for id, slot in ledger.callers.items() if slot in new},
        "unanswered": [[new[slot], sorted(ids)] for slot, ids in ledger.unanswered.items() if slot in new],
        "answers": [[new[slot], [new[each] for each in found]] for slot, found in ledger.results.items()],
        "passages": [[p.section, p.tokens, p.score, p.payload.raw] for p in ledger.passages],
        "system": [message.raw for message in ledger.system],
        **({} if ledger.archive is None else {"archive": [message.raw for message in ledger.archive.messages]}),
        "past": dict(ledger.past),
        "present": dict(ledger.present),
        "start": bisect_left(order, ledger.start),
        **{name: getattr(ledger, name) for name in _PLAIN},
    }


def unpack(ledger: RunningLedger, data: Mapping[str, Any]) -> Standing:
    """Fill a ledger with what `packed` returned; the summaries that stand are returned."""
    rows = data["slots"]
    unit, tokens, turn, is_result, importance, size, became = ([row[i] for row in rows] for i in range(7))
    history = ledger.history = History(Slots(tokens, unit, turn, is_result, importance))
    history.take_up(size, became, data["gone"], dict(data["summaries"]), data["closed"], data["results"])
    ledger.lines = {slot: _read(row) for slot, *row in data["lines"]}
    ledger.apart = {slot for slot, line in ledger.lines.items() if not line.sent}
    ledger.this_turn = {slot: (past, held) for slot, past, held in data["this_turn"]}
    ledger.waiting, ledger.callers = list(data["waiting"]), dict(data["callers"])
    ledger.unanswered = {slot: set(ids) for slot, ids in data["unanswered"]}
    ledger.results = {slot: list(found) for slot, found in data["answers"]}
    ledger.passages = [
        Item(section, held, score=score, payload=Message(raw)) for section, held, score, raw in data["passages"]
    ]
    ledger.past, ledger.present, ledger.start = Counter(data["past"]), Counter(data["present"]), data["start"]
    ledger.system = tuple(map(Message, data["system"]))
    for name in _PLAIN:
        setattr(ledger, name, data[name])
    if ledger.archive is not None:
        ledger.archive = Archive(map(Message, data.get("archive") or _forgotten(ledger)))
    return {slot: _read(row) for slot, *row in data["standing"]}


def _forgotten(ledger: RunningLedger) -> list[Mapping[str, Any]]:
    """Stand in for what another policy forgot: it has no words to be found by."""
    lines, slots = ledger.lines, range(len(ledger.history.slots))
    return [lines[slot].message.raw if slot in lines else {"role": "assistant", "content": ""} for slot in slots]


def _line(line: Line) -> list[Any]:
    return [line.message.raw, line.tokens, line.past, line.present, line.stamp, line.sent]


def _read(row: Sequence[Any]) -> Line:
    raw, *rest = row
    return Line(Message(raw), *rest)
