"""Kinds of text: labels, the kinds of a text, and the documents of a kind.

Two people write "de", "German" and "DE-AT", or "source code" and "code"; a label is compared by what it means. What a
text is of is read off its first characters: code or CJK or prose by :mod:`budgetkit.lab.accuracy.kinds`, the
language by its script, and among languages that share one by the small words that each is full of. Neighbours that no
document is of are told apart too, so that Slovak is not taken for Czech. A language that is not told is none: then all
languages of the class are at hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from budgetkit.lab.accuracy.corpora.opening import AnyTexts, corpus_of
from budgetkit.lab.accuracy.corpora.reading import is_cjk

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
    r"""Return a text's parts, put together by their kind.

    Examples
    --------
    >>> by_kind("Try this:\n```\nplain words\n```\nThen tell me.")
    {'prose': 'Try this:\n\nThen tell me.', 'code': 'plain words'}
    """
    parts_of: dict[str, list[str]] = {}
    for number, block in enumerate(_FENCE.split(text)):
        for paragraph in _GAP.split(block.strip("\n")) if number % 2 == 0 else [block.strip("\n")]:
            if paragraph.strip():
                parts_of.setdefault(CODE if number % 2 else kind(paragraph), []).append(paragraph)
    return {name: "\n\n".join(parts) for name, parts in parts_of.items()}


CLASS = "class"
LANGUAGE = "language"
_HEAD = 4_000  # characters of a text that are read
_TEXTS = 200  # texts that are read, evenly from all
_LEAST = 0.1  # of the characters, for a kind to be at hand
_LEAST_WORDS = 0.06  # of all words, for a language to be told
_MARGIN = 2  # words that only this language has, for each that only another has

#: What labels mean, each with other ways to say it.
_MEANINGS = {
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
_MEANING = {said: name for name, words in _MEANINGS.items() for said in words.split("|")}
#: Scripts of one language, or of several of which only one is told.
_SCRIPTS = {
    "el": "[\u03b1-\u03c9]",
    "he": "[\u05d0-\u05ea]",
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
#: Letters that a language is full of, which share they have at least, and those that only its neighbours have.
_LETTERS = {
    "ru": ("[\u044b\u044d]", 0.01, "[\u0452-\u045f\u0490-\u04ff]"),
    "uk": ("[\u0456\u0457\u0454\u0491]", 0.03, "[\u044b\u044d\u044a\u0451\u045e\u0492-\u04ff]"),
    "fa": (
        "[\u067e\u0686\u0698\u06af\u06cc\u06a9]",
        0.03,
        "[\u0679-\u067d\u0681-\u0685\u0688-\u0697\u06ba-\u06cb\u06cd-\u06d5]",
    ),
    "ar": ("[\u0629\u0649\u0623\u0625]", 0.02, "[\u0671-\u06d5]"),
}
_TRADITIONAL = re.compile("[們這國說時會對來後學還過個開點種樣與為]")
_SIMPLIFIED = re.compile("[们这国说时会对来后学还过个开点种样与为]")
#: Small words that a language is full of.
_WORDS = {
    "en": "the and of to is that it for with you this are was not have in a or be at on as by from they what where my",
    "de": (
        "der die und das ist nicht ein zu den mit von auf sich auch dem im in eine für es werden oder wenn bei wir ich"
    ),
    "fr": "le la les des et est une pour que dans pas vous sur qui au de en du un ce il ne elle sont avec plus son je",
    "es": "el los las y que una por con para del se es como pero de la en un no lo su más fue o",
    "pt": "o os as e que um uma para com do da em dos foi pelo de a no na não mais se ao sua é por",
    "gl": "o os as e que un unha para con do da en dos foi polo é non ao na de a se más",
    "ca": "el els les i que una per amb del es com però és als dels seva de la en un no més se al",
    "it": "il che di una per con del della gli sono come anche nel alla la e un in è da le i si non al dei più",
    "nl": "het een van en dat niet zijn voor met op aan ook naar worden de is te ik je er bij om als",
    "af": "het van en dat nie is vir met op aan ook na word die wat sy ek jy by om as",
    "pl": "nie na jest do się że jak po oraz przez od dla tym był w z i a o lub są co u czy",
    "cs": (
        "je na se že to jako pro ale jsou byl když který při nebo by jsem bylo v s z i a už jen tak podle které "
        "jejich má po od u ze kde o"
    ),
    "sk": (
        "je na sa že to ako pre ale sú bol keď ktorý pri alebo by som bolo nie v s z i a už len tak podľa ktoré "
        "ich má po od u zo kde o"
    ),
    "sl": "je na se da in so za kot bil ki ali pri ni kar sem bilo v s z tudi po od o kje",
    "hr": "je na se da i su za kao bio koji ili nije sam što od bilo iz o kako koja po gdje",
    "ro": "și în nu este pe cu din care pentru sunt mai că fost dar de la un o a se ce prin",
    "sv": "och att det som är på av för inte med har till ett kan jag från var en de i den så om vid du ni vi",
    "da": (
        "og at det som er på af for ikke med har til et kan jeg fra var blev efter hvad også sig en nogle meget "
        "havde i den de så om ved du vi noget nogen bliver dig mig jer hvornår"
    ),
    "no": (
        "og at det som er på av for ikke med har til et kan jeg fra var ble etter hva også seg en noen mye hadde i "
        "den de så om ved du vi noe blir deg meg dere når ikkje eg frå ein eit dei"
    ),
    "is": "og að er ekki það í sem við fyrir á var um til með en de af",
    "fi": "ja on ei että se oli hän mutta kun ovat joka tai myös niin ole kuin voi sen minun",
    "et": "ja on ei et see oli ta aga kui mis või ka siis ning",
    "hu": "az és hogy nem egy is meg van volt ezt mint csak már de a ha lehet után vagy",
    "tr": "ve bir bu için ile da de olarak çok daha ne gibi var olan mi kadar sonra her en",
    "az": "və bir bu üçün ilə da də kimi çox daha nə olan deyil var hər sonra en",
    "vi": "và của là có không được cho một những trong người với để các",
    "id": (
        "yang dan di dengan untuk tidak ini dari itu pada adalah akan ke dalam karena bisa bahwa saya oleh dapat orang"
    ),
    "ms": (
        "yang dan di dengan untuk tidak ini dari itu pada ialah akan ke dalam telah daripada boleh kerana oleh "
        "bahawa saya dapat orang awak"
    ),
    "sw": "na ya wa kwa ni katika za la cha kuwa hii yake kama watu au wake hiyo kila wangu",
    "ru": (
        "и в не на что с я как это он по но из за то от для вы мы его она они был была было или если где когда мой "
        "так бы"
    ),
    "uk": (
        "і й в у не на що з я як це він по але та із за то від для ви ми його вона вони був була було або якщо де "
        "коли мій"
    ),
    "be": "і ў не на што з я як гэта ён па але за ад для вы мы яго яна яны быў была было або калі дзе",
    "bg": "и в не на че с аз как това той по но от за да се са ще като е към беше или ако къде кога му те го си",
    "mk": "и во не на дека со јас како тоа тој по но од за да се ќе е кон беше или ако каде кога му го си",
    "sr": "и у не на да са ја како то он по али од за се ће је су што био или ако где када",
    "hi": "के में की है और से का को ने पर यह कि हैं भी नहीं एक हो था तो कर लिए",
    "mr": "आहे आणि या च्या ते हे होते नाही मध्ये केले एक तो की व ही हा मी आहेत त्या का",
    "ne": "छ र को मा लाई हो यो पनि गर्न भएको छन् का ले एक छैन म के",
    "ar": "في من على و أن إلى التي هذا ما لا عن مع هذه كان هو هي الذي ثم لم",
    "fa": "و در به از که این را با است برای آن می یک من بود شد خود ما هم",
    "ur": "کے میں کی ہے اور سے کا کو نے پر یہ کہ ہیں ایک بھی نہیں تھا اس",
}
_WORDS_OF = {language: frozenset(words.split()) for language, words in _WORDS.items()}
#: A word, with the signs that stand above, below and beside letters.
_WORD_kinds = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f\u064b-\u065f\u0900-\u0963\u200c])*")


def meaning(label: str) -> str:
    """Return the meaning of a label in any spelling.

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
    if not is_regional:
        return plain
    return _MEANING.get(first, first)


def kinds_of(texts: AnyTexts) -> tuple[str, ...]:
    r"""Detect the kinds of texts from the beginning of some.

    Parameters
    ----------
    texts : str, Path, Corpus, DataFrame or iterable
        The texts at hand: the messages of a conversation, say; in any form that :func:`budgetkit.corpora.corpus_of`
        takes, but that a string is one text.

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
        clear = [language for language, many in languages.items() if many >= least and language]
        if sum(languages[language] for language in clear) >= (1 - _LEAST) * size:
            names |= dict.fromkeys(clear)
    return tuple(names)


def language_of(text: str) -> str:
    """Detect the language of a text; empty where it is not clear.

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
        return name
    for language, (letters_of_its_own, least, foreign) in _LETTERS.items():
        if len(re.findall(letters_of_its_own, lower)) >= max(2, least * letters) and not re.search(
            foreign, lower
        ):
            return language
    words = _WORD_kinds.findall(lower)
    heard = Counter(words)
    hits = {language: heard.keys() & small for language, small in _WORDS_OF.items()}
    sizes = {
        language: sum(heard[word] for word in words_of_other)
        for language, words_of_other in hits.items()
    }
    language = max(sizes, key=sizes.__getitem__)
    if len(hits[language]) < 2 or sizes[language] < _LEAST_WORDS * len(words):
        return ""
    # Neighbours share most small words; what tells them apart are those that only one of them has.
    for other, words_of_other in hits.items():
        alone = sum(heard[word] for word in hits[language] - _WORDS_OF[other])
        against = sum(heard[word] for word in words_of_other - _WORDS_OF[language])
        if other != language and alone < max(1, _MARGIN * against):
            return ""
    return language


@dataclass(frozen=True)
class Cells:
    """Kinds as columns of documents, and their values."""

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
    """Return the documents' labels of some kinds; None where one is unknown.

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
