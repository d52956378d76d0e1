"""Train the tables under ``data/estimates/`` from folders of text, and write down what they were trained on.

    python scripts/train_estimator.py FOLDER [FOLDER ...] [--out data/estimates] [--leave-out FILE]

A folder either has a ``MANIFEST.csv`` with the columns path, class, language, source and version, or each of its
subfolders counts as a source. Training asks tiktoken where each token of each document starts and averages, for every
window, how many start in it: first over pairs of characters, then over what that leaves unexplained in longer windows,
each average drawn towards 0 by how little it rests on. Runs of one or two characters are counted, not learned. The same
folders give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from training_text import Document, odd, read, sources, spoken

from budgetkit.counters import encodings
from budgetkit.counters.estimate import (
    BEFORE,
    CHECK,
    HASHED,
    LEVELS,
    MIDDLE,
    SCALE,
    WINDOW,
    Windows,
)

ENCODINGS = ("o200k_base", "cl100k_base")
EVEN = 90_000  # characters of a class up to which its weight grows in proportion, then as their square root
# How much more a class counts: Latin letters are mostly English where nothing else shows; odd text has words by chance.
FAVOUR = {"prose/en": 4, "chat/en": 5, "words/en": 4, "words/hi": 0.6}
FAVOUR |= dict.fromkeys(
    ("odd/base64", "odd/base64-pem", "odd/data-uri", "odd/hex", "odd/uuid", "odd/numbers"), 1.5
)
# What an average is drawn to (prior, or 0) counts for so many windows.
DOUBT = {"pair": 1, "own": 2, "raw": 2, "long": 3, "shape": 2}
PLAIN = ("pair", "shape")  # levels of windows whose own key is not held
ONCE = (*HASHED, "shape")  # levels of a window; the others are of each of its pairs
SEEN = 4  # a window that was seen less often is not held: it stands for those that are new to the table
CORRECTED = 0.02  # what a window still weighs that a level which learns later will correct

# The classes that ASCII leaves, among them those of control characters that hardly a text has.
SPARE = np.array([*range(128, 256), *range(1, 9), *range(14, 27), 28], np.uint8)
# Unicode's scripts in these classes: first unit, end, number of classes.
BLOCKS = (
    (0x80, 0xA0, 1), (0xA0, 0xC0, 4), (0xC0, 0x250, 10), (0x250, 0x300, 1), (0x300, 0x370, 1),
    (0x370, 0x400, 4), (0x400, 0x530, 10), (0x530, 0x590, 1), (0x590, 0x600, 4), (0x600, 0x780, 8),
    (0x780, 0x900, 1), (0x900, 0x980, 6), (0x980, 0xA00, 3), (0xA00, 0xA80, 3), (0xA80, 0xB00, 3),
    (0xB00, 0xB80, 3), (0xB80, 0xC00, 4),
    (0xC00, 0xC80, 4), (0xC80, 0xD00, 4), (0xD00, 0xD80, 4), (0xD80, 0xE00, 3), (0xE00, 0xE80, 4),
    (0xE80, 0x1100, 2), (0x1100, 0x1200, 1), (0x1200, 0x2000, 2), (0x2000, 0x2070, 4), (0x2070, 0x2500, 3),
    (0x2500, 0x25A0, 2), (0x25A0, 0x2E80, 3), (0x2E80, 0x3040, 4), (0x3040, 0x3100, 7), (0x3100, 0x4E00, 1),
    (0x4E00, 0xA000, 15), (0xA000, 0xAC00, 1), (0xAC00, 0xD800, 8), (0xD800, 0xDC00, 4), (0xDC00, 0xE000, 4),
    (0xE000, 0xFF00, 1), (0xFF00, 0x10000, 2),
)  # fmt: skip


def main(arguments: list[str]) -> None:
    """Train every encoding's table and write it down."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("data/estimates"))
    parser.add_argument(
        "--leave-out", type=Path, help="a file that names sources not to learn from, one a line"
    )
    parser.add_argument("--encodings", nargs="+", default=ENCODINGS, choices=ENCODINGS)
    options = parser.parse_args(arguments)
    left_out = (
        set(options.leave_out.read_text(encoding="utf-8").split("\n"))
        if options.leave_out
        else set()
    )
    documents = [d for folder in options.folders for d in read(folder) if d.source not in left_out]
    documents += list(odd())
    options.out.mkdir(parents=True, exist_ok=True)
    for encoding in options.encodings:
        print(
            f"{encoding}: {len(documents):,} documents, {sum(len(d.text) for d in documents):,} characters"
        )
        np.savez_compressed(options.out / f"{encoding}.npz", **train(encoding, documents))
    (options.out / "sources.json").write_text(
        json.dumps(sources(documents), indent=1) + "\n", encoding="utf-8"
    )


@dataclass(frozen=True, slots=True)
class Lesson:
    """Units laid end to end, how many tokens start in each, and how much each counts."""

    units: np.ndarray
    starts: np.ndarray
    weights: np.ndarray


def train(encoding: str, documents: list[Document]) -> dict[str, np.ndarray]:
    """Give the arrays of one encoding's table."""
    told = [
        spoken(each, encoding) if each.kind.startswith("words/") else [each] for each in documents
    ]
    lesson = lay_out(encoding, [each for some in told for each in some])
    classes, rates = classified(encoding, lesson)
    pairs, units = runs(encoding)
    return {"classes": classes, "run_pairs": pairs, "run_units": units} | {
        f"level_{level}": values for level, values in learned(lesson, classes, rates).items()
    }


def lay_out(encoding: str, documents: list[Document]) -> Lesson:
    """Put the documents behind one another, each after a context, and weigh them so that no class rules."""
    sizes: Counter[str] = Counter()
    for document in documents:
        sizes[document.kind] += len(document.text)
    lengths = token_lengths(encoding)
    gap = np.zeros(BEFORE, np.uint16)
    units, starts, weights = [gap], [gap.astype(np.uint8)], [gap.astype(np.float32)]
    for document in documents:
        these, begun = token_starts(encoding, lengths, document.text)
        weight = FAVOUR.get(document.kind, 1) * (EVEN / max(sizes[document.kind], EVEN)) ** 0.5
        units += [these, gap]
        starts += [begun, gap.astype(np.uint8)]
        weights += [np.full(len(these), weight, np.float32), gap.astype(np.float32)]
    return Lesson(np.concatenate(units), np.concatenate(starts), np.concatenate(weights))


def token_lengths(encoding: str) -> np.ndarray:
    """Give the length of each token, in bytes."""
    built = encodings.encoding(encoding)
    lengths = np.zeros(built.n_vocab, np.int64)
    for number in range(built.n_vocab):
        try:
            lengths[number] = len(built.decode_single_token_bytes(number))
        except KeyError:  # a few numbers are not given to any token
            continue
    return lengths


def token_starts(encoding: str, lengths: np.ndarray, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Give a text's units and how many tokens start in each."""
    units = np.frombuffer(text.encode("utf-16-le"), "<u2")
    ends = np.cumsum(lengths[encodings.tokens(encoding, text)])
    half = (units >= 0xD800) & (units < 0xE000)
    size = np.select([units < 0x80, (units < 0x800) | half], [1, 2], 3)
    unit_of_byte = np.repeat(np.arange(len(units)), size)
    begun = unit_of_byte[np.concatenate([[0], ends[:-1]])]
    return units, np.bincount(begun, minlength=len(units)).astype(np.uint8)


def classified(encoding: str, lesson: Lesson) -> tuple[np.ndarray, np.ndarray]:
    """Class units by script, then by how often tokens start in them and right after them.

    A unit that was hardly seen is taken to start two thirds of the tokens that it makes alone. Gives the class of
    each unit, and the tokens that start in a unit of each class.
    """
    count = encodings.counting_function(encoding)
    alone = (
        np.array([2 if 0xD800 <= unit < 0xE000 else count(chr(unit)) for unit in range(2**16)])
        * 2
        / 3
    )
    seen = np.bincount(lesson.units, minlength=2**16)
    begun = (np.bincount(lesson.units, lesson.starts, 2**16) + 3 * alone) / (seen + 3)
    after = (np.bincount(lesson.units[:-1], lesson.starts[1:], 2**16) + 2) / (seen + 3)
    classes = np.arange(2**16).astype(np.uint8)
    first = 0
    for start, end, number in BLOCKS:
        order = start + np.argsort((begun + after / 2)[start:end], kind="stable")
        share = np.cumsum(np.sqrt(seen[order] + 0.5))
        classes[order] = SPARE[
            first + np.minimum((share / share[-1] * number).astype(int), number - 1)
        ]
        first += number
    weight = np.sqrt(seen + 0.5)
    return classes, np.bincount(classes, weight * begun, 256) / np.maximum(
        np.bincount(classes, weight, 256), 1e-9
    )


@dataclass(frozen=True, slots=True)
class Example:
    """The windows of all text at one alignment: their keys, the tokens that start in their pairs, their weights."""

    keys: dict[str, np.ndarray]
    starts: np.ndarray
    weights: dict[bool, np.ndarray]  # of windows, and of pairs


def examples_of(lesson: Lesson, classes: np.ndarray) -> Iterator[Example]:
    """Give the windows of texts that begin at any place; runs teach nothing."""
    for offset in range(WINDOW):
        end = len(lesson.units) - (len(lesson.units) - offset) % WINDOW
        units = np.ascontiguousarray(lesson.units[offset:end])
        found = Windows(classes[units].view(np.uint32), units, slice(None))
        starts = lesson.starts[offset:end].reshape(-1, 2)[BEFORE // 2 :].sum(axis=1)
        weights = lesson.weights[offset:end].reshape(-1, 2)[BEFORE // 2 :].max(axis=1)
        known = np.ones(len(weights) // 2, np.float32)
        known[found.runs()] = 0
        by_level = {
            True: by_window(weights, np.maximum) * known,
            False: weights * np.repeat(known, 2),
        }
        yield Example(keys_of(found), starts, by_level)


def keys_of(found: Windows) -> dict[str, np.ndarray]:
    """Give the keys by level, those of a window's pairs in turn."""
    raw = found.raw().T.reshape(-1)
    pairs, shape = found.plain(slice(None))
    return {"pair": pairs, "raw": raw, "shape": shape} | dict(
        zip(HASHED, found.keys(), strict=True)
    )


def by_window(pairs: np.ndarray, joined: np.ufunc = np.add) -> np.ndarray:
    """Join what is of a window's two pairs."""
    return joined(pairs[0::2], pairs[1::2])


def learned(lesson: Lesson, classes: np.ndarray, rates: np.ndarray) -> dict[str, np.ndarray]:
    """Average, level by level, what the levels before leave unexplained; twice.

    The first time decides which keys the hashed levels hold. A text that is new has many windows that are not held,
    and those start more tokens than the common ones, which the vocabulary was made of. So the second time a level
    learns mostly from the windows that no later level will correct.
    """
    examples = list(examples_of(lesson, classes))
    prior = (rates[:, np.newaxis] + rates).reshape(-1)
    first = averaged(examples, prior, lambda level, example: example.weights[level in ONCE])

    def uncorrected(level: str, example: Example) -> np.ndarray:
        weights = example.weights[level in ONCE]
        corrected = np.zeros(len(weights), bool)
        for later in list(LEVELS)[list(LEVELS).index(level) + 1 :]:
            if later not in PLAIN:
                corrected |= held(later, first[later], example, level in ONCE)
        return np.where(corrected, np.float32(CORRECTED), np.float32(1)) * weights

    return averaged(examples, prior, uncorrected, first)


def held(level: str, values: np.ndarray, example: Example, of_windows: bool) -> np.ndarray:
    """Tell which windows, or which pairs, a level holds the key of."""
    found = known(level, values, example)
    if of_windows == (level in ONCE):
        return found
    return by_window(found, np.logical_or) if of_windows else np.repeat(found, 2)


def known(level: str, values: np.ndarray, example: Example) -> np.ndarray:
    """Tell which keys of an example a hashed level holds."""
    key = bucket(level, example.keys[level])
    entry = values[key >> 6]
    return ((entry & CHECK) == (key & 63)) & (entry != 0)


def averaged(
    examples: list[Example],
    prior: np.ndarray,
    weigh: Callable[[str, Example], np.ndarray],
    before: dict[str, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    """Average each level's windows, and hold the keys that were held before or that explain most."""
    left = [example.starts.astype(np.float32) for example in examples]
    found: dict[str, np.ndarray] = {}
    for level, size in LEVELS.items():
        buckets, doubt = size * (1 if level in PLAIN else 64), DOUBT[level]
        weight, excess, paired = np.zeros(buckets), np.zeros(buckets), np.zeros(buckets)
        seen = np.zeros(buckets, np.int32)
        for example, rest in zip(examples, left, strict=True):
            key, weights = bucket(level, example.keys[level]), weigh(level, example)
            if level == "shape":
                weights = weights * ~known("own", found["own"], example)
            weight += np.bincount(key, weights, buckets)
            excess += np.bincount(
                key, weights * (by_window(rest) if level in ONCE else rest), buckets
            )
            if level == "own":
                paired += np.bincount(
                    key, weights * by_window(explained("pair", found["pair"], example)), buckets
                )
            if level in HASHED and not before:
                seen += np.bincount(key, minlength=buckets).astype(np.int32)
        values = (excess + (prior * doubt if level == "pair" else 0)) / (weight + doubt)
        worth = weight if level == "own" else weight * values**2
        if level in HASHED and not before:
            worth[seen < SEEN] = 0
        if level == "own":  # it stands for its pairs too
            values += paired / np.maximum(weight, 1e-9) - MIDDLE / SCALE
        found[level] = (
            whole(values) if level in PLAIN else packed(values, worth, before and before[level])
        )
        for example, rest in zip(examples, left, strict=True):
            rest -= explained(level, found[level], example)
            if level == "own":
                rest += explained("pair", found["pair"], example) * np.repeat(
                    known("own", found["own"], example), 2
                )
    return found


def bucket(level: str, key: np.ndarray) -> np.ndarray:
    """Return a number for each key that can be told apart: by place, then by check."""
    return key if level in PLAIN else key >> np.uint32(27 - LEVELS[level].bit_length())


def explained(level: str, values: np.ndarray, example: Example) -> np.ndarray:
    """Say what a level adds to each pair, half of a window's to each of its own."""
    key = bucket(level, example.keys[level])
    if level in PLAIN:
        added = values[key] / np.float32(SCALE)
    else:
        added = (values >> 6)[key >> 6] + (MIDDLE if level == "own" else 0)
        added = known(level, values, example) * added / np.float32(SCALE)
    return np.repeat(added / 2, 2) if level in ONCE else added


def whole(values: np.ndarray) -> np.ndarray:
    """Round to 128ths of a token."""
    return np.rint(values * SCALE).astype(np.int16)


def packed(values: np.ndarray, worth: np.ndarray, before: np.ndarray | None) -> np.ndarray:
    """Put one key into each place, the one there already or the one worth most, with its value."""
    rows = whole(values.clip(-4, 511 / SCALE)).reshape(-1, 64)
    worth = worth.reshape(-1, 64)
    worth[0, 0] = 0  # key 0 is nobody's
    check = worth.argmax(axis=1) if before is None else before & CHECK
    rows[0, 0] = 0
    if before is None:
        rows[worth.max(axis=1) == 0] = 0
    return (rows[np.arange(len(rows)), check] << 6) | check.astype(np.int16)


def runs(encoding: str) -> tuple[np.ndarray, np.ndarray]:
    """Count what two more units of a run cost, for each pair of ASCII characters and each single unit."""
    count = encodings.counting_function(encoding)

    def cost(repeated: str) -> int:
        return round((count(repeated * 256) - count(repeated * 32)) * SCALE / 224)

    pairs = [cost(chr(number // 128) + chr(number % 128)) for number in range(128 * 128)]
    units = [-1 if 0xD800 <= unit < 0xE000 else cost(2 * chr(unit)) for unit in range(2**16)]
    return np.array(pairs, np.int16).reshape(128, 128), np.array(units, np.int16)


if __name__ == "__main__":
    main(sys.argv[1:])
