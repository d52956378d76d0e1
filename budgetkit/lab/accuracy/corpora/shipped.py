"""The mini-corpus written for this project, and generated odd text.

Both corpora are small and the same on every machine. Each file in ``data/corpora/`` contains the documents of one
class, and each document begins with a line ``=== language title``.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Iterator
from random import Random

from budgetkit.budget.errors import unknown_name
from budgetkit.files import data_files, read_bytes
from budgetkit.lab.accuracy.corpora.reading import Corpus, Document

_EMOJI = (
    *range(0x1F300, 0x1F650),
    *range(0x1F680, 0x1F6C6),
    *range(0x1F900, 0x1F9FF),
    *range(0x2600, 0x2780),
)
_RUNS = " \n\t-=*_#.~+/\\|<>^:;,!?0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ的一あアㅋ가…—═█яéñ"
_SYLLABLES = ("ba", "do", "ke", "li", "mu", "ra", "so", "ti", "ve", "zo", "an", "er", "in", "on")


#: The names of the recipes, which are methods of `OddText`.
RECIPES = (
    "base64",
    "hex",
    "uuid",
    "numbers",
    "digits",
    "emoji",
    "whitespace",
    "run",
    "runs",
    "minified",
    "words",
)


def generate(recipe: str, seed: int, characters: int = 1_000) -> str:
    """Generate one document by a recipe.

    Parameters
    ----------
    recipe : str
        Name of the recipe, one of :data:`RECIPES`.
    seed : int
        Seed of the text. The same recipe, seed and length give the same text.
    characters : int
        Length of the text, in characters.

    Returns
    -------
    str
        A text with exactly this number of characters.

    Raises
    ------
    ValueError
        If the recipe is unknown.

    Examples
    --------
    >>> generate("hex", seed=1, characters=16)
    'e84b355657a25ccd'
    """
    if recipe not in RECIPES:
        raise ValueError(unknown_name("recipe", recipe, RECIPES))
    random = OddText(f"{recipe} {seed}")
    random.characters = characters
    text = ""
    for part in getattr(random, recipe)():
        text += part
        if len(text) >= characters:
            break
    return text[:characters]


Parts = Iterator[str]


class OddText(Random):
    """A random generator with a method for each recipe of odd text."""

    characters = 0

    def base64(self) -> Parts:
        """Yield a text in base64, sometimes with stretches of zeros."""
        data = self.randbytes(self.characters)
        if self.random() < 0.3:  # with stretches of zeros, as in a binary file
            data = b"".join(
                data[i : i + 24] + bytes(self.choice((0, 0, 3, 9))) for i in range(0, len(data), 24)
            )
        yield self.choice((base64.b64encode, base64.encodebytes, base64.urlsafe_b64encode))(
            data
        ).decode()

    def hex(self) -> Parts:
        """Yield hexadecimal digits in groups."""
        digits = self.randbytes(self.characters).hex()
        width = self.choice((self.characters, 40, 64, 8, 2))
        between = self.choice(("\n", " ", "  ", "\n"))
        upper = self.random() < 0.25
        lines = between.join(digits[i : i + width] for i in range(0, len(digits), width))
        yield lines.upper() if upper else lines

    def uuid(self) -> Parts:
        """Yield random identifiers."""
        between = self.choice(("\n", ", ", '", "', " ", "\t"))
        while True:
            yield str(uuid.UUID(bytes=self.randbytes(16))) + between

    def numbers(self) -> Parts:
        """Yield random numbers with the same number of decimals."""
        between = self.choice((" ", ", ", "\n", "\t", ",", ";"))
        digits = self.randint(1, 9)
        decimals = self.randint(0, 6)
        while True:
            yield f"{self.uniform(-(10**digits) / 3, 10**digits):.{decimals}f}{between}"

    def digits(self) -> Parts:
        """Yield a run of random digits."""
        yield "".join(self.choices("0123456789", k=self.characters))

    def emoji(self) -> Parts:
        """Yield emoji from a small set."""
        few = self.choices(_EMOJI, k=self.choice((3, 20, 200)))
        between = self.choice(("", "", " ", "\n"))
        while True:
            yield chr(self.choice(few)) + self.choice(("", "", "\ufe0f", "\u200d")) + between

    def whitespace(self) -> Parts:
        """Yield runs of white space."""
        blanks = self.choice((" \n", " \t", " \n\t", "\n\t", "\r\n ", " \u3000\xa0"))
        longest = self.choice((2, 8, 40))
        while True:
            yield self.choice(blanks) * self.randint(1, longest)

    def run(self) -> Parts:
        """Yield one character, repeated."""
        yield self.choice(_RUNS) * self.characters

    def runs(self) -> Parts:
        """Yield short runs of characters."""
        while True:
            yield self.choice(_RUNS) * self.choice(
                (3, 4, 5, 8, 10, 16, 20, 32, 40, 60, 79, 80, 100, 200)
            )

    def minified(self) -> Parts:
        """Yield statements of minified JavaScript."""
        names = [
            "".join(self.choices("abcdefghijklmnopqrstuvwxyzABCDE$_", k=self.choice((1, 1, 1, 2))))
            for _ in range(60)
        ]
        words = ["".join(self.choices(_SYLLABLES, k=self.randint(2, 4))) for _ in range(40)]
        forms = (
            "{a}={b}.{w}({c}),",
            "function {a}({b},{c}){{return {b}.{w}&&{c}}}",
            "if(!{a})return;",
            "{a}[{b}]={n};",
            "var {a}={n},{b}=!0;",
            "{a}.{w}=function({b}){{{c}({b},'{w}')}};",
            "for(;{a}<{n};){b}+={c}[{a}++];",
        )
        while True:
            a, b, c = self.choices(names, k=3)
            yield self.choice(forms).format(
                a=a, b=b, c=c, w=self.choice(words), n=self.randint(0, 300)
            )

    def words(self) -> Parts:
        """Yield random words, like those in identifiers and unknown names."""
        while True:
            word = "".join(self.choices("abcdefghijklmnopqrstuvwxyz", k=self.randint(2, 10)))
            yield self.choice((word, word.title(), word.upper(), word)) + self.choice(
                (" ", " ", "_", "\n")
            )


SOURCE = "budgetkit mini-corpus"
_HEAD = re.compile(r"^=== (?P<language>\S+) (?P<title>.+)\n", re.MULTILINE)


def shipped() -> Corpus:
    """Read the mini-corpus.

    Returns
    -------
    Corpus
        Documents in natural languages, code, markup and data, each with its class.

    Examples
    --------
    >>> sorted(set(shipped().frame()["class"]))
    ['cjk mixed', 'cjk prose', 'code', 'data', 'markup', 'prose']
    """
    documents = []
    for name in data_files("corpora"):
        kind = name.rpartition("/")[2].removesuffix(".txt").replace("-", " ")
        text = read_bytes(name).decode()
        heads = list(_HEAD.finditer(text))
        ends = [head.start() for head in heads[1:]] + [len(text)]
        for head, end in zip(heads, ends, strict=True):
            body = text[head.end() : end].rstrip("\n")
            documents.append(Document(body, kind, head["language"], SOURCE, head["title"]))
    return Corpus(tuple(documents))


def odd(documents: int = 20, characters: int = 1_000, seed: int = 0) -> Corpus:
    """Generate odd text, such as base64, identifiers, numbers, emoji and repetitions.

    Parameters
    ----------
    documents : int
        Number of documents per recipe.
    characters : int
        Length of each document, in characters.
    seed : int
        Seed of the documents. The estimator was trained on texts with other seeds.

    Returns
    -------
    Corpus
        A corpus of the class "odd", with each recipe as a language.

    Examples
    --------
    >>> len(odd(documents=2)) == 2 * len(RECIPES)
    True
    """
    generated = []
    for recipe in RECIPES:
        for number in range(2 * seed * documents + 1, 2 * (seed + 1) * documents + 1, 2):
            text = generate(recipe, number, characters)
            name = f"seed {number}"
            generated.append(Document(text, "odd", recipe, "budgetkit generators", name))
    return Corpus(tuple(generated))
