"""Uploads: files that the page sends in pieces, put together and handed on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from budgetkit.budget.quoting import one_line
from budgetkit.lab.explorers.view import View

LARGEST = 20 * 1024 * 1024  # bytes; the page refuses larger files before it sends them
MOST = 4  # files on their way at once; a page that was closed never sends the rest of its own


class Uploads:
    """Files on their way in."""

    def __init__(self, view: View, do: Callable[..., None]) -> None:
        self._view = view
        self._do = do
        self._parts: dict[str, bytearray] = {}

    def piece(self, content: dict[str, Any], data: bytes) -> None:
        """Keep one piece of a file that the page sends; with its last piece the file is read."""
        serial, name, purpose, size, offset = _told(content)
        self._view.send({"kind": "file", "serial": serial})
        if offset and serial not in self._parts:
            return  # a late piece of a file that was refused, or that gave way to newer ones
        part = self._parts.setdefault(serial, bytearray())
        part += data
        if len(part) > LARGEST:
            del self._parts[serial]
            raise ValueError(
                f"{one_line(name)} is larger than 20 MB; name the file by its path instead"
            )
        if len(part) >= size:
            self._do(purpose, name=name, content=bytes(self._parts.pop(serial)))
        while len(self._parts) > MOST:
            del self._parts[next(iter(self._parts))]


def _told(content: dict[str, Any]) -> tuple[str, str, str, int, int]:
    try:
        serial, name, purpose = (str(content[field]) for field in ("serial", "name", "purpose"))
        return serial, name, purpose, int(content["size"]), int(content["offset"])
    except (LookupError, TypeError, ValueError):
        raise ValueError(
            "a piece of a file came without its serial, name, purpose, size or offset; each piece has all five, "
            "size and offset in bytes; open the file again"
        ) from None
