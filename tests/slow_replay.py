"""The slow, obvious twin of replay(): every request is built as a list, and lists are compared element by element."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import budgetkit as bk
from budgetkit.lab.replay.prefix import requests_of
from budgetkit.message import Message
from budgetkit.pruning.policies import Cut, Floor, Policy, PruningContext
from budgetkit.requests import Framing
from budgetkit.trace.tally import past_section, present_section

ONE_A_CHARACTER = Framing()


@dataclass
class Twin:
    """What the twin found, a value a request."""

    sent: list[int] = field(default_factory=list)
    history: list[int] = field(default_factory=list)
    equal: list[int] = field(default_factory=list)
    over: list[int] = field(default_factory=list)
    summaries: list[int] = field(default_factory=list)
    present: list[set[int]] = field(default_factory=list)


@dataclass
class Entry:
    """One thing that stands in the history: a message, what is left of it, or a summary."""

    slots: list[int]
    tokens: int
    place: int
    unit: int
    turn: int
    kind: str = "whole"
    label: str = "whole"


def slow_replay(trace: bk.Trace, budget: bk.Budget, policy: Policy, section: str, by: Any) -> Twin:
    found, history, before = Twin(), _History(trace, policy), list[tuple[Any, int]]()
    for request in requests_of(trace, by):
        items = _request(trace, request, budget.roles, section)
        demand = {
            s: sum(i[3] for i in items if i[2] == s) for s in {i[2] for i in items} | {section}
        }
        prunable = [
            i
            for i in items
            if i[0] == "message" and i[2] == section
            if i[1] < request.start or trace.messages[i[1]].role != "user"
            if _section(trace, i[1], budget.roles, past_section, section, request.start) == section
        ]
        pinned = demand[section] - sum(i[3] for i in prunable)
        plan = bk.allocate(replace(budget, deficit="signed"), demand)
        others = sum(g.granted for g in plan.grants if g.section != section) + pinned
        limit = min(plan[section].limit - pinned, budget.usable - others)
        room = PruningContext(0, limit, others, budget.usable, budget.window, request.number)
        calls = history.visit([i[1] for i in prunable], room)
        kept = {slot: e for e in history.entries for slot in [e.place]}
        gone = {i[1] for i in prunable} - {
            s for e in history.entries if e.kind != "summary" for s in e.slots
        }
        tokens = [
            (
                (kind, key, kept[key].label if kind == "message" and key in kept else "whole"),
                _size(kept, kind, key, size),
            )
            for kind, key, _, size in items
            if kind != "message" or key not in gone or (key in kept and kept[key].kind == "summary")
        ]
        total = sum(e.tokens for e in history.entries)
        granted = bk.allocate(replace(budget, deficit="signed"), demand | {section: total + pinned})
        found.sent.append(
            sum(g.granted for g in granted.grants if g.section != section) + total + pinned
        )
        found.history.append(total + pinned)
        found.over.append(max(0, total - max(0, room.limit)))
        found.summaries.append(calls)
        found.present.append({i[1] for i in items if i[0] == "message"} - gone)
        found.equal.append(_equal(before, tokens))
        before = tokens
    return found


def _size(kept: dict[int, Entry], kind: str, key: Any, size: int) -> int:
    return kept[key].tokens if kind == "message" and key in kept else size


def _equal(before: list[tuple[Any, int]], now: list[tuple[Any, int]]) -> int:
    total = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        total += new[1]
    return total


def _section(trace: bk.Trace, slot: int, roles: Any, section: Any, pruned: str, start: int) -> str:
    """Return the section of a message; a result is pruned where its call is, which may be one of an earlier turn."""
    said = trace.messages[slot]
    callers = [
        i
        for i in range(slot)
        if said.tool_call_id in {call.id for call in trace.messages[i].tool_calls}
    ]
    called = None
    if callers:
        called = (past_section if callers[-1] < start else section)(
            trace.messages[callers[-1]], roles
        )
    return pruned if called == pruned else str(section(said, roles))


def _request(
    trace: bk.Trace, request: Any, roles: Any, pruned: str
) -> list[tuple[str, Any, str, int]]:
    """List (kind, key, section, tokens) in the order in which they stand in the prompt."""

    def listed(slots: range, section: Any) -> list[tuple[str, Any, str, int]]:
        sent = (i for i in slots if _is_paired(trace, i))
        return [
            (
                "message",
                i,
                _section(trace, i, roles, section, pruned, request.start),
                len(trace.messages[i].text),
            )
            for i in sent
        ]

    opening = next(
        (i for i, m in enumerate(trace.messages) if m.role != "system"), len(trace.messages)
    )
    head = min(opening, request.start)
    passages = [
        ("passage", (i, n), past_section(p.message, roles), len(p.text))
        for i in range(request.start, request.sent)
        for n, p in enumerate(trace.contexts.get(i, ()))
    ]
    return [
        *listed(range(head), past_section),
        *listed(range(head, request.start), past_section),
        *passages,
        *listed(range(request.start, request.sent), present_section),
    ]


def _is_paired(trace: bk.Trace, slot: int) -> bool:
    """Say whether a call has all its results, and a result a call that has."""
    said = trace.messages[slot]
    if said.tool_call_id:
        callers = [
            i
            for i in range(slot)
            if said.tool_call_id in {call.id for call in trace.messages[i].tool_calls}
        ]
        return bool(callers) and _is_paired(trace, callers[-1])
    later = {message.tool_call_id for message in trace.messages[slot:]}
    return all(call.id in later for call in said.tool_calls)


class _History:
    def __init__(self, trace: bk.Trace, policy: Policy) -> None:
        self.trace, self.policy = trace, policy
        self.entries: list[Entry] = []
        self.seen: set[int] = set()
        self.closed: set[int] = set()
        self.calls = self.written = 0
        self.turns = [sum(t.start <= i for t in trace.turns) for i in range(len(trace.messages))]
        self.units = _units(trace, self.turns, policy.unit)

    def visit(self, slots: list[int], room: PruningContext) -> int:
        for slot in slots:
            if slot not in self.seen:
                self.seen.add(slot)
                if self.units[slot] not in self.closed:
                    size = len(self.trace.messages[slot].text)
                    self.entries.append(
                        Entry([slot], size, slot, self.units[slot], self.turns[slot])
                    )
        self.entries.sort(key=lambda e: e.place)
        self.calls = 0
        for stage in self.policy.stages:
            for cut in stage.cuts(self.now(room)):
                self.carry_out(cut)
        self.carry_out(self.policy.last_resort(self.now(room)))
        while (
            self.policy.floor == Floor()
            and self.entries
            and self.tokens > room.usable - room.others
        ):
            self.remove(self.next_unit(by_importance=False))
        return self.calls

    @property
    def tokens(self) -> int:
        return sum(e.tokens for e in self.entries)

    def now(self, room: PruningContext) -> PruningContext:
        return room._replace(tokens=self.tokens)

    def carry_out(self, cut: Cut) -> None:
        if cut.order == "results":
            self.shrink(cut)
        elif cut.rounds is not None:
            while self.tokens > cut.down_to and self.summarise(cut.rounds):
                pass
        else:
            while (cut.before_turn is not None or self.tokens > cut.down_to) and self.drop(cut):
                pass

    def shrink(self, cut: Cut) -> None:
        while self.tokens > cut.down_to:
            results = [e for e in self.entries if self.is_result(e) and e.kind == "whole"]
            if len(results) <= cut.intact:
                return
            if results[0].tokens > cut.placeholder:
                results[0].tokens, results[0].kind, results[0].label = (
                    cut.placeholder,
                    "shrunk",
                    "shrunk",
                )
            else:
                results[0].kind = "as small"

    def is_result(self, entry: Entry) -> bool:
        return entry.kind != "summary" and self.trace.messages[entry.slots[0]].role == "tool"

    def next_unit(self, by_importance: bool) -> list[Entry]:
        if not self.entries:
            return []

        def key(entry: Entry) -> tuple[int, int]:
            # Nobody knows the importance of what is to come.
            members = self.seen if entry.kind != "summary" else ()
            own = [
                self.policy.importance(self.trace.messages[i])
                for i in members
                if self.units[i] == entry.unit
            ]
            return (
                max(own, default=self.policy.importance(self.trace.messages[entry.place])),
                entry.unit,
            )

        first = min(self.entries, key=key if by_importance else lambda e: (0, e.unit))
        return [e for e in self.entries if e.unit == first.unit]

    def may_leave(self, unit: list[Entry], besides: tuple[Entry, ...] = ()) -> bool:
        floor = self.policy.floor
        left = [e for e in self.entries if e not in unit and e not in besides]
        messages = [e for e in left if e.kind != "summary"]
        measured = {"messages": len(messages), "tokens": sum(e.tokens for e in left)}
        measured["turns"] = len({e.turn for e in messages})
        if all(e.kind == "summary" for e in unit) and floor.unit != "tokens":
            return bool(messages)
        return bool(messages) and measured[floor.unit] >= floor.least

    def drop(self, cut: Cut) -> bool:
        unit = self.next_unit(cut.order == "importance")
        if not unit or not self.may_leave(unit):
            return False
        if cut.before_turn is not None and self.turn_of(unit) >= cut.before_turn:
            return False
        self.remove(unit)
        return True

    def turn_of(self, unit: list[Entry]) -> int:
        return unit[0].turn if unit[0].kind == "summary" else self.turns[unit[0].unit]

    def remove(self, unit: list[Entry]) -> None:
        self.closed |= {e.unit for e in unit if e.kind != "summary"}
        self.entries = [e for e in self.entries if e not in unit]

    def summarise(self, rounds: Any) -> bool:
        messages = sum(e.kind != "summary" for e in self.entries)
        wanted = max(
            1, rounds.share.of(messages) if isinstance(rounds.share, bk.Share) else rounds.share
        )
        order = sorted({e.unit for e in self.entries})
        taken: list[Entry] = []
        for name in order:
            unit = [e for e in self.entries if e.unit == name]
            is_summary = unit[0].kind == "summary"
            if wanted <= 0 or (not is_summary and not self.may_leave(unit, tuple(taken))):
                break
            taken += unit
            wanted -= 0 if is_summary else len(unit)
        if not any(e.kind != "summary" for e in taken):
            return False
        read = sum(e.tokens for e in taken)
        wrote = rounds.size.of(read) if isinstance(rounds.size, bk.Share) else rounds.size
        self.remove(taken)
        if wrote < read:
            place = min(e.place for e in taken if e.unit == taken[0].unit)
            turn = max(e.turn for e in taken)
            self.written += 1
            self.entries.append(
                Entry([], wrote, place, place, turn, "summary", f"summary {self.written}")
            )
            self.entries.sort(key=lambda e: e.place)
            self.calls += 1
        return True


def _units(trace: bk.Trace, turns: list[int], unit: str) -> list[int]:
    """Join what belongs together until nothing changes any more."""
    names = list(range(len(trace.messages)))
    callers = {call.id: i for i, m in enumerate(trace.messages) for call in m.tool_calls}
    pairs = [
        (i, callers[m.tool_call_id])
        for i, m in enumerate(trace.messages)
        if m.tool_call_id in callers and _is_paired(trace, i)
    ]
    if unit == "turn":
        pairs += [(i, j) for i, t in enumerate(turns) for j, u in enumerate(turns) if t == u > 0]
    changed = True
    while changed:
        changed = False
        for one, other in pairs:
            low = min(names[one], names[other])
            if names[one] != low or names[other] != low:
                names[one] = names[other] = low
                changed = True
    return names


def message(role: str, size: int, **more: Any) -> Message:
    return Message({"role": role, "content": "x" * size, **more})
