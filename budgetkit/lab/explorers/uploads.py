"""Uploads: files that a page sends in pieces."""

from __future__ import annotations

from collections.abc import Callable

from budgetkit.budget import one_line
from budgetkit.lab.explorers.view import View
from budgetkit.message import Data

LARGEST = 20 * 1024 * 1024  # bytes; the page refuses larger files before it sends them
MOST = 4  # uploads at once; a closed page never finishes its own


class Uploads:
    """The files that the page is uploading."""

    def __init__(self, view: View, do: Callable[..., None]) -> None:
        self._view = view
        self._do = do
        self._parts: dict[str, bytearray] = {}

    def piece(self, content: Data, data: bytes) -> None:
        """Store a piece of an upload, and open the file once complete."""
        try:
            serial, name, purpose = (str(content[field]) for field in ("serial", "name", "purpose"))
            size, offset = (int(content[field]) for field in ("size", "offset"))
        except (LookupError, TypeError, ValueError):
            raise ValueError(
                "A part of the uploaded file lacks its serial number, name, purpose, size or offset. Open the file "
                "again."
            ) from None
        self._view.send({"kind": "file", "serial": serial})
        if offset and serial not in self._parts:
            return  # a late piece of a file that was rejected or replaced
        part = self._parts.setdefault(serial, bytearray())
        part += data
        if len(part) > LARGEST:
            del self._parts[serial]
            raise ValueError(f"{one_line(name)} is larger than 20 MB. Type its path instead.")
        if len(part) >= size:
            self._do(purpose, name=name, content=bytes(self._parts.pop(serial)))
        while len(self._parts) > MOST:
            del self._parts[next(iter(self._parts))]
