"""A running conversation as plain data and back: only what is still there, numbered anew, so that it stays small.

    {"budgetkit": 2, "budget": {...}, "section": "history", "tools": [...], "inbox": [...], "sent": [...],
     "requests": 3, "settings": {...},
     "conversation": {
         "slots":  [{"unit": 0, "tokens": 9, "turn": 1, "is_result": false, "importance": 0, "size": 9, "state": 1,
                     "role": "user"}, ...],
         "lines":  [{"slot": 0, "message": {"role": "user", "content": "Hello world"}, "tokens": 9, "past": "history",
                     "present": "current", "stamp": 1, "sent": true}, ...], ...}}

A slot is a message's place in the conversation; a line is a message that is or will be sent. Every field has its name.
The settings stand in :mod:`budgetkit.conversation.saved_settings`. Version 1, which 0.2.0 wrote, had rows without names
and no settings; it is read as well.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, TypeVar

from budgetkit import state
from budgetkit.budget import Budget
from budgetkit.budget.amounts import MOST_TOKENS
from budgetkit.budget.quoting import brief
from budgetkit.conversation.running_tally import RunningTally, TallyEntry
from budgetkit.conversation.saved_settings import SavedSettings, refused
from budgetkit.message import Message
from budgetkit.plan.item import Item
from budgetkit.plan.limits import with_undeclared
from budgetkit.pruning.history import NEVER, SHRUNK, WAITING, WHOLE, History, Slots
from budgetkit.pruning.search import Archive

VERSION: Final = 2
#: Of the budget inside, which has a version of its own.
BUDGET_VERSION: Final = 1
Raw = dict[str, Any]
Summaries = dict[int, TallyEntry]  # as they are sent, by the first slot that each stands for
Row = TypeVar("Row")


@dataclass(frozen=True)
class SavedSlot:
    """A message's place: what goes with it, what it holds, and what has become of it."""

    unit: int  # the first slot of those that leave together
    tokens: int  # of the message as it came
    turn: int
    is_result: bool
    importance: int
    size: int  # what the history holds of it now, in tokens
    state: int  # see budgetkit.pruning.history
    role: str = ""


@dataclass(frozen=True)
class SavedLine:
    """A message that is or will be sent, and the sections that it counts in."""

    slot: int
    message: Raw
    tokens: int
    past: str  # its section once its turn has passed
    present: str  # its section while its turn lasts
    stamp: int  # a number that changes with its text
    sent: bool


@dataclass(frozen=True)
class SavedSummary:
    """A summary stands in a slot and covers all turns up to one."""

    slot: int
    last_turn: int


@dataclass(frozen=True)
class SavedDemand:
    """What a message of this turn asks of the section that it will count in later."""

    slot: int
    section: str
    tokens: int


@dataclass(frozen=True)
class SavedCall:
    """A message with calls that have no result yet, by their ids."""

    slot: int
    calls: list[str]


@dataclass(frozen=True)
class SavedAnswers:
    """The results that wait until all calls of a message have theirs."""

    slot: int
    results: list[int]


@dataclass(frozen=True)
class SavedPassage:
    """A passage that was retrieved for this turn."""

    section: str
    tokens: int
    score: float
    passage: Raw


@dataclass(frozen=True)
class SavedState:
    """All that a conversation remembers between two requests."""

    slots: list[SavedSlot]
    gone: list[int]
    closed: list[int]
    results: list[int]  # the tool results that are still whole
    summaries: list[SavedSummary]
    lines: list[SavedLine]
    standing: list[SavedLine]  # the summaries, as they are sent
    this_turn: list[SavedDemand]
    waiting: list[int]
    callers: dict[str, int]
    unanswered: list[SavedCall]
    answers: list[SavedAnswers]
    passages: list[SavedPassage]
    system: list[Raw]
    past: dict[str, int]
    present: dict[str, int]
    start: int
    turn: int
    entered: int
    stamps: int
    carrier: str
    archive: list[Raw] = field(default_factory=list)


_PLAIN: Final = ("turn", "entered", "stamps")
# Rows of version 1, by part: the names of what stood in them.
_FIRST_VERSION: Final[Mapping[str, type]] = {
    "slots": SavedSlot,
    "summaries": SavedSummary,
    "lines": SavedLine,
    "standing": SavedLine,
    "this_turn": SavedDemand,
    "unanswered": SavedCall,
    "answers": SavedAnswers,
    "passages": SavedPassage,
}


def saved(
    budget: Budget,
    settings: SavedSettings,
    tally: RunningTally,
    summaries: Summaries,
    inbox: Sequence[Message],
    sent: list[int],
    requests: int,
) -> dict[str, Any]:
    """Return a conversation as plain data."""
    conversation = {name: _written(part) for name, part in vars(packed(tally, summaries)).items()}
    if tally.archive is None:
        del conversation["archive"]
    return {
        "budgetkit": VERSION,
        "budget": state.to_dict(budget)["budget"],
        "settings": vars(settings),
        "section": tally.rules.section,
        "tools": list(tally.tools),
        "conversation": conversation,
        "inbox": [message.raw for message in inbox],
        "sent": sent,
        "requests": requests,
    }


def _written(part: Any) -> Any:
    """Write the rows of a part as objects."""
    if not isinstance(part, list):
        return part
    return [vars(row) if type(row) in _ROWS else row for row in part]


@dataclass(frozen=True)
class RestoredState:
    """What a running conversation takes up again, beside the tally that was filled."""

    summaries: Summaries
    inbox: list[Message]  # messages that were not counted yet
    last_stamps: list[int]  # of the messages of its last request
    requests: int  # how many it had made


@dataclass(frozen=True)
class SavedConversation:
    """What a text holds: budget, settings where it has them, and a function that fills a tally with the messages."""

    budget: Budget
    settings: SavedSettings | None
    fill: Callable[[RunningTally], RestoredState]


def restored(text: str) -> SavedConversation:
    """Read a saved conversation."""
    try:
        data = json.loads(text)
        version = data["budgetkit"]
        budget = state.from_dict({"budgetkit": BUDGET_VERSION, "budget": data["budget"]})
        if (
            version not in (1, VERSION)
            or isinstance(version, bool)
            or not isinstance(budget, Budget)
        ):
            raise ValueError(f"version {brief(version)} is not known, {VERSION} is")
        if "settings" in data:
            settings = _read(SavedSettings, data["settings"], "its settings")
        else:
            settings = None
        section = _plain(str, "text")(data["section"], "its section")
    except (ValueError, TypeError, LookupError) as error:
        raise refused(error) from error

    def fill(tally: RunningTally) -> RestoredState:
        if tally.rules.section != section:
            raise ValueError(
                f"the saved conversation prunes {brief(section)}, this one {brief(tally.rules.section)}; "
                "give the roles and the section that it had"
            )
        try:
            if version == VERSION:
                written = data["conversation"]
            else:
                written = _named(data["conversation"])
            saved_state = _read(SavedState, written, "its conversation")
            last_stamps = _whole_numbers(data["sent"], "its stamps")
            (requests,) = _whole_numbers([data["requests"]], "its number of requests")
            tally.tools = list(data["tools"])
            summaries = unpack(tally, saved_state)
            _refuse_strangers(tally, summaries, saved_state)
            with_undeclared(replace(budget, deficit="signed"), _sections(tally, summaries))
            tally.count_schemas()
            inbox = [Message(raw) for raw in data["inbox"]]
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            raise refused(error) from error
        return RestoredState(
            summaries=summaries, inbox=inbox, last_stamps=last_stamps, requests=requests
        )

    return SavedConversation(budget=budget, settings=settings, fill=fill)


def _named(conversation: Mapping[str, Any]) -> dict[str, Any]:
    """Give names to the rows of version 1, which were lists; who speaks in a slot stands in its line alone."""
    named = dict(conversation)
    for part, kind in _FIRST_VERSION.items():
        names = [row_field.name for row_field in fields(kind)]
        named[part] = [dict(zip(names, row, strict=False)) for row in conversation[part]]
    for line in (*named["standing"], *named["lines"]):
        named["slots"][line["slot"]]["role"] = str(line["message"]["role"])
    return named


def _whole_numbers(value: Any, what: str) -> list[int]:
    """Return a list of whole numbers; what comes back is stamped beyond the greatest number of tokens."""
    if not isinstance(value, list):
        raise ValueError(f"{what} are {brief(value)}, which is no list")
    for number in value:
        if type(number) is not int or not -MOST_TOKENS <= number <= 2 * MOST_TOKENS:
            raise ValueError(f"{what} hold {brief(number)}, which is no whole number of that size")
    return value


def _read(kind: type[Row], value: Any, what: str) -> Row:
    """Read a row whose fields all have the types that its class gives them."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is {brief(value)}, which is no object with names")
    read: dict[str, Any] = {}
    for row_field in fields(kind):  # type: ignore[arg-type] # a dataclass
        if row_field.name not in value and row_field.name in _OPTIONAL:
            continue
        if row_field.name not in value:
            raise ValueError(f"{what} has no {row_field.name}")
        read[row_field.name] = _READERS[str(row_field.type)](
            value[row_field.name], f"{row_field.name} of {what}"
        )
    return kind(**read)


def _texts(value: Any, what: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{what} is {brief(value)}, which is no list of texts")
    return value


def _plain(kind: type | tuple[type, ...], kind_words: str) -> Callable[[Any, str], Any]:
    """Return a function that reads a value of one type, and refuses others."""

    def read(value: Any, what: str) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"{what} is {brief(value)}, which is no {kind_words}")
        return value

    return read


def _row_of(kind: type[Row]) -> Callable[[Any, str], Row]:
    """Return a function that reads a row of one kind."""
    return lambda value, what: _read(kind, value, what)


def _list_of(read: Callable[[Any, str], Any]) -> Callable[[Any, str], list[Any]]:
    """Return a function that reads a list of values of one kind."""

    def read_list(value: Any, what: str) -> list[Any]:
        if not isinstance(value, list):
            raise ValueError(f"{what} is {brief(value)}, which is no list")
        return [read(entry, f"an entry of {what}") for entry in value]

    return read_list


def _numbers_by_name(value: Any, what: str) -> dict[str, int]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is {brief(value)}, which is no object with names")
    _whole_numbers([*value.values()], what)
    return value


def _whole(value: Any, what: str) -> int:
    return _whole_numbers([value], what)[0]


_ROWS: Final = {*_FIRST_VERSION.values()}
_OPTIONAL: Final = ("archive", "role")
#: What reads a field, by the type that its class gives it.
_READERS: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "int": _whole,
    "bool": _plain(bool, "truth value"),
    "str": _plain(str, "text"),
    "str | None": _plain((str, type(None)), "text"),
    "float": _plain((int, float), "number"),
    "Raw": _plain(dict, "object"),
    "Raw | None": _plain((dict, type(None)), "object"),
    "list[int]": _whole_numbers,
    "list[str]": _texts,
    "list[Raw]": _list_of(_plain(dict, "object")),
    "dict[str, int]": _numbers_by_name,
    **{f"list[{kind.__name__}]": _list_of(_row_of(kind)) for kind in _ROWS},
}


def _refuse_strangers(tally: RunningTally, summaries: Summaries, state: SavedState) -> None:
    """Refuse parts that name messages which the other parts do not have: a request would fail on them, or hang."""
    history = tally.history
    entries = tally.entries
    slots = range(len(history.slots))
    inside = [slot for slot in slots if history.state[slot] in (WHOLE, SHRUNK)]
    waits = [slot for slot in slots if history.state[slot] == WAITING]
    left = [slot for slot in slots if history.state[slot] > SHRUNK]
    answers = [slot for results in tally.early_results.values() for slot in results]
    numbers = [
        *entries,
        *summaries,
        *tally.this_turn,
        *tally.calling_slots.values(),
        *tally.open_calls,
        *tally.early_results,
    ]
    parts: list[tuple[str, Collection[int], Container[int]]] = [
        (
            "its parts name",
            {*numbers, *history.slots.unit, *history.closed, *history.whole_results},
            slots,
        ),
        (
            "its summaries stand for",
            [summary.slot for summary in state.summaries],
            summaries.keys() - {*inside},
        ),
        ("its history holds", inside, entries),
        ("its history waits for", tally.not_entered, entries.keys() & {*waits}),
        ("its calls wait for", answers, tally.unsent),
        ("its history lost", state.gone, left),
    ]
    for what, named, places in parts:
        strange = [
            slot for slot, times in Counter(named).items() if times > 1 or slot not in places
        ]
        if strange:
            raise ValueError(
                f"{what} message {strange[0]}, which the other parts do not have, or not so"
            )
    if not 0 <= tally.start <= len(slots) or (
        tally.archive and len(tally.archive.messages) != len(slots)
    ):
        raise ValueError(
            f"it begins a turn or keeps an archive for other messages than its {len(slots)}"
        )


def _sections(tally: RunningTally, summaries: Summaries) -> list[str]:
    """List each section that the next requests may ask for."""
    entries = [*tally.entries.values(), *summaries.values()]
    of_entries = [section for entry in entries for section in (entry.past, entry.present)]
    turn = (past for past, _ in tally.this_turn.values())
    return [*dict.fromkeys([*tally.demand(), *tally.past, *tally.present, *of_entries, *turn])]


def packed(tally: RunningTally, summaries: Summaries) -> SavedState:
    """Return what is still there as rows with names, its messages numbered from 0 on."""
    history = tally.history
    slots = tally.history.slots

    # what is still there: everything where it may come back, else what is sent and what that goes with
    slots_there = {*tally.entries, *summaries, *tally.this_turn}
    if tally.start < len(slots):
        slots_there.add(tally.start)
    if tally.archive is None:
        slots_there |= {slots.unit[slot] for slot in slots_there}
    else:
        slots_there = {*range(len(slots))}
    order = sorted(slots_there)
    new = {slot: number for number, slot in enumerate(order)}

    rows = [
        SavedSlot(
            unit=new[slots.unit[slot]],
            tokens=slots.tokens[slot],
            turn=slots.turn[slot],
            is_result=slots.is_result[slot],
            importance=slots.importance[slot],
            size=history.size[slot],
            state=history.state[slot],
            role=slots.role[slot],
        )
        for slot in order
    ]
    passages = [
        SavedPassage(
            section=item.section,
            tokens=item.tokens,
            score=item.score,
            passage=dict(item.payload.raw),
        )
        for item in tally.passages
    ]
    return SavedState(
        slots=rows,
        gone=[new[slot] for slot in order if history.gone[slot] != NEVER],
        closed=[new[slot] for slot in order if slot in history.closed],
        results=[new[slot] for slot in order if slot in history.whole_results],
        summaries=[SavedSummary(new[place], turn) for place, turn in history.summaries.items()],
        lines=[_saved_line(new[slot], line) for slot, line in tally.entries.items()],
        standing=[_saved_line(new[slot], line) for slot, line in summaries.items()],
        this_turn=[
            SavedDemand(new[slot], section, tokens)
            for slot, (section, tokens) in tally.this_turn.items()
        ],
        waiting=[new[slot] for slot in tally.not_entered],
        callers={id: new[slot] for id, slot in tally.calling_slots.items() if slot in new},
        unanswered=[
            SavedCall(new[slot], sorted(ids))
            for slot, ids in tally.open_calls.items()
            if slot in new
        ],
        answers=[
            SavedAnswers(new[slot], [new[result] for result in results])
            for slot, results in tally.early_results.items()
        ],
        passages=passages,
        system=[dict(message.raw) for message in tally.system],
        past=dict(tally.past),
        present=dict(tally.present),
        start=bisect_left(order, tally.start),
        turn=tally.turn,
        entered=tally.entered,
        stamps=tally.stamps,
        carrier=tally.priming_section,
        archive=[]
        if tally.archive is None
        else [dict(message.raw) for message in tally.archive.messages],
    )


def unpack(tally: RunningTally, state: SavedState) -> Summaries:
    """Fill a tally with what `packed` returned; the summaries that stand are returned."""
    rows = state.slots
    slots = Slots(
        tokens=[row.tokens for row in rows],
        unit=[row.unit for row in rows],
        turn=[row.turn for row in rows],
        is_result=[row.is_result for row in rows],
        importance=[row.importance for row in rows],
        role=[row.role for row in rows],
    )
    history = tally.history = History(slots)
    history.take_up(
        size=[row.size for row in rows],
        state=[row.state for row in rows],
        gone=state.gone,
        summaries={summary.slot: summary.last_turn for summary in state.summaries},
        closed=state.closed,
        whole_results=state.results,
    )
    tally.entries = {line.slot: _line(line) for line in state.lines}
    for line in tally.entries.values():
        tally.note_form(line.message)
    tally.unsent = {slot for slot, line in tally.entries.items() if not line.sent}
    tally.this_turn = {demand.slot: (demand.section, demand.tokens) for demand in state.this_turn}
    tally.not_entered = list(state.waiting)
    tally.calling_slots = dict(state.callers)
    tally.open_calls = {call.slot: set(call.calls) for call in state.unanswered}
    tally.early_results = {answers.slot: list(answers.results) for answers in state.answers}
    tally.passages = [
        Item(row.section, row.tokens, score=row.score, payload=Message(row.passage))
        for row in state.passages
    ]
    tally.past = Counter(state.past)
    tally.present = Counter(state.present)
    tally.start = state.start
    tally.system = tuple(map(Message, state.system))
    for name in _PLAIN:
        setattr(tally, name, getattr(state, name))
    tally.priming_section = state.carrier
    if tally.archive is not None:
        tally.archive = Archive(map(Message, state.archive or _forgotten(tally)))
    return {line.slot: _line(line) for line in state.standing}


def _forgotten(tally: RunningTally) -> list[Mapping[str, Any]]:
    """Stand in for what another policy forgot: it has no words to be found by."""
    entries = tally.entries
    slots = range(len(tally.history.slots))
    return [
        entries[slot].message.raw if slot in entries else {"role": "assistant", "content": ""}
        for slot in slots
    ]


def _saved_line(slot: int, line: TallyEntry) -> SavedLine:
    return SavedLine(
        slot=slot,
        message=dict(line.message.raw),
        tokens=line.tokens,
        past=line.past,
        present=line.present,
        stamp=line.stamp,
        sent=line.sent,
    )


def _line(row: SavedLine) -> TallyEntry:
    return TallyEntry(
        message=Message(row.message),
        tokens=row.tokens,
        past=row.past,
        present=row.present,
        stamp=row.stamp,
        sent=row.sent,
    )
