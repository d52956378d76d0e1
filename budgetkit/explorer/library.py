"""Library: the conversations that the explorer can show, each counted once for each counter.

A file is read whole and its conversations stay as they were read; counts stay with their conversation. What a
move of a slider needs is looked up here and nothing is counted again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.counters import Count, Counter, counter
from budgetkit.counters.memory import Memo
from budgetkit.framing import Framing
from budgetkit.models import Model
from budgetkit.plan.items import Items
from budgetkit.trace import Trace, load_traces, shipped_traces, usage_frame

Report = Callable[[str, float], None]
MOST_GROWN = 20  # earlier forms of a conversation that grows, to which one can go back
MOST = 4_000  # frames and columns that are kept; the counts themselves stay with their conversation


class Library:
    """Conversations by name, and their counts."""

    def __init__(self, report: Report, start: Any = None) -> None:
        self.report, self.start = report, start
        self._traces: dict[str, list[Trace]] = {}
        self._counters: dict[Hashable, Counter] = {}
        self.once = Memo(MOST).once

    @property
    def names(self) -> tuple[str, ...]:
        """What can be shown: what is shipped, then what was loaded."""
        return tuple(dict.fromkeys([*shipped_traces(), *self._traces]))

    def join(self, other: Library) -> None:
        """Hold the same conversations as another library from now on: what one takes in, both have."""
        other._traces.update(self._traces)
        self._traces = other._traces

    def add(self, name: str, traces: Sequence[Trace]) -> str:
        """Take in conversations that are there already."""
        own = self._free(name, list(traces))
        self._traces.setdefault(own, list(traces))
        return own

    def follow(self, trace: Trace) -> str:
        """Take in a conversation that has grown, under its own name and length; of its earlier forms, few are kept."""
        grown = [name for name in self._traces if name.startswith(f"{trace.id}, ")]
        for name in grown[:-MOST_GROWN]:
            del self._traces[name]
        return self.add(f"{trace.id}, {len(trace.messages):,} messages", [trace])

    def read(self, name: str, content: bytes) -> str:
        """Take in the content of a file."""
        stream = BytesIO(content)
        stream.name = name
        return self.add(name, load_traces(stream, self._reading(name)))

    def open(self, path: str) -> str:
        """Take in a file by its path, or a shipped trace by its name."""
        if path in shipped_traces():
            self.conversations(path)
            return path
        name = Path(path).name
        return self.add(name, load_traces(path, self._reading(name)))

    def take(self, given: str | Path | Trace | Sequence[Any]) -> str:
        """Take in conversations however they are given; a list of messages is one of them."""
        if isinstance(given, str | Path):
            return self.open(str(given))
        several: list[Any] = [given] if isinstance(given, Trace) else list(given)
        if not all(isinstance(each, Trace) for each in several):
            several = [Trace("messages", tuple(several))]
        file = "" if isinstance(given, Trace) else Path(several[0].source.split(", line")[0]).name
        return self.add(file or several[0].id, several)

    def conversations(self, name: str) -> list[Trace]:
        """Return the conversations of a file."""
        if name not in self._traces:
            if name not in shipped_traces():
                raise LookupError(
                    f"no trace {brief(name)}; known are {quoted(self.names)}; name one, or a file by its path"
                )
            self._traces[name] = load_traces(name, self._reading(name))
        return self._traces[name]

    @staticmethod
    def called(name: str, trace: Trace) -> str:
        """Return what a conversation goes by: its title where its file gives it one, else the name of the file."""
        return name if trace.title == trace.id else trace.title

    def conversation(self, name: str, number: int) -> Trace:
        """Return one conversation of a file, from 0."""
        traces = self.conversations(name)
        if 0 <= number < len(traces):
            return traces[number]
        raise LookupError(
            f"conversation {brief(number)} of {one_line(name)} was asked for; it has {len(traces)}, from 0 to "
            f"{len(traces) - 1}; choose one of them"
        )

    def model_of(self, name: str, conversation: int) -> str | None:
        """Return the model that a conversation was held with, as the file says; of several the last."""
        traces = self.conversations(name)
        if not 0 <= conversation < len(traces):
            return None
        trace = traces[conversation]
        answers = [*usage_frame(trace)["model"]]
        told = [*reversed(answers), trace.fields.get("model"), trace.meta.get("model")]
        return next((each for each in told if isinstance(each, str) and each), None)

    def given(self, count: str | Count | None) -> str | None:
        """Take in a counter and return its name; a name or None is returned as it is."""
        if count is None or isinstance(count, str):
            return count
        made = counter(count)
        self._counters[made.name] = made
        return made.name

    def counter(self, name: str | None, model: Model) -> Counter:
        """Return a counter, always the same for the same name."""
        key = name or (model.name, model.encoding)
        if key not in self._counters:
            self._counters[key] = counter(name or model)
        return self._counters[key]

    def demand(
        self, name: str, conversation: int, count: Counter, roles: Mapping[str, str], framing: Framing
    ) -> pd.DataFrame:
        """Return what each turn of one conversation asks of each section."""
        trace = self.conversations(name)[conversation]
        key = (name, conversation, count.name, tuple(roles.items()), framing, "demand")
        return self.once(key, lambda: self._count(name, trace, count, roles, framing))

    def demands(self, name: str, count: Counter, roles: Mapping[str, str], framing: Framing) -> pd.DataFrame:
        """Return what each turn of each conversation of a file asks of each section."""
        traces = self.conversations(name)

        def every() -> pd.DataFrame:
            frames = {}
            for i in range(len(traces)):
                self.report(f"Counting {name}: conversation {i + 1:,} of {len(traces):,}", i / len(traces))
                frames[i] = self.demand(name, i, count, roles, framing)
            return pd.concat(frames, names=["conversation"]).fillna(0).astype("int64")

        return self.once((name, count.name, tuple(roles.items()), framing, "demands"), every)

    def items(
        self, name: str, conversation: int, turn: int, count: Counter, roles: Mapping[str, str], framing: Framing
    ) -> Items:
        """Return what stands to be kept or cut at one turn."""
        trace = self.conversations(name)[conversation]
        key = (name, conversation, turn, count.name, tuple(roles.items()), framing)
        return self.once(key, lambda: Items(trace.items(turn, count, roles or None, framing)))

    def _free(self, name: str, traces: list[Trace]) -> str:
        """Find the name that these conversations go by already, or the first that no others go by."""
        own, number = name, 1
        while own in self.names and (self._traces.get(own) or load_traces(own)) != traces:
            own, number = f"{name} ({number + 1})", number + 1
        return own

    def _count(
        self, name: str, trace: Trace, count: Counter, roles: Mapping[str, str], framing: Framing
    ) -> pd.DataFrame:
        if len(self._traces.get(name, ())) == 1 and len(trace.messages) > 200:
            self.report(f"Counting {trace.id}: {len(trace.messages):,} messages with {count.name}", 0)
        return trace.demand(count, roles or None, framing)

    def _reading(self, name: str) -> Callable[[int, int], None]:
        def progress(done: int, whole: int) -> None:
            if whole > 2_000_000:
                text = f"Reading {name}: {done / 1e6:,.0f} of {whole / 1e6:,.0f} MB"
                self.report(text, done / max(1, whole))

        return progress
