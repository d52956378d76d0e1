"""Uploads: files that the page sends in pieces, put together and handed on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from budgetkit.explorer.library import Library
from budgetkit.explorer.view import View

LARGEST = 20 * 1024 * 1024  # bytes; the page refuses larger files before it sends them


class Uploads:
    """Files on their way in.

    Parameters
    ----------
    view : View
        Where each piece is acknowledged.
    library : Library
        Where conversations go.
    do : callable
        Takes the name of a command and its arguments.
    refuse : callable
        Takes an error, to be shown.
    """

    def __init__(
        self, view: View, library: Library, do: Callable[..., None], refuse: Callable[[Exception], None]
    ) -> None:
        self._view, self._library, self._do, self._refuse = view, library, do, refuse
        self._parts: dict[str, bytearray] = {}

    def piece(self, content: dict[str, Any], data: bytes) -> None:
        """Take one piece; with the last one the file is read.

        Parameters
        ----------
        content : dict
            serial, name, size (bytes), offset (bytes), and purpose ("trace" or "setup").
        data : bytes
            The piece.
        """
        serial = str(content["serial"])
        self._view.send({"kind": "file", "serial": serial})
        if int(content["offset"]) and serial not in self._parts:
            return  # a late piece of a file that was refused
        part = self._parts.setdefault(serial, bytearray())
        part += data
        if len(part) > LARGEST:
            del self._parts[serial]
            self._refuse(ValueError(f"{content['name']} is larger than 20 MB; name the file by its path instead"))
        elif len(part) >= int(content["size"]):
            self._finish(str(content["purpose"]), str(content["name"]), bytes(self._parts.pop(serial)))

    def _finish(self, purpose: str, name: str, content: bytes) -> None:
        try:
            if purpose == "setup":
                self._do("load", text=_text(name, content))
            else:
                self._do("trace", name=self._library.read(name, content))
        except (ValueError, LookupError, OSError) as problem:
            self._refuse(problem)


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} is not UTF-8 at byte {error.start:,}; a saved state is text in UTF-8; save it in that encoding"
        ) from None
