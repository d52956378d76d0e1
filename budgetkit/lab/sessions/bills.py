"""Bills of recorded sessions, kept between runs: numbers without texts, by path, size and time of each file.

They lie in one file in the user's cache folder, under checksums of the paths. `BUDGETKIT_CACHE` names another folder;
set to an empty text it keeps nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from budgetkit.files import write_whole
from budgetkit.lab.sessions.session import Session
from budgetkit.message import Data
from budgetkit.trace import Trace, usage_frame
from budgetkit.trace.containers import opened
from budgetkit.trace.loading import conversations, sub_agents_of
from budgetkit.trace.opening import made_trace

#: Sums of a session, as :meth:`Session.totals` has them, and its model.
BILLED = (
    "requests",
    "cost",
    "prompt",
    "read",
    "misses",
    "missed_cost",
    "compactions",
    "model",
)
_MOST = 50_000  # bills that are kept
# A bill reads no texts: of one longer than the first number of characters, the second is kept.
_LONG = 2_000
_KEPT = 100


class Bills:
    """Bills of sessions: read once, and again when a file has changed.

    Examples
    --------
    >>> from budgetkit.files import data_path
    >>> Bills(None).of(data_path("traces/made-up-session.jsonl"))["requests"]
    139
    """

    def __init__(self, folder: Path | None) -> None:
        self.path = folder / "bills.json" if folder is not None else None
        self.kept: Data = {}
        self.is_changed = False
        if self.path is not None:
            with suppress(OSError, ValueError):
                kept = json.loads(self.path.read_bytes())
                if isinstance(kept, dict) and kept.get("by") == _written_by():
                    self.kept = {key: row for key, row in kept["bills"].items() if _is_bill(row)}

    def of(self, path: str | os.PathLike[str]) -> Data:
        """Return a session's sums, its sub-agents among them; None for each that is not known."""
        key = _key(Path(path))
        if key not in self.kept:
            self.kept[key] = bill(path)
            self.is_changed = True
        return {name: self.kept[key][name] for name in BILLED}

    def is_kept(self, path: str | os.PathLike[str]) -> bool:
        """Return whether a session's bill is known without reading its file."""
        return _key(Path(path)) in self.kept

    def save(self) -> None:
        """Keep the bills for the next run; a folder that cannot be written to keeps none."""
        if self.path is None or not self.is_changed:
            return
        newest = dict([*self.kept.items()][-_MOST:])
        content = json.dumps({"by": _written_by(), "bills": newest}).encode()
        with suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self.path.exists():
                self.path.touch(mode=0o600)
            write_whole(self.path, content)


def cache_folder() -> Path | None:
    """Return the folder for bills; None where none are to be kept."""
    named = os.environ.get("BUDGETKIT_CACHE")
    if named is not None:
        return Path(named).expanduser() if named else None
    usual = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME")
    return Path(usual or Path.home() / ".cache") / "budgetkit"


def bill(path: str | os.PathLike[str]) -> Data:
    """Read a session's sums, its sub-agents among them; None for each where it cannot be read or has no usage."""
    try:
        trace, *beside = _outlines(Path(path))
        session = Session(trace)
        totals = session.totals()
        agents = (trace for trace in beside if usage_frame(trace)["side_chain"].any())
        for agent in map(Session, agents):
            totals["requests"] += len(agent.usage)
            totals["cost"] += float(agent.cost.sum())
    except (ValueError, OSError, TypeError):
        return dict.fromkeys(BILLED)
    totals["model"] = session.model
    # JSON has no word for a number that is not known.
    return {
        name: None if totals[name] != totals[name] else totals[name]  # noqa: PLR0124
        for name in BILLED
    }


def _outlines(path: Path) -> Iterator[Trace]:
    """Read a session and its sub-agents without the long texts, which are most of a file."""
    for file in (path, *sub_agents_of(path)):
        with file.open("rb") as stream:
            for name, numbered in opened(stream, file.name):
                records = ((line, _outline(value)) for line, value in numbered)
                for line, conversation in conversations(records, name):
                    yield made_trace(conversation, path.stem, f"{name}, line {line}")


def _outline(value: Any) -> Any:
    """Keep of a long text its beginning and its length."""
    if isinstance(value, str) and len(value) > _LONG:
        return f"{value[:_KEPT]} {len(value)}"
    if isinstance(value, dict):
        return {name: _outline(field) for name, field in value.items()}
    if isinstance(value, list):
        return [_outline(entry) for entry in value]
    return value


def _key(path: Path) -> str:
    """Return a checksum that changes with a session's file and with those of its sub-agents."""
    parts = []
    for file in (path, *sub_agents_of(path)):
        with suppress(OSError):
            about = file.stat()
            parts.append(f"{file}\0{about.st_size}\0{about.st_mtime_ns}")
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _is_bill(row: Any) -> bool:
    return isinstance(row, dict) and set(row) == set(BILLED)


def _written_by() -> str:
    """Return the versions that a bill depends on: of this package and of its price list."""
    versions = []
    for name in ("budgetkit", "genai-prices"):
        with suppress(PackageNotFoundError):
            versions.append(version(name))
    return " ".join(versions)
