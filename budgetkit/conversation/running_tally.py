"""RunningTally: the token counts of a running conversation.

Only new messages are counted.

    demand(section) = tokens of earlier turns + tokens of this turn

The tokens of the priming, the passages and the tool schemas are added to the demand of their sections. The module
follows the rules of :class:`budgetkit.trace.Tally` for sections, turns and priming. A tool call waits for all its
results, and a result waits for its call. Passages last for one turn.

In this example the window has 20 tokens, and each letter is one token. The messages are "sss" (system), "qqqqq" (user),
"aaaaaaa" (assistant) and "rrrrrr" (user). The state is shown just before and after the second request:

    slot                0    1        2          3
    entries             sss  qqqqq    aaaaaaa    rrrrrr
    past                system 3, history 12                    tokens of earlier turns, even if dropped since
    present             current 6                               tokens of this turn, which begins at slot 3
    before   not_entered     1        2          3              entered 0      they are not in the history yet
    after    not_entered                         3              entered 12     the question waits until its turn is over
             history    -    DROPPED  WHOLE 7    -              7 of the 11 tokens that the other sections leave

The pinned part of the history section, which policies cannot change, is the section's demand less the tokens of the
messages that have entered the history.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, PlainValidator

from budgetkit.budget import Allocation, Budget
from budgetkit.budget.amounts import MOST_TOKENS
from budgetkit.conversation.rules import RequestRules
from budgetkit.conversation.sent import Removal, TextSizes
from budgetkit.message import CHAT_ROLES, RESULT_ROLES, SYSTEM_ROLES, Data, Message
from budgetkit.plan import Grant, Item, fit
from budgetkit.pruning import WHOLE, History, Slots
from budgetkit.pruning.dropping import LEAST_RESULT
from budgetkit.requests import read_tools
from budgetkit.requests.reading.forms import (
    compacted_form,
    form_of_all,
    forms_of,
    join_answers,
    place_in_record,
    provider_call_ids,
)
from budgetkit.requests.reading.tools import tool_entries, without_envelopes
from budgetkit.trace import enters_at_once, json_value, past_section, section_beside_call
from budgetkit.trace.tally import answered_call, passage_scores, present_section, schemas_message
from budgetkit.truncation import cutter

_OF_TEXTS = {"role", "content", "contexts"}
_WAITS = 8  # turns after which a call without a result is discarded


@contextmanager
def unchanged_on_error(*objects: object) -> Iterator[None]:
    """Restore the objects' fields when the block raises an error.

    Lists, dictionaries and sets in the fields are copied one level deep.
    """
    before = [
        {
            name: copy(value) if isinstance(value, list | dict | set) else value
            for name, value in vars(changing).items()
        }
        for changing in objects
    ]
    try:
        yield
    except BaseException:
        for changing, fields in zip(objects, before, strict=True):
            vars(changing).update(fields)
        raise


# Types of saved values: numbers that JSON and the budget can hold, sets as sorted lists, messages as plain data.
Whole = Annotated[int, Field(ge=-MOST_TOKENS, le=2 * MOST_TOKENS)]
SORTED = PlainSerializer(sorted)
AnyMessage = Annotated[Message, PlainValidator(Message), PlainSerializer(lambda value: value.raw)]


@dataclass(frozen=True, slots=True)
class TallyEntry:
    """A message of the conversation, and the sections that count it."""

    message: AnyMessage
    tokens: Whole
    past: str  # its section once its turn has passed
    present: str  # its section while its turn lasts
    stamp: Whole  # changes whenever its text changes


@dataclass(frozen=True, slots=True)
class TallyPassage:
    """A passage retrieved for the current turn."""

    section: str
    tokens: Whole
    score: float
    message: AnyMessage


@dataclass
class TallyState:
    """The saved part of a conversation's token counts.

    A slot is a message's position in the conversation.
    """

    tools: list[Data] = field(default_factory=list)

    # the remaining messages, and their demand
    entries: dict[Whole, TallyEntry] = field(default_factory=dict)
    passages: list[TallyPassage] = field(default_factory=list)  # retrieved for this turn
    # Tokens that earlier turns left in each section.
    past: Counter[str] = field(default_factory=Counter)
    # Tokens that this turn puts in each section.
    present: Counter[str] = field(default_factory=Counter)
    # The messages of this turn: their section once the turn has passed, and their tokens.
    this_turn: dict[Whole, tuple[str, Whole]] = field(default_factory=dict)
    # The section that counts the priming: that of the turn's first message.
    priming_section: str = ""
    # Tokens of the last request minus the sum of its messages counted alone.
    surplus: Whole = 0

    # the summaries sent in place of older messages, by slot
    summaries: dict[Whole, TallyEntry] = field(default_factory=dict)

    # messages that wait for the history, a result or a call
    not_entered: list[Whole] = field(default_factory=list)  # slots that the history lacks
    # Slot of the message that made a call, by the call's id.
    calling_slots: dict[str, Whole] = field(default_factory=dict)
    # By slot of the calling message: its calls without a result so far.
    open_calls: dict[Whole, Annotated[set[str], SORTED]] = field(default_factory=dict)
    # By slot of the calling message: results that wait for the results of its other calls.
    early_results: dict[Whole, list[Whole]] = field(default_factory=dict)
    # Calls without results, and results without calls.
    unsent: Annotated[set[Whole], SORTED] = field(default_factory=set)

    # the progress of the conversation
    turn: Whole = 0
    start: Whole = 0  # the slot where this turn begins
    entered: Whole = 0  # tokens of the messages that entered the history, before any cut
    stamps: Whole = 0  # the last stamp
    requests: Whole = 0  # number of requests so far
    last_stamps: list[Whole] = field(default_factory=list)  # of the messages of the last request

    # Providers' formats of the messages.
    forms: Annotated[set[str], SORTED] = field(default_factory=set)
    is_text: bool = True  # whether all messages consist of a role and a text only
    # The first system message, which tool schemas may follow.
    system: tuple[AnyMessage, ...] = ()


class RunningTally(TallyState):
    """The messages of a conversation, with running token sums for each section."""

    def __init__(self, rules: RequestRules, tools: Any = ()) -> None:
        schemas = tool_entries(without_envelopes(tools))
        super().__init__(tools=[dict(json_value(schema)) for schema in schemas])
        self.rules = rules
        self.history = History(Slots([], [], [], [], []))
        self.counted_from = 0  # the first slot of the messages counted last
        self.sizes = TextSizes(rules.count)
        self.count_schemas()

    def take(self, messages: Sequence[Message]) -> None:
        """Add and count the messages since the last request."""
        messages = join_answers(messages)
        retrieved = [message.contexts for message in messages]
        texts = [*messages, *(passage.message for passages in retrieved for passage in passages)]
        self.forms |= forms_of(message.raw for message in messages)
        sizes = self.rules.framing.messages(texts, self.sizes, self.form)

        # A turn begins with a user message or, without any, with the first message that is not a system message.
        has_question = any(message.role == "user" for message in messages)
        self.counted_from = len(self.history.slots)
        passage_sizes = iter(sizes[len(messages) :])
        for message, tokens, passages in zip(messages, sizes, retrieved, strict=False):
            if message.role == "user" or not (
                self.turn or has_question or message.role in SYSTEM_ROLES
            ):
                self._next_turn()
            self._add_message(message, tokens)
            if message.role == "user":  # passages last until the user speaks again
                self.passages = []
            for passage, score in zip(passages, passage_scores(passages), strict=True):
                section = past_section(passage.message, self.rules.roles)
                self.passages.append(
                    TallyPassage(section, next(passage_sizes), score, passage.message)
                )
        self.history.grow()

    def cuttable(self, history: History) -> int:
        """Return the tokens saved by shortening all tool results in the history."""
        return sum(
            entry.tokens - self.rules.least(entry.message, entry.tokens)
            for slot, entry in self.entries.items()
            if history.state[slot] == WHOLE
        )

    def demand(self) -> Counter[str]:
        """Return each section's demand in the next request."""
        demand = self.past + self.present
        if self.priming_section:
            demand[self.priming_section] += self.rules.framing.primed(bool(self.system))
        for item in self.passages:
            demand[item.section] += item.tokens
        if self.tools:
            section = past_section(schemas_message(self.tools), self.rules.roles)
            demand[section] += self.schema_tokens
        return demand

    def with_surplus(self, demand: Counter[str]) -> Counter[str]:
        """Return a demand adjusted to the tokens of the whole request.

        Extra tokens are added to the history's section. Saved tokens are subtracted from the section with the largest
        demand.
        """
        section = self.rules.section
        if self.surplus < 0:
            section = max(demand, key=demand.__getitem__)
        return demand + Counter({section: self.surplus})

    def section_of(self, slot: int) -> str:
        """Return the section that counts a message in the next request."""
        entry = self.entries[slot]
        return entry.present if slot in self.this_turn else entry.past

    def entering(self) -> list[int]:
        """List the slots of messages that enter the history next."""
        section = self.rules.section
        return sorted(
            slot
            for slot in self.not_entered
            if slot < self.start
            or enters_at_once(self.entries[slot].message.role, self.entries[slot].present, section)
        )

    def enter(self, slots: Sequence[int], tokens: int) -> None:
        """Record the messages that entered the history, with their tokens."""
        entering = set(slots)
        self.not_entered = [slot for slot in self.not_entered if slot not in entering]
        self.entered += tokens

    def _resize(self, slot: int, tokens: int) -> None:
        """Set the tokens of a message that waits for the history."""
        slots = self.history.slots
        self.entries[slot] = replace(self.entries[slot], tokens=tokens)
        slots.tokens[slot] = self.rules.policy.arriving(tokens, slots.is_result[slot])

    def rewrite(self, slot: int, message: Message, tokens: int) -> None:
        """Replace a message with a shorter message, and update all sums."""
        entry = self.entries[slot]
        less = entry.tokens - tokens
        if slot in self.not_entered or entry.past != self.rules.section:
            if slot in self.this_turn:
                self.present[entry.present] -= less
                self.this_turn[slot] = (entry.past, tokens)
            else:
                self.past[entry.past] -= less
            self._resize(slot, tokens)
        else:
            self.history.resize(slot, tokens)
        self.restamp(slot, message, tokens)

    def restamp(self, slot: int, message: Message, tokens: int) -> None:
        """Replace a message, and mark it as changed with a new stamp."""
        entry = self.entries[slot]
        self.stamps += 1
        self.entries[slot] = replace(entry, message=message, tokens=tokens, stamp=self.stamps)

    def _add_message(self, message: Message, tokens: int) -> None:
        rules = self.rules
        slots = self.history.slots
        slot = len(slots)
        before, after = place_in_record(message.raw)
        first = max(0, slot - before)  # slot of the first message of its record
        caller = self._match_call(first, message)
        unit = self.start if rules.policy.unit == "turn" and self.turn else slot
        if caller is not None:
            unit = slots.unit[caller]
        elif before and slot:
            unit = slots.unit[slot - 1]

        # whether every message is a plain text
        raw = message.raw
        is_text = raw.keys() <= _OF_TEXTS and type(raw.get("content")) is str
        self.is_text = self.is_text and is_text

        # its slot in the history, which it enters later
        is_result = message.is_cuttable
        arriving = rules.policy.arriving(tokens, is_result)
        importance = rules.policy.importance(message)
        # A provider's summary is kept like a system message, with the results of its calls. The first message after it
        # may have any role.
        call = None if caller is None else self.entries.get(caller)
        is_lasting = self.is_summary(message) or (
            call is not None and self.is_summary(call.message)
        )
        role = "user" if is_lasting else message.role
        slots.add(arriving, unit, self.turn, is_result, importance, role)

        # its sections; a result is pruned in its call's section, that of an earlier turn if the user spoke in between
        past = past_section(message, rules.roles)
        present = present_section(message, rules.roles)
        if is_lasting:
            past = present = past_section(Message({"role": "system"}), rules.roles)
        elif caller is not None and call is not None:
            of_call = call.past if caller < self.start else call.present
            past = section_beside_call(past, call.past, rules.section)
            present = section_beside_call(present, of_call, rules.section)
        self.stamps += 1
        self.entries[slot] = TallyEntry(
            message=_sent(message),
            tokens=tokens,
            past=past,
            present=present,
            stamp=self.stamps,
        )
        self.unsent.add(slot)
        if message.role in SYSTEM_ROLES and not self.system:
            self.system = (message,)
            self.count_schemas()

        # It is sent at once, unless it is a call without all its results, or a result that waits for others. All
        # messages of a record are sent together.
        if message.tool_call_id and caller is None and not before + after:
            return
        owner = first if caller is None or before + after else caller
        if owner != slot:
            self.early_results[owner] = [*self.early_results.get(owner, ()), slot]
        if not (self.open_calls.get(owner) or after):
            complete = self.early_results.pop(owner, [])
            if owner in self.unsent:
                complete.insert(0, owner)
            self._enter_shown(complete)

    @property
    def form(self) -> str:
        """The format of requests: the one that was set, the messages' own, or "chat"."""
        return self.rules.form or form_of_all(self.forms)

    def is_summary(self, message: Message) -> bool:
        """Return True for a summary that the provider wrote and that requests can send."""
        return compacted_form(message.raw) == self.form

    def _match_call(self, first: int, message: Message) -> int | None:
        """Record a message's calls, or return the slot of the answered call.

        The calls of a record belong to its first message.
        """
        answered = answered_call(message)
        if message.tool_calls:
            ids = {call.id for call in message.tool_calls}
            self.calling_slots.update(dict.fromkeys(ids, first))
            # The first message of a record has the whole record.
            holder = self.entries[first].message if first in self.entries else message
            ids -= {"", *provider_call_ids(holder.raw)}
            self.open_calls[first] = self.open_calls.get(first, set()) | ids
            return None
        caller = None if answered is None else self.calling_slots.get(answered)
        if caller is not None and answered:
            if answered not in self.open_calls.get(caller, ()):
                # a result of the provider's own tool, or a second result of the same call
                return caller if message.is_whole else None
            self.open_calls[caller] = self.open_calls[caller] - {answered}
        return caller

    def sent_after(self, slot: int, message: Message) -> int:
        """Return the slot after which a message is sent.

        This is the slot of the call for a result that came late, after another message. All messages of a record have
        the slot of the first. Any other message has its own slot.
        """
        before, after = place_in_record(message.raw)
        if before or after or not message.tool_call_id:
            return slot - before
        caller = self.calling_slots.get(message.tool_call_id, slot)
        # The newest first: in a series of late results, few of these are calls.
        between = (
            self.entries[at].message
            for at in reversed(range(caller + 1, slot))
            if at in self.entries
        )
        if any(not (other.tool_call_id or other.tool_calls) for other in between):
            return caller
        return slot

    def _enter_shown(self, slots: Sequence[int]) -> None:
        """Mark messages as sent, and add their tokens to the sums."""
        if min(slots, default=0) < self.counted_from:
            together = [self.entries[slot].message for slot in slots]
            sizes = self.rules.framing.messages(together, self.sizes, self.form)
            for slot, tokens in zip(slots, sizes, strict=True):
                self._resize(slot, tokens)
        for slot in slots:
            entry = self.entries[slot]
            self.unsent.remove(slot)
            if compacted_form(entry.message.raw) == self.form == "anthropic":
                self._ignore_before(slot)
            is_present = self.turn and slot >= self.start
            section = entry.present if is_present else entry.past
            if not self.this_turn:
                self.priming_section = section
            if is_present:
                self.present[section] += entry.tokens
                self.this_turn[slot] = (entry.past, entry.tokens)
            else:
                self.past[section] += entry.tokens
            if entry.past == self.rules.section:
                self.not_entered.append(slot)

    def _ignore_before(self, slot: int) -> None:
        """Count no tokens for the messages before Anthropic's own summary.

        Anthropic ignores these messages, except for system messages.
        """
        for earlier, entry in [*self.entries.items()]:
            is_sent = earlier < slot and earlier not in self.unsent
            if is_sent and entry.message.role not in SYSTEM_ROLES:
                self.rewrite(earlier, entry.message, 0)

    def _next_turn(self) -> None:
        for section, tokens in self.this_turn.values():
            self.past[section] += tokens
        self.present.clear()
        self.this_turn.clear()
        self.turn += 1
        self.start = len(self.history.slots)
        turns = self.history.slots.turn
        for slot in [slot for slot in self.unsent if turns[slot] < self.turn - _WAITS]:
            self.unsent.remove(slot)
            del self.entries[slot]
        self.calling_slots = {
            id: slot for id, slot in self.calling_slots.items() if slot in self.entries
        }

    def compact(self) -> None:
        """Discard the slots of dropped messages, and renumber the remaining slots."""
        slots = self.history.slots
        kept = {*self.entries, *self.summaries, *self.this_turn}
        if self.start < len(slots):
            kept.add(self.start)
        order = sorted(kept | {slots.unit[slot] for slot in kept})
        new = {slot: number for number, slot in enumerate(order)}
        self.history = self.history.renumbered(new)
        self.start = bisect_left(order, self.start)
        self.early_results = {
            slot: [new[result] for result in results if result in self.unsent]
            for slot, results in self.early_results.items()
        }
        self.unsent = {new[slot] for slot in self.unsent}
        self.not_entered = [new[slot] for slot in self.not_entered]
        self.calling_slots = {
            id: new[slot] for id, slot in self.calling_slots.items() if slot in new
        }
        for name in ("entries", "summaries", "this_turn", "open_calls", "early_results"):
            by_slot = getattr(self, name)
            setattr(
                self, name, {new[slot]: value for slot, value in by_slot.items() if slot in new}
            )

    def count_schemas(self) -> None:
        """Count the tokens of the tool schemas."""
        self.toolset = read_tools(self.tools)
        self.schema_tokens = self.rules.framing.schemas(self.tools, self.sizes, self.system)


def _sent(message: Message) -> Message:
    """Return a message in the form in which requests send it."""
    is_of_chat = message.role in CHAT_ROLES or message.role in SYSTEM_ROLES
    if is_of_chat and "contexts" not in message.raw:
        return message
    raw = {name: field for name, field in message.raw.items() if name != "contexts"}
    return Message(raw if is_of_chat else {**raw, "role": "system"})


_INSIDE = Allocation("result", granularity="token", keep="first")


def shorten_results(
    tally: RunningTally, excess: int, section: str | None = None
) -> Iterator[tuple[int, Message]]:
    """Shorten tool results, starting with the largest, until enough tokens are saved.

    Each changed slot is yielded with its message before the change.
    """
    cut = cutter(tally.rules.count, tally.rules.framing)
    candidates = sorted(
        (-line.tokens, slot)
        for slot, line in tally.entries.items()
        if slot not in tally.unsent and line.message.role in RESULT_ROLES
    )
    for _, slot in candidates:
        line = tally.entries[slot]
        tokens = line.tokens
        if excess <= 0 or tokens <= LEAST_RESULT:
            return
        if section is not None and section != tally.section_of(slot):
            continue
        shorter = cut(
            Item("result", tokens, payload=line.message),
            max(tally.rules.least(line.message, line.tokens), tokens - excess),
            _INSIDE,
        )
        if shorter is not None and shorter.tokens < tokens:
            tally.rewrite(slot, shorter.payload, shorter.tokens)
            excess -= tokens - shorter.tokens
            yield slot, line.message


def sent_at_least(tally: RunningTally, grant: Grant) -> int:
    """Return the fewest tokens with which a section can be sent.

    Passages can be dropped and tool results shortened; all else is sent in full.
    """
    saved = sum(item.tokens for item in tally.passages if item.section == grant.section)
    for slot, line in tally.entries.items():
        if slot not in tally.unsent and tally.section_of(slot) == grant.section:
            saved += line.tokens - tally.rules.least(line.message, line.tokens)
    return max(grant.granted, grant.demand - saved)


def drop_passages(tally: RunningTally, budget: Budget, section: str, most: int) -> list[Removal]:
    """Drop passages until a section's demand is within a limit.

    The section's allocation decides which passages to keep.
    """
    in_section = [passage for passage in tally.passages if passage.section == section]
    items = [Item(section, passage.tokens, passage.score) for passage in in_section]
    remaining = max(0, most - tally.demand()[section] + sum(item.tokens for item in items))
    line = next((a for a in budget.allocations if a.section == section), Allocation(section))
    alone = Budget(
        remaining,
        (),
        [replace(line, cap=None, floor=0, weight=0, required=False)],
        deficit="signed",
    )
    kept = fit(alone, items).decisions.kept
    dropped = [passage for passage, tokens in zip(in_section, kept, strict=True) if not tokens]
    gone = {*map(id, dropped)}
    tally.passages = [passage for passage in tally.passages if id(passage) not in gone]
    return [Removal(passage.message.raw, "dropped") for passage in dropped]
