"""Read the shipped files under ``data/``, and write user files safely.

In a checkout or an editable install, ``data/`` is next to the package; in a wheel it is ``budgetkit/data``. Other
modules need not know its location, and files are read on first use. ``data/README.md`` describes each file and its
source. User files are written atomically. This module also words the error for a missing optional package; the error
names the extra to install.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any


@cache
def shipped_folder(name: str) -> Path:
    """Return the path of a shipped folder, in wheels and checkouts."""
    package = Path(__file__).resolve().parent
    inside = package / name
    beside = package.parent / name
    for folder in (inside, beside):
        if folder.is_dir():
            return folder
    problem = f"Folder not found: {name} (looked in {inside} and {beside})"
    raise FileNotFoundError(f"{problem}. Reinstall budgetkit.")


def data_folder() -> Path:
    """Return the path of the shipped data folder."""
    return shipped_folder("data")


def data_files(under: str = "") -> tuple[str, ...]:
    """List all shipped data files, or only those in one folder.

    Examples
    --------
    >>> "models.csv" in data_files()
    True
    """
    folder = data_folder()
    paths = (file for file in folder.rglob("*") if file.is_file() and not file.name.startswith("."))
    names = (file.relative_to(folder) for file in paths)
    return tuple(sorted(name.as_posix() for name in names if name.is_relative_to(under)))


def data_path(name: str) -> Path:
    """Return the path of one shipped data file.

    Examples
    --------
    >>> data_path("models.csv").name
    'models.csv'
    """
    relative = PurePosixPath(name)
    path = data_folder() / relative
    if relative.is_absolute() or ".." in relative.parts or not path.is_file():
        files = data_files()
        siblings = [file for file in files if PurePosixPath(file).parent == relative.parent]
        names = ", ".join(siblings or files)
        raise FileNotFoundError(f"Unknown data file {ascii(name)[:80]}. Choose one of: {names}.")
    return path


def read_bytes(name: str) -> bytes:
    """Read the bytes of one shipped data file."""
    return data_path(name).read_bytes()


@cache
def read_table(name: str) -> list[dict[str, str]]:
    """Read and cache one shipped CSV file, without its provenance line."""
    import csv  # imported here, because it takes 3 ms

    return list(csv.DictReader(read_bytes(name).decode().splitlines()[1:]))


@cache
def read_toml(name: str) -> dict[str, Any]:
    """Read one shipped TOML file and cache it."""
    import tomllib  # imported here, because it takes 5 ms

    return tomllib.loads(read_bytes(name).decode())


def read_rows(name: str, table: str) -> dict[str, dict[str, Any]]:
    """Read one table of a TOML file, filling in inherited fields.

    The field ``like`` of a row names another row, which supplies the missing fields.

    Examples
    --------
    >>> read_rows("framings.toml", "family")["gpt-5.4"]["tools"]
    81
    """
    rows: dict[str, dict[str, Any]] = read_toml(name)[table]

    def whole(row: dict[str, Any]) -> dict[str, Any]:
        fields = {key: value for key, value in row.items() if key != "like"}
        return whole(rows[row["like"]]) | fields if "like" in row else fields

    return {name: whole(row) for name, row in rows.items()}


class Table(Mapping[str, Any]):
    """A read-only mapping that is loaded on first use.

    Examples
    --------
    >>> Table(lambda: read_toml("presets.toml")["typical"])["procedure"]
    300
    """

    def __init__(self, read: Callable[[], Mapping[str, Any]]) -> None:
        self._rows = cache(read)

    def __getitem__(self, name: str) -> Any:
        return self._rows()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows())

    def __len__(self) -> int:
        return len(self._rows())

    def __repr__(self) -> str:
        return repr(dict(self))


@contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """Reraise a failed import as an error that names the missing extra.

    A failed import of a module of budgetkit itself is raised unchanged.

    >>> with extra("lab", "a figure"):
    ...     import a_library_that_nobody_has
    Traceback (most recent call last):
    ImportError: Missing optional dependency 'a_library_that_nobody_has', which a figure needs. \
Run: pip install 'budgetkit[lab]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library == "budgetkit":
            raise
        raise ImportError(missing_extra(library, name, purpose), name=library) from None


def missing_extra(library: str, name: str, purpose: str) -> str:
    """Return the error message for a missing optional library."""
    return (
        f"Missing optional dependency {library!r}, which {purpose} needs. "
        f"Run: pip install 'budgetkit[{name}]'"
    )


def plain_name(name: str) -> str:
    """Return a name unchanged, or reject it if it contains a path.

    The empty name, "." and ".." are rejected too, and so are names with a slash, backslash, colon or null character.

    >>> plain_name("../x")
    Traceback (most recent call last):
    ValueError: Invalid id '../x' of a session or message. Use a name without a path.
    """
    if name in ("", ".", "..") or {*name} & {*"/\\:\0"}:
        raise ValueError(
            f"Invalid id {ascii(name)[:80]} of a session or message. Use a name without a path."
        )
    return name


# A view may run without end, and a computed column may exhaust memory.
_COMPUTED = (
    "SELECT 1 FROM sqlite_master AS it JOIN pragma_table_xinfo(it.name)"
    " WHERE lower(it.name) IN ('session', 'message', 'part') AND (it.type = 'view' OR hidden)"
)


def database_rows(path: Path, query: str, *values: str) -> list[tuple[Any, ...]]:
    """Read rows from an SQLite file without changing it.

    A file whose tables "session", "message" or "part" are views or have computed columns is rejected, because reading
    them may never end or may exhaust memory. A file whose rows share pages is rejected, too: reading it takes too many
    steps, or gives more data than the file has.
    """
    sqlite3 = import_module("sqlite3")  # because few programs need it
    # Without a log file no program is writing, so the file needs no lock; a lock would create a file.
    log = path.with_name(f"{path.name}-wal")
    is_written = log.exists()
    place = f"{path.absolute().as_uri()}?mode=ro&immutable={0 if is_written else 1}"
    try:
        with closing(sqlite3.connect(place, uri=True)) as connection:
            if connection.execute(_COMPUTED).fetchone():
                raise sqlite3.Error("it contains a view or a computed column")
            bytes_left = path.stat().st_size + (log.stat().st_size if is_written else 0)
            connection.set_progress_handler(lambda: True, 100_000 + 4 * bytes_left)
            rows = []
            for row in connection.execute(query, values):
                rows.append(row)
                bytes_left -= sum(len(str(value)) for value in row)
                if bytes_left < 0:
                    raise sqlite3.Error("its rows share pages")
            return rows
    except sqlite3.Error as error:
        raise ValueError(
            f"Cannot read {path.name} ({error}). Save it again in the program that wrote it."
        ) from None


def one_cell_notebook(name: str, code: str) -> dict[str, Any]:
    """Return a notebook with one code cell that has the given ID."""
    cell: dict[str, Any] = {"cell_type": "code", "id": name, "source": code, "metadata": {}}
    cell |= {"outputs": [], "execution_count": None}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel}
    return {"cells": [cell], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file atomically, by renaming a temporary file.

    Devices and pipes are written directly.
    """
    named = Path(path).expanduser()
    if named.exists() and not (named.is_file() or named.is_dir()):
        named.write_bytes(content)
        return
    goal = Path(os.path.realpath(named))  # the target of a link, so that the link stays
    if goal.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(named))
    beside = goal.with_name(f".{goal.name[:100]}.{os.urandom(4).hex()}")
    try:
        if goal.is_file():
            old = goal.stat()
            beside.touch(mode=0o600)
            # Keep owner, group and mode. The mode comes last, because a change of owner clears some of its bits.
            if (old.st_uid, old.st_gid) != (beside.stat().st_uid, beside.stat().st_gid):
                os.chown(beside, old.st_uid, old.st_gid)
            beside.chmod(old.st_mode & 0o777)
        beside.write_bytes(content)
        os.replace(beside, goal)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink()
        # Report the given name, not that of the temporary file.
        if isinstance(error, OSError) and error.errno:
            raise OSError(error.errno, error.strerror, str(named)) from None
        raise
