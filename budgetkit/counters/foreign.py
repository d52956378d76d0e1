"""Counters that use tokenizers of other libraries: Hugging Face's files, Mistral's, litellm's.

``pip install budgetkit[tokenizers]`` installs these libraries. Nothing else is downloaded: a ``tokenizer.json`` is a
file that you have, and mistral-common and litellm bring their tokenizers with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from budgetkit.budget.quoting import brief, one_line
from budgetkit.counters.encodings import replace_surrogates
from budgetkit.counters.protocol import check_text
from budgetkit.files import extra, missing

__all__ = ["ForeignCounter"]


@dataclass(frozen=True, slots=True)
class ForeignCounter:
    """Count with a tokenizer from outside budgetkit.

    Made by :func:`budgetkit.counter`. Nothing is loaded before the first count.

    Parameters
    ----------
    name : str
        The path of a ``tokenizer.json``; ``"mistral:"`` and the name of a file of mistral-common, such as
        ``"mistral:tekken_240911.json"``; or ``"litellm:"`` and one of litellm's, such as
        ``"litellm:anthropic_tokenizer.json"``, which is that of Claude 2 and no later one.

    Examples
    --------
    >>> ForeignCounter("models/llama/tokenizer.json").exact
    True
    """

    name: str

    @property
    def exact(self) -> bool:
        """Whether it is what the tokenizer itself counts: always."""
        return True

    def __call__(self, text: str) -> int:
        """Count one text, in tokens, without special tokens around it."""
        check_text(text, self)
        return self.many([text])[0]

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count several texts, in tokens each; a ``tokenizer.json`` counts them on all cores."""
        return _counting(self.name)([replace_surrogates(text) for text in texts])


@cache
def _counting(name: str) -> Callable[[list[str]], list[int]]:
    house, colon, file = name.partition(":")
    if colon and house == "mistral":
        return _mistral(_inside("mistral_common", "data", file), file)
    if colon and house == "litellm":
        return _huggingface(_inside("litellm", "litellm_core_utils/tokenizers", file))
    return _huggingface(Path(name))


def _huggingface(path: Path) -> Callable[[list[str]], list[int]]:
    maker = _library("tokenizers").Tokenizer
    try:
        tokenizer = maker.from_str(path.read_text("utf-8"))
    except OSError as error:
        raise _unreadable(path, error.strerror or type(error).__name__) from None
    except Exception as error:  # the library raises nothing more special
        raise _unreadable(path, str(error)) from None
    # Embedding models ship files that cut every text to their window, or fill it up.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda texts: [len(found) for found in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]


def _mistral(path: Path, file: str) -> Callable[[list[str]], list[int]]:
    _library("mistral_common")
    kind, made = ("tekken", "Tekkenizer") if file.startswith("tekken") else ("sentencepiece", "SentencePieceTokenizer")
    if kind == "sentencepiece":
        _library("sentencepiece")
    maker: Any = getattr(import_module(f"mistral_common.tokens.tokenizers.{kind}"), made)
    tokenizer = maker.from_file(path) if kind == "tekken" else maker(path)
    return lambda texts: [len(tokenizer.encode(text, bos=False, eos=False)) for text in texts]


def _inside(library: str, folder: str, file: str) -> Path:
    """Find a file that a library carries, without importing the library."""
    found = find_spec(library)
    if found is None or found.origin is None:
        raise ImportError(missing(library, "tokenizers", "a tokenizer from elsewhere"))
    path = Path(found.origin).parent / folder / file
    if not path.is_file():
        known = ", ".join(
            sorted(each.name for each in path.parent.glob("*") if each.is_file() and each.suffix != ".py")
        )
        raise ValueError(f"no tokenizer {brief(file)} in {library}; it carries {known}; use one of these")
    return path


def _library(name: str) -> Any:
    with extra("tokenizers", "a tokenizer from elsewhere"):
        return import_module(name)


def _unreadable(path: Path, why: str) -> ValueError:
    return ValueError(
        f"asked to count with {brief(str(path))}, which is no tokenizer that can be read ({one_line(why)}); "
        "give the path of a tokenizer.json as Hugging Face's tokenizers write it"
    )
