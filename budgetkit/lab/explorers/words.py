"""Words: what a word on the screen means, in one line; explorers and reports show it as a tip."""

from __future__ import annotations

from functools import cache

from budgetkit.files import read_toml


@cache
def meaning(word: str) -> str:
    """Return what a word on the screen means; nothing for one that explains itself.

    Examples
    --------
    >>> meaning("usable"), meaning("kind")
    ('The window less its reserves.', '')
    """
    words: dict[str, str] = read_toml("glossary.toml")["words"]
    return words.get(word, "")


def explained(tip: str, word: str) -> str:
    """Return a tip with what its word means.

    Examples
    --------
    >>> explained("usable: 6,964 tokens", "usable")
    'usable: 6,964 tokens. The window less its reserves.'
    """
    if not meaning(word):
        return tip
    return f"{tip.rstrip('.')}. {meaning(word)}"
