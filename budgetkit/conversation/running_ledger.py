"""RunningLedger: what a running conversation holds, counted as it comes; only what is new takes time.

    demand(section) = what earlier turns left there + what this turn puts there

as in :class:`budgetkit.trace.Ledger`, whose rules for sections, turns and priming these are. A tool call waits until
all its results are there, a result until its call is; passages last for one turn.

A window of 20 tokens, one token a letter, after "sss" (system), "qqqqq" (user), "aaaaaaa" (assistant), "rrrrrr" (user),
just before and after the second request:

    slot                0    1        2          3
    lines               sss  qqqqq    aaaaaaa    rrrrrr
    past                system 3, history 12                    what earlier turns left, whatever has become of it
    present             current 6                               what this turn puts there; it begins at slot 3
    before   waiting         1        2          3              entered 0      the history has not seen them yet
    after    waiting                             3              entered 12     the question waits until its turn is over
             history    -    DROPPED  WHOLE 7    -              7 of the 11 tokens that the others leave

What is pinned in the history's section, and no policy may touch, is its demand less what has entered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from budgetkit.conversation.assembly import SPOKEN
from budgetkit.conversation.returning import Archive
from budgetkit.message import RESULT_ROLES, SYSTEM_ROLES, Message
from budgetkit.plan.item import Item
from budgetkit.pruning.history import History, Slots
from budgetkit.requests import Framing
from budgetkit.requests.forms import follows, form_of_all, origin_of
from budgetkit.trace.sections import Roles, past_section, present_section

Count = Callable[[str], int]
_WAITS = 8  # turns after which a call is given up whose result never came


@dataclass(slots=True)
class Line:
    """One message that is or will be sent."""

    message: Message
    tokens: int
    past: str
    present: str
    stamp: int
    sent: bool = True


@dataclass(frozen=True)
class Rules:
    """How messages are counted, placed and grouped."""

    count: Count
    framing: Framing
    roles: Roles
    section: str
    by_turn: bool
    importance: Callable[[Any], int]
    arriving: Callable[[int, bool], int] = lambda tokens, is_result: tokens


@dataclass
class RunningLedger:
    """Hold a conversation's messages, and the sums of its sections."""

    rules: Rules
    tools: Sequence[Mapping[str, Any]] = ()
    history: History = field(default_factory=lambda: History(Slots([], [], [], [], [])))
    lines: dict[int, Line] = field(default_factory=dict)
    passages: list[Item] = field(default_factory=list)
    past: Counter[str] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    this_turn: dict[int, tuple[str, int]] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)
    callers: dict[str, int] = field(default_factory=dict)
    unanswered: dict[int, set[str]] = field(default_factory=dict)
    results: dict[int, list[int]] = field(default_factory=dict)
    apart: set[int] = field(default_factory=set)  # calls without results, and results without calls
    turn: int = 0
    start: int = 0
    counted_from: int = 0
    entered: int = 0
    stamps: int = 0
    carrier: str = ""
    schemas: int = 0
    forms: set[str] = field(default_factory=set)  # of providers, in which messages came
    system: tuple[Message, ...] = ()  # the first, which tool schemas may follow
    archive: Archive | None = None  # of all that was said, where it may come back

    def __post_init__(self) -> None:
        self.count_schemas()

    def take(self, messages: Sequence[Message]) -> None:
        """Take in what was said since the last request, counted in one go."""
        found = [(message, message.contexts) for message in messages]
        retrieved = [passage for _, passages in found for passage in passages]
        sizes = self.rules.framing.messages([*messages, *(p.message for p in retrieved)], self.rules.count)
        asked = any(message.role == "user" for message in messages)
        self.counted_from = len(self.history.slots)
        for message, tokens in zip(messages, sizes, strict=False):
            if message.role == "user" or not (self.turn or asked or message.role in SYSTEM_ROLES):
                self._next_turn()
            self._place(message, tokens)
        self.history.grow()
        here = len(messages)
        for message, passages in found:
            if message.role == "user":
                self.passages = []
            scores = [p.score for p in passages]
            for rank, passage in enumerate(passages, start=1):
                score = 1 / rank if None in scores else passage.score or 0.0
                section = past_section(passage.message, self.rules.roles)
                self.passages.append(Item(section, sizes[here], score=score, payload=passage.message))
                here += 1

    def demand(self) -> Counter[str]:
        """Return what the next request asks of each section."""
        asked = self.past + self.present
        if self.carrier:
            asked[self.carrier] += self.rules.framing.priming
        for item in self.passages:
            asked[item.section] += item.tokens
        if self.tools:
            asked[self.schema_section] += self.schemas
        return asked

    @property
    def schema_section(self) -> str:
        """The section of the tool schemas."""
        return past_section(Message({"role": "tools", "tools": list(self.tools)}), self.rules.roles)

    def entering(self) -> list[int]:
        """List the messages that the history takes in at this request; the question of this turn goes on waiting."""
        return sorted(slot for slot in self.waiting if slot < self.start or self._enters_at_once(self.lines[slot]))

    def _enters_at_once(self, line: Line) -> bool:
        return line.present == self.rules.section and line.message.role != "user"

    def enter(self, slots: Sequence[int], tokens: int) -> None:
        """Note that the history has taken these messages in, which came with so many tokens."""
        entered = set(slots)
        self.waiting = [slot for slot in self.waiting if slot not in entered]
        self.entered += tokens

    def _resize(self, slot: int, tokens: int) -> None:
        """Note what a message holds that the history has not taken in yet."""
        slots = self.history.slots
        self.lines[slot].tokens = tokens
        slots.tokens[slot] = self.rules.arriving(tokens, slots.is_result[slot])

    def rewrite(self, slot: int, message: Message, tokens: int) -> None:
        """Put a shorter text in the place of a message, wherever it counts."""
        line = self.lines[slot]
        less = line.tokens - tokens
        if slot in self.waiting or line.past != self.rules.section:
            self.past[line.past] -= less if slot not in self.this_turn else 0
            if slot in self.this_turn:
                self.present[line.present] -= less
                self.this_turn[slot] = (line.past, tokens)
            self._resize(slot, tokens)
        else:
            self.history.resize(slot, tokens)
        self.restamp(slot, message, tokens)

    def restamp(self, slot: int, message: Message, tokens: int) -> None:
        """Note that a message reads otherwise from now on."""
        line = self.lines[slot]
        self.stamps += 1
        self.lines[slot] = Line(message, tokens, line.past, line.present, self.stamps, line.sent)

    def _place(self, message: Message, tokens: int) -> None:
        rules = self.rules
        slots = self.history.slots
        slot = len(slots)
        caller = self._pair(slot, message)
        unit = self.start if rules.by_turn and self.turn else slot
        if caller is not None:
            unit = slots.unit[caller]
        elif follows(message.raw) and slot:
            unit = slots.unit[slot - 1]
        self.note_form(message)
        is_result = message.role in RESULT_ROLES
        arriving = rules.arriving(tokens, is_result)
        slots.add(arriving, unit, self.turn, is_result, rules.importance(message), message.role)
        sections = past_section(message, rules.roles), present_section(message, rules.roles)
        if caller is not None and (call := self.lines.get(caller)):  # a result is pruned where its call is
            past, present = sections
            # Where the user spoke in between, the call is one of an earlier turn, and its result goes with it.
            called = call.past if caller < self.start else call.present
            sections = (
                call.past if call.past == rules.section else past,
                called if called == rules.section else present,
            )
        self.stamps += 1
        self.lines[slot] = Line(_sent(message), tokens, *sections, self.stamps, False)
        if self.archive is not None:
            self.archive.add(self.lines[slot].message)
        self.apart.add(slot)
        if message.role in SYSTEM_ROLES and not self.system:
            self.system = (message,)
            self.count_schemas()
        if message.tool_call_id and caller is None:
            return
        if caller is not None and message.tool_call_id:
            self.results.setdefault(caller, []).append(slot)
            if not self.unanswered.get(caller):
                unsent = [caller] if caller in self.apart else []
                self._reveal([*unsent, *self.results.pop(caller)])
        elif not self.unanswered.get(slot):
            self._reveal([slot])

    def note_form(self, message: Message) -> None:
        """Remember in which provider's form a message came, also after it has left."""
        origin = origin_of(message.raw)
        if origin is not None:
            self.forms.add(origin["form"])

    @property
    def form(self) -> str:
        """The form in which messages go out unless another is asked for: that in which they came, if it is one."""
        return form_of_all(self.forms)

    def _pair(self, slot: int, message: Message) -> int | None:
        """Note the calls of a message, and return the slot of the call that it answers."""
        answers = "" if message.role == "function" else message.tool_call_id
        if message.tool_calls:
            self.callers.update({call.id: slot for call in message.tool_calls})
            self.unanswered[slot] = {call.id for call in message.tool_calls if call.id}
            return None
        caller = None if answers is None else self.callers.get(answers)
        if caller is not None and answers:
            self.unanswered.get(caller, set()).discard(answers)
        return caller

    def _reveal(self, slots: Sequence[int]) -> None:
        """Send messages from now on; a call and results that came apart are counted together."""
        if min(slots, default=0) < self.counted_from:
            together = [self.lines[slot].message for slot in slots]
            sizes = self.rules.framing.messages(together, self.rules.count)
            for slot, tokens in zip(slots, sizes, strict=True):
                self._resize(slot, tokens)
        for slot in slots:
            line = self.lines[slot]
            line.sent = True
            self.apart.remove(slot)
            if self.turn and slot >= self.start:
                if not self.this_turn:
                    self.carrier = line.present
                self.present[line.present] += line.tokens
                self.this_turn[slot] = (line.past, line.tokens)
            else:
                self.past[line.past] += line.tokens
                self.carrier = self.carrier if self.this_turn else line.past
            if line.past == self.rules.section:
                self.waiting.append(slot)

    def _next_turn(self) -> None:
        for section, tokens in self.this_turn.values():
            self.past[section] += tokens
        self.present.clear()
        self.this_turn.clear()
        self.turn, self.start = self.turn + 1, len(self.history.slots)
        turns = self.history.slots.turn
        for slot in [slot for slot in self.apart if turns[slot] < self.turn - _WAITS]:
            self.apart.remove(slot)
            del self.lines[slot]
        self.unanswered = {slot: ids for slot, ids in self.unanswered.items() if ids and slot in self.lines}
        self.results = {slot: found for slot, found in self.results.items() if slot in self.lines}
        self.results = {slot: [each for each in found if each in self.lines] for slot, found in self.results.items()}
        self.callers = {id: slot for id, slot in self.callers.items() if slot in self.lines}

    def count_schemas(self, tools: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Count the tool schemas, or others in their place; it may depend on whether there is a system message."""
        self.tools = self.tools if tools is None else tools
        self.schemas = self.rules.framing.schemas(self.tools, self.rules.count, self.system)


def _sent(message: Message) -> Message:
    """Return a message as a request takes it: passages are sent beside it, roles of this kit's own as system text."""
    known = message.role in SPOKEN or message.role in SYSTEM_ROLES
    if known and "contexts" not in message.raw:
        return message
    raw = {name: field for name, field in message.raw.items() if name != "contexts"}
    return Message(raw if known else {**raw, "role": "system"})
