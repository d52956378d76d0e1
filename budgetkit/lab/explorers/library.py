"""Library: the conversations that the explorer can show, each counted once for each counter.

A file is read whole and its conversations stay as they were read; counts stay with their conversation. What a
move of a slider needs is looked up here and nothing is counted again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.counters import Count, Counter, counter
from budgetkit.counters.memory import Memo
from budgetkit.inputs.conversations import traces_of
from budgetkit.models import Model
from budgetkit.models.resolved import ResolvedModel
from budgetkit.plan.items import Items
from budgetkit.requests import Framing
from budgetkit.trace import Trace, load_traces, shipped_traces
from budgetkit.trace.tables import UnknownColumns

Report = Callable[[str, float], None]
MOST_GROWN = 20  # earlier forms of a conversation that grows, to which one can go back
MOST = 4_000  # frames and columns that are kept; the counts themselves stay with their conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """Hold a table of which nobody knows yet which column says what."""

    name: str
    content: bytes | str  # what was sent, or the path
    columns: tuple[str, ...]


class Library:
    """Conversations by name, and their counts."""

    def __init__(self, report: Report, start: Any = None) -> None:
        self.report = report
        self.start = start
        self.undecided: Undecided | None = None
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
        free_name = self._free(name, list(traces))
        self._traces.setdefault(free_name, list(traces))
        return free_name

    def follow(self, trace: Trace) -> str:
        """Take in a conversation that has grown, under its own name and length; of its earlier forms, few are kept."""
        grown = [name for name in self._traces if name.startswith(f"{trace.id}, ")]
        for name in grown[:-MOST_GROWN]:
            del self._traces[name]
        return self.add(f"{trace.id}, {len(trace.messages):,} messages", [trace])

    def read(self, name: str, content: bytes, columns: Mapping[str, str] | None = None) -> str:
        """Take in the content of a file; a table whose columns are not known waits until they are chosen."""
        stream = BytesIO(content)
        stream.name = name
        return self._add_file(name, stream, content, columns)

    def open(self, path: str) -> str:
        """Take in a file by its path, or a shipped trace by its name."""
        if path in shipped_traces():
            self.conversations(path)
            return path
        return self._add_file(Path(path).name, path, path, None)

    def decide(self, columns: Mapping[str, str]) -> str:
        """Take in the table that waits, with the columns that were chosen."""
        table = self.undecided
        if table is None:
            raise LookupError("columns were chosen and no table waits for them; open the table again")
        if isinstance(table.content, bytes):
            return self.read(table.name, table.content, columns)
        return self._add_file(table.name, table.content, table.content, columns)

    def _add_file(self, name: str, source: Any, content: bytes | str, columns: Mapping[str, str] | None) -> str:
        try:
            traces = load_traces(source, self._reading(name), columns)
        except UnknownColumns as problem:
            self.undecided = Undecided(name=name, content=content, columns=problem.columns)
            raise
        self.undecided = None
        return self.add(name, traces)

    def take(self, source: str | Path | Trace | Sequence[Any]) -> str:
        """Take in conversations however they are given; a list of messages is one of them."""
        if isinstance(source, str | Path):
            return self.open(str(source))
        several = traces_of(source)
        file = "" if isinstance(source, Trace) else Path(several[0].source.split(", line")[0]).name
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
        """Return the model that a conversation was held with, as the file says; of several the last that is known."""
        traces = self.conversations(name)
        return traces[conversation].model if 0 <= conversation < len(traces) else None

    def given(self, count: str | Model | ResolvedModel | Count | None) -> str | None:
        """Take in a counter and return its name; a name or None is returned as it is."""
        if count is None or isinstance(count, str):
            return count
        given_counter = counter(count)
        self._counters[given_counter.name] = given_counter
        return given_counter.name

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
        free_name = name
        number = 1
        while free_name in self.names and (self._traces.get(free_name) or load_traces(free_name)) != traces:
            free_name = f"{name} ({number + 1})"
            number = number + 1
        return free_name

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
