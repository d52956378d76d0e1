"""Token estimates for PDFs, audio and video, per page or second.

    tokens = (pages or seconds) * usual tokens

Each row of ``data/media.toml`` has the usual, the least and the most tokens per page or second for some models. The
least and the most tokens give the interval, because no provider publishes how it splits a page. Media of unknown
length, and media for models without a row, remain uncounted.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import ceil

from budgetkit.files import read_toml
from budgetkit.message import Message, Raw
from budgetkit.models.names import bare
from budgetkit.requests.billing.charges import Charge
from budgetkit.requests.reading.formats import value_at

#: The paths to a part's bytes in the providers' formats.
_BYTES = (
    "source.data|source.bytes|document.source.bytes|inlineData.data|inline_data.data|file.file_data|file_data|"
    "input_audio.data"
)


_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")


_PAGE_TREE = re.compile(rb"/Type\s*/Pages(?![a-zA-Z])")


_PAGE_COUNT = re.compile(rb"/Count\s+(\d{1,6})(?!\d)")


@dataclass(frozen=True)
class MediaCost:
    """The charge for a document, audio or video, with its interval."""

    kind: str  # type of the part in the message
    charge: Charge
    least: int  # in tokens
    most: int  # in tokens


def media_costs(messages: Iterable[Message], model: str) -> Iterator[MediaCost]:
    """Yield the cost of each media part with a known length.

    Media for which the table has no rule for the model are left out.
    """
    plain = bare(model)
    rows: list[Raw] = read_toml("media.toml")["media"]
    for index, message in enumerate(messages):
        uncounted = {*message.uncounted}
        for part in message.parts:
            kind = str(part.get("type"))
            if kind not in uncounted:
                continue
            unit, length = _media_length(value_at(part, _BYTES))
            row = next(
                (row for row in rows if row["unit"] == unit and re.search(row["models"], plain)),
                None,
            )
            if row is None or not length:
                continue
            least, usual, most = (ceil(length * row[name]) for name in ("least", "usual", "most"))
            word, *of_what = unit.split(" ", 1)
            named = " ".join([f"{length:,.4g}", word if length == 1 else f"{word}s", *of_what])
            yield MediaCost(kind, Charge("media", named, fixed=usual, message=index), least, most)


def _pages(data: bytes) -> int:
    """Return a PDF's number of pages, or 0 if it is unknown.

    The count in the page tree takes precedence over the page objects, because the file may still contain pages of its
    earlier versions, and current pages may be compressed.
    """
    trees = [b for b in data.split(b"endobj") if _PAGE_TREE.search(b)]
    counts = [int(number) for tree in trees for number in _PAGE_COUNT.findall(tree)]
    if counts or b"/ObjStm" in data:
        return max(counts, default=0)
    return len(_PAGE.findall(data))


def _media_length(encoded: object) -> tuple[str, float]:
    """Return the billing unit and the length of media.

    The length is 0 if it is unknown.
    """
    data = encoded if isinstance(encoded, bytes) else b""
    if isinstance(encoded, str):
        text = encoded.rpartition(",")[2]
        with suppress(ValueError):
            data = b64decode(text + "=" * (-len(text) % 4), altchars=b"-_")
    if data.startswith(b"%PDF"):
        return "page", _pages(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        at = data.find(b"fmt ") + 16  # after size, format, channels and sample rate
        rate = int.from_bytes(data[at : at + 4], "little")
        return "second of audio", (len(data) - data.find(b"data") - 8) / rate if rate else 0
    if data[4:8] == b"ftyp" and (at := data.find(b"mvhd")) > 0 and data[at + 4] == 0:
        scale = int.from_bytes(data[at + 16 : at + 20])
        return "second of video", int.from_bytes(data[at + 20 : at + 24]) / scale if scale else 0
    return "", 0
