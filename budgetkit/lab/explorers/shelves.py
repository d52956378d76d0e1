"""Shelves: shipped and opened conversations and texts, with their names.

An entry never changes: another file with the same name becomes an entry with a number.

    shipped                     opened "mine.jsonl"          opened another "mine.jsonl"
    support-chat, coding-agent  ..., mine.jsonl              ..., mine.jsonl, mine.jsonl (2)
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast

from budgetkit.budget import brief, one_line
from budgetkit.budget.errors import unknown_name
from budgetkit.counters import (
    CalibratedCounter,
    Count,
    Counter,
    basis_of,
    counter,
    nearer_sentence,
    spread_of,
)
from budgetkit.counters.memory import Memo
from budgetkit.inputs.conversations import traces_of
from budgetkit.lab.accuracy.corpora import Corpus
from budgetkit.lab.accuracy.corpora.opening import KNOWN, read_texts
from budgetkit.models import Model
from budgetkit.trace import Trace, load_traces, shipped_traces
from budgetkit.trace.tables import UnknownColumnsError


def short_name(counter: Counter) -> str:
    """Return a counter's short name without its basis.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> short_name(counter("chars/4")), short_name(counter("calibrated:claude-opus-4-7"))
    ('chars/4', 'the estimate for claude-opus-4-7')
    """
    if isinstance(counter, CalibratedCounter):
        return f"the estimate for {counter.model}"
    return counter.name


def vocabulary_name(counter: Counter) -> str:
    """Return the name of a counter's vocabulary, or else the counter's name.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> vocabulary_name(counter("gpt-5.4")), vocabulary_name(counter("chars/4"))
    ('o200k_base', 'chars/4')
    """
    return getattr(counter, "encoding", getattr(counter, "vocabulary", counter.name))


def advice(counter: Counter) -> str:
    """Return advice on counting more accurately, or "" if there is none.

    The advice starts with a space.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> advice(counter("gpt-5.4"))
    ''
    """
    sentence = nearer_sentence(counter)
    return f" {sentence}" if sentence else ""


def basis(best: Counter, model: Model) -> str:
    """Describe the reference for a cheap count, and its certainty.

    Examples
    --------
    >>> import budgetkit as bk
    >>> model = bk.model("gpt-5.4")
    >>> basis(bk.counter(model), model)
    'o200k_base, the tokenizer of gpt-5.4'
    """
    if basis_of(best) == "exact":
        return f"{vocabulary_name(best)}, the tokenizer of {model.name}"
    if basis_of(best) == "reconstructed":
        return f"the best count known for {model.name}, a reconstruction of its tokenizer"
    if isinstance(best, CalibratedCounter):
        return f"the best count known for {model.name}, an estimate ({best.product})"
    interval = "" if spread_of(best) else ", with an unknown error"
    return f"{vocabulary_name(best)}, used in place of the tokenizer of {model.name}{interval}"


#: Function that reports a slow task and its progress, from 0 to 1.
Report = Callable[[str, float], None]
Entry = TypeVar("Entry")
LARGE = 2_000_000  # bytes of a file whose reading is reported


@dataclass(frozen=True, kw_only=True)
class PendingTable:
    """A table whose columns have not been chosen yet."""

    name: str
    content: bytes | str  # what was sent, or the path
    columns: tuple[str, ...]


class Shelf(ABC, Generic[Entry]):
    """A named collection of conversations or texts.

    Call a shelf with a name to get an entry.
    """

    #: The noun for an entry, for errors about unknown names.
    noun: ClassVar[str]

    def __init__(self, report: Report) -> None:
        self.report = report
        #: The table whose columns have not been chosen yet.
        self.undecided: PendingTable | None = None
        self._entries: dict[str, Entry] = {}

    @property
    @abstractmethod
    def shipped(self) -> Sequence[str]:
        """Names of the entries that ship with budgetkit."""

    @abstractmethod
    def _load(self, name: str, source: str | bytes, columns: Mapping[str, str] | None) -> Entry:
        """Read an entry from a path, shipped name or file content."""

    @abstractmethod
    def _called(self, path: str) -> str:
        """Return the listed name of a file."""

    def __call__(self, name: str) -> Entry:
        """Return an entry by name, reading it on first use."""
        if name not in self._entries:
            if name not in self.shipped:
                raise LookupError(unknown_name(self.noun, name, self.names))
            self._entries[name] = self._load(name, name, None)
        return self._entries[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all entries, shipped entries first."""
        return tuple(dict.fromkeys([*self.shipped, *self._entries]))

    def join(self, other: Shelf[Entry]) -> None:
        """Share all entries with another shelf, in both directions."""
        other._entries.update(self._entries)
        self._entries = other._entries

    def add(self, name: str, entry: Entry) -> str:
        """Add an entry under a free name, and return that name."""
        free_name = name
        number = 1
        while free_name in self.names and self(free_name) != entry:
            number += 1
            free_name = f"{name} ({number})"
        self._entries.setdefault(free_name, entry)
        return free_name

    def open(self, path: str) -> str:
        """Add a path's contents or a shipped entry, and return its name."""
        if path in self.shipped:
            self(path)
            return path
        return self._take_in(self._called(path), path)

    def read(self, name: str, content: bytes) -> str:
        """Add the content of a file and return its name."""
        return self._take_in(name, content)

    def decide(self, columns: Mapping[str, str]) -> str:
        """Add the pending table with the chosen columns, and return its name."""
        table = self.undecided
        if table is None:
            raise LookupError("No table is waiting for its columns. Open the table again.")
        return self._take_in(table.name, table.content, columns)

    def _take_in(
        self, name: str, source: str | bytes, columns: Mapping[str, str] | None = None
    ) -> str:
        try:
            entry = self._load(name, source, columns)
        except UnknownColumnsError as problem:
            self.undecided = PendingTable(name=name, content=source, columns=problem.columns)
            raise
        self.undecided = None
        return self.add(name, entry)


class Conversations(Shelf[list[Trace]]):
    """Files of conversations, each a list of traces."""

    noun = "trace"
    #: Whether a path means its file alone, without the files of its sub-agents.
    reads_alone = False

    @property
    def shipped(self) -> Sequence[str]:
        """Names of the shipped conversations."""
        return shipped_traces()

    def take(self, source: str | Path | Trace | Sequence[Any]) -> str:
        """Add conversations in any form, and return their name.

        A list of messages is one conversation.
        """
        if isinstance(source, str | Path):
            return self.open(str(source))
        traces = list(traces_of(source))
        file = "" if isinstance(source, Trace) else traces[0].source.split(", line")[0]
        return self.add(Path(file).name or traces[0].id, traces)

    def one(self, name: str, number: int) -> Trace:
        """Return a conversation in a file by its index, counting from 0."""
        traces = self(name)
        if 0 <= number < len(traces):
            return traces[number]
        last = len(traces) - 1
        choices = f"a number from 0 to {last:,}" if last else "0, the only one"
        raise LookupError(
            f"Unknown conversation {brief(number)} of {one_line(name)}. Choose {choices}."
        )

    def _called(self, path: str) -> str:
        return Path(path).name

    def _load(
        self, name: str, source: str | bytes, columns: Mapping[str, str] | None
    ) -> list[Trace]:
        def progress(done: int, whole: int) -> None:
            if whole > LARGE:
                text = f"Reading {name}: {done / 1e6:,.0f} of {whole / 1e6:,.0f} MB"
                self.report(text, done / max(1, whole))

        if isinstance(source, bytes):
            stream = BytesIO(source)
            stream.name = name
            return load_traces(stream, progress, columns)
        if self.reads_alone and source not in self.shipped:
            with Path(source).open("rb") as file:
                return load_traces(file, progress, columns)
        return load_traces(source, progress, columns)


class Texts(Shelf[Corpus]):
    """Corpora of texts, each from a folder, a file or a glob."""

    noun = "texts"

    @property
    def shipped(self) -> Sequence[str]:
        """Names of the shipped corpora."""
        return tuple(KNOWN)

    def add(self, name: str, entry: Corpus) -> str:
        """Add texts, except empty documents, and return their name."""
        corpus_with_text = entry.where(lambda document: bool(document.text))
        if not corpus_with_text.documents:
            raise ValueError(f"No text in {one_line(name)}. Pass at least one document with text.")
        return super().add(name, corpus_with_text)

    def _called(self, path: str) -> str:
        return path

    def _load(self, name: str, source: str | bytes, _columns: Mapping[str, str] | None) -> Corpus:
        if isinstance(source, str):
            if source in KNOWN:
                return KNOWN[source]()
            self.report(f"Reading {source}", 0)
            return read_texts(source)
        # The content of an uploaded file; errors name the upload.
        with tempfile.TemporaryDirectory() as place:
            # a folder with a fixed name, because documents name their folder as their source
            path = Path(place, "upload", Path(name.replace("\\", "/")).name)
            try:
                path.parent.mkdir()
                path.write_bytes(source)
                return read_texts(str(path))
            except (ValueError, OSError) as problem:
                raise ValueError(
                    str(problem).replace(str(path), name).replace(f"{path.parent}/", "")
                ) from None


def title_of(name: str, trace: Trace) -> str:
    """Return a conversation's title, or `name` if there is no title."""
    return name if trace.title == trace.id else trace.title


MOST = 4_000  # frames and columns that are kept; slow counts are kept longest
MOST_LARGE = 64  # replays, figures and filled windows that are kept: each may take megabytes
LONG = 200  # messages of a conversation whose counting is reported


Method = TypeVar("Method", bound=Callable[..., Any])


def kept(method: Method) -> Method:
    """Keep the values of a method in the library of its object.

    A value depends on the `key` of the object and on the arguments; counters are distinguished by their names.
    """

    @wraps(method)
    def once(self: Any, *arguments: Any) -> Any:
        names = [getattr(argument, "name", argument) for argument in arguments]
        key = (method.__qualname__, *self.key, *names)
        return self.library.once(key, lambda: method(self, *arguments))

    return cast(Method, once)


class Library:
    """The conversations, texts and counts of one or several explorers."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.conversations = Conversations(report)
        self.texts = Texts(report)
        self._counters: dict[Hashable, Counter] = {}
        #: Return the cached value for a key, or make it. For columns of numbers, of which many are kept.
        self.once = Memo(MOST).once
        #: The same for large values, of which few are kept.
        self.once_large = Memo(MOST_LARGE).once

    def join(self, other: Library) -> None:
        """Share all entries and counts with another library.

        Each library gets everything that the other library opens or counts.
        """
        self.conversations.join(other.conversations)
        self.texts.join(other.texts)
        other._counters = self._counters | other._counters
        self._counters = other._counters
        self.once = other.once
        self.once_large = other.once_large

    def add_counter(self, count: str | Model | Count | None) -> str | None:
        """Add a counter, and return its name.

        A name, or None, is returned unchanged. Different counters must have different names.
        """
        if count is None or isinstance(count, str):
            return count
        new = counter(count)
        if self._counters.setdefault(new.name, new) != new:
            raise ValueError(
                f"Two counters are called {brief(new.name)}. Rename one of the functions."
            )
        return new.name

    def counter(self, wanted: str | Model) -> Counter:
        """Return the counter with a name, or a model's best known counter."""
        key = wanted if isinstance(wanted, str) else (wanted.name, wanted.encoding)
        if key not in self._counters:
            self._counters[key] = counter(wanted)
        return self._counters[key]

    def announce(self, trace: Trace, count: Counter) -> None:
        """Announce the count of a long conversation."""
        if len(trace.messages) > LONG:
            self.report(
                f"Counting {trace.id}: {len(trace.messages):,} messages with {count.name}", 0
            )
