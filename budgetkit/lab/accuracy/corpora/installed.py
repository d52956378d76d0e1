"""Text that any installation has: Python's own library, and whatever packages are installed.

Nothing is downloaded and nothing is written. Installed text differs from machine to machine, so every document names
its package and version.
"""

from __future__ import annotations

import platform
import sysconfig
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from budgetkit.lab.accuracy.corpora.document import Corpus, Document
from budgetkit.lab.accuracy.corpora.reading import LANGUAGES, files, text_of

_ROOM = 300_000  # bytes; what is longer is generated code or data
_BOOKS = {"english": "en", "chinese": "zh-Hans", "tchinese": "zh-Hant", "traditionalchinese": "zh-Hant"} | {
    "japanese": "ja", "korean": "ko", "german": "de", "french": "fr", "spanish": "es", "italian": "it", "dutch": "nl",
    "portuguese": "pt", "russian": "ru", "ukrainian": "uk", "hindi": "hi", "hebrew": "he", "turkish": "tr",
    "persian": "fa", "arabic": "ar", "thai": "th", "swedish": "sv", "bangla": "bn", "telugu": "te", "greek": "el",
}  # fmt: skip
_CJK = ("ja", "ko", "zh-Hans", "zh-Hant")


def standard_library(most: int = 100) -> Corpus:
    """Read modules of Python's standard library, and its language reference as English prose.

    Parameters
    ----------
    most : int
        Most modules, spread over the alphabet.

    Returns
    -------
    Corpus
        Class "code", language "python", and "prose", "en".

    Examples
    --------
    >>> sorted(set(standard_library(most=3).frame()["language"]))
    ['en', 'python']
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    source = f"CPython {platform.python_version()}"
    modules = sorted(root.glob("*.py"))
    code = files(_spread(modules, most), source, root, most=_ROOM)
    prose = text_of(root / "pydoc_data" / "topics.py")
    if not isinstance(prose, str):
        return code
    from pydoc_data.topics import topics

    return code + Corpus(
        tuple(
            Document(text, "prose", "en", source, f"topic {name}")
            for name, text in sorted(topics.items())
        )
    )


def packages(suffixes: tuple[str, ...] = (), most: int = 10) -> Corpus:
    """Read files of the installed packages by suffix.

    Parameters
    ----------
    suffixes : tuple of str
        Such as ``(".py", ".json")``; by default all that are known.
    most : int
        Most files of one suffix of one package, spread over it.

    Returns
    -------
    Corpus
        Every source names package and version.

    Examples
    --------
    >>> set(packages((".py",), most=1).frame()["language"])
    {'python'}
    """
    corpus = Corpus(())
    for distribution in sorted(metadata.distributions(), key=lambda package: package.name or ""):
        by_suffix: dict[str, list[Path]] = {}
        for file in distribution.files or ():
            if file.suffix in (suffixes or LANGUAGES) and ".." not in file.parts:
                by_suffix.setdefault(file.suffix, []).append(
                    Path(str(distribution.locate_file(file)))
                )
        root = Path(str(distribution.locate_file("")))
        for paths in by_suffix.values():
            chosen = [path for path in _spread(sorted(paths), most) if path.is_file()]
            corpus += files(chosen, f"{distribution.name} {distribution.version}", root, most=_ROOM)
    return corpus


def chatterbot() -> Corpus:
    """Read the dialogues of chatterbot-corpus, in some 25 languages.

    Returns
    -------
    Corpus
        One document a file; class "dialogue", or "cjk prose".

    Raises
    ------
    ImportError
        If it is not installed.

    Examples
    --------
    >>> chatterbot().documents[0].source  # doctest: +SKIP
    'chatterbot-corpus 1.3.3'
    """
    import yaml

    place = find_spec("chatterbot_corpus")
    if place is None or place.origin is None:
        library = "chatterbot-corpus"
        raise ImportError(f"The corpus {library} is not installed; run: pip install {library}")
    root = Path(place.origin).parent / "data"
    source = f"chatterbot-corpus {metadata.version('chatterbot-corpus')}"
    documents = []
    for path in sorted(root.glob("*/*.yml")):
        language = _BOOKS.get(path.parent.name.lower(), path.parent.name.lower())
        talks = yaml.safe_load(path.read_text(encoding="utf-8")).get("conversations") or ()
        text = "\n".join(str(line) for talk in talks for line in talk)
        kind = "cjk prose" if language in _CJK else "dialogue"
        documents.append(Document(text, kind, language, source, path.relative_to(root).as_posix()))
    return Corpus(tuple(documents))


def _spread(paths: list[Path], most: int) -> list[Path]:
    """Take at most so many, evenly over the list."""
    step = max(len(paths) / max(most, 1), 1)
    return [paths[int(number * step)] for number in range(min(most, len(paths)))]
