"""Kinds of text: what a label means, which kinds a text is of, and which documents are of the kinds at hand.

Two people write "de", "German" and "DE-AT", or "source code" and "code"; a label is compared by what it means. What a
text is of is read off its first characters: code or CJK or prose by :mod:`budgetkit.lab.accuracy.paragraphs`, the
language by its script, and among languages in Latin letters by the small words that each is full of. A language that
is not told is none: then all languages of the class are at hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from budgetkit.lab.accuracy.paragraphs import CODE, by_kind

CLASS = "class"
LANGUAGE = "language"
_HEAD = 4_000  # characters of a text that are read
_TEXTS = 200  # texts that are read, evenly from all
_LEAST = 0.1  # of the characters, for a kind to be at hand
_LEAST_WORDS = 0.06  # of all words, for a language to be told

#: What labels mean, each with other ways to say it.
_MEANINGS: Final = {
    "code": "source code|program|programs|programming|program code|computer code",
    "prose": "text|texts|plain text|natural language|articles|article|books|book",
    "cjk": "cjk prose|cjk text|chinese japanese korean|east asian",
    "data": "structured data|records|tables|table",
    "markup": "marked up text|mark up",
    "log": "logs|log files|log file",
    "chat": "chats|chat log|chat logs|dialogue|dialogues|dialog|dialogs|conversation|conversations",
    "ar": "arabic|ara",
    "bn": "bengali|bangla|ben",
    "cs": "czech|ces|cze",
    "da": "danish|dan",
    "de": "german|deu|ger|deutsch",
    "el": "greek|ell|gre",
    "en": "english|eng",
    "es": "spanish|spa|espanol",
    "fa": "persian|farsi|fas|per",
    "fi": "finnish|fin",
    "fr": "french|fra|fre|francais",
    "he": "hebrew|heb|iw",
    "hi": "hindi|hin",
    "hu": "hungarian|hun",
    "id": "indonesian|ind",
    "it": "italian|ita|italiano",
    "ja": "japanese|jpn",
    "ko": "korean|kor",
    "nl": "dutch|nld|dut",
    "no": "norwegian|nor|nb|nn|bokmal|nynorsk",
    "pl": "polish|pol",
    "pt": "portuguese|por",
    "ro": "romanian|ron|rum",
    "ru": "russian|rus",
    "sv": "swedish|swe",
    "sw": "swahili|swa",
    "ta": "tamil|tam",
    "th": "thai|tha",
    "tr": "turkish|tur",
    "uk": "ukrainian|ukr",
    "vi": "vietnamese|vie",
    "zh hans": "simplified chinese|chinese simplified|zh|zho|chi|chinese|mandarin|zh cn|zh sg",
    "zh hant": "traditional chinese|chinese traditional|zh tw|zh hk",
    "cpp": "c++|cxx",
    "csharp": "c#|cs sharp",
    "go": "golang",
    "javascript": "js|ecmascript",
    "kotlin": "kt",
    "markdown": "md",
    "python": "py|python3",
    "ruby": "rb",
    "rust": "rs",
    "shell": "sh|bash|zsh|shell script",
    "typescript": "ts",
    "yaml": "yml",
}
_MEANING: Final = {said: name for name, words in _MEANINGS.items() for said in words.split("|")}
#: Scripts of one language, or of several of which only one is told.
_SCRIPTS: Final = {
    "ru": "[\u0430-\u044f\u0451]",
    "el": "[\u03b1-\u03c9]",
    "he": "[\u05d0-\u05ea]",
    "ar": "[\u0621-\u064a]",
    "hi": "[\u0900-\u097f]",
    "bn": "[\u0980-\u09ff]",
    "ta": "[\u0b80-\u0bff]",
    "th": "[\u0e00-\u0e7f]",
    "ka": "[\u10d0-\u10ff]",
    "am": "[\u1200-\u137f]",
    "km": "[\u1780-\u17ff]",
    "ko": "[\uac00-\ud7af]",
    "ja": "[\u3040-\u30ff]",
    "zh hans": "[\u4e00-\u9fff]",
}
#: Letters of a script that one of its languages has alone.
_LETTERS_OF: Final = {
    "uk": "[\u0456\u0457\u0454\u0491]",
    "fa": "[\u067e\u0686\u0698\u06af]",
}
_TRADITIONAL: Final = re.compile("[們這國說時會對來後學還過個開點種樣與為]")
_SIMPLIFIED: Final = re.compile("[们这国说时会对来后学还过个开点种样与为]")
#: Small words that a language is full of.
_WORDS: Final = {
    "en": "the and of to is that it for with you this are was not have",
    "de": "der die und das ist nicht ein zu den mit von auf sich auch dem",
    "fr": "le la les des et est une pour que dans pas vous sur qui au",
    "es": "el los las y que una por con para del se es como pero",
    "pt": "o os as e que um uma para com do da em dos foi pelo",
    "it": "il che di una per con del della gli sono come anche nel alla",
    "nl": "het een van en dat niet zijn voor met op aan ook naar worden",
    "pl": "nie na jest do się że jak po oraz przez od dla tym był",
    "cs": "je na se že to jako pro ale jsou byl když který při nebo",
    "ro": "și în nu este pe cu din care pentru sunt mai că fost dar",
    "sv": "och att det som är på av för inte med har till ett kan",
    "fi": "ja on ei että se oli hän mutta kun ovat joka tai myös niin",
    "hu": "az és hogy nem egy is meg van volt ezt mint csak már de",
    "tr": "ve bir bu için ile da de olarak çok daha ne gibi var olan",
    "vi": "và của là có không được cho một những trong người với để các",
    "id": "yang dan di dengan untuk tidak ini dari itu pada adalah akan ke dalam",
    "sw": "na ya wa kwa ni katika za la cha kuwa hii yake kama watu",
}
_BY_WORD: Final = {
    word: [language for language, words in _WORDS.items() if word in words.split()]
    for word in {word for words in _WORDS.values() for word in words.split()}
}


def meaning(label: str) -> str:
    """Return what a label means, whichever way it is written.

    Examples
    --------
    >>> meaning("German"), meaning("de-AT"), meaning("Source_Code"), meaning("zh-TW"), meaning("invoices")
    ('de', 'de', 'code', 'zh hant', 'invoices')
    """
    plain = re.sub(r"[\s_-]+", " ", str(label)).strip().casefold()
    if plain in _MEANING:
        return _MEANING[plain]
    first = plain.partition(" ")[0]
    is_regional = re.fullmatch(r"[a-z]{2} [a-z]{2}", plain) is not None
    return _MEANING.get(first, first) if is_regional else plain


def kinds_of(texts: Iterable[str]) -> tuple[str, ...]:
    r"""Tell which kinds texts are of, by reading the beginning of some.

    Parameters
    ----------
    texts : iterable of str
        The texts at hand: the messages of a conversation, say.

    Returns
    -------
    tuple of str
        Classes ("code", "cjk", "prose") that make up a tenth of them or more, and the languages of what is prose, for
        :func:`budgetkit.lab.accuracy.buffer_for`.

    Examples
    --------
    >>> kinds_of(["Where is my order, and when is it sent to the shop?"])
    ('prose', 'en')
    >>> kinds_of(["for i in range(3):\n    print(i)"])
    ('code',)
    """
    several = [texts] if isinstance(texts, str) else list(texts)
    step = max(1, len(several) // _TEXTS)
    sizes = Counter[str]()
    parts: dict[str, list[str]] = {}
    for text in several[::step]:
        for kind, part in by_kind(text[:_HEAD]).items():
            sizes[kind] += len(part)
            parts.setdefault(kind, []).append(part)

    names: dict[str, None] = {}
    least = _LEAST * sum(sizes.values())
    for kind, size in sizes.most_common():
        if size < least:
            continue
        names[meaning(kind)] = None
        if kind == CODE:
            continue
        languages = Counter[str]()
        for part in parts[kind]:
            languages[language_of(part)] += len(part)
        clear = [language for language, many in languages.items() if many >= least and language]
        if sum(languages[language] for language in clear) >= (1 - _LEAST) * size:
            names |= dict.fromkeys(clear)
    return tuple(names)


def language_of(text: str) -> str:
    """Tell the language of a text by its script and its small words; empty where that does not tell.

    Examples
    --------
    >>> language_of("Das ist nicht der Weg, den sie mit dem Rad fuhren."), language_of("Oslo")
    ('de', '')
    """
    lower = text.lower()
    letters = sum(map(str.isalpha, lower)) or 1
    scripts = {name: len(re.findall(pattern, lower)) for name, pattern in _SCRIPTS.items()}
    name, many = max(scripts.items(), key=lambda script: script[1])
    if scripts["ja"] >= 0.1 * letters:
        return "ja"
    if many >= 0.5 * letters:
        if name == "zh hans" and len(_TRADITIONAL.findall(lower)) > len(_SIMPLIFIED.findall(lower)):
            return "zh hant"
        others = {"ru": "uk", "ar": "fa"}
        if name in others and re.search(_LETTERS_OF[others[name]], lower):
            return others[name]
        return name
    words = re.findall(r"[^\W\d_]+", lower)
    heard = Counter(language for word in words for language in _BY_WORD.get(word, ()))
    ranked = heard.most_common(2)
    if not ranked or ranked[0][1] < max(2, _LEAST_WORDS * len(words)):
        return ""
    is_clear = len(ranked) == 1 or ranked[0][1] >= 1.3 * ranked[1][1]
    return ranked[0][0] if is_clear else ""


@dataclass(frozen=True, slots=True)
class Cells:
    """The kinds at hand as documents have them: by which columns, and which values of these."""

    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]


def lacking_kinds(errors: pd.DataFrame, kinds: Iterable[str]) -> list[str]:
    """Return the kinds that no document is of.

    Examples
    --------
    >>> lacking_kinds(pd.DataFrame({"class": ["code", "prose"]}), ["Source code", "log"])
    ['log']
    """
    labels = {
        meaning(label)
        for column in (CLASS, LANGUAGE)
        if column in errors
        for label in errors[column].astype(str).unique()
    }
    return [kind for kind in dict.fromkeys(kinds) if meaning(kind) not in labels]


def cells_of(errors: pd.DataFrame, kinds: Sequence[str]) -> Cells | None:
    """Return the documents' classes and languages that the kinds at hand name; None where one is not known.

    A language narrows the classes that have it; a class that has none of them stays whole.

    Examples
    --------
    >>> errors = pd.DataFrame({"class": ["code", "prose", "prose"], "language": ["go", "de", "en"]})
    >>> cells_of(errors, ["prose", "German", "code"]).labels
    (('code', 'go'), ('prose', 'de'))
    >>> cells_of(errors, ["code"])
    Cells(columns=('class',), labels=(('code',),))
    >>> cells_of(errors, ["log"])
    """
    present = [column for column in (CLASS, LANGUAGE) if column in errors]
    if not kinds or not present or lacking_kinds(errors, kinds):
        return None
    wanted = {meaning(kind) for kind in kinds}
    rows = errors[present].astype(str).drop_duplicates()
    means = rows.map(meaning)
    named = [column for column in present if means[column].isin(wanted).any()]
    if len(named) == 1:
        labels = rows.loc[means[named[0]].isin(wanted), named[0]].unique()
        return Cells((named[0],), tuple((label,) for label in sorted(labels)))

    at_hand = means[CLASS].isin(wanted)
    speaks = means[LANGUAGE].isin(wanted)
    narrowed = means.loc[at_hand & speaks, CLASS].unique()
    chosen = at_hand & (speaks | ~means[CLASS].isin(narrowed))
    pairs = rows[chosen].itertuples(index=False, name=None)
    return Cells((CLASS, LANGUAGE), tuple(sorted(pairs)))
