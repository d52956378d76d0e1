"""Counter errors for each document, summarised by group.

error = estimate / exact - 1
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from time import perf_counter_ns
from typing import Any, Literal

import numpy as np
import pandas as pd

from budgetkit.budget import brief, quoted
from budgetkit.counters import Count, Counter, basis_of, counter
from budgetkit.lab.accuracy.corpora import corpus_of
from budgetkit.lab.accuracy.corpora.opening import AnyTexts
from budgetkit.models import Model
from budgetkit.plan import Floats, Ints
from budgetkit.promise import FEWEST_FOR_A_GAIN, needed


@contextmanager
def progress_bar(shown: bool, **options: Any) -> Iterator[Callable[[int], object]]:
    """Show a progress bar, and yield the function that advances it.

    If `shown` is False, or tqdm is not installed, no bar is shown.

    >>> with progress_bar(False, total=2) as advance:
    ...     advance(1)
    """
    bar: Any = nullcontext()
    if shown:
        with suppress(ModuleNotFoundError):
            from tqdm.auto import tqdm

            bar = tqdm(**options)
    with bar:
        yield getattr(bar, "update", lambda _: None)


_KINDS = {"ProviderCounter": "endpoint", "CharacterCounter": "characters"}
#: The cost and the purpose of each kind of counting, after Octopus, guide "Token Budget" (document 000).
USES = {
    "characters": ("almost nothing", "a first guess, with a reserve for the error"),
    "estimate": (
        "little, on this machine",
        "models without a public vocabulary, with a reserve for the error",
    ),
    "tokenizer": (
        "little, on this machine",
        "tight budgets, and exact counts in general",
    ),
    "endpoint": (
        "a network call for each new text",
        "occasional checks and fitting, never in a loop",
    ),
}


def ways(texts: AnyTexts, *counters: Any) -> pd.DataFrame:
    """Compare counting methods in one table.

    Parameters
    ----------
    texts : Corpus, str, Path, DataFrame or iterable
        The texts to count, one by one, as an application does.
    *counters : str or callable
        Counters or their names; default: "chars/4" and "o200k_base". A counter from
        `budgetkit.endpoints.provider_counter` sends every text to its provider.

    Returns
    -------
    DataFrame
        One row for each counter, with the columns name, kind ("characters", "estimate", "tokenizer" or "endpoint"),
        exact, basis ("exact", "reconstructed" or "estimate"), tokens (int64, of all texts), off (float64, relative
        error), microseconds (float64, per text, measured in this call; an endpoint's cached answers are fast), network
        (bool, True if texts are sent to a provider), costs and use (str, the cost and the purpose). The error is
        relative to an endpoint's count; if there is no endpoint, it is relative to an exact count or, if there is
        none, to a reconstructed count. The value off is NaN if there is no such count, or if that count is 0.

    Raises
    ------
    ValueError
        If there is no text to count.

    Examples
    --------
    >>> found = ways(["Hello world", "Where is my order?"])
    >>> found[["name", "kind", "exact", "tokens", "off"]].round(2).values.tolist()
    [['chars/4', 'characters', False, 6, -0.14], ['o200k_base', 'tokenizer', True, 7, 0.0]]
    """
    documents = corpus_of(texts).texts
    if not documents:
        raise ValueError("No texts to count. Pass at least one.")
    rows = []
    for way in counters or ("chars/4", "o200k_base"):
        count = counter(way)
        basis = basis_of(count)
        other = "estimate" if basis == "estimate" else "tokenizer"
        kind = _KINDS.get(type(count).__name__, other)
        if kind != "endpoint":
            count(documents[0])  # the first call loads its tables
        begun = perf_counter_ns()
        tokens = sum(map(count, documents))
        taken = (perf_counter_ns() - begun) / 1_000 / len(documents)
        costs, use = USES[kind]
        rows.append(
            {
                "name": count.name,
                "kind": kind,
                "exact": count.exact,
                "basis": basis,
                "tokens": tokens,
                "off": float("nan"),
                "microseconds": taken,
                "network": kind == "endpoint",
                "costs": costs,
                "use": use,
            }
        )
    table = pd.DataFrame(rows)
    # The reference: a provider's count, otherwise an exact or a reconstructed count.
    for is_reference in (table["kind"] == "endpoint", table["exact"], table["basis"] != "estimate"):
        if is_reference.any():
            reference = table["tokens"][is_reference].iloc[0]
            if reference:
                table["off"] = table["tokens"] / reference - 1
            break
    return table


Given = Counter | Count | Model | str
_REPEATS = 1_000
_NORMAL = 1.96  # 95 % of a normal distribution lies within so many standard deviations


def compare(
    counters: Given | Sequence[Given],
    corpus: AnyTexts,
    exact: Given = "o200k_base",
) -> pd.DataFrame:
    """Count the tokens of every document with every counter.

    Parameters
    ----------
    counters : Counter, callable or str, or a sequence of these
        One or several counters. Each is a counter, a model, a function that counts the tokens in a text, or a name.
    corpus : Corpus, str, Path, DataFrame or iterable
        The documents, or texts in any form that :func:`budgetkit.corpora.corpus_of` takes. Empty texts are skipped.
    exact : Counter or str
        The counter whose counts are the reference.

    Returns
    -------
    DataFrame
        One row for each document and counter, with the columns class, language, source, document, characters, counter,
        exact and estimate (in tokens), and error (as a share of exact; negative if the count is too low).

    Examples
    --------
    >>> compare(["chars/4", "words/0.75"], ["Hello world"])[["counter", "exact", "estimate", "error"]].to_dict("list")
    {'counter': ['chars/4', 'words/0.75'], 'exact': [2, 2], 'estimate': [2, 2], 'error': [0.0, 0.0]}
    """
    if isinstance(counters, str | Model) or callable(counters):
        counters = [counters]
    if not isinstance(counters, Iterable):
        raise TypeError(
            f"Invalid counters {brief(counters)}. Pass a name, a model, a function, or a list of these."
        )
    ways = [counter(way) for way in (exact, *counters)]
    names = [way.name for way in ways[1:]]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(
            f"Duplicate counters {quoted(dict.fromkeys(twice))}. Pass each counter once."
        )
    documents = corpus_of(corpus).where(lambda document: bool(document.text))
    columns = [way.many(documents.texts) for way in ways]
    about = documents.frame().assign(counter="", exact=columns[0], estimate=0)
    tables = [
        about.assign(counter=name, estimate=estimates)
        for name, estimates in zip(names, columns[1:], strict=True)
    ]
    table = pd.concat(tables or [about.iloc[:0]], ignore_index=True)
    return table.assign(error=table["estimate"] / table["exact"] - 1)


def summary(
    errors: pd.DataFrame, by: Sequence[str] = ("counter", "class"), seed: int = 0
) -> pd.DataFrame:
    """Summarise errors by group, with a confidence interval for each mean.

    Parameters
    ----------
    errors : DataFrame
        Errors from :func:`compare`.
    by : sequence of str
        Columns to group by.
    seed : int
        Seed for resampling the sources.

    Returns
    -------
    DataFrame
        One row for each group, with the columns of `by`, n and sources (int64, numbers of documents and of sources),
        bias (mean signed error), mape (mean absolute error), mape_low and mape_high (95 % interval of mape), p5, p50
        and p95 (quantiles of the signed error; p5 and p95 need at least 19 documents) and worst (the signed error of
        the largest absolute value). The interval comes from resampling whole sources, because texts of one source are
        alike. A document without a source is its own source. If there are fewer than six sources, each class in each
        language within a source counts as a source; if there are still fewer than six, the interval is missing.

    Examples
    --------
    >>> errors = pd.DataFrame({"counter": ["a"] * 3, "error": [-0.1, 0.0, 0.4]})
    >>> summary(errors, ["counter"])[["n", "bias", "worst"]].round(2).to_dict("list")
    {'n': [3], 'bias': [0.1], 'worst': [0.4]}
    """
    random = np.random.default_rng(seed)
    groups = errors.groupby(list(by), sort=True, observed=True)
    rows = [dict(zip(by, key, strict=True)) | _described(group, random) for key, group in groups]
    return pd.DataFrame(rows)


def _described(errors: pd.DataFrame, random: np.random.Generator) -> dict[str, float]:
    error = errors["error"].to_numpy(float)
    size = np.abs(error)
    sources = places_by_source(errors)

    # The sum and the number of each source's errors, so that resampling only adds up sums.
    sums = np.array([size[places].sum() for places in sources])
    numbers = np.array([len(places) for places in sources])
    drawn = random.integers(0, len(sources), (_REPEATS, len(sources)))
    means = sums[drawn].sum(axis=1) / numbers[drawn].sum(axis=1)
    low, high = interval_of(means, float(size.mean()), len(sources))

    p5, p50, p95 = np.quantile(error, (0.05, 0.5, 0.95))
    if len(error) < needed(0.05):
        p5 = p95 = float("nan")
    return {
        "n": len(error),
        "sources": len(sources),
        "bias": error.mean(),
        "mape": size.mean(),
        "mape_low": float(np.maximum(0.0, low)),
        "mape_high": high,
        "p5": p5,
        "p50": p50,
        "p95": p95,
        "worst": error[size.argmax()],
    }


def places_by_source(errors: pd.DataFrame) -> list[Ints]:
    """Return the row numbers of each source.

    If there are fewer than six sources, each class in each language within a source counts as a source. If there is
    no column "source", each row counts as a source.

    Examples
    --------
    >>> [places.tolist() for places in places_by_source(pd.DataFrame({"source": ["a", "b", "a"]}))]
    [[0, 2], [1]]
    """
    if "source" not in errors:
        return [np.array([place]) for place in range(len(errors))]
    number: Any = pd.factorize(errors["source"])[0]
    kinds = [name for name in ("class", "language") if name in errors]
    if kinds and number.max() + 1 < FEWEST_FOR_A_GAIN:
        number = errors.groupby(["source", *kinds], sort=False, observed=True).ngroup().to_numpy()
    return [np.flatnonzero(number == source) for source in range(number.max() + 1)]


def resampled(
    errors: pd.DataFrame,
    statistic: Callable[[pd.DataFrame], Any],
    repeats: int,
    random: np.random.Generator,
) -> tuple[Floats, Floats, Floats]:
    """Return statistics of errors, with 95 % confidence intervals from resampled sources."""
    sources = places_by_source(errors)
    samples = (
        np.concatenate([sources[place] for place in random.integers(0, len(sources), len(sources))])
        for _ in range(repeats)
    )
    repeated = np.array([statistic(errors.iloc[sample]) for sample in samples])
    measured = np.asarray(statistic(errors))
    return measured, *interval_of(repeated, measured, len(sources))


def interval_of(repeated: Floats, measured: Any, sources: int) -> tuple[Any, Any]:
    """Return the 95 % confidence interval of a number, from resampled sources.

    The interval is widened for two reasons: resampled sources vary less than new sources, by a factor of
    ``sqrt((n - 1) / n)``, and a few sources show little of the spread of all sources (Student's t). If there are
    fewer than six sources, both ends are NaN.
    """
    if sources < FEWEST_FOR_A_GAIN:
        return measured * np.nan, measured * np.nan
    freedom = sources - 1
    student = (_NORMAL**3 + _NORMAL) / (4 * freedom)
    student += (5 * _NORMAL**5 + 16 * _NORMAL**3 + 3 * _NORMAL) / (96 * freedom**2)
    wider = (1 + student / _NORMAL) * (sources / freedom) ** 0.5
    low, high = np.quantile(repeated, (0.025, 0.975), axis=0)
    return measured + wider * (low - measured), measured + wider * (high - measured)


_LONGEST_TOKEN = 128  # bytes, in o200k_base and in cl100k_base; a test measures it
_WORD_END = re.compile(r"\S ")
# Half a surrogate pair: its replacement, U+FFFD, has three bytes, but `replace` writes one.
_HALF = re.compile("[\ud800-\udfff]")


def bounds(text: str) -> tuple[int, int]:
    """Return the fewest and the most tokens that a text can have.

    The text is not tokenised. A byte-level token has at least one byte, so a text has at most as many tokens as bytes
    in UTF-8. The minimum applies to o200k_base and cl100k_base only, where a token has at most 128 bytes and ends
    before each space that follows a word.

    Parameters
    ----------
    text : str
        The text to check.

    Returns
    -------
    tuple of int
        Minimum and maximum number of tokens.

    Examples
    --------
    >>> bounds("Hello world")
    (2, 11)
    """
    size = len(text.encode("utf-8", "replace"))
    words = len(_WORD_END.findall(text)) + 1 if text else 0
    most = size if text.isascii() else size + 2 * len(_HALF.findall(text))
    return max(words, -(-size // _LONGEST_TOKEN)), most


def certify(text: str, limit: int) -> Literal["fits", "too long", "count"]:
    """Check whether a text fits a limit, without tokenising the text.

    Parameters
    ----------
    text : str
        The text to check.
    limit : int
        Maximum number of tokens that the text may have.

    Returns
    -------
    {"fits", "too long", "count"}
        Whether the text fits the limit; "count" if the bounds on its tokens cannot decide.

    Examples
    --------
    >>> [certify("Hello world", limit) for limit in (1, 5, 11)]
    ['too long', 'count', 'fits']
    """
    fewest, most = bounds(text)
    if most <= limit:
        return "fits"
    return "too long" if fewest > limit else "count"
