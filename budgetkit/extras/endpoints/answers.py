"""On-disk cache of provider counts, so that no text is sent twice.

A count is stored under a keyed checksum of the request, so that a copy of the file reveals neither a text nor whether a
certain text was counted. Only the owner may open the file. An unreadable file is renamed and replaced. If the file
cannot be written, counting continues without it. Either problem causes a warning.
"""

from __future__ import annotations

import hmac
import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from budgetkit.budget.quoting import warn_caller
from budgetkit.counters.encodings import ForkSafeLock

#: Maximum tokens of a request; a larger count is invalid.
MOST_TOKENS: Final = 10**9
_WAIT: Final = 30.0  # seconds to wait for another process that writes
_BROKEN: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
_ERROR: Final = 0xFF  # the bits of SQLite's error codes that give the kind; the others give details
_MENDING = ForkSafeLock(threading.RLock)


def cache_file() -> Path:
    """Return the default cache file in the user's cache folder."""
    folder = (
        os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    )
    return Path(folder) / "budgetkit" / "provider-counts.sqlite"


def is_count(tokens: object) -> bool:
    """Return True for a whole number from 0 to MOST_TOKENS.

    >>> [is_count(tokens) for tokens in (0, 10**9, -1, 2.0, True, "3", None)]
    [True, True, False, False, False, False, False]
    """
    return type(tokens) is int and 0 <= tokens <= MOST_TOKENS


class KeptCounts:
    """Counts stored in a file or, after an error, in memory."""

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
        """Return the checksum of a request, which does not reveal its content."""
        request = json.dumps([url, model, body], sort_keys=True, ensure_ascii=False)
        return hmac.digest(self.salt, request.encode("utf-8", "surrogatepass"), "sha256")

    def known(self, names: Sequence[bytes]) -> dict[bytes, int]:
        """Return the stored counts by name, without invalid values."""
        look_up = "SELECT tokens FROM kept WHERE name = ?"
        rows = {name: self._run(look_up, name) for name in names}
        return {name: row[0] for name, row in rows.items() if row and is_count(row[0])}

    def keep(self, name: bytes, tokens: int) -> None:
        """Store one count immediately, in case later requests fail."""
        self._run("INSERT OR REPLACE INTO kept VALUES (?, ?)", name, tokens)

    def _run(self, query: str, *values: Any) -> Any:
        """Return the first row of a query, or None.

        After an error, return None and repair the store.
        """
        try:
            with self.opened:
                return self.opened.execute(query, values).fetchone()
        except sqlite3.Error as error:
            self._fail(error)
            return None

    def _fail(self, error: Exception) -> None:
        """Replace a broken file with an empty file, or continue in memory."""
        try:
            if not isinstance(error, sqlite3.Error):
                raise error
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
            if code & _ERROR not in _BROKEN:
                raise error
            # Hold the lock until the new file is complete, so that other threads never find it half-written.
            with _MENDING:
                self.notes += _moved_aside(self.path, error)
                self.opened = _opened(self.path, self.salt)
        except (OSError, sqlite3.Error) as lasting:
            self.notes.append(
                f"Cannot cache counts in {self.path} ({lasting}), so they will be requested again. "
                "Free disk space, make the file writable, or pass another cache=."
            )
            self.opened = _with_tables(
                sqlite3.connect(":memory:", check_same_thread=False), self.salt
            )


@contextmanager
def kept_counts(path: Path) -> Iterator[KeptCounts]:
    """Open a file of counts, and warn of its problems afterwards."""
    store = KeptCounts(path)
    try:
        yield store
    finally:
        store.opened.close()
        for note in store.notes:
            warn_caller(note, RuntimeWarning)


def _opened(path: Path, salt: bytes | None = None) -> sqlite3.Connection:
    """Open or create a database that only its owner can read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if os.name == "posix" and path.stat().st_mode & 0o077:
        path.chmod(0o600)
    return _with_tables(sqlite3.connect(path, timeout=_WAIT, check_same_thread=False), salt)


def _with_tables(opened: sqlite3.Connection, salt: bytes | None) -> sqlite3.Connection:
    """Create the missing tables of a database, and return its connection."""
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
                raise sqlite3.DatabaseError("its secret is missing")
        opened.execute("SELECT name, tokens FROM kept LIMIT 1").fetchone()
    except BaseException:
        opened.close()
        raise
    return opened


def _moved_aside(path: Path, error: Exception) -> list[str]:
    """Rename a broken file, unless another thread did, and return notices."""
    with _MENDING:
        try:
            with closing(_opened(path)) as opened:
                if opened.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                    return []
        except sqlite3.Error:
            pass
        os.replace(path, path.with_name(f"{path.name}.broken"))
    return [
        f"Cannot read the counts in {path} ({error}). The file was renamed to {path.name}.broken and replaced; "
        "every text will be requested once more."
    ]
