"""Every regular expression of the package takes about twice the time for twice the text.

Each is driven, by the methods that the package calls on it, with texts made from the pattern itself: the beginning of
something that it matches, one unit many times over, and an end that it does not match. A unit may be such a beginning,
alone or with a letter behind it that breaks the match: each of many starts then looks for an end that is not there.
"""

import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Callable
from functools import partial
from itertools import chain
from random import Random
from typing import Any

import pytest

import budgetkit as bk

UNITS, STARTS, PREFIXES = 60, 40, 20
SIZE = 200  # characters
SUSPICIOUS = 2e-4  # seconds for a text of that size; most patterns take less
TRIED = 4  # units of a pattern, the slowest
TIMES, MOST = 4, 9.0  # linear is four times as long, quadratic sixteen times
#: Patterns that see no long text of others, with what they see.
SHORT = {
    "budgetkit.counters.encodings._CLASS": "the patterns of tiktoken's own encodings",
    "budgetkit.trace.containers._CURSOR": "the first 2,000 characters of a file",
}

parse: Callable[..., Any] = importlib.import_module("re._parser").parse


def patterns() -> dict[str, Any]:
    """List the compiled patterns among the globals of all modules, also those in a tuple."""
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(bk.__path__, "budgetkit.")
        if not module.name.endswith("__main__")
    ]
    return {
        f"{module.__name__}.{name}{place or ''}": entry
        for module in modules
        for name, value in vars(module).items()
        for place, entry in enumerate(value if isinstance(value, tuple) else (value,))
        if hasattr(entry, "finditer") and hasattr(entry, "pattern")
    }


PATTERNS = patterns()


def methods(name: str, pattern: Any) -> list[Callable[[Any], object]]:
    """List what the package calls on a pattern of this name; anything but match and fullmatch looks everywhere."""
    module, _, bare = name.rpartition(".")
    source = inspect.getsource(importlib.import_module(module))
    bare = bare.rstrip("0123456789")
    called = set(re.findall(rf"\b{bare}(?:\.(match|fullmatch)\(|\b(?! = |: Final))", source))
    found = [getattr(pattern, method) for method in sorted(called - {""})]
    if not found or "" in called:
        found.append(lambda text: sum(1 for _ in pattern.finditer(text)))
    return found


class Sampler:
    """Writes what a pattern matches, more or less, and notes what it repeats on the way."""

    def __init__(self, pattern: str, flags: int, random: Random) -> None:
        self.random = random
        self.letters = [*sorted(set(pattern) - set("()|?+*^$")), *'aA0 \n\té"\\']
        self.units: set[str] = set()
        # The standard library knows no classes of Unicode; those of a word stand for them.
        plain = re.sub(r"\\[pPX](\{[^}]*\})?", r"\\w", re.sub(r"\(\?r?s?\)|\(\*\w+\)", "", pattern))
        self.tree = parse(plain, flags & (re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE))

    def text(self, tree: Any) -> str:
        return "".join(self.piece(str(code), value) for code, value in tree)

    def piece(self, code: str, value: Any) -> str:
        if code == "LITERAL":
            return chr(value)
        if code == "RANGE":
            return chr(self.random.choice(value))
        if code == "CATEGORY":
            return {"CATEGORY_SPACE": " ", "CATEGORY_DIGIT": "1"}.get(str(value), "a")
        if code == "IN" and str(value[0][0]) != "NEGATE":
            return self.text([self.random.choice(value)])
        if code in ("ANY", "NOT_LITERAL", "IN"):
            return str(self.random.choice(self.letters))
        if code == "BRANCH":
            return self.text(self.random.choice(value[1]))
        if code in ("SUBPATTERN", "ATOMIC_GROUP"):
            return self.text(value[-1] if code == "SUBPATTERN" else value)
        if code.endswith("_REPEAT"):
            least, most, inside = value
            times = min(int(most), int(least) + self.random.randint(0, 2))
            units = [self.text(inside) for _ in range(times)]
            self.units.update(units)
            return "".join(units)
        return ""


def made_from(pattern: Any) -> tuple[list[str], list[str]]:
    """Write prefixes and units: beginnings of matches, what the pattern repeats, and its single letters."""
    random = Random(7)
    written = pattern.pattern
    sampler = Sampler(
        written.decode("latin-1") if isinstance(written, bytes) else written, pattern.flags, random
    )
    samples = sorted({sampler.text(sampler.tree) for _ in range(300)})
    cuts = sorted({sample[: random.randint(1, len(sample))] for sample in samples if sample})
    prefixes = ["", *random.sample(cuts, min(len(cuts), PREFIXES - 1))]
    units = sorted(
        chain(sampler.units, sampler.letters, samples), key=lambda unit: (len(unit), unit)
    )
    shortest = sorted({(len(cut), cut) for cut in cuts if len(cut) > 1})[: 4 * STARTS]
    starts = random.sample(shortest, min(len(shortest), STARTS // 2))
    broken = [cut + end for _, cut in starts for end in ("", "\0")]
    return prefixes, [*[unit for unit in dict.fromkeys(units) if unit][:UNITS], *broken]


def seconds(call: Callable[[Any], object], text: Any) -> float:
    start = time.process_time()
    call(text)
    return time.process_time() - start


def is_steep(call: Callable[[Any], object], make: Callable[[int], Any]) -> bool:
    """Tell whether time grows faster than the text, as soon as it is long enough to be measured."""
    size = SIZE
    while seconds(call, make(size)) < 0.004:
        size *= 2
        if size > 200_000:
            return False
    few = min(seconds(call, make(size)) for _ in range(3))
    many = min(seconds(call, make(TIMES * size)) for _ in range(2))
    return many > MOST * few


@pytest.mark.parametrize("name", sorted(PATTERNS.keys() - SHORT.keys()))
def test_no_pattern_grows_faster_than_its_text(name: str) -> None:
    """In 0.3.0 a heading of 1,600 blanks took seven seconds, and one tool result of 40,000 letters 47."""
    pattern = PATTERNS[name]
    is_bytes = isinstance(pattern.pattern, bytes)
    prefixes, units = made_from(pattern)

    def made(prefix: str, unit: str, size: int) -> Any:
        text = prefix + unit * (size // len(unit)) + "\0"
        return text.encode("latin-1", "replace") if is_bytes else text

    for call in methods(name, pattern):
        # Of each unit the prefix with which it is slowest, and of these the slowest few.
        slowest = [
            (*max((seconds(call, made(prefix, unit, SIZE)), prefix) for prefix in prefixes), unit)
            for unit in units
        ]
        for taken, prefix, unit in sorted(slowest, reverse=True)[:TRIED]:
            if taken > SUSPICIOUS and is_steep(call, partial(made, prefix, unit)):
                pytest.fail(f"{pattern.pattern!r:.300} grows with {prefix!r} + {unit!r} * n")
