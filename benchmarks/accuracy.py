"""Accuracy and speed of every counter side by side, on any folders; writes ``benchmarks/accuracy.md``.

    python -m benchmarks.accuracy [FOLDER ...] [--exact o200k_base]

Without a folder: the mini-corpus, odd text, Python's library and the installed packages. The estimator's tables were
learned from the sources in ``data/estimates/sources.json``; where a folder holds one of them the page says so, since
an error on what was learned from says little.
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import re
import sysconfig
import time
from collections import Counter as Tally
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from benchmarks.sample import sampled
from budgetkit import accuracy, corpora, files
from budgetkit.counters import counter, encodings
from budgetkit.lab.accuracy.corpora import Corpus, Document
from budgetkit.lab.accuracy.corpora.reading import LANGUAGES, file_text
from budgetkit.lab.accuracy.corpora.reading import files as corpus_of_files

RESULTS = Path(__file__).parent / "accuracy.md"
COUNTERS = [
    "chars/4",
    "chars/3.5 (ceil, minimum 0)",
    "bytes/4",
    "utf16/4",
    "words/0.75",
    "cl100k_base",
    "o200k_base",
]
MOST_A_SOURCE = 60  # pieces of one class, language and source
LARGE = 1_500_000  # characters of a large document


_MOST_BYTES = 300_000  # longer files are generated code or data


def standard_library(most: int = 100) -> Corpus:
    """Read modules of Python's standard library, and its documentation as prose.

    Parameters
    ----------
    most : int
        Maximum number of modules, spread over the alphabet.

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
    # Chosen evenly over the list.
    step = max(len(modules) / max(most, 1), 1)
    spread = [modules[int(number * step)] for number in range(min(most, len(modules)))]
    code = corpus_of_files(spread, source, root, most=_MOST_BYTES)
    prose = file_text(root / "pydoc_data" / "topics.py")
    if not isinstance(prose, str):
        return code
    from pydoc_data.topics import topics

    prose_documents = (
        Document(text, "prose", "en", source, f"topic {name}")
        for name, text in sorted(topics.items())
    )
    return code + Corpus(tuple(prose_documents))


def installed_packages(most: int) -> Corpus:
    """Read files of the installed packages, at most so many of one suffix of one package."""
    corpus = Corpus(())
    for distribution in sorted(metadata.distributions(), key=lambda package: package.name or ""):
        by_suffix: dict[str, list[Path]] = {}
        for file in distribution.files or ():
            if file.suffix in LANGUAGES and ".." not in file.parts:
                path = Path(str(distribution.locate_file(file)))
                by_suffix.setdefault(file.suffix, []).append(path)
        root = Path(str(distribution.locate_file("")))
        for paths in by_suffix.values():
            step = max(len(paths) / most, 1)
            spread = [sorted(paths)[int(at * step)] for at in range(min(most, len(paths)))]
            chosen = [path for path in spread if path.is_file()]
            source = f"{distribution.name} {distribution.version}"
            corpus += corpus_of_files(chosen, source, root, most=300_000)
    return corpus


def main() -> None:
    """Measure on the folders that were given and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--exact", default="o200k_base", choices=["o200k_base", "cl100k_base"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    whole = gathered(asked.folders)
    began = time.perf_counter()
    names = [name for name in (*COUNTERS, f"estimate:{asked.exact}") if name != asked.exact]
    everything = accuracy.compare(names, whole, asked.exact)
    seconds = time.perf_counter() - began
    pieces = chosen(whole.pieces(most=6))
    errors = accuracy.compare(names, pieces, asked.exact)
    page = [
        f"# How wrong the counters are, against {asked.exact}",
        "",
        f"{len(whole):,} documents, {whole.characters / 1e6:.1f} million characters, "
        f"{len(whole.problems)} not readable; "
        f"all of them under {len(names) + 1} counters in {seconds:.0f} s. {learned(whole)}",
        "",
        "Pieces of 500 to 2,000 characters, at most 60 of a class, language and source; absolute errors in percent.",
        "",
        *table(overall(errors)),
        "",
        *table(speeds(whole, names, asked.exact)),
        "",
        "Large documents (a class each, up to 1.5 million characters), estimated, and counted by slices with 40 seeds:",
        "",
        *table(slices(whole, asked.exact)),
        "",
        "By class and language:",
        "",
        *table(by_class(errors)),
        "",
        f"{len(everything):,} rows in all.",
    ]
    asked.out.write_text("\n".join(page) + "\n", encoding="utf-8")
    print("\n".join(page[:24]))


def gathered(folders: Sequence[Path]) -> Corpus:
    """Read the folders, or what any machine has."""
    if not folders:
        return corpora.shipped() + corpora.odd() + standard_library() + installed_packages(most=3)
    found = Corpus(())
    for folder in folders:
        found += labelled(folder)
    return found


def lists_texts(folder: Path) -> bool:
    """Return True if a folder's ``MANIFEST.csv`` gives its texts a class, a language and a source."""
    manifest = folder / "MANIFEST.csv"
    if not manifest.is_file():
        return False
    with manifest.open(encoding="utf-8", errors="replace", newline="") as lines:
        return {"path", "class", "language", "source"} <= set(next(csv.reader(lines), []))


def labelled(folder: Path) -> Corpus:
    """Read the texts of a folder, labelled by its ``MANIFEST.csv`` if it lists texts."""
    if not lists_texts(folder):
        return corpora.folder(folder)
    documents: list[Document] = []
    problems: list[corpora.Problem] = []
    with (folder / "MANIFEST.csv").open(encoding="utf-8", newline="") as manifest:
        for row in csv.DictReader(manifest):
            path = folder / row["path"]
            is_table = path.suffix == ".jsonl"
            texts = corpora.rows(path) if is_table else corpora.folder(path)
            source = f"{row['source']} {row.get('version', '')}".strip()
            documents += [
                Document(
                    text=document.text,
                    kind=row["class"],
                    language=row["language"],
                    source=source,
                    name=document.name if is_table else row["path"],
                )
                for document in texts
            ]
            problems += texts.problems
    return Corpus(tuple(documents), tuple(problems))


def chosen(pieces: Corpus) -> Corpus:
    """Take no more than so many pieces of one class, language and source."""
    taken: Tally[tuple[str, str, str]] = Tally()
    kept = []
    for piece in pieces:
        key = (piece.kind, piece.language, piece.source)
        taken[key] += 1
        if taken[key] <= MOST_A_SOURCE:
            kept.append(piece)
    return Corpus(tuple(kept), pieces.problems)


def learned(corpus: Corpus) -> str:
    """Say how much of it the estimator may have learned from: text of packages that its sources name too."""
    rows = json.loads(files.read_bytes("estimates/sources.json"))["sources"]
    names = {row["source"].lower() for row in rows if not row["source"].startswith("generated")}
    words = names | {word for name in names for word in re.split(r"[-\s]+", name)}
    seen = sum(
        len(d.text)
        for d in corpus
        if {d.source.lower(), d.source.rpartition(" ")[0].lower()} & words
    )
    share = 100 * seen / max(corpus.characters, 1)
    return f"Sources of the same names, which the estimator has learned from, make up {share:.0f} % of this text."


def overall(errors: pd.DataFrame) -> pd.DataFrame:
    """Give each counter's mean of class means, its quantiles over all pieces, and its bias."""
    rows = []
    for name, group in errors.groupby("counter", sort=False):
        size = group["error"].abs() * 100
        classes = size.groupby([group["class"], group["language"]])
        means = classes.mean()[classes.size() >= 8]
        rows.append(
            {
                "counter": name,
                "classes": len(means),
                "mean of class means": means.mean(),
                "mean": size.mean(),
            }
        )
        rows[-1] |= {
            "p95": size.quantile(0.95),
            "worst": size.max(),
            "bias": 100 * group["error"].mean(),
            "n": len(size),
        }
    return pd.DataFrame(rows)


def by_class(errors: pd.DataFrame) -> pd.DataFrame:
    """Give each class its mean absolute error under each counter."""
    size = errors.assign(error=errors["error"].abs() * 100)
    shown = size.pivot_table(
        index=["class", "language"], columns="counter", values="error", sort=False
    )
    return shown.assign(
        n=errors.groupby(["class", "language"]).size() // errors["counter"].nunique()
    ).reset_index()


def speeds(corpus: Corpus, names: Sequence[str], exact: str) -> pd.DataFrame:
    """Time each counter on one large text of every class and on 2,000 messages, in turn with tiktoken's own encode."""
    texts = classes(corpus)
    joined = "\n".join(text[: 2_000_000 // len(texts)] for text in texts.values())
    messages = [
        joined[start : start + 60 + start % 400]
        for start in range(0, len(joined) - 460, len(joined) // 2_000)
    ]
    encode = encodings.encoding(exact).encode
    cases = {"tiktoken": lambda texts: [len(encode(text, disallowed_special=())) for text in texts]}
    cases |= {
        name: counter(name).many
        for name in names
        if not counter(name).exact and "base" not in name.split(":")[0]
    }
    large = fastest({name: partial(case, [joined]) for name, case in cases.items()})
    small = fastest({name: partial(case, messages) for name, case in cases.items()})
    size = len(joined.encode("utf-8", "replace")) / 1e6
    return pd.DataFrame(
        {
            "counter": name,
            "MB/s, large text": size / large[name],
            "times tiktoken": large["tiktoken"] / large[name],
            "microseconds a message": small[name] / len(messages) * 1e6,
            "times tiktoken, messages": small["tiktoken"] / small[name],
        }
        for name in cases
    )


def fastest(cases: Mapping[str, Callable[[], object]], repeats: int = 7) -> dict[str, float]:
    """Run cases in turn, and give the least seconds of each: a machine that others use only ever adds some."""
    least = dict.fromkeys(cases, float("inf"))
    for _ in range(repeats):
        for name, case in cases.items():
            began = time.perf_counter()
            case()
            least[name] = min(least[name], time.perf_counter() - began)
    return least


def slices(corpus: Corpus, exact: str, seeds: int = 40) -> pd.DataFrame:
    """Measure large documents: speed of the estimate; error, interval, coverage and speed of the count by slices."""
    count, encode = encodings.counting_function(exact), encodings.encoding(exact).encode
    estimate = counter(f"estimate:{exact}")
    rows = []
    for (kind, language), text in tqdm(large(corpus).items(), desc="large documents"):
        truth = count(text)
        cases: dict[str, Callable[[], object]] = {
            "whole": partial(encode, text, disallowed_special=()),
            "estimate": partial(estimate, text),
            "slices": partial(sampled, text, exact),
        }
        seconds = fastest(cases, repeats=5)
        found = [sampled(text, exact, seed) for seed in range(seeds)]
        error = np.array([sample.tokens / truth - 1 for sample in found])
        covered = np.mean([sample.low <= truth <= sample.high for sample in found])
        row = {
            "class": kind,
            "language": language,
            "estimate, times tiktoken": seconds["whole"] / seconds["estimate"],
        }
        row |= {"slices, times tiktoken": seconds["whole"] / seconds["slices"]}
        row |= {"rms error, %": 100 * float(np.sqrt((error**2).mean()))}
        row |= {
            "half interval, %": 100 * np.mean([sample.error for sample in found]),
            "covered, %": 100 * covered,
        }
        rows.append(row)
    frame = pd.DataFrame(rows)
    return pd.concat(
        [
            frame,
            frame.mean(numeric_only=True).to_frame().T.assign(**{"class": "mean", "language": ""}),
        ]
    )


def classes(corpus: Corpus) -> dict[tuple[str, str], str]:
    """Join the documents of each class and language."""
    joined: dict[tuple[str, str], list[Document]] = {}
    for document in corpus:
        joined.setdefault((document.kind, document.language), []).append(document)
    return {key: "\n".join(d.text for d in documents) for key, documents in joined.items()}


def large(corpus: Corpus) -> dict[tuple[str, str], str]:
    """Give the texts of the classes and languages that have enough."""
    return {key: text[:LARGE] for key, text in classes(corpus).items() if len(text) >= 500_000}


def table(frame: pd.DataFrame) -> list[str]:
    """Write a frame as a Markdown table, numbers with one decimal."""
    head = [str(column) for column in frame.columns]
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(' --- ' for _ in head)}|"]
    for row in frame.itertuples(index=False):
        cells = [f"{cell:,.1f}" if isinstance(cell, float) else str(cell) for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
