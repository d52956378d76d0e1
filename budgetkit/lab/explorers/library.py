"""Library: what an explorer can look at, the counters, and what was worked out from them, each once.

Conversations and texts stand on their shelves; counters go by their names; what is counted, replayed or drawn is kept
by all that it depends on. What a move of a slider needs is looked up here, and nothing is counted again.

    library.conversations("support-chat")           the conversations of a file
    library.texts("mini-corpus")                    a corpus
    library.counter("chars/4")                      always the same counter
    library.once(("demand", "support-chat"), make)  what `make` returned when it was asked for first
"""

from __future__ import annotations

from collections.abc import Hashable

from budgetkit.budget.quoting import brief
from budgetkit.counters import Count, Counter, counter
from budgetkit.counters.memory import Memo
from budgetkit.lab.explorers.shelves import Conversations, Report, Texts
from budgetkit.models import Model
from budgetkit.models.resolved import ResolvedModel
from budgetkit.trace import Trace

MOST = 4_000  # frames and columns that are kept; what is slow to count stays longest
MOST_LARGE = 64  # replays, figures and filled windows that are kept: each may take megabytes
LONG = 200  # messages of a conversation whose counting is reported


class Library:
    """What one explorer looks at; several can share what they hold."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.conversations = Conversations(report)
        self.texts = Texts(report)
        self._counters: dict[Hashable, Counter] = {}
        self._counted = Memo(MOST)
        self._drawn = Memo(MOST_LARGE)
        #: Return what was made for a key, or make it: columns of numbers, of which many are kept.
        self.once = self._counted.once
        #: The same for what is large, of which few are kept.
        self.once_large = self._drawn.once

    def join(self, other: Library) -> None:
        """Look at the same things as another library from now on: what one opens or counts, both have."""
        self.conversations.join(other.conversations)
        self.texts.join(other.texts)
        other._counters = self._counters | other._counters
        self._counters = other._counters
        self.once = other.once
        self.once_large = other.once_large

    def add_counter(self, count: str | Model | ResolvedModel | Count | None) -> str | None:
        """Take in a counter and return its name; a name or None is returned as it is.

        Two that differ may not share a name.
        """
        if count is None or isinstance(count, str):
            return count
        new = counter(count)
        if self._counters.setdefault(new.name, new) != new:
            raise ValueError(
                f"two counters are called {brief(new.name)}; name one of the functions otherwise"
            )
        return new.name

    def counter(self, wanted: str | Model) -> Counter:
        """Return a counter, always the same for the same name; of a model the best that is known."""
        key = wanted if isinstance(wanted, str) else (wanted.name, wanted.encoding)
        if key not in self._counters:
            self._counters[key] = counter(wanted)
        return self._counters[key]

    def announce(self, trace: Trace, count: Counter) -> None:
        """Say that a long conversation is about to be counted."""
        if len(trace.messages) > LONG:
            self.report(
                f"Counting {trace.id}: {len(trace.messages):,} messages with {count.name}", 0
            )
