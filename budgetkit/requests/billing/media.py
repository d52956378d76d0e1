"""What PDFs, sound and film cost, in tokens, from their pages and seconds: the rows of ``data/media.toml``.

    tokens = pages or seconds * the row's usual tokens, between its least and its most

No provider says how it splits a page, so a count is an estimate with an interval. Bytes that do not tell their length,
and models without a row, stay what cannot be counted.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from budgetkit.files import read_toml
from budgetkit.message import Message
from budgetkit.models.names import bare
from budgetkit.requests.billing.declarations import Charge
from budgetkit.requests.reading.formats import found

#: Where a part holds its bytes, in any provider's form.
_BYTES: Final = (
    "source.data|source.bytes|document.source.bytes|inlineData.data|inline_data.data|file.file_data|file_data|"
    "input_audio.data"
)
_PAGE: Final = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")


@dataclass(frozen=True, slots=True)
class MediaCost:
    """Hold what one document, sound or film costs."""

    kind: str  # as the message names the part
    charge: Charge
    least: int
    most: int


def media_costs(messages: Iterable[Message], model: str) -> Iterator[MediaCost]:
    """Price each document, sound and film of known length, for a model that has a row for it."""
    plain = bare(model)
    rows: list[Mapping[str, Any]] = read_toml("media.toml")["media"]
    for index, message in enumerate(messages):
        for part in message.parts:
            kind = str(part.get("type"))
            if kind not in message.uncounted:
                continue
            unit, length = _measured(found(part, _BYTES))
            fitting = (
                row for row in rows if row["unit"] == unit and re.search(row["models"], plain)
            )
            row = next(fitting, None)
            if row is None or not length:
                continue
            least, usual, most = (ceil(length * row[name]) for name in ("least", "usual", "most"))
            word, *of_what = unit.split(" ", 1)
            named = " ".join([f"{length:,.4g}", word if length == 1 else f"{word}s", *of_what])
            yield MediaCost(kind, Charge("media", named, fixed=usual, message=index), least, most)


def _measured(encoded: object) -> tuple[str, float]:
    """Return the unit in which bytes are billed, and how many of it they hold; 0 where they do not tell."""
    if isinstance(encoded, str):
        text = encoded.rpartition(",")[2].replace("-", "+").replace("_", "/")
        try:
            data = b64decode(text + "=" * (-len(text) % 4))
        except ValueError:
            return "", 0
    elif isinstance(encoded, bytes):
        data = encoded
    else:
        return "", 0
    if data.startswith(b"%PDF"):
        return "page", len(_PAGE.findall(data))
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        at = data.find(b"fmt ") + 16  # after its size, format, channels and samples a second
        rate = int.from_bytes(data[at : at + 4], "little")
        return "second of sound", (len(data) - data.find(b"data") - 8) / rate if rate else 0
    if data[4:8] == b"ftyp" and (at := data.find(b"mvhd")) > 0 and data[at + 4] == 0:
        scale = int.from_bytes(data[at + 16 : at + 20])
        return "second of film", int.from_bytes(data[at + 20 : at + 24]) / scale if scale else 0
    return "", 0
