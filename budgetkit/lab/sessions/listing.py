"""Sessions of coding agents where their programs keep them: found, listed, and nothing kept.

Only whoever asks for it has a folder looked at: no import, test or application does. Files are read, never written; a
link that leads out of the folder is not followed, and neither is a file of somebody else.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from budgetkit.budget import brief
from budgetkit.lab.sessions.bills import BILLED, bill
from budgetkit.requests.reading.formats import value_at

#: Where each program keeps its sessions, below the home folder, and which files they are.
PLACES = {
    "Claude Code": (".claude/projects", "*/*.jsonl"),
    "Codex": (".codex/sessions", "*/*/*/*.jsonl"),
    "Gemini CLI": (".gemini/tmp", "*/chats/*.json"),
    "pi": (".pi/agent/sessions", "*/*.jsonl"),
}
_ENDINGS = (".jsonl", ".json", ".jsonl.xz", ".json.xz", ".jsonl.gz")
_HEADER = 65_536  # bytes that tell a session's project
_MOST_FILES = 100_000


@dataclass(frozen=True)
class Found:
    """A session's file, before it is read."""

    path: Path
    program: str
    bytes: int
    changed: datetime


def sessions(
    folder: str | os.PathLike[str] | None = None, *, newest: int = 200, billed: bool = False
) -> pd.DataFrame:
    """List recorded sessions of coding agents, the newest first.

    Parameters
    ----------
    folder : path, optional
        A folder that holds sessions; when left out the usual places of Claude Code, Codex, Gemini CLI and pi in the
        user's home are read.
    newest : int, default 200
        How many are listed at most.
    billed : bool, default False
        Whether each is read in full for its usage, which takes longer.

    Returns
    -------
    DataFrame
        One row a session: number (from 1), program, changed, project (a folder's last name), megabytes and path; with
        `billed` also requests, cost (in US dollars), prompt and read (tokens sent, and those from the cache), misses,
        missed_cost, compactions and model. ``attrs["folders"]`` lists the folders that were read.

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
    folders, files = find(folder)
    rows = []
    for number, file in enumerate(files[:newest], start=1):
        row: dict[str, Any] = {
            "number": number,
            "program": file.program,
            "changed": file.changed,
            "project": project_of(file),
            "megabytes": file.bytes / 1e6,
        }
        if billed:
            row |= bill(file.path)
        rows.append(row)
    names = [
        "number",
        "program",
        "changed",
        "project",
        "megabytes",
        *(BILLED if billed else ()),
    ]
    table = pd.DataFrame(rows, columns=names)
    # Names that are not UTF-8 stand here as Python reads them, which a column of texts cannot hold.
    table["path"] = pd.Series([str(file.path) for file in files[:newest]], dtype=object)
    table.attrs["folders"] = [str(folder) for folder in folders]
    return table


def find(folder: str | os.PathLike[str] | None = None) -> tuple[list[Path], list[Found]]:
    """Return the folders that were read, and the sessions in them, the newest first; no file is opened.

    Parameters
    ----------
    folder : path, optional
        As in :func:`sessions`.

    Returns
    -------
    list of Path
        The folders.
    list of Found
        The sessions.
    """
    folders = []
    files: list[Found] = []
    if folder is not None:
        root = Path(folder).expanduser()
        if not root.is_dir():
            raise FileNotFoundError(
                f"no folder {brief(str(folder))}; give one that holds sessions of coding agents"
            )
        folders.append(root)
        files += (Found(path, "", size, changed) for path, size, changed in _own_files(root))
    else:
        for program, (place, pattern) in PLACES.items():
            root = Path.home() / place
            if root.is_dir() and not root.is_symlink():
                folders.append(root)
                depth = pattern.count("/") + 1
                for path, size, changed in _own_files(root):
                    if len(path.relative_to(root).parts) == depth:
                        files.append(Found(path, program, size, changed))
    # A sub-agent's file belongs to the session beside whose folder it stands.
    paths = {file.path for file in files}
    files = [
        file
        for file in files
        if "subagents" not in file.path.parts
        or not any(
            folder.name == "subagents" and folder.parent.with_suffix(".jsonl") in paths
            for folder in file.path.parents
        )
    ]
    return folders, sorted(files, key=lambda file: file.changed, reverse=True)


def project_of(file: Found) -> str:
    """Return the last name of the folder in which a session was held, from the head of its file, or "".

    Parameters
    ----------
    file : Found
        A session's file, of which at most 64 KB are read.

    Returns
    -------
    str
        A folder's name, not its path.
    """
    try:
        with file.path.open("rb") as stream:
            head = stream.read(_HEADER)
    except OSError:
        return ""
    for line in head.splitlines()[:40]:
        place = _working_folder(line)
        if place:
            name = place.replace("\\", "/").rstrip("/").rpartition("/")[2][:60]
            return name.encode("utf-8", "replace").decode()
    return ""


def _own_files(root: Path) -> Iterator[tuple[Path, int, datetime]]:
    """Give the user's own session files below a folder; links, and files of other users, are left out."""
    user = os.getuid() if hasattr(os, "getuid") else None
    number = 0
    for place, folders, names in os.walk(root, followlinks=False):
        folders.sort()
        for name in names:
            if not name.endswith(_ENDINGS) or number >= _MOST_FILES:
                continue
            path = Path(place) / name
            try:
                about = path.lstat()
            except OSError:
                continue
            if (
                stat.S_ISREG(about.st_mode)
                and about.st_size
                and (user is None or about.st_uid == user)
            ):
                number += 1
                yield path, about.st_size, datetime.fromtimestamp(about.st_mtime, UTC)


def _working_folder(line: bytes) -> str:
    """Return the working folder that a record names; "" for none."""
    if b'"cwd"' not in line:
        return ""
    try:
        record = json.loads(line)
    except ValueError:
        return ""
    place = value_at(record, "cwd|payload.cwd")
    return place if isinstance(place, str) else ""
