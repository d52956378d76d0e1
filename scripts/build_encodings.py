"""Write ``data/encodings/`` from copies of OpenAI's published vocabularies.

    python scripts/build_encodings.py FILE [FILE ...]

FILE is a vocabulary in tiktoken's format, plain or gzipped, under whatever name its package gives it (wheels
that carry copies are named in ``data/README.md``). What a file is, is told by the SHA-256 that the installed
tiktoken publishes for it, so a wrong or changed copy is never taken. The output is the same, byte for byte,
for the same vocabularies and the same tiktoken.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

from tiktoken_ext import openai_public

ENCODINGS = Path(__file__).resolve().parent.parent / "data" / "encodings"

#: name -> the vocabulary file it is read from, and how many of its first lines (all of them where None).
VOCABULARIES: dict[str, tuple[str, int | None]] = {
    "o200k_base": ("o200k_base", None),
    "o200k_harmony": ("o200k_base", None),
    "cl100k_base": ("cl100k_base", None),
    "p50k_base": ("p50k_base", None),
    "p50k_edit": ("p50k_base", None),
    "r50k_base": ("p50k_base", 50_256),
}


def published(name: str) -> dict[str, Any]:
    """Return what tiktoken publishes about one encoding, all but its vocabulary, without a download."""
    with mock.patch.object(openai_public, "load_tiktoken_bpe") as download:
        definition: dict[str, Any] = getattr(openai_public, name)()
    vocabulary, lines = VOCABULARIES[name]
    return {
        "file": f"{vocabulary}.tiktoken.gz",
        "lines": lines,
        "sha256": download.call_args.kwargs["expected_hash"],
        "pattern": definition["pat_str"],
        "special_tokens": definition["special_tokens"],
    }


def contents(path: Path) -> bytes:
    """Return a vocabulary's published bytes from a plain or gzipped copy."""
    copy = path.read_bytes()
    return gzip.decompress(copy) if copy.startswith(b"\x1f\x8b") else copy


def main(paths: list[str]) -> None:
    """Check every copy, then write the vocabularies and ``encodings.json``."""
    copies = {hashlib.sha256(data).hexdigest(): data for data in map(contents, map(Path, paths))}
    definitions = {name: published(name) for name in VOCABULARIES}
    ENCODINGS.mkdir(parents=True, exist_ok=True)
    for name, (vocabulary, _) in VOCABULARIES.items():
        if name != vocabulary:
            continue
        data = copies.get(definitions[name]["sha256"])
        if data is None:
            sys.exit(
                f"no copy has the SHA-256 of {name}, {definitions[name]['sha256']}; add a file that has it"
            )
        (ENCODINGS / definitions[name]["file"]).write_bytes(compressed(data))
    document = {
        "provenance": f"pattern, special tokens and SHA-256 as published by tiktoken {version('tiktoken')}",
        "encodings": definitions,
    }
    (ENCODINGS / "encodings.json").write_text(
        json.dumps(document, indent=1, sort_keys=True) + "\n", "utf-8"
    )


def compressed(data: bytes) -> bytes:
    """Compress to gzip without a time stamp, so that the same vocabulary gives the same file."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    return compressor.compress(data) + compressor.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
