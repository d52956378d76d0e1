"""Reach: which files of this machine an explorer opens by their path, and whether it asks a provider.

In a notebook whoever types a path has a kernel to read it with, so any path is opened. Where an explorer is served to a
browser without one, as by ``make app``, the boxes for paths would read with the rights of whoever started the server:
there they open one file or one folder, and no link that leads out of it. No provider is asked
there, for the same reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from budgetkit.budget.quoting import brief, one_line


@dataclass(frozen=True, slots=True)
class Reach:
    """What may be opened by a path.

    Parameters
    ----------
    root : Path, optional
        The one file, or the folder whose files they are; nothing when left out.

    Examples
    --------
    >>> import tempfile
    >>> chats = Path(tempfile.mkdtemp()).resolve()
    >>> (chats / "may.jsonl").touch()
    >>> Reach(chats).file("may.jsonl") == str(chats / "may.jsonl")
    True
    >>> Reach().file("may.jsonl")
    Traceback (most recent call last):
    PermissionError: the file may.jsonl was asked for; here no file is opened by its path; send it with the button
    """

    root: Path | None = None

    def file(self, path: str) -> str:
        """Return the path of what is opened.

        Parameters
        ----------
        path : str
            As it was typed; a relative one starts at the folder.

        Returns
        -------
        str
            The path with its links followed.

        Raises
        ------
        PermissionError
            If it leads outside.
        """
        asked = f"the file {one_line(path)} was asked for"
        if self.root is None:
            raise PermissionError(
                f"{asked}; here no file is opened by its path; send it with the button"
            )
        if "\0" in path:
            raise PermissionError(f"{asked}; no file has such a name; name one that is there")
        root = self.root.resolve()
        folder = root if root.is_dir() else root.parent
        place = (folder / Path(path.strip())).resolve()
        if not place.is_relative_to(root) or any(
            not inner.resolve().is_relative_to(root) for inner in _inside(place)
        ):
            raise PermissionError(
                f"{asked}; here only {one_line(str(root))} and what lies in it is opened; name that"
            )
        return str(place)

    def counter(self, name: str) -> str:
        """Return the name of a counter; one that names a tokenizer's file is refused."""
        if ".json" in name:
            raise PermissionError(
                f"the counter {brief(name)} is a file; here no tokenizer is opened by its path; "
                "choose a counter by its name"
            )
        return name

    def provider(self, name: str) -> str:
        """Refuse to ask a provider: its key is that of whoever started the server."""
        raise PermissionError(
            f"{brief(name)} was to be asked to count; here no text is sent to a provider, since the key is that of "
            "whoever started the app; ask it in a notebook, or in the shell with budgetkit count --ask"
        )


def _inside(place: Path) -> list[Path]:
    """List the files of a folder, which are read together."""
    if place.is_dir():
        return [*place.rglob("*")]
    return []
