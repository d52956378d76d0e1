"""Write into data/frames.toml how many recorded calls confirm each frame: ``python scripts/count_frame_rows.py``.

The numbers are those of data/exactness.csv, summed up over the interfaces that a frame's models are called by; projects
are those of the interface that has most of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from budgetkit.files import read_table

FRAMES = Path(__file__).parent.parent / "data" / "frames.toml"
#: What the table calls a kind of call, and what a frame's row calls it.
KINDS = {"any text": "text", "any tools": "tools", "any calls": "results"}
_ROWS = re.compile(
    r'^name = "(?P<name>[^"]+)"$(?P<between>.*?)^rows = "[^"]*"$', re.MULTILINE | re.DOTALL
)


def rows_of(frame: str, table: Iterable[Mapping[str, str]]) -> str:
    """Say how many recorded calls a frame was held against, and how many came out exactly.

    >>> line = {"calls": "5", "projects": "2", "exact": "4"}
    >>> rows_of("x", [{"combination": "x chat: any text", **line}, {"combination": "x responses: any text", **line}])
    'text 8 of 10 calls of 2 projects'
    """
    listed = list(table)
    parts = []
    for name, kind in KINDS.items():
        of_kind = [
            row
            for row in listed
            if re.fullmatch(rf"{re.escape(frame)} \w+: {name}", row["combination"])
        ]
        calls = sum(int(row["calls"]) for row in of_kind)
        exact = sum(int(row["exact"]) for row in of_kind)
        projects = max((int(row["projects"]) for row in of_kind), default=0)
        if calls:
            parts.append(
                f"{kind} {exact} of {calls} calls of {projects} project{'s' if projects > 1 else ''}"
            )
    return ", ".join(parts) or "none"


def written(toml: str, table: Iterable[Mapping[str, str]]) -> str:
    """Return the table of frames with its `rows` counted anew."""
    listed = list(table)

    def counted(match: re.Match[str]) -> str:
        """Write one frame's line."""
        rows = rows_of(match["name"], listed)
        return f'name = "{match["name"]}"{match["between"]}rows = "{rows}"'

    return _ROWS.sub(counted, toml)


def main() -> None:
    """Write the table to its file."""
    toml = FRAMES.read_text(encoding="utf-8")
    FRAMES.write_text(written(toml, read_table("exactness.csv")), encoding="utf-8")


if __name__ == "__main__":
    main()
