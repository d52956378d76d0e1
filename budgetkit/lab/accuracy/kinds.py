"""Kinds of text: their labels, detection, and documents.

Labels are compared by meaning: "de", "German" and "DE-AT" are the same, and so are "source code" and "code". Kinds are
detected from the beginning of a text. Text is CJK if at least a fifth of its characters are; code and prose are told
apart by statements, words and punctuation. The language is detected from the script and, among languages with the same
script, from common short words. Similar languages are distinguished even if no document has them, so that Slovak is not
taken for Czech. If the language is not recognised, all languages of the class are used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import pandas as pd

from budgetkit.files import Table, read_toml
from budgetkit.lab.accuracy.corpora import corpus_of
from budgetkit.lab.accuracy.corpora.opening import AnyTexts
from budgetkit.lab.accuracy.corpora.reading import is_cjk
from budgetkit.message import Data

CODE = "code"
CJK = "CJK"
PROSE = "prose"
_FENCE = re.compile(r"^[ ]{0,3}(?:```|~~~).*$", re.MULTILINE)
_GAP = re.compile(r"\n\s*\n")
_OPEN = r"""(?<!\S)["'(“‘«]*+"""
_SHUT = r"""["')”’».,?!]*+"""
_WORD = re.compile(
    rf"{_OPEN}(?:https?://\S+|[^\W\d_]+(?:['’/&-][^\W\d_]+)*{_SHUT}(?:(?!\S)|:(?= )))"
)
_NUMBER = re.compile(
    rf"{_OPEN}#*[$€£]?[A-Z]{{0,3}}\d[\d.,:/'-]*+(?:%|°?[A-Za-z]{{1,2}})?{_SHUT}(?!\S)"
)
_STATEMENT = re.compile(
    r"""^[ \t]*+(?:
    (?:from\ [\w.]+\ )?import\ [\w.*]+(?:(?:,|\ as\ ).*)?;?             # imports
    |(?:(?:const|let|var|int)\ )?[\w.\[\]]+\ ?[-+*/|&:]?=\ ?[^=\s].*    # assignments
    |(?:(?:await|return|raise|throw|new)\ )*[\w.]+\(.*\)[;:]?           # calls
    |(?:return|const|let|var|use)\b.*;
    |(?:SELECT|INSERT|UPDATE|DELETE|CREATE)\ .*(?:FROM|INTO|SET|TABLE)\ .*
    |.*[{}]
    )$""",
    re.MULTILINE | re.VERBOSE,
)
_MARK = re.compile(r"[{}()\[\]<>=;_/\\|&*+$#@`~^\"\d:]")


def kind(paragraph: str) -> str:
    """Classify a paragraph as code, CJK or prose.

    Examples
    --------
    >>> kind("for i in range(3): print(i)"), kind("您的包裹已于星期一离开仓库。"), kind("Hello, how are you?")
    ('code', 'CJK', 'prose')
    """
    if is_cjk(paragraph):
        return CJK
    printed = len("".join(paragraph.split()))
    if 2 * len(_STATEMENT.findall(paragraph)) > paragraph.strip().count("\n") + 1:
        return CODE
    if len(_MARK.findall(paragraph)) < 0.08 * printed + 1:
        return PROSE
    rest, words = _WORD.subn("", paragraph)
    sentence = words > 0.5 * len(paragraph.split())
    if sentence and len(_MARK.findall(_NUMBER.sub("", rest))) < 0.03 * printed + 1:
        return PROSE
    return CODE


def by_kind(text: str) -> dict[str, str]:
    r"""Group the paragraphs and code blocks of a text by kind.

    Examples
    --------
    >>> by_kind("Try this:\n```\nplain words\n```\nThen tell me.")
    {'prose': 'Try this:\n\nThen tell me.', 'code': 'plain words'}
    """
    parts_of: dict[str, list[str]] = {}
    for number, block in enumerate(_FENCE.split(text)):
        is_code = number % 2 == 1
        block = block.strip("\n")
        for paragraph in [block] if is_code else _GAP.split(block):
            if paragraph.strip():
                parts_of.setdefault(CODE if is_code else kind(paragraph), []).append(paragraph)
    return {name: "\n\n".join(parts) for name, parts in parts_of.items()}


CLASS = "class"
LANGUAGE = "language"
_HEAD = 4_000  # characters read of each text
_TEXTS = 200  # texts read, evenly from all
_LEAST = 0.1  # minimum share of the characters for a kind
_LEAST_WORDS = 0.06  # minimum share of the words for a language
_MARGIN = 2  # minimum ratio of the words that only this language has to those that only another has

#: The meanings of labels, by spelling.
_MEANINGS = Table(
    lambda: {said: name for name, words in _table("meanings").items() for said in words.split("|")}
)
#: Common short words of each language.
_WORDS = Table(
    lambda: {language: frozenset(words.split()) for language, words in _table("words").items()}
)
_TRADITIONAL = re.compile("[們這國說時會對來後學還過個開點種樣與為]")
_SIMPLIFIED = re.compile("[们这国说时会对来后学还过个开点种样与为]")
#: A word, including combining signs.
_LETTERS = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f\u064b-\u065f\u0900-\u0963\u200c])*")


def _table(part: str) -> Data:
    table: Data = read_toml("kinds.toml")[part]
    return table


def meaning(label: str) -> str:
    """Return the standard name of a label in any spelling.

    A label without a standard name is returned in lower case.

    Examples
    --------
    >>> meaning("German"), meaning("de-AT"), meaning("Source_Code"), meaning("zh-TW"), meaning("invoices")
    ('de', 'de', 'code', 'zh hant', 'invoices')
    """
    plain = re.sub(r"[\s_-]+", " ", str(label)).strip().casefold()
    if plain not in _MEANINGS and re.fullmatch(r"[a-z]{2} [a-z]{2}", plain):
        plain = plain[:2]  # without the region
    return str(_MEANINGS.get(plain, plain))


def kinds_of(texts: AnyTexts) -> tuple[str, ...]:
    r"""Detect the kinds of texts, from the beginnings of a sample.

    Parameters
    ----------
    texts : str, Path, Corpus, DataFrame or iterable
        The texts, such as the messages of a conversation, in any form that :func:`budgetkit.corpora.corpus_of` accepts;
        a string is one text.

    Returns
    -------
    tuple of str
        The class names ("code", "cjk", "prose") that make up at least a tenth of the text, each followed by its
        languages if they are recognised. Pass them as `kinds` to :func:`budgetkit.lab.accuracy.buffer_for`.

    Examples
    --------
    >>> kinds_of(["Where is my order, and when is it sent to the shop?"])
    ('prose', 'en')
    >>> kinds_of(["for i in range(3):\n    print(i)"])
    ('code',)
    """
    several = [texts] if isinstance(texts, str) else [*corpus_of(texts).texts]
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
        clear = {name: many for name, many in languages.items() if many >= least and name}
        if sum(clear.values()) >= (1 - _LEAST) * size:
            names |= dict.fromkeys(clear)
    return tuple(names)


def language_of(text: str) -> str:
    """Detect a text's language, or return "" if the language is unclear.

    Examples
    --------
    >>> language_of("Das ist nicht der Weg, den sie mit dem Rad fuhren."), language_of("Oslo")
    ('de', '')
    """
    lower = text.lower()
    letters = sum(map(str.isalpha, lower)) or 1
    scripts = {name: len(re.findall(pattern, lower)) for name, pattern in _table("scripts").items()}
    name, many = max(scripts.items(), key=lambda script: script[1])
    if scripts["ja"] >= 0.1 * letters:
        return "ja"
    if many >= 0.5 * letters:
        if name == "zh hans" and len(_TRADITIONAL.findall(lower)) > len(_SIMPLIFIED.findall(lower)):
            return "zh hant"
        return name
    for language, (own_letters, least, foreign) in _table("letters").items():
        many = len(re.findall(own_letters, lower))
        if many >= max(2, least * letters) and not re.search(foreign, lower):
            return language
    words = _LETTERS.findall(lower)
    counts = Counter(words)

    def occurrences(small_words: Iterable[str]) -> int:
        return sum(counts[word] for word in small_words)

    hits = {language: counts.keys() & small for language, small in _WORDS.items()}
    language = max(hits, key=lambda language: occurrences(hits[language]))
    own = hits[language]
    if len(own) < 2 or occurrences(own) < _LEAST_WORDS * len(words):
        return ""
    # Similar languages share most small words, and differ in those that only one of them has.
    for other in hits.keys() - {language}:
        alone = occurrences(own - _WORDS[other])
        if alone < max(1, _MARGIN * occurrences(hits[other] - _WORDS[language])):
            return ""
    return language


#: The columns with the kinds of documents, and the labels in these columns.
Cells = tuple[list[str], list[tuple[str, ...]]]


def labels_of(errors: pd.DataFrame) -> list[str]:
    """Return the classes and the languages of documents."""
    columns = (errors[name] for name in (CLASS, LANGUAGE) if name in errors)
    return [str(label) for column in columns for label in column.unique()]


def missing_kinds(kinds: Iterable[str], labels: Iterable[str]) -> list[str]:
    """Return the given kinds that match none of the labels.

    >>> missing_kinds(["German", "log"], ["de", "prose"])
    ['log']
    """
    present = {*map(meaning, labels)}
    return [kind for kind in dict.fromkeys(kinds) if meaning(kind) not in present]


def cells_of(errors: pd.DataFrame, kinds: Sequence[str]) -> Cells | None:
    """Return the columns and labels of given kinds, or None.

    The result is None if no kind is given, a kind has no documents, or `errors` has no column of kinds.

    A given language restricts only those given classes that have documents in that language.

    Examples
    --------
    >>> errors = pd.DataFrame({"class": ["code", "prose", "prose"], "language": ["go", "de", "en"]})
    >>> cells_of(errors, ["prose", "German", "code"])
    (['class', 'language'], [('code', 'go'), ('prose', 'de')])
    >>> cells_of(errors, ["code"])
    (['class'], [('code',)])
    >>> cells_of(errors, ["log"])
    """
    present = [column for column in (CLASS, LANGUAGE) if column in errors]
    if not kinds or not present or missing_kinds(kinds, labels_of(errors)):
        return None
    wanted = {meaning(kind) for kind in kinds}
    rows = errors[present].astype(str).drop_duplicates()
    means = rows.map(meaning)
    named = [column for column in present if means[column].isin(wanted).any()]
    if len(named) == 1:
        labels = rows.loc[means[named[0]].isin(wanted), named[0]].unique()
        return named, [(label,) for label in sorted(labels)]

    at_hand = means[CLASS].isin(wanted)
    speaks = means[LANGUAGE].isin(wanted)
    narrowed = means.loc[at_hand & speaks, CLASS].unique()
    chosen = at_hand & (speaks | ~means[CLASS].isin(narrowed))
    pairs = rows[chosen].itertuples(index=False, name=None)
    return [CLASS, LANGUAGE], sorted(pairs)
