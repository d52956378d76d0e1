"""Engine: one request after the other, pruned, planned and written; :class:`Conversation` says who may ask when.

One request takes five steps: what every section asks for, the room that this leaves for the history, the policy's cuts
in it, what new messages lose on their way in, and the plan, inside which texts are cut where they do not fit.

A window of 40 tokens, 10 of them reserved, one token a letter; the policy summarises, and a summary is "S". After
"sss" (system), "qqqqq", "aaaaaaa", "rrrrrr", "bbbbbbbbb" (user and assistant by turns), a user asks "tttt":

    demand          system 3, history 27, current 4             34, and the window has 30
    room            23 for the history: 30 less system and current
    summaries       {1: "S"}                                    sent in place of slot 1, "qqqqq"
    the request     sss S aaaaaaa rrrrrr bbbbbbbbb tttt         30 tokens
    left            qqqqq, summarised
    last_stamps     before [1, 2, 3, 4], now [1, 7, 3, 4, 5, 6] so that 1 message stays as it was: `stable`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal
from zlib import crc32

from budgetkit.budget import Budget
from budgetkit.budget.quoting import brief, warn_caller
from budgetkit.conversation.assembly import describe
from budgetkit.conversation.reading import whole
from budgetkit.conversation.running_tally import (
    Left,
    Request,
    RunningTally,
    TallyEntry,
    capped,
    fewer_passages,
    placeholder,
    sent_at_least,
    shorten_results,
    unchanged_on_error,
)
from budgetkit.conversation.saving import packed, unpack
from budgetkit.message import RESULT_ROLES, SYSTEM_ROLES, Message
from budgetkit.plan import Grant, Plan, allocate
from budgetkit.plan.allocating import with_undeclared
from budgetkit.plan.items import Item
from budgetkit.pruning.dropping import (
    StartOn,
    Steps,
    floor_notices,
    prune,
    room_for_history,
    summary_role,
)
from budgetkit.pruning.history import SHRUNK, WHOLE
from budgetkit.pruning.policies import DropToolResults, Policy
from budgetkit.requests.billing.declarations import ThinkingRules, uncounted_thinking
from budgetkit.requests.reading.forms import Form
from budgetkit.requests.reading.writing import Written, as_it_came, system_text, written

Overrun = Literal["warn", "raise", "tell"]
RequestSteps = Generator[list[Message], str, Request]
_MOST_DEAD_SLOTS = 256  # slots that what has left may take up


@dataclass
class Engine:
    """Hold a running conversation between two requests, and make the next one.

    Slots are places of messages in the conversation, see :mod:`budgetkit.conversation.running_tally`.
    """

    budget: Budget
    policy: Policy
    tally: RunningTally
    tell: bool  # whether a text about the budget ends the request
    shorten: bool  # whether tool results and passages may be cut inside where they do not fit
    overrun: Overrun
    start_on: StartOn = "any"
    form: Form | None = None
    # the summary that is sent in place of older messages, by the first of their slots
    summaries: dict[int, TallyEntry] = field(default_factory=dict)
    requests: int = 0  # how many were made
    # what the next request says beside its plan, and the summaries that were written for it
    notes: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    # of the last request: stamps of its messages, the messages before they are written in their provider's form, and
    # the number of system messages, passages not among them, that it begins with
    last_stamps: list[int] = field(default_factory=list)
    sent_messages: list[Message] = field(default_factory=list)
    head: int = 0

    def __post_init__(self) -> None:
        self.planning_budget = with_undeclared(
            replace(self.budget, deficit="signed"), [self.tally.rules.section]
        )

    @property
    def first_speaker(self) -> StartOn:
        """Whose message a request begins with: the user's where the providers of its form refuse any other."""
        if (self.form or self.tally.form) in USER_FIRST:
            return "user"
        return self.start_on

    def next(self) -> RequestSteps:
        """Give the next request; asks for the texts of summaries on the way, and changes nothing where it fails."""
        history = self.tally.history
        with unchanged_on_error(self, self.tally, history, history.slots):
            return (yield from self._steps())

    def _steps(self) -> RequestSteps:
        tally = self.tally
        history = self.tally.history
        section = self.tally.rules.section

        # 1. What every section asks for, the history as if nothing had to leave.
        demand = tally.demand()
        self.planning_budget = with_undeclared(self.planning_budget, demand)
        plan = allocate(self.planning_budget, demand)

        # 2. The room for the history: its limit, and what the others send beside it. Pinned is what counts in the
        # history's section and no policy may touch, such as this turn where it counts there.
        entering = tally.entering()
        arrived = sum(tally.entries[slot].tokens for slot in entering)
        pinned = demand[section] - tally.entered - arrived
        beside_history = pinned
        for grant in plan.grants:
            if grant.section == section:
                continue
            beside_history += sent_at_least(tally, grant) if grant.cut else grant.granted
        room = room_for_history(
            limit=plan[section].limit - pinned,
            others=beside_history,
            usable=self.planning_budget.usable,
            window=self.planning_budget.window,
            turn=tally.turn,
        )

        # 3. The policy's cuts, which ask for texts of summaries.
        self.notes = [
            *floor_notices(self.planning_budget, section, demand[section], room.limit + pinned),
            *self._uncut(entering),
        ]
        history.begin(self.requests)
        steps = prune(
            history,
            self.policy,
            room,
            entering,
            start_on=self.first_speaker,
            shortens=self.shorten,
        )
        replaced_by = yield from self._summarised(steps)
        self.requests += 1

        # 4. and 5. What new messages lose on their way in, and the plan.
        tally.enter(entering, arrived)
        left = [*self._apply_departures(replaced_by), *self._cut_large_results(entering)]
        return self._fit_to_window(plan, demand, pinned, left)

    def in_form(self, request: Request) -> Request:
        """Write a request's messages in the form in which they go out."""
        form = self.form or self.tally.form
        rules = self.tally.rules.framing.rules
        if form == "chat" and not self.tally.forms:
            notices = sending_notices(
                self.sent_messages, Written(form, request.messages, []), rules
            )
            if not notices:
                return request
            return replace(request, warnings=(*request.warnings, *notices))
        messages = written(request.messages, form, self.head)
        return replace(
            request,
            messages=messages.messages,
            system=system_text(request.messages[: messages.head], form),
            left=tuple(replace(left, message=as_it_came(left.message)) for left in request.left),
            stable=messages.unchanged(request.stable),
            warnings=(*request.warnings, *sending_notices(self.sent_messages, messages, rules)),
        )

    def _summarised(self, steps: Steps) -> Generator[list[Message], str, dict[int, set[int]]]:
        """Put a summary wherever one is asked for; return the slots that each stands for, by its place."""
        rules = self.tally.rules
        entries = self.tally.entries
        self.summaries = dict(self.summaries)
        replaced_by: dict[int, set[int]] = {}
        texts: list[tuple[int, int, str]] = []
        try:
            place, replaced = next(steps)
            while True:
                text = yield [
                    (self.summaries.get(slot) or entries[slot]).message for slot in replaced
                ]
                message = Message(
                    {"role": summary_role(self.first_speaker), "content": whole(text)}
                )
                tokens = rules.framing.message(message, rules.count)
                self.tally.stamps += 1
                self.summaries[place] = TallyEntry(
                    message=message,
                    tokens=tokens,
                    past=rules.section,
                    present=rules.section,
                    stamp=self.tally.stamps,
                )
                replaced_by[place] = {*replaced}.union(
                    *(replaced_by.pop(slot, ()) for slot in replaced)
                )
                texts.append((place, tokens, message.text))
                place, replaced = steps.send(tokens)
        except StopIteration as stop:
            placed = {(place, tokens) for place, tokens, _ in stop.value.written}
            self.texts = [text for place, tokens, text in texts if (place, tokens) in placed]
            return replaced_by

    def _apply_departures(self, replaced_by: dict[int, set[int]]) -> Iterator[Left]:
        """Take messages that have left off the tally, and write placeholders; give each of them with the reason."""
        tally = self.tally
        history = self.tally.history
        in_summaries = {slot for place in history.summaries for slot in replaced_by.get(place, ())}
        for slot in sorted({*history.changed}):
            before = tally.entries[slot].message.raw
            if history.gone[slot] >= 0:
                del tally.entries[slot]
                yield Left(before, "summarised" if slot in in_summaries else "dropped")
            elif history.state[slot] == SHRUNK:
                message = placeholder(tally.entries[slot].message, history.size[slot], tally.rules)
                tally.restamp(slot, message, history.size[slot])
                yield Left(before, "shrunk")

        # A summary that is in no other one and has left is lost, though it was paid for.
        for place, entry in [*self.summaries.items()]:
            if place in history.summaries:
                continue
            del self.summaries[place]
            if place not in in_summaries:
                self.notes.append(
                    f"a summary of {entry.tokens:,} tokens is not sent, since it is longer than what it replaces or "
                    "the history has no room for it; write shorter summaries, or raise the history budget"
                )
                yield Left(entry.message.raw, "dropped")

    def _uncut(self, entering: list[int]) -> Iterator[str]:
        """Say which tool results the policy would cut, and cannot."""
        stages = self.policy.stages
        clears = any(isinstance(stage, DropToolResults) for stage in stages)
        for slot in entering:
            entry = self.tally.entries[slot]
            if entry.message.role not in RESULT_ROLES or entry.message.is_cuttable:
                continue
            if clears or self.policy.arriving(entry.tokens, True) < entry.tokens:
                yield (
                    f"a tool result of {entry.tokens:,} tokens shows a picture or a file, which cannot be cut; it is "
                    "sent whole; send a smaller one"
                )

    def _cut_large_results(self, entering: list[int]) -> Generator[Left, None, None]:
        """Cut tool results inside that arrived larger than the policy lets them be."""
        tally = self.tally
        tokens = self.tally.history.slots.tokens
        for slot in entering:
            entry = tally.entries.get(slot)
            if entry is None or tokens[slot] >= entry.tokens or tally.history.state[slot] != WHOLE:
                continue
            message = capped(entry.message, tokens[slot], tally.rules)
            tally.restamp(slot, message, tokens[slot])
            yield Left(entry.message.raw, "shortened")

    def _fit_to_window(
        self, plan: Plan, demand: Counter[str], pinned: int, left: list[Left]
    ) -> Request:
        """Plan what is left, and cut inside what the window still has no room for."""
        tally = self.tally
        section = self.tally.rules.section

        def plan_again() -> Plan:
            now = tally.demand()
            return self._planned(now, pinned + now[section] - demand[section])

        # Plan again where the policy has cut the history.
        if tally.history.tokens + pinned != demand[section] or plan[section].cut:
            plan = self._planned(demand, pinned)

        # First each section that is over its limit gives up passages and cuts tool results, then all of them do.
        cut_grants = [grant for grant in plan.grants if grant.cut and grant.section != section]
        if self.shorten and (cut_grants or _missing(plan) > 0):
            for grant in cut_grants:
                left += self._drop_passages(grant, grant.granted)
                left += shorten_results(
                    tally, tally.demand()[grant.section] - grant.granted, grant.section
                )
            plan = plan_again()
            if (missing := _missing(plan)) > 0:
                left += shorten_results(tally, missing)
                plan = plan_again()
            # A section that is sent whole above its cap leaves less than its plan says: passages give way to it.
            for grant in plan.grants:
                if (missing := _missing(plan)) > 0 and not _is_required(self.budget, grant.section):
                    left += self._drop_passages(grant, grant.demand - missing)
                    plan = plan_again()
        return self._as_request(plan, left)

    def _drop_passages(self, grant: Grant, most: int) -> list[Left]:
        """Keep of a section's passages those that so many tokens have room for."""
        tally = self.tally
        passages = fewer_passages(tally, self.budget, grant.section, most)
        dropped = [item for item in tally.passages if item not in passages]
        tally.passages = passages
        return [Left(item.payload.raw, "dropped") for item in dropped]

    def _planned(self, demand: Counter[str], pinned: int) -> Plan:
        """Plan what the sections ask for, with the history as it is now."""
        section = self.tally.rules.section
        history = self.tally.history
        demand_now = dict(demand) | {section: max(0, history.tokens + pinned)}
        plan = allocate(self.planning_budget, demand_now)
        if self.policy.floor.conflict == "shrink" and plan[section].cut:
            return allocate(
                with_promise(self.planning_budget, section, demand_now[section]), demand_now
            )
        return plan

    def _as_request(self, plan: Plan, left: list[Left]) -> Request:
        """Put the request together as it is planned, and note what it holds for the next."""
        tally = self.tally
        tokens = sum(grant.demand for grant in plan.grants)
        missing = _missing(plan)
        notices = self._notices(plan, tokens, missing)

        # The messages in order; of them the first so many stand as in the last request.
        entries = self._entries_in_order()
        stable = self._stable([entry.stamp for entry in entries])
        self.head = next(
            (i for i, entry in enumerate(entries) if not _is_system(entry)), len(entries)
        )
        self.sent_messages = [entry.message for entry in entries]
        messages: list[dict[str, Any]] = [entry.message.raw for entry in entries]  # type: ignore[misc]  # read as dicts

        # The text about the budget comes last, so that it changes nothing before it.
        if self.tell and (text := describe(plan, tally.rules.count, framing=tally.rules.framing)):
            state = Message({"role": "system", "content": text})
            messages.append({"role": "system", "content": text})
            self.sent_messages.append(state)
            tokens += tally.rules.framing.message(state, tally.rules.count)

        # What waits for its result or call is named, too; and the tally is packed where most of it has left.
        waiting = [
            Left(tally.entries[slot].message.raw, "unanswered") for slot in sorted(tally.unsent)
        ]
        tools = [dict(schema) for schema in tally.tools]
        if len(tally.history.slots) > _MOST_DEAD_SLOTS + 2 * len(tally.entries):
            self.summaries = unpack(tally, packed(tally, self.summaries))
        return Request(
            messages=messages,
            tools=tools,
            plan=plan,
            tokens=tokens,
            over=max(0, missing),
            left=(*left, *waiting),
            summaries=tuple(self.texts),
            stable=stable,
            warnings=notices,
        )

    def _notices(self, plan: Plan, tokens: int, missing: int) -> tuple[str, ...]:
        """Say what is above its limit; a request that is too large is warned of or raises, as was asked for."""
        above = [
            f"section {brief(g.section)} holds {g.demand:,} tokens, {g.cut:,} above its limit of {g.limit:,}; it is "
            "sent whole; raise the limit, or shorten the texts"
            for g in plan.grants
            if g.cut
        ]
        notices = (*self.notes, *above)
        if missing <= 0:
            return notices
        over = (
            f"a request of {tokens:,} tokens exceeds what the window has for it by {missing:,}; nothing more may "
            "leave: shorten the question or the system message, lower the floor, or take a larger window"
        )
        if self.overrun == "raise" or (self.overrun == "warn" and self.budget.deficit == "raise"):
            raise ValueError(over)
        if self.overrun == "warn":
            warn_caller(over)
        return over, *notices

    def _stable(self, stamps: list[int]) -> int:
        """Return how many messages at the beginning are those of the last request."""
        pairs = enumerate(zip(self.last_stamps, stamps, strict=False))
        stable = next(
            (i for i, (old, new) in pairs if old != new), min(len(self.last_stamps), len(stamps))
        )
        self.last_stamps = stamps
        return stable

    def _entries_in_order(self) -> list[TallyEntry]:
        """List what is sent in order: earlier turns and their summaries, passages, this turn."""
        tally = self.tally
        entries = tally.entries
        if self.summaries:
            entries = entries | self.summaries
        slots = sorted(entries.keys() - tally.unsent)
        in_order = [entries[slot] for slot in slots]
        if tally.passages:
            turn_start = sum(slot < tally.start for slot in slots)
            in_order[turn_start:turn_start] = [
                _passage(item, tally.turn) for item in tally.passages
            ]
        return in_order


#: Forms whose providers want a user's message first.
USER_FIRST: Final = ("anthropic", "converse", "gemini")


def sending_notices(
    messages: Sequence[Message], as_written: Written, rules: ThinkingRules | None
) -> tuple[str, ...]:
    """Say what is billed of messages and was not counted, and what of them their provider refuses."""
    names = uncounted_thinking(as_written.messages, as_written.form, messages, rules)
    notices = [
        f"{name} goes out as it came, and only its provider can say what it bills; leave room for it"
        for name in names
    ]
    if as_written.form == "chat" and any(
        message.role in RESULT_ROLES and message.images for message in messages
    ):
        notices.append(
            "a tool's result shows a picture, which OpenAI's chat format takes from users only; send it in a user's "
            'message, or in another form, such as form="responses"'
        )
    begins_with = as_written.messages[0].get("role") if as_written.messages else "user"
    if as_written.form in USER_FIRST and begins_with != "user":
        notices.append(
            f"the request begins with a message of {begins_with}'s, which the providers of its form may refuse; "
            'start_on="user" leaves it out'
        )
    return tuple(notices)


def with_promise(budget: Budget, section: str, floor: int) -> Budget:
    """Return the budget in which one section gives up nothing, and the others shrink for it."""
    cap = budget.caps[section]
    return budget.assign(
        **{
            section: {
                "floor": floor,
                "importance": 5,
                "cap": None if cap is None else max(cap, floor),
            }
        }
    )


def _is_system(entry: TallyEntry) -> bool:
    """Tell a system message from a passage, which is sent as one and has a stamp below 0."""
    return entry.message.role in SYSTEM_ROLES and entry.stamp >= 0


def _passage(item: Item, turn: int) -> TallyEntry:
    """Write a passage as a message; in another turn it is another one."""
    message = Message({"role": "system", "content": item.payload.text})
    stamp = ~crc32(f"{turn} {message.text}".encode("utf-8", "replace"))
    return TallyEntry(message=message, tokens=item.tokens, past="", present="", stamp=stamp)


def _is_required(budget: Budget, section: str) -> bool:
    return any(line.section == section and line.required for line in budget.allocations)


def _missing(plan: Plan) -> int:
    """Return how far what is sent exceeds the window; what a section asks for is sent whole."""
    return sum(grant.cut for grant in plan.grants) - plan.free
