"""Uploads: files that the page sends in pieces, put together and handed on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from budgetkit.explorer.view import View

LARGEST = 20 * 1024 * 1024  # bytes; the page refuses larger files before it sends them


class Uploads:
    """Files on their way in.

    Parameters
    ----------
    view : View
        Where each piece is acknowledged.
    do : callable
        Takes the name of a command and its arguments; a whole file is the command that its purpose names, with its
        name and content.
    refuse : callable
        Takes an error, to be shown.
    """

    def __init__(self, view: View, do: Callable[..., None], refuse: Callable[[Exception], None]) -> None:
        self._view, self._do, self._refuse = view, do, refuse
        self._parts: dict[str, bytearray] = {}

    def piece(self, content: dict[str, Any], data: bytes) -> None:
        """Take one piece; with the last one the file is read.

        Parameters
        ----------
        content : dict
            serial, name, size (bytes), offset (bytes), and purpose (a command).
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
            self._do(str(content["purpose"]), name=str(content["name"]), content=bytes(self._parts.pop(serial)))
