"""Counters that use tokenizers of other libraries: Hugging Face's files, Mistral's, litellm's.

``pip install budgetkit[makers]`` installs these libraries. Nothing else is downloaded: a ``tokenizer.json`` is a
file that you have, and mistral-common and litellm bring their tokenizers with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from budgetkit.budget.quoting import brief
from budgetkit.counters.basis import Basis
from budgetkit.counters.encodings import replace_surrogates
from budgetkit.counters.protocol import check_text, check_texts
from budgetkit.counters.tokenizer_files import TokenizerFile, counting
from budgetkit.files import missing

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

    @property
    def basis(self) -> Basis:
        """What its number rests on: the tokenizer itself."""
        return "exact"

    def __call__(self, text: str) -> int:
        """Count one text, in tokens, without special tokens around it."""
        check_text(text, self)
        return self.many([text])[0]

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count several texts, in tokens each; a ``tokenizer.json`` counts them on all cores."""
        check_texts(texts, self)
        return counting(_file(self.name))([replace_surrogates(text) for text in texts])


def _file(name: str) -> TokenizerFile:
    """Return the tokenizer file that a counter's name says."""
    library, colon, file = name.partition(":")
    if colon and library == "mistral":
        return TokenizerFile(str(_inside("mistral_common", "data", file)))
    if colon and library == "litellm":
        return TokenizerFile(str(_inside("litellm", "litellm_core_utils/tokenizers", file)))
    return TokenizerFile(name)


def _inside(library: str, folder: str, file: str) -> Path:
    """Find a file that a library carries, without importing the library."""
    spec = find_spec(library)
    if spec is None or spec.origin is None:
        raise ImportError(missing(library, "makers", "a tokenizer from elsewhere"))
    carried = {
        path.name: path
        for path in sorted((Path(spec.origin).parent / folder).glob("*"))
        if path.is_file() and path.suffix != ".py"
    }
    # a name, never a path that leads out of the library
    if file not in carried:
        raise ValueError(
            f"no tokenizer {brief(file)} in {library}; it carries {', '.join(carried)}; use one of these"
        )
    return carried[file]
