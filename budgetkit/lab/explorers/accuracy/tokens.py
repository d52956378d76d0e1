"""A document line by line, with coloured tokens and counts.

A token may be part of a character. The character is shown at its first token, with a small mark, ⁺, for each further
token.
"""

from __future__ import annotations

import unicodedata
from codecs import getincrementaldecoder
from collections.abc import Iterator
from dataclasses import dataclass

from budgetkit.budget import many
from budgetkit.counters import CalibratedCounter, Counter, ExactCounter, basis_of
from budgetkit.lab.accuracy.document_figures import signed_percent
from budgetkit.message import Data

LONGEST = 6_000  # characters of a document that are shown
_MOST = 2_500  # tokens of a document that are shown
TONES = 5
FURTHER = "⁺"
_SEEN = {
    " ": "·",
    "\t": "⇥",
    "\n": "⏎",
    "\r": "␍",
    "\u00a0": "⍽",
    "\u3000": "□",
    "\x0b": "␋",
    "\x0c": "␌",
}


@dataclass(frozen=True)
class Token:
    """One token of a text."""

    number: int
    data: bytes
    text: str
    shared: int


def token_pieces(text: str, exact: ExactCounter) -> list[Token]:
    """Cut a text into its tokens without splitting characters.

    Examples
    --------
    >>> [(token.text, token.shared) for token in token_pieces("Hi 🌵", ExactCounter("o200k_base"))]
    [('Hi', 1), (' 🌵', 2), ('', 2)]
    """
    results = list[Token]()
    waiting = list[tuple[int, bytes]]()
    characters = ""
    decoder = getincrementaldecoder("utf-8")("replace")
    for number, data in zip(exact.tokens(text), exact.pieces(text), strict=True):
        waiting.append((number, data))
        characters += decoder.decode(data)
        if not decoder.getstate()[0]:  # no character is incomplete
            results += _shared(waiting, characters)
            waiting = []
            characters = ""
    return results + _shared(waiting, characters + decoder.decode(b"", final=True))


def _shared(waiting: list[tuple[int, bytes]], text: str) -> list[Token]:
    return [
        Token(n, data, "" if place else text, len(waiting))
        for place, (n, data) in enumerate(waiting)
    ]


def reading(text: str, title: str, exact: Counter, count: Counter) -> Data:
    """Return a document as lines of coloured tokens for the page.

    If the reference counter cannot show its tokens, only a note is returned.
    """
    if isinstance(exact, CalibratedCounter):
        exact = exact.counter  # the counter whose counts the estimate scales
    if not isinstance(exact, ExactCounter):
        note = f"{exact.name} counts tokens and does not show them; choose an encoding such as o200k_base to see them."
        return {"title": title, "note": note, "blocks": [], "follows": "document"}
    shown = beginning_of(text)
    tokens = token_pieces(shown, exact)[:_MOST]
    blocks = [_block(*line, count) for line in lines(tokens)]
    of = exact.name if exact.exact else f"{exact.name}, itself an estimate"
    characters = sum(len(token.text) for token in tokens)
    part = ""
    if characters < len(text):
        part = f"The first {characters:,} of {len(text):,} characters: "
    split = ""
    if any(t.shared > 1 for t in tokens):
        split = f" {FURTHER} marks another token of the same character."
    kind = "estimates" if basis_of(count) == "estimate" else "counts"
    note = (
        f"{part}{len(tokens):,} tokens of {of}, in alternating colours.{split} {count.name} {kind} each line by "
        "itself, so lines need not add up to the document."
    )
    return {"title": title, "note": note, "blocks": blocks, "follows": "document"}


def beginning_of(text: str) -> str:
    """Return the part of a text to show.

    A long text is cut, at a nearby line end if there is one.

    Examples
    --------
    >>> len(beginning_of("a word " * 9_000)), len(beginning_of("short"))
    (6000, 5)
    """
    if len(text) <= LONGEST:
        return text
    return text[: text.rfind("\n", LONGEST * 3 // 4, LONGEST) + 1 or LONGEST]


def lines(tokens: list[Token]) -> Iterator[tuple[int, int, list[tuple[int, Token]]]]:
    r"""Group tokens into lines, each ending with a line break.

    Each group starts with the numbers of its first and its last line of text.

    Examples
    --------
    >>> found = token_pieces("one\n\ntwo", ExactCounter("o200k_base"))
    >>> [(first, last, [token.text for _, token in line]) for first, last, line in lines(found)]
    [(1, 2, ['one', '\n\n']), (3, 3, ['two'])]
    """
    first = 1
    line_tokens = list[tuple[int, Token]]()
    for place, token in enumerate(tokens):
        line_tokens.append((place, token))
        ends = token.text.count("\n")
        # A token without text continues the character of the one before it.
        is_split = place + 1 < len(tokens) and not tokens[place + 1].text
        if ends and not is_split:
            yield first, first + ends - 1, line_tokens
            first += ends
            line_tokens = []
    if line_tokens:
        yield first, first, line_tokens


def _block(first: int, last: int, line: list[tuple[int, Token]], count: Counter) -> Data:
    exact = len(line)
    estimate = count("".join(token.text for _, token in line))
    error = estimate / exact - 1
    label = f"line {first:,}" if first == last else f"lines {first:,}\u2013{last:,}"
    kind = "estimate" if basis_of(count) == "estimate" else "count"
    mark = f"exact {exact:,} · {kind} {estimate:,} · {signed_percent(error)}"
    level = {"level": "over"} if error <= -0.25 and exact - estimate > 2 else {}
    pieces = [
        {"text": visible(token.text) or FURTHER, "tone": place % TONES, "tip": tip(token)}
        for place, token in line
    ]
    return {"label": label, "mark": mark, **level, "pieces": pieces}


def tip(token: Token) -> str:
    """Return the tooltip of a token.

    Examples
    --------
    >>> tip(Token(13225, b"Hello", "Hello", 1))
    "token 13225, 5 bytes: b'Hello'"
    """
    words = f"token {token.number}, {many(len(token.data), 'byte')}: {token.data[:60]!r}"
    if token.shared == 1:
        return words
    return f"{words}; together, {token.shared} tokens form these characters"


def visible(text: str) -> str:
    r"""Make line ends, tabs, invisible characters and lone blanks visible.

    Examples
    --------
    >>> visible("    "), visible(" word"), visible(";\n\n")
    ('····', ' word', ';⏎⏎')
    """
    alone = not text.strip() or text[-1:] == " " or "  " in text
    shapes = _SEEN if alone else {**_SEEN, " ": " "}
    for mark in {*text} - {*shapes, "\ufffd"}:
        if unicodedata.category(mark) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            shapes = {**shapes, mark: f"‹{ord(mark):X}›"}
    return "".join(shapes.get(mark, mark) for mark in text)
