"""The history during pruning: its messages, removal order and sums.

Each message has a slot, numbered by its position in the conversation. Messages that are dropped together form a *unit*,
named after the slot of its first message. Heaps find the next unit to drop. Sums over 64 and 4,096 slots give the
tokens before a slot as three short sums, even for a million messages. Pruning n messages therefore takes about n log n
steps, even if there are many requests. A dropped message never comes back; each slot records when it changed.

In this example the history has four messages of 5, 7, 4 and 6 tokens. The second message calls a tool and the third is
the result, so together they are unit 1. The state is shown before and after `drop(0)` and `shrink(2, 1)` in request 3:

    before   size 5 7 4 6   members {0: [0], 1: [1, 2], 3: [3]}   tokens 22   state W W W W
    after    size 0 7 1 6   members {1: [1, 2], 3: [3]}           tokens 14   state DROPPED W SHRUNK W

    oldest      a heap of (unit, unit): 0 is still in it, until `next_unit` removes it
    gone, shrunk    [3, -1, -1, -1], [-1, -1, 3, -1]     the requests in which a slot left and shrank
    first_change    0                                    a prompt cache holds nothing of the history
    before(3)       8                                    the tokens of slots 0 to 2
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

from budgetkit.message import SYSTEM_ROLES
from budgetkit.pruning.policies.policy import Floor

NEVER = -1
WAITING, WHOLE, SHRUNK, DROPPED, SUMMARISED = range(5)
_Heap = list[tuple[int, int]]
_BLOCK = 7  # bits of a slot's number inside its block of 128 slots


@dataclass(frozen=True)
class Slots:
    """A conversation as columns, with one row per message.

    `role` is needed only if requests must start with a given role.
    """

    tokens: list[int]
    unit: list[int]
    turn: list[int]
    is_result: list[bool]
    importance: list[int]
    role: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens)

    def add(
        self, tokens: int, unit: int, turn: int, is_result: bool, importance: int, role: str
    ) -> None:
        """Append one message, as a running conversation does."""
        self.tokens.append(tokens)
        self.unit.append(unit)
        self.turn.append(turn)
        self.is_result.append(is_result)
        self.importance.append(importance)
        self.role.append(role)


class History:
    """The messages of a conversation that remain after pruning, request by request.

    Attributes
    ----------
    tokens, messages : int
        Tokens and number of messages in the history now. A summary is not a message.
    state, shrunk, gone : list of int
        State of each slot, and the requests in which it shrank and was dropped (`NEVER` if not).
    first_change : int
        The lowest slot that changed since `begin`.
    changed : list of int
        The messages that shrank or were dropped since `begin`.

    Examples
    --------
    >>> history = History(Slots([5, 7], [0, 1], [1, 2], [False, False], [0, 0]))
    >>> history.begin(1); history.enter(0); history.enter(1); history.tokens, history.before(1)
    (12, 5)
    >>> history.drop(0), history.tokens, history.gone
    (5, 7, [1, -1])
    """

    def __init__(self, slots: Slots) -> None:
        count = len(slots)
        self.slots = slots
        self.tokens = self.messages = 0
        self.size = [0] * count
        self.state = [WAITING] * count
        self.shrunk = [NEVER] * count
        self.gone = [NEVER] * count
        self.members: dict[int, list[int]] = {}  # of each unit still in the history
        self.summaries: dict[int, int] = {}  # by slot: the last turn that its summary covers
        self.in_turn: dict[int, int] = {}  # messages of each turn
        self.oldest: _Heap = []
        self.least: _Heap = []  # by importance; built on first use, since few policies need it
        self.rank: dict[int, int] = {}  # of each unit, the rank of its most important message
        self.results: list[int] = []  # a heap of tool results
        self.whole_results: set[int] = set()
        self.whole_tokens = 0  # tokens of all whole results
        self.closed: set[int] = set()  # dropped units, whose later messages are dropped on entering
        self._blocks = [0] * ((count >> _BLOCK) + 1)  # the tokens of each block of slots
        self.dropped_summaries: list[tuple[int, int]] = []  # the request, and the summary's slot
        self._looked_at = 0  # slots below this one were searched for messages of other sections
        self._outside: list[int] = []  # such messages with the role that starts a request
        self.begin(0)

    def begin(self, request: int) -> None:
        """Start a request, under whose number later changes are recorded."""
        self.request = request
        self.first_change = len(self.slots)
        self.changed: list[int] = []
        self.dropped_tokens = self.dropped_messages = self.shrunk_messages = 0

    def grow(self) -> None:
        """Extend the columns for newly added messages."""
        count = len(self.slots)
        more = count - len(self.size)
        self.size += [0] * more
        self.state += [WAITING] * more
        self.shrunk += [NEVER] * more
        self.gone += [NEVER] * more
        self._blocks += [0] * ((count >> _BLOCK) + 1 - len(self._blocks))

    def enter(self, slot: int) -> None:
        """Add a message to the history, unless its unit was dropped.

        In that case, the message is dropped as well.
        """
        slots = self.slots
        unit = slots.unit[slot]
        turn = slots.turn[slot]
        importance = slots.importance[slot]
        self.resize(slot, slots.tokens[slot])
        self.state[slot] = WHOLE
        self.messages += 1
        self.in_turn[turn] = self.in_turn.get(turn, 0) + 1
        if unit in self.closed:
            self._remove(slot, DROPPED)
            return
        if slots.is_result[slot]:
            heappush(self.results, slot)
            self.whole_results.add(slot)
            self.whole_tokens += self.size[slot]
        if (members := self.members.get(unit)) is None:
            heappush(self.oldest, (unit, unit))
        self.members[unit] = [slot] if members is None else [*members, slot]
        if importance > self.rank.get(unit, importance - 1):
            self._rank(unit, importance)

    @classmethod
    def restored(
        cls,
        slots: Slots,
        size: list[int],
        state: list[int],
        gone: list[int],
        summaries: dict[int, int],
        closed: set[int],
        whole_results: set[int],
    ) -> History:
        """Build a history from the columns of another history."""
        history = cls(slots)
        for slot, became in enumerate(state):
            if became in (WHOLE, SHRUNK):
                history.enter(slot)
            elif slot in summaries:
                history.place_summary(slot, size[slot], summaries[slot])
            history.resize(slot, size[slot])
        history.gone = gone
        history.state = state
        history.closed = closed
        history.whole_results = whole_results
        history.whole_tokens = sum(size[slot] for slot in whole_results)
        return history

    def renumbered(self, new: dict[int, int]) -> History:
        """Return a history of some slots only, renumbered from 0.

        `new` maps each of these slots to its new number.
        """
        slots = {name: [column[slot] for slot in new] for name, column in vars(self.slots).items()}
        slots["unit"] = [new[unit] for unit in slots["unit"]]
        return self.restored(
            slots=Slots(**slots),
            size=[self.size[slot] for slot in new],
            state=[self.state[slot] for slot in new],
            gone=[self.gone[slot] for slot in new],
            summaries={new[slot]: turn for slot, turn in self.summaries.items()},
            closed={new[unit] for unit in self.closed & new.keys()},
            whole_results={new[slot] for slot in self.whole_results & new.keys()},
        )

    def before(self, slot: int) -> int:
        """Return the tokens in all slots before a given slot."""
        block = slot >> _BLOCK
        return sum(self._blocks[:block]) + sum(self.size[block << _BLOCK : slot])

    def next_unit(self, by_importance: bool = False) -> int | None:
        """Return the unit to drop next, or None in an empty history."""
        if by_importance and not self.least:
            self.least = sorted((importance, unit) for unit, importance in self.rank.items())
        heap = self.least if by_importance else self.oldest
        while heap and (
            heap[0][1] not in self.members
            or (by_importance and heap[0][0] != self.rank[heap[0][1]])
        ):
            heappop(heap)
        return heap[0][1] if heap else None

    def last_turn(self, unit: int) -> int:
        """Return a unit's turn, or the last turn covered by a summary."""
        return self.summaries.get(unit, self.slots.turn[unit])

    def oldest_message(self) -> tuple[int | None, int]:
        """Return the oldest unit of messages, and the tokens of earlier summaries.

        The unit is None if the history has only summaries.
        """
        aside = set()  # a summary may be in the heap twice: it takes the slot of a dropped message
        while (unit := self.next_unit()) is not None and unit in self.summaries:
            aside.add(heappop(self.oldest))
        for entry in aside:
            heappush(self.oldest, entry)
        return unit, sum(self.size[summary] for summary, _ in aside)

    def begin_with(self, role: str, turn: int) -> None:
        """Drop the messages before the first message of a role.

        The request then starts with that role, unless it starts with a summary. System messages are never dropped here,
        because they precede all other messages in a request. Nothing is dropped if another section has a message of
        that role before the history, or if the conversation has no message of that role yet.
        """
        # the first slot of the role is in the earliest turn with it
        roles = self.slots.role
        if role not in roles or self.slots.turn[roles.index(role)] > turn:
            return
        instructions: _Heap = []
        while (unit := self.next_unit()) is not None and unit not in self.summaries:
            first = min(self.members[unit])
            speaker = roles[first]
            if speaker == role or self._waits_before(first, role):
                break
            if speaker in SYSTEM_ROLES:
                instructions.append(heappop(self.oldest))
            else:
                self.drop(unit, DROPPED)
        for entry in instructions:
            heappush(self.oldest, entry)

    def _waits_before(self, slot: int, role: str) -> bool:
        """Return True if another section has a role's message before a slot."""
        # A slot of the history never waits again, so each slot is checked once; a waiting slot may still enter.
        for earlier in range(self._looked_at, slot):
            if self.state[earlier] == WAITING and self.slots.role[earlier] == role:
                self._outside.append(earlier)
        self._looked_at = max(self._looked_at, slot)
        while self._outside and self.state[self._outside[0]] != WAITING:
            del self._outside[0]
        return bool(self._outside)

    def may_leave(self, unit: int, floor: Floor, besides: int = 0) -> bool:
        """Return True if the floor allows a unit to be dropped.

        `besides` is a number of tokens that do not count towards the floor, such as those of earlier summaries. A unit
        that holds all remaining messages is never dropped.
        """
        members = self.members[unit]
        messages = 0 if unit in self.summaries else len(members)
        if self.messages <= messages:
            return False
        if floor.unit == "tokens":
            return self.tokens - besides - sum(self.size[slot] for slot in members) >= floor.least
        if floor.unit == "turns" and messages:
            turns = [self.slots.turn[slot] for slot in members]
            emptied = sum(self.in_turn[turn] == turns.count(turn) for turn in set(turns))
            return len(self.in_turn) - emptied >= floor.least
        return not messages or self.messages - messages >= floor.least

    def drop(self, unit: int, how: int = DROPPED) -> int:
        """Remove a unit and return its tokens."""
        before = self.tokens
        if unit in self.summaries:
            del self.summaries[unit]
            self.resize(unit, 0)
            if how == DROPPED:
                self.dropped_summaries.append((self.request, unit))
        else:
            for slot in self.members[unit]:
                self._remove(slot, how)
            self.closed.add(unit)
        del self.members[unit], self.rank[unit]
        if how == DROPPED:
            self.dropped_tokens += before - self.tokens
        return before - self.tokens

    def take_out(self, slot: int) -> None:
        """Remove a single message if it is still in the history."""
        if self.state[slot] not in (WHOLE, SHRUNK):
            return
        unit = self.slots.unit[slot]
        self._remove(slot, DROPPED)
        self.members[unit] = [member for member in self.members[unit] if member != slot]
        if not self.members[unit]:
            del self.members[unit], self.rank[unit]
            self.closed.add(unit)

    def shrink(self, slot: int, placeholder: int) -> None:
        """Replace a tool result with a placeholder."""
        self.dropped_tokens += self.size[slot] - placeholder
        self.shrunk_messages += 1
        self.state[slot] = SHRUNK
        self.shrunk[slot] = self.request
        self.changed.append(slot)
        self.resize(slot, placeholder)

    def place_summary(self, place: int, tokens: int, last_turn: int) -> None:
        """Put a summary in the slot of a dropped message."""
        self.resize(place, tokens)
        self.summaries[place] = last_turn
        self.members[place] = [place]
        heappush(self.oldest, (place, place))
        self._rank(place, self.slots.importance[place])

    def next_result(self, intact: int) -> int | None:
        """Return the oldest uncut tool result that may be shrunk, or None.

        The newest `intact` uncut results are kept as they are. The returned result no longer counts as uncut.
        """
        while self.results and self.results[0] not in self.whole_results:
            heappop(self.results)
        if not self.results or len(self.whole_results) <= intact:
            return None
        slot = heappop(self.results)
        self.leave_whole(slot)
        return slot

    def leave_whole(self, slot: int) -> None:
        """Remove a message from the set of uncut tool results."""
        if slot in self.whole_results:
            self.whole_results.remove(slot)
            self.whole_tokens -= self.size[slot]

    def _rank(self, unit: int, importance: int) -> None:
        """Record a unit's importance, so that older heap entries are skipped."""
        self.rank[unit] = importance
        if self.least:
            heappush(self.least, (importance, unit))

    def _remove(self, slot: int, how: int) -> None:
        """Remove one message from all sums, and record its outcome."""
        self.leave_whole(slot)
        self.resize(slot, 0)
        self.state[slot] = how
        self.gone[slot] = self.request
        self.changed.append(slot)
        self.messages -= 1
        self.dropped_messages += 1
        turn = self.slots.turn[slot]
        self.in_turn[turn] -= 1
        if not self.in_turn[turn]:
            del self.in_turn[turn]

    def resize(self, slot: int, tokens: int) -> None:
        """Set a message's size, in tokens."""
        change = tokens - self.size[slot]
        if slot < self.first_change and self.state[slot] != WAITING:
            self.first_change = slot
        self.size[slot] = tokens
        self.tokens += change
        self._blocks[slot >> _BLOCK] += change
