"""Lists and bills of coding agents' sessions.

Folders are searched only on request, never by an import, a test or the app. Files are read, never written. Links out of
the folder and files of other users are skipped. A session in OpenCode's database is identified by the database's path
and its own id.

Bills, which are numbers without texts, are cached in one file in the user's cache folder, under checksums of each
file's path, size and time. `BUDGETKIT_CACHE` sets another folder; an empty value disables the cache. Listing cached
bills imports neither numpy nor pandas.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from glob import escape
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from budgetkit.budget import brief
from budgetkit.files import database_rows, plain_name, read_table, write_whole
from budgetkit.message import Data, Raw
from budgetkit.requests.reading.formats import value_at
from budgetkit.requests.reading.request import parsed

if TYPE_CHECKING:
    import pandas as pd

#: Sums of a session, as in :meth:`Session.parts`, and its model.
BILLED = (
    "requests",
    "cost",
    "prompt",
    "read",
    "misses",
    "missed_cost",
    "compactions",
    "warnings",
    "missing",
    "copied",
    "model",
)
_DATABASE = "opencode.db"
_ENDINGS = (".jsonl", ".json", ".jsonl.xz", ".json.xz", ".jsonl.gz", _DATABASE)
# The range of Python's dates, in seconds since 1970; a broken clock may be outside it.
_YEAR_1 = -62_135_596_800
_YEAR_9999 = 253_402_300_799
_HEADER = 65_536  # bytes read to find a session's project
_MOST_BILLS = 50_000
_PROCESS_SHARE = 10_000_000  # bytes of sessions for which another process is worth starting


@dataclass(frozen=True)
class SessionFile:
    """A session's file and its sub-agents' files, before they are read."""

    path: Path
    program: str
    size: int  # in bytes; 0 for a session in a database
    modified: int  # in nanoseconds since 1970
    folder: str = ""  # its folder, if a database names it
    agents: tuple[SessionFile, ...] = ()

    @property
    def changed(self) -> datetime:
        """The time of the last change."""
        return datetime.fromtimestamp(min(max(_YEAR_1, self.modified / 1e9), _YEAR_9999), UTC)

    @property
    def project(self) -> str:
        """The name of the session's folder, or "" if unknown.

        The name comes from the database or from the beginning of the session's file.
        """
        place = self.folder
        head = b""
        with suppress(OSError), self.path.open("rb") as stream:
            head = stream.read(_HEADER)
        for line in head.splitlines()[:40]:
            if b'"cwd"' in line and not place:
                place = value_at(parsed(line), "cwd|payload.cwd|data.context.cwd")
        name = str(place or "").replace("\\", "/").rstrip("/").rpartition("/")[2][:60]
        return name.encode("utf-8", "replace").decode()


@dataclass(frozen=True)
class Task:
    """A session to bill without those of its answers that earlier sessions contain."""

    file: SessionFile
    copied: frozenset[str] = frozenset()  # checksums of the answers' ids

    @cached_property
    def key(self) -> str:
        """A checksum of the copied answers and of the state of the session's files."""
        files = (self.file, *self.file.agents)
        parts = [f"{file.path}\0{file.size}\0{file.modified}" for file in files]
        text = "\0".join([*parts, *sorted(self.copied)])
        return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def sessions(
    folder: str | os.PathLike[str] | None = None, *, newest: int = 200, billed: bool = False
) -> pd.DataFrame:
    """List recorded sessions of coding agents, newest first.

    Parameters
    ----------
    folder : path, optional
        A folder with sessions; default: the usual folders of Claude Code, Codex, OpenCode, Cline, Copilot and others
        in the user's home, as listed in ``data/session_places.csv``.
    newest : int, default 200
        Maximum number of sessions to list, newest first.
    billed : bool, default False
        If true, read each session in full for its usage, which is slow until its bill is cached.

    Returns
    -------
    DataFrame
        One row per session, with the columns number (counting from 1), program, changed (the time of the last change),
        project (a folder's name), megabytes (0 in a database) and path. If `billed` is true, it also has the columns
        requests, cost (in US dollars), prompt and read (tokens sent, and tokens read from the cache), misses,
        missed_cost, compactions, warnings (their number), missing (the number of those about unread records and
        unpriced tokens, without which the sums may be too low), copied (requests left out because an earlier
        session in the list contains them) and model.
        ``attrs["folders"]`` lists the searched folders.

    Raises
    ------
    FileNotFoundError
        If the folder does not exist.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as empty:
    ...     len(sessions(empty))
    0
    """
    import pandas as pd  # the shell shows its list without pandas

    folders, files = find(folder)
    files = files[:newest]
    rows = rows_of(files, bills_of(files) if billed else None)
    table = pd.DataFrame(
        rows,
        columns=[
            "number",
            "program",
            "changed",
            "project",
            "megabytes",
            *(BILLED if billed else ()),
        ],
    )
    # Names that are not UTF-8 have surrogates, which a text column cannot store.
    table["path"] = pd.Series([row["path"] for row in rows], dtype=object)
    table.attrs["folders"] = [str(folder) for folder in folders]
    return table


def rows_of(files: list[SessionFile], bills: list[Data] | None = None) -> list[Data]:
    """Return one row per session, with its bill if `bills` is given."""
    return [
        {
            "number": number,
            "program": file.program,
            "changed": file.changed,
            "project": file.project,
            "megabytes": file.size / 1e6,
            "path": str(file.path),
            **(bills[number - 1] if bills else {}),
        }
        for number, file in enumerate(files, start=1)
    ]


def find(folder: str | os.PathLike[str] | None = None) -> tuple[list[Path], list[SessionFile]]:
    """Find sessions in folders, newest first.

    No files of sessions are opened, only databases.

    Raise `FileNotFoundError` if `folder` does not exist.

    Parameters
    ----------
    folder : path, optional
        As in :func:`sessions`.

    Returns
    -------
    list of Path
        The searched folders.
    list of SessionFile
        The sessions found, newest first.
    """
    places: list[tuple[Path, str, str]] = []
    if folder is not None:
        root = Path(folder).expanduser()
        if not root.is_dir():
            raise FileNotFoundError(
                f"Folder not found: {brief(str(folder))}. Pass a folder with sessions of coding agents."
            )
        places.append((root, "", "**/*"))
    else:
        for row in read_table("session_places.csv"):
            root = Path.home() / row["folder"]
            if row["system"] in ("any", sys.platform) and root.is_dir() and not root.is_symlink():
                places.append((root, row["agent"], row["pattern"]))
    files = {file.path: file for place in places for file in _own_files(*place)}
    # A sub-agent's file belongs to the session next to its folder.
    for session in [*files.values()]:
        beside = f"{escape(session.path.stem)}/subagents/**/*"
        agents = tuple(_own_files(session.path.parent, "", beside))
        if agents and session.path.suffix == ".jsonl":
            files[session.path] = replace(session, agents=agents)
            for agent in agents:
                files.pop(agent.path, None)
    # OpenCode does not delete the files of sessions moved to its database.
    moved = {path.name for path in files if path.parent.name == _DATABASE}
    left = [file for path, file in files.items() if not (path.suffix and path.stem in moved)]
    roots = dict.fromkeys(root for root, _, _ in places)
    return [*roots], sorted(left, key=lambda file: file.modified, reverse=True)


def _own_files(root: Path, program: str, pattern: str) -> Iterator[SessionFile]:
    """Yield a folder's sessions, except links and other users' files."""
    user = os.getuid() if hasattr(os, "getuid") else None
    inside = root.resolve()
    for path in sorted(root.glob(pattern)):
        if not path.name.endswith(_ENDINGS):
            continue
        if path.parent.resolve() != inside / path.parent.relative_to(root):
            continue  # it is behind a link
        with suppress(OSError):  # it may have been deleted by now
            about = path.lstat()
            is_own = user in (None, about.st_uid)
            if is_own and about.st_size and stat.S_ISREG(about.st_mode):
                file = SessionFile(path, program, about.st_size, about.st_mtime_ns)
                yield from _stored(file) if path.name == _DATABASE else [file]


def _stored(database: SessionFile) -> list[SessionFile]:
    """Return the sessions in OpenCode's database.

    If the database is unreadable, return its file.
    """
    query = (
        "SELECT session.id, directory, max(message.time_updated) FROM session"
        " JOIN message ON session_id = session.id GROUP BY session.id"
    )
    try:
        return [
            replace(
                database,
                path=database.path / plain_name(id),
                size=0,
                modified=int(changed) * 1_000_000,
                folder=folder,
            )
            for id, folder, changed in database_rows(database.path, query)
        ]
    except (ValueError, TypeError, OverflowError):
        return [database]


def bills_of(
    files: list[SessionFile],
    progress: Callable[[int], None] | None = None,
    in_processes: bool = False,
) -> list[Data]:
    """Return the bill of each session, reading only those not cached.

    Parameters
    ----------
    files : list of SessionFile
        Sessions from :func:`find`.
    progress : callable, optional
        Function called with the number of files left to read, before each file and at the end.
    in_processes : bool, default False
        If true, many sessions may be read in several processes. Set it only in programs that can start processes.

    Returns
    -------
    list of dict
        The sums in :data:`BILLED`, including sub-agents; unknown sums are None. "parts" has the same sums for each
        agent, day (in UTC) and model; the last entry of an agent has all its compactions and warnings. "answers" has a
        checksum of each answer's id.

    Examples
    --------
    >>> from budgetkit.files import data_path
    >>> _, files = find(data_path("traces/made-up-session.jsonl").parent)
    >>> [row["requests"] for row in bills_of(files) if row["requests"]]
    [139]
    """
    kept: Data = {}
    path = _bills_path()
    if path is not None:
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            content = json.loads(path.read_bytes())
            if content["by"] == _written_by():
                bills = content["bills"].items()
                kept = {key: row for key, row in bills if row.pop("check", "") == _checksum(row)}
    number = len(kept)

    def read(tasks: Iterable[Task]) -> None:
        unread = {task.key: task for task in tasks if task.key not in kept}
        rows = _read([*unread.values()], progress, in_processes)
        for key, row in zip(unread, rows, strict=True):
            kept[key] = row

    tasks = {file.path: Task(file) for file in files}
    try:
        read(tasks.values())
        # A resumed session may repeat the answers of an earlier one, so it is read again without them.
        earlier: set[str] = set()
        for file in sorted(files, key=lambda file: file.modified):
            answers = kept[tasks[file.path].key]["answers"].split()
            tasks[file.path] = Task(file, frozenset(earlier.intersection(answers)))
            earlier.update(answers)
        read(tasks.values())
    finally:
        if path is not None and len(kept) > number:
            # If the folder is read-only, bills are not cached.
            with suppress(OSError):
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.touch(mode=0o600)
                path.chmod(0o600)
                newest = {
                    key: row | {"check": _checksum(row)}
                    for key, row in [*kept.items()][-_MOST_BILLS:]
                }
                content = {"by": _written_by(), "bills": newest}
                write_whole(path, json.dumps(content).encode())
    return [kept[task.key] for task in tasks.values()]


def _checksum(row: Data) -> str:
    """Return the checksum of a bill, which shows that its cached copy is unchanged."""
    return sha256(json.dumps(row).encode()).hexdigest()


def _read(
    tasks: list[Task], progress: Callable[[int], None] | None, in_processes: bool
) -> Iterator[Data]:
    """Read the bills of sessions, and report progress."""
    coming = (_read_in_processes if in_processes else partial(map, _bill))(tasks)
    try:
        for left in range(len(tasks), 0, -1):
            if progress is not None:
                progress(left)
            row, notes = next(coming)
            for note in notes:
                warnings.warn(note, stacklevel=4)
            yield row
    finally:
        if progress is not None:
            progress(0)


#: The bill of a session, and the warnings about its files.
BillAndNotes = tuple[Data, list[Warning | str]]


def _read_in_processes(tasks: list[Task]) -> Iterator[BillAndNotes]:
    """Read the bills of sessions in order, in several processes if worthwhile."""
    from concurrent import futures  # cached bills need no processes
    from multiprocessing import get_context
    from signal import SIG_IGN, SIGINT, signal

    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    size = sum(task.file.size for task in tasks)
    workers = min(cores, len(tasks), size // _PROCESS_SHARE)
    done = 0
    if workers > 1:
        # If processes cannot start, or one is killed, the remaining bills are read here.
        with suppress(ImportError, OSError, NotImplementedError, futures.BrokenExecutor):
            context = get_context("fork" if sys.platform == "linux" else "spawn")
            pool = futures.ProcessPoolExecutor(workers, context, signal, (SIGINT, SIG_IGN))
            try:
                for bill in pool.map(_bill, tasks):
                    done += 1
                    yield bill
            finally:
                pool.shutdown(cancel_futures=True)
    yield from map(_bill, tasks[done:])


def _bill(task: Task) -> BillAndNotes:
    """Read the bill of a session, without its copied answers.

    A bill includes sub-agents, but cache misses and compactions of the main agent only. If the session cannot be read,
    its sums are None. Python warnings about its files are added to the sums warnings and missing, because a cached bill
    has only their number.
    """
    module = import_module("budgetkit.lab.sessions.session")
    marks: dict[str, str] = {}  # checksums of the answers' ids
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            session = module.Session(task.file.path)
            for recorded in (session, *session.agents):
                for id in filter(None, recorded.columns["id"]):
                    marks[id] = sha256(id.encode()).hexdigest()[:12]
            copied = {id for id, mark in marks.items() if mark in task.copied}
            parts = session.parts(copied)
            # The misses and compactions of sub-agents are left out.
            own = {"misses": 0, "missed_cost": 0.0, "compactions": 0}
            parts += [part | own for agent in session.agents for part in agent.parts(copied)]
            parts[-1]["warnings"] += len(caught)
            parts[-1]["missing"] += len(caught)
            totals = {name: sum(part[name] for part in parts) for name in BILLED[:-1]}
            totals["model"] = session.model
        except (ValueError, OSError, TypeError):
            parts, totals = [{}], dict.fromkeys(BILLED)
    row = _known(totals) | {"parts": [*map(_known, parts)], "answers": " ".join(marks.values())}
    return row, [warning.message for warning in caught]


def _known(sums: Raw) -> Data:
    """Replace NaN with None, because JSON has no NaN."""
    return {name: None if value != value else value for name, value in sums.items()}


def _bills_path() -> Path | None:
    """Return the path of the bills' cache file.

    Return None if the cache is disabled, or the path is not a regular file.
    """
    usual = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME")
    folder = str(Path(usual or Path.home() / ".cache") / "budgetkit")
    named = os.environ.get("BUDGETKIT_CACHE", folder)
    path = Path(named).expanduser() / "bills.json"
    # Anything else of that name is not ours: a link may lead to a file that matters, and a pipe may never end.
    is_ours = not os.path.lexists(path) or stat.S_ISREG(path.lstat().st_mode)
    return path if named and is_ours else None


def _written_by() -> str:
    """Return the versions of this package and its price list, and the names of the sums."""
    versions = []
    for name in ("budgetkit", "genai-prices"):
        with suppress(PackageNotFoundError):
            versions.append(version(name))
    return " ".join([*versions, *BILLED])
