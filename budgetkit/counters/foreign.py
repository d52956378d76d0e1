"""Counters that use tokenizers from Hugging Face, mistral-common and litellm.

``pip install budgetkit[makers]`` installs these libraries. Nothing else is downloaded: you provide a
``tokenizer.json``, and mistral-common and litellm include their tokenizers.
"""

from __future__ import annotations

import json
import re
import unicodedata
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from budgetkit.budget.errors import unknown_name
from budgetkit.budget.quoting import brief, one_line
from budgetkit.counters.encodings import pair_encoder, pattern_of
from budgetkit.counters.protocol import Basis, CounterBase, check_texts
from budgetkit.files import extra, missing_extra
from budgetkit.message import Data, replace_surrogates

CountMany = Callable[[list[str]], list[int]]
_MARK: Final = 64  # bytes at the beginning of a file that show its format


@dataclass(frozen=True, slots=True)
class TokenizerFile:
    """A tokenizer file, with the settings that it does not contain.

    Parameters
    ----------
    path : str
        Path of the file.
    pattern : str
        Pattern that splits a text into pieces, for a tiktoken file. Default: the pattern of cl100k_base, which Llama 3
        also uses.
    normal_form : str
        Unicode normal form applied to a text first, such as ``"NFC"``. Default: none.
    """

    path: str
    pattern: str = ""
    normal_form: str = ""

    @property
    def kind(self) -> str:
        """The format of the file: ``"json"``, ``"tiktoken"`` or ``"sentencepiece"``."""
        with Path(self.path).open("rb") as file:
            head = file.read(_MARK)
        if head.lstrip()[:1] == b"{":
            return "json"
        if _TIKTOKEN_LINE.match(head):
            return "tiktoken"
        return "sentencepiece"

    @property
    def is_readable(self) -> bool:
        """True if a library that can read the file is installed."""
        library = {"json": "tokenizers", "sentencepiece": "sentencepiece"}.get(
            self.kind, "tiktoken"
        )
        return find_spec(library) is not None or (
            self.kind == "json" and _byte_level(self.path) is not None
        )


_TIKTOKEN_LINE: Final = re.compile(rb"[A-Za-z0-9+/]+={0,2} \d+\r?\n")


@cache
def tokenizer_function(file: TokenizerFile) -> CountMany:
    """Load a tokenizer file once, and return its counting function."""
    try:
        counter = _load(file)
    except ImportError:
        raise
    except OSError as error:
        raise _unreadable(file.path, error.strerror or type(error).__name__) from None
    except Exception as error:  # the libraries raise errors of many types
        raise _unreadable(file.path, str(error)) from None
    if not file.normal_form:
        return counter
    form: Any = file.normal_form
    return lambda texts: counter([unicodedata.normalize(form, text) for text in texts])


def _load(file: TokenizerFile) -> CountMany:
    kind = file.kind
    if kind == "tiktoken":
        lines = Path(file.path).read_bytes().splitlines()
        pairs = (line.split() for line in lines if line)
        ranks = {a2b_base64(token): int(rank) for token, rank in pairs}
        return _by_pairs([file.pattern or pattern_of("cl100k_base")], ranks)
    if kind == "sentencepiece":
        with extra("makers", "a SentencePiece model"):
            processor = import_module("sentencepiece").SentencePieceProcessor(model_file=file.path)
        return lambda texts: [len(row) for row in processor.encode(texts)] if texts else []
    if (by_pairs := _byte_level(file.path)) is not None:
        return by_pairs
    with extra("makers", "a Hugging Face tokenizer"):
        maker = import_module("tokenizers").Tokenizer
    tokenizer = maker.from_str(Path(file.path).read_text("utf-8"))
    # Tokenizer files of embedding models truncate or pad every text.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda texts: [
        len(row) for row in tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    ]


@cache
def _byte_level(path: str) -> CountMany | None:
    """Return a token-counting function for byte-level BPE stored in JSON.

    Return None if the file stores another kind of tokenizer.
    """
    document = json.loads(Path(path).read_bytes())
    if "vocab" in document and "config" in document:
        config = document["config"]
        ordinary = config["default_vocab_size"] - config["default_num_special_tokens"]
        entries = document["vocab"][:ordinary]
        return _by_pairs(
            [config["pattern"]],
            {a2b_base64(entry["token_bytes"]): entry["rank"] for entry in entries},
        )

    model = document.get("model") or {}
    steps = _steps(document.get("pre_tokenizer"))
    plain = (
        model.get("type") == "BPE"
        and not model.get("byte_fallback")
        and not _steps(document.get("normalizer"))
    )
    splits = [step for step in steps if step["type"] == "Split" and "Regex" in step["pattern"]]
    plain &= all(step["behavior"] == "Isolated" and not step["invert"] for step in splits)
    last = steps[-1] if steps else {}
    plain &= (
        last.get("type") == "ByteLevel"
        and last.get("use_regex") is False
        and not last.get("add_prefix_space")
    )
    if not plain or not splits or len(splits) != len(steps) - 1:
        return None

    # Ranks rise with the merges: first the single bytes, then each pair in the order of merging.
    # Each byte is written as a character: a printable one as itself.
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    characters = map(chr, [*printable, *range(256, 256 + len(others))])
    byte_of = dict(zip(characters, [*printable, *others], strict=True))
    ranks: dict[bytes, int] = {bytes([byte]): rank for rank, byte in enumerate(byte_of.values())}
    for merge in model["merges"]:
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        ranks.setdefault(bytes(byte_of[character] for character in left + right), len(ranks))
    return _by_pairs([step["pattern"]["Regex"] for step in splits], ranks)


def _steps(part: Data | None) -> list[Data]:
    """List the steps of an entry in a tokenizer.json."""
    if not part:
        return []
    if part["type"] != "Sequence":
        return [part]
    steps: list[Data] = part.get("pretokenizers") or part.get("normalizers") or []
    return steps


def _by_pairs(patterns: list[str], ranks: dict[bytes, int]) -> CountMany:
    """Return a token-counting function for byte-level BPE, built on tiktoken.

    tiktoken takes a single pattern, so several patterns are applied one after another.
    """
    encode = pair_encoder(ranks)
    import regex  # takes 20 ms, so it is imported only for such files

    compiled = [regex.compile(pattern) for pattern in patterns]

    def count(text: str) -> int:
        pieces: Iterable[str] = [text]
        for pattern in compiled:
            pieces = _split(pieces, pattern)
        return sum(len(encode(piece.encode())) for piece in pieces)

    return lambda texts: [count(text) for text in texts]


def _split(pieces: Iterable[str], pattern: Any) -> Iterator[str]:
    """Split each piece into a pattern's matches and the text between them."""
    for piece in pieces:
        at = 0
        for match in pattern.finditer(piece):
            start, stop = match.span()
            if start > at:
                yield piece[at:start]
            if stop > start:
                yield piece[start:stop]
            at = stop
        if at < len(piece):
            yield piece[at:]


def _unreadable(path: str, reason: str) -> ValueError:
    return ValueError(
        f"Cannot read tokenizer {brief(path)}: {one_line(reason)}. "
        "Pass the path of a tokenizer.json, a SentencePiece model or a tiktoken file."
    )


@dataclass(frozen=True, slots=True)
class ForeignCounter(CounterBase):
    """A counter that uses a tokenizer from another library or a file.

    Create one with :func:`budgetkit.counter`. The tokenizer is loaded at the first count.

    Parameters
    ----------
    name : str
        The path of a ``tokenizer.json``, ``"mistral:"`` with the name of a file in mistral-common (such as
        ``"mistral:tekken_240911.json"``), or ``"litellm:"`` with the name of a file in litellm (such as
        ``"litellm:anthropic_tokenizer.json"``, which is for Claude 2 but for no later model).

    Examples
    --------
    >>> ForeignCounter("models/llama/tokenizer.json").exact
    True
    """

    name: str

    @property
    def basis(self) -> Basis:
        """The basis of the counts: always ``"exact"``."""
        return "exact"

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens in each of several texts.

        With the library of Hugging Face, counting uses all cores.
        """
        several = check_texts(texts, self)
        return tokenizer_function(_file(self.name))([replace_surrogates(text) for text in several])


def _file(name: str) -> TokenizerFile:
    """Return the tokenizer file named by a counter."""
    library, colon, file = name.partition(":")
    if colon and library == "mistral":
        return TokenizerFile(str(_inside("mistral_common", "data", file)))
    if colon and library == "litellm":
        return TokenizerFile(str(_inside("litellm", "litellm_core_utils/tokenizers", file)))
    return TokenizerFile(name)


def _inside(library: str, folder: str, file: str) -> Path:
    """Find a file inside a library without importing the library."""
    spec = find_spec(library)
    if spec is None or spec.origin is None:
        raise ImportError(missing_extra(library, "makers", "this counter"))
    carried = {
        path.name: path
        for path in sorted((Path(spec.origin).parent / folder).glob("*"))
        if path.is_file() and path.suffix != ".py"
    }
    # only a name is accepted, so no path can lead out of the library
    if file not in carried:
        raise ValueError(unknown_name(f"{library} tokenizer", file, carried))
    return carried[file]
