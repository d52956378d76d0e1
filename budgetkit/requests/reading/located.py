"""LocatedMessage: a message together with the line of the file that it stands on, for error messages."""

from __future__ import annotations

from typing import Any


class LocatedMessage:
    """Hold a message together with its line in the file, for error messages."""

    def __init__(self, line: int, value: Any) -> None:
        self.line = line
        self.value = value


def placed(record: Any) -> tuple[int | None, Any]:
    """Return a record's line and the record itself; the line is None where none is known."""
    if isinstance(record, LocatedMessage):
        return (record.line, record.value)
    return (None, record)


def located(line: int | None, message: Any) -> Any:
    """Return a message that knows its line in the file; the same message where no line is known."""
    if line is None:
        return message
    return LocatedMessage(line, message)
