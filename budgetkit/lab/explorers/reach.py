"""Checked arguments of commands, and the files that commands may open.

`arguments` accepts only the annotated arguments of a command. A page sends JSON, so `bytes` come only from an upload
and a `Trace` only from code.

In a notebook, the kernel can read any file, so any path may be opened. An explorer served without a notebook, as by
``make app``, reads with the rights of the user who started the server. Its path boxes therefore open only one file or
folder, and no links that lead out of this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    create_model,
)

from budgetkit.budget import brief, one_line, quoted
from budgetkit.message import Data


@dataclass(frozen=True)
class Reach:
    """The files that may be opened by path.

    Parameters
    ----------
    root : Path, optional
        The file or folder that may be opened. By default, no file may be opened.

    Examples
    --------
    >>> import tempfile
    >>> chats = Path(tempfile.mkdtemp()).resolve()
    >>> (chats / "may.jsonl").touch()
    >>> Reach(chats).file("may.jsonl") == str(chats / "may.jsonl")
    True
    >>> Reach().file("may.jsonl")
    Traceback (most recent call last):
    PermissionError: Cannot open may.jsonl: paths cannot be opened here. Upload the file with the button.
    """

    root: Path | None = None

    def file(self, path: str) -> str:
        """Resolve a file's path after checking that it may be opened.

        Parameters
        ----------
        path : str
            The entered path. A relative path starts at the root folder.

        Returns
        -------
        str
            The absolute path, with all links followed.

        Raises
        ------
        PermissionError
            If the path leads out of the folder, or if no path may be opened.
        """
        problem = f"Cannot open {one_line(path)}"
        if self.root is None:
            raise PermissionError(
                f"{problem}: paths cannot be opened here. Upload the file with the button."
            )
        if "\0" in path or path.count("**") > 1:  # each ** multiplies the time
            raise PermissionError(
                f"{problem}: a path cannot contain a null character, or ** twice. Check the path."
            )
        root = self.root.resolve()
        folder = root if root.is_dir() else root.parent
        place = (folder / Path(path.strip())).resolve()
        opened = _opened(place) if root.is_dir() else []
        if not all(read.resolve().is_relative_to(root) for read in [place, *opened]):
            raise PermissionError(
                f"{problem}: only files in {one_line(str(root))} can be opened here. Choose one of them."
            )
        return str(place)

    def counter(self, name: str) -> str:
        """Return a counter's name after checking that it names no file."""
        # "models/tokenizer.json" and "gpt-5.4 (tokenizer models/tokenizer.model)"; "mistral:" and "litellm:" open
        # only files of these libraries
        if ".json" in name or "(tokenizer " in name:
            raise PermissionError(
                f"Cannot open the counter {brief(name)}: tokenizer files cannot be opened by path here. Choose a "
                "counter by name."
            )
        return name


def _opened(place: Path) -> list[Path]:
    """List the files that a path or pattern reads.

    For a folder, these are all files in it. A single file is not listed, because its own path is checked. For a session
    of OpenCode, the list has the folder in which its messages are stored.
    """
    if place.is_dir():
        return [*place.rglob("*")]
    if place.exists():
        return [place.parents[2]] if place.parent.parent.name == "session" else []
    return [*Path(place.anchor).glob(str(place.relative_to(place.anchor)))]


def _path(path: str, info: ValidationInfo) -> str:
    return info.context.file(path) if info.context else path


def _counter(name: str, info: ValidationInfo) -> str:
    return info.context.counter(name) if info.context else name


#: Arguments that can open a file, each checked by the explorer's `Reach`.
FilePath = Annotated[str, AfterValidator(_path)]
CounterName = Annotated[str, AfterValidator(_counter)]
#: The parameter that the explorer fills in.
_OWN = "stage"
_STRICT = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)


def arguments(
    kind: str, command: Callable[..., Any], values: Mapping[str, Any], reach: Reach | None
) -> Data:
    """Return the arguments of a command, checked against its annotations.

    Raises
    ------
    TypeError
        If an argument is missing, unknown or of another type.
    PermissionError
        If an argument would open a file that `reach` does not allow.
    """
    model = _model(command)
    try:
        return dict(model.model_validate(values, context=reach))
    except ValidationError as problem:
        first = problem.errors()[0]
        raise TypeError(
            f"Invalid argument {brief(first['loc'][0])} of the command {brief(kind)}: {one_line(first['msg'])}. "
            f"Its arguments are: {quoted(model.model_fields) or 'none'}."
        ) from None


def parameters(command: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments of a command."""
    return [*_model(command).model_fields]


@cache
def _model(command: Callable[..., Any]) -> type[BaseModel]:
    """Return the declared arguments of a command as a schema."""
    hints = get_type_hints(command, include_extras=True)
    fields: Data = {
        name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in signature(command).parameters.items()
        if name != _OWN
    }
    return create_model("Arguments", __config__=_STRICT, **fields)
