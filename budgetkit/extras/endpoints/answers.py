"""Counts that providers gave, kept on disk, so that nobody is asked twice; and what happens when the disk will not.

A count is kept under a checksum of what was asked, made with a secret of the file's own. So neither a text nor whether
a certain text was asked about can be read from a file that somebody else gets hold of, and only its owner may open it.
A file that cannot be read is moved aside and begun anew; counting goes on without one that can be written. Both are
said.
"""

from __future__ import annotations

import hmac
import json
import os
import sqlite3
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from operator import eq
from pathlib import Path
from typing import Any, Final

from budgetkit.budget.quoting import warn_caller
from budgetkit.counters.encodings import ForkSafeLock
from budgetkit.message import SYSTEM_ROLES, Message
from budgetkit.trace import Trace, load_trace

#: No request has more tokens; an answer that says so is none.
MOST_TOKENS: Final = 10**9
_WAIT: Final = 30.0  # seconds for another process that writes
_BROKEN: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
_ERROR: Final = 0xFF  # the bits of SQLite's codes that name the error; the others go into detail
_MENDING = ForkSafeLock(threading.RLock)


def cache_file() -> Path:
    """Return where answers are kept when nobody says otherwise: in the user's cache folder."""
    folder = (
        os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    )
    return Path(folder) / "budgetkit" / "provider-counts.sqlite"


def is_count(tokens: object) -> bool:
    """Tell whether something is a whole number from 0 to MOST_TOKENS.

    >>> [is_count(tokens) for tokens in (0, 10**9, -1, 2.0, True, "3", None)]
    [True, True, False, False, False, False, False]
    """
    return type(tokens) is int and 0 <= tokens <= MOST_TOKENS


class KeptCounts:
    """Counts in a file; in memory alone from when the file fails."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self.salt = os.urandom(32)
        try:
            self.opened = _opened(path)
        except (OSError, sqlite3.Error) as error:
            self._fail(error)
        self.salt = self.opened.execute("SELECT value FROM salt").fetchone()[0]

    def name(self, url: str, model: str, body: Mapping[str, Any]) -> bytes:
        """Return the checksum of a request; what was asked cannot be read back from it."""
        request = json.dumps([url, model, body], sort_keys=True, ensure_ascii=False)
        return hmac.digest(self.salt, request.encode("utf-8", "surrogatepass"), "sha256")

    def known(self, names: Sequence[bytes]) -> dict[bytes, int]:
        """Return the stored counts by name; values that can be no count are left out."""
        look_up = "SELECT tokens FROM kept WHERE name = ?"
        try:
            rows = {name: self.opened.execute(look_up, (name,)).fetchone() for name in names}
        except sqlite3.Error as error:
            self._fail(error)
            return {}
        return {name: row[0] for name, row in rows.items() if row and is_count(row[0])}

    def keep(self, name: bytes, tokens: int) -> None:
        """Keep one count; it stays even if the next one is never answered."""
        try:
            with self.opened:
                self.opened.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (name, tokens))
        except sqlite3.Error as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Begin a file anew where it is broken; go on in memory where there can be none."""
        try:
            if not isinstance(error, sqlite3.Error) or not _is_broken(error):
                raise error
            # Until the new file stands: who comes next finds it whole, and not just begun.
            with _MENDING:
                self.notes += _moved_aside(self.path, error)
                self.opened = _opened(self.path, self.salt)
        except (OSError, sqlite3.Error) as lasting:
            self.notes.append(
                f"counts cannot be kept in {self.path} ({lasting}); they are right, and will be asked for again; "
                "make room, make the file writable, or give another cache="
            )
            self.opened = _with_tables(
                sqlite3.connect(":memory:", check_same_thread=False), self.salt
            )


@contextmanager
def kept_counts(path: Path) -> Iterator[KeptCounts]:
    """Open the counts in a file, making it where it is missing; at the end, warn of what went wrong with it."""
    store = KeptCounts(path)
    try:
        yield store
    finally:
        store.opened.close()
        for note in store.notes:
            warn_caller(note, RuntimeWarning)


def _opened(path: Path, salt: bytes | None = None) -> sqlite3.Connection:
    """Open a file that its owner alone may read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if os.name == "posix" and path.stat().st_mode & 0o077:
        path.chmod(0o600)
    return _with_tables(sqlite3.connect(path, timeout=_WAIT, check_same_thread=False), salt)


def _with_tables(opened: sqlite3.Connection, salt: bytes | None) -> sqlite3.Connection:
    """Create the tables that are missing."""
    try:
        with opened:
            opened.execute("PRAGMA secure_delete = ON")
            opened.execute("BEGIN IMMEDIATE")
            opened.execute(
                "CREATE TABLE IF NOT EXISTS salt (one INTEGER PRIMARY KEY, value BLOB NOT NULL)"
            )
            opened.execute(
                "CREATE TABLE IF NOT EXISTS kept (name BLOB PRIMARY KEY, tokens INTEGER NOT NULL)"
            )
            opened.execute("INSERT OR IGNORE INTO salt VALUES (1, ?)", (salt or os.urandom(32),))
            if not isinstance(opened.execute("SELECT value FROM salt").fetchone()[0], bytes):
                raise sqlite3.DatabaseError("its secret is none")
        opened.execute("SELECT name, tokens FROM kept LIMIT 1").fetchone()
    except BaseException:
        opened.close()
        raise
    return opened


def _is_broken(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & _ERROR in _BROKEN


def _moved_aside(path: Path, error: Exception) -> list[str]:
    """Rename a broken file, unless another thread did so meanwhile; return what is to be said."""
    with _MENDING:
        try:
            with closing(_opened(path)) as opened:
                if opened.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                    return []
        except sqlite3.Error:
            pass
        os.replace(path, path.with_name(f"{path.name}.broken"))
    return [
        f"the counts kept in {path} cannot be read ({error}); the file is now {path.name}.broken, "
        "and a new one is begun; every text is asked for once more"
    ]


_TAIL = 2  # messages that a request repeats of the conversation that it goes on


@dataclass(slots=True)
class Growing:
    """One conversation, as far as it has come."""

    id: str
    messages: list[Message] = field(default_factory=list)
    usage: list[dict[str, Any]] = field(default_factory=list)
    tools: tuple[Mapping[str, Any], ...] = ()
    warnings: list[str] = field(default_factory=list)
    keys: list[Hashable] = field(default_factory=list)

    def repeated(self, keys: Sequence[Hashable]) -> int:
        """Count the messages of its beginning that a request begins with."""
        return sum(1 for _ in takewhile(bool, map(eq, self.keys, keys)))

    def trace(self) -> Trace:
        """Return it as a trace."""
        fields = {
            "format": "recorded-call",
            "usage": [*self.usage],
            "warnings": [*dict.fromkeys(self.warnings)],
        }
        return Trace(self.id, tuple(self.messages), self.tools, fields=fields)


class Grown(list[Growing]):
    """All conversations, found by how they end and by the answers that they hold."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: dict[Hashable, set[int]] = {}
        self.answers: dict[str, int] = {}

    def found(self, messages: Sequence[Message], after: object) -> tuple[int, int]:
        """Return which conversation a request goes on, a new one where none, and from which message on it is new."""
        if isinstance(after, str):
            openings = sum(message.role in SYSTEM_ROLES for message in messages[:1])
            if after in self.answers:
                return (self.answers[after], openings)
            return (len(self), 0)
        keys = list(map(_key, messages))
        tails = {
            tuple(keys[at - size : at]): at
            for size in range(1, _TAIL + 1)
            for at in range(size, len(keys) + 1)
        }
        candidates = (
            (self[which].repeated(keys), which, tails[end])
            for end in tails
            for which in self.ends.get(end, ())
        )
        run, which, at = max(candidates, default=(0, len(self), 0))
        return which, run if which < len(self) and run == len(self[which].keys) else at

    def grow(self, which: int, messages: Sequence[Message], answer: object) -> None:
        """Add messages to a conversation, and know it by its new end and its answer."""
        keys = list(map(_key, messages))
        growing = self[which]
        self.ends.get(tuple(growing.keys[-_TAIL:]), set()).discard(which)
        growing.messages = [*growing.messages, *messages]
        growing.keys = [*growing.keys, *keys]
        self.ends.setdefault(tuple(growing.keys[-_TAIL:]), set()).add(which)
        self.answers[str(answer.get("id")) if isinstance(answer, Mapping) else ""] = which


def added(conversations: Grown, request: Mapping[str, Any], answer: Any) -> Growing:
    """Add a call to the conversation that it goes on, or as a new one; return that.

    Examples
    --------
    >>> known, said = Grown(), [{"role": "user", "content": "Hello"}]
    >>> answer = {"choices": [{"message": {"role": "assistant", "content": "Yes?"}}], "usage": {"prompt_tokens": 8}}
    >>> _ = added(known, {"messages": said}, answer)
    >>> again = [*said, {"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "How are you?"}]
    >>> growing = added(known, {"messages": again}, answer)
    >>> len(known), len(growing.messages), [row["message_index"] for row in growing.usage]
    (1, 4, [1, 3])
    """
    after = request.get("previous_response_id")
    call = load_trace({"request": request, "response": answer})
    request_messages = load_trace({"request": request}).messages
    which, new = conversations.found(request_messages, after)
    if which == len(conversations):
        conversations.append(Growing(f"watched-{len(conversations) + 1}"))
    growing = conversations[which]
    shift = len(growing.messages) - new
    conversations.grow(which, [*map(_paired, call.messages[new:])], answer)
    growing.usage += [
        {**row, "message_index": row["message_index"] + shift}
        for row in call.fields.get("usage") or ()
    ]
    growing.tools = call.tools or growing.tools
    growing.warnings += [note for note in call.fields.get("warnings") or () if after is None]
    return growing


def _paired(message: Message) -> Message:
    """Return a tool result whose call stands in an earlier request as one again."""
    native = message.raw.get("native")
    if (
        message.role != "function"
        or not isinstance(native, Mapping)
        or not isinstance(native.get("call_id"), str)
    ):
        return message
    return Message({**message.raw, "role": "tool", "tool_call_id": native["call_id"]})


def _key(message: Message) -> Hashable:
    calls = tuple(call.id or call.name for call in message.tool_calls)
    return message.role, message.text.strip(), calls, message.tool_call_id
