"""How wrong a count is, on what, and what that costs: errors, buffers, overflows.

    error  = estimate / exact - 1                       of a document
    ratio  = sum of exact / sum of estimates            of a window filled with documents
    safety = 1 - 1 / (quantile of the ratio at 1 - risk)

A window that is filled until the estimate says it is full holds `ratio` times as many tokens. Errors of many
documents cancel, so the buffer belongs to the window, not to the document.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from budgetkit.amounts import Share, check_tokens
from budgetkit.budget import Budget
from budgetkit.corpora.document import Corpus
from budgetkit.counters import Counter, counter
from budgetkit.filling import FilledWindows, filled_windows, ratios
from budgetkit.lines import Reserve

__all__ = ["Buffer", "bounds", "buffer_for", "certify", "compare", "consequences", "read_off", "summary"]

Floats = npt.NDArray[np.float64]
_LONGEST_TOKEN: Final = 128  # bytes, in o200k_base and in cl100k_base; a test measures it
_WORD_END: Final = re.compile(r"\S ")


def compare(
    counters: Sequence[Counter | str], corpus: Corpus, exact: Counter | str = "o200k_base", progress: bool = False
) -> pd.DataFrame:
    """Count every document with every counter.

    Parameters
    ----------
    counters : sequence of Counter or str
        Counters or their names.
    corpus : Corpus
        The documents; those that are empty are left out.
    exact : Counter or str
        The counter that is right.
    progress : bool
        Whether to show a bar.

    Returns
    -------
    DataFrame
        One row a document and counter: class, language, source, document, characters, counter, exact and
        estimate in tokens, error as a share of exact (below 0: counted too few).

    Examples
    --------
    >>> from budgetkit.corpora import Corpus, Document
    >>> corpus = Corpus((Document("Hello world", "prose", "en", "mine", "first"),))
    >>> compare(["chars/4", "words/0.75"], corpus)[["counter", "exact", "estimate", "error"]].to_dict("list")
    {'counter': ['chars/4', 'words/0.75'], 'exact': [2, 2], 'estimate': [2, 2], 'error': [0.0, 0.0]}
    """
    from tqdm.auto import tqdm

    made = [counter(each) if isinstance(each, str) else each for each in (exact, *counters)]
    kept = corpus.where(lambda document: bool(document.text))
    columns = []
    with ThreadPoolExecutor(2) as threads, tqdm(total=len(made), disable=not progress, desc="counters") as bar:
        for each in made:
            columns.append(_counted(each, kept.texts, threads))
            bar.update()
    about = kept.frame()
    tables = [
        about.assign(counter=c.name, exact=columns[0], estimate=n) for c, n in zip(made[1:], columns[1:], strict=True)
    ]
    found = pd.concat(tables, ignore_index=True) if tables else about.assign(counter="", exact=0, estimate=0)
    return found.assign(error=found["estimate"] / found["exact"] - 1)


def _counted(each: Counter, texts: list[str], threads: ThreadPoolExecutor) -> list[int]:
    """Count in two halves; tiktoken and numpy let two threads work at once."""
    middle = _middle(texts)
    first, second = threads.map(each.many, (texts[:middle], texts[middle:]))
    return [*first, *second]


def _middle(texts: list[str]) -> int:
    sizes = np.cumsum([len(text) for text in texts])
    return int(np.searchsorted(sizes, sizes[-1] / 2)) if len(texts) else 0


def summary(errors: pd.DataFrame, by: Sequence[str] = ("counter", "class"), seed: int = 0) -> pd.DataFrame:
    """Summarise errors by group, each mean with a bootstrap interval.

    Parameters
    ----------
    errors : DataFrame
        What :func:`compare` returns.
    by : sequence of str
        Columns that make a group.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        One row a group: n, bias (mean signed error), mape (mean absolute error) and its 95 % interval
        mape_low, mape_high, the quantiles p5, p50, p95 of the signed error, and the worst error.

    Examples
    --------
    >>> errors = pd.DataFrame({"counter": ["a"] * 3, "error": [-0.1, 0.0, 0.4]})
    >>> summary(errors, ["counter"])[["n", "bias", "worst"]].round(2).to_dict("list")
    {'n': [3], 'bias': [0.1], 'worst': [0.4]}
    """
    random = np.random.default_rng(seed)
    groups = errors.groupby(list(by), sort=True, observed=True)["error"]
    rows = [dict(zip(by, _key(key), strict=True)) | _described(e.to_numpy(float), random) for key, e in groups]
    return pd.DataFrame(rows)


def _key(key: object) -> tuple[object, ...]:
    return key if isinstance(key, tuple) else (key,)


def _described(error: Floats, random: np.random.Generator) -> dict[str, float]:
    size = np.abs(error)
    repeated = size[random.integers(0, len(size), (1_000, len(size)))].mean(axis=1)
    low, high = np.quantile(repeated, (0.025, 0.975))
    p5, p50, p95 = np.quantile(error, (0.05, 0.5, 0.95))
    shares = {"bias": error.mean(), "mape": size.mean(), "mape_low": low, "mape_high": high}
    return {"n": len(error)} | shares | {"p5": p5, "p50": p50, "p95": p95, "worst": error[size.argmax()]}


@dataclass(frozen=True, slots=True)
class Buffer:
    """A safety buffer that a risk asks for.

    Parameters
    ----------
    share : float
        Smallest share of the window to hold back.
    low, high : float
        Its 95 % interval, from resampling the documents.
    risk : float
        Chance of an overflow that was accepted.
    window : int
        In tokens.
    documents : int
        On how many it rests.
    counter : str
        The counter it is for.
    warning : str
        Why it cannot be relied on; empty if it can.

    Examples
    --------
    >>> Buffer(0.0512, 0.04, 0.06, 0.05, 8_192, 500, "chars/4").reserve
    Reserve('safety', Share(0.052))
    """

    share: float
    low: float
    high: float
    risk: float
    window: int
    documents: int
    counter: str
    warning: str = ""

    @property
    def reserve(self) -> Reserve:
        """The buffer as the safety reserve of a budget, rounded up to a thousandth of the window."""
        return Reserve("safety", Share(math.ceil(round(self.share * 1_000, 6)) / 1_000))


def buffer_for(
    errors: pd.DataFrame, window: int, risk: float = 0.05, together: str | None = None, seed: int = 0
) -> Buffer:
    """Find the smallest safety share under which a window overflows with at most that chance.

    Parameters
    ----------
    errors : DataFrame
        What :func:`compare` returns, of one counter.
    window : int
        In tokens.
    risk : float
        Accepted chance of an overflow, between 0 and 1.
    together : str, optional
        A column, such as "class" or "source": every window is filled from one value of it, as a window of one
        conversation or project is. By default documents of all kinds mix, and their errors cancel most.
    seed : int
        Of the random windows.

    Returns
    -------
    Buffer
        With its interval, and a warning if the documents are too few to say.

    Raises
    ------
    ValueError
        If the errors are of several counters or none, or the risk is not between 0 and 1.

    Examples
    --------
    >>> rows = {"counter": "mine", "exact": [110, 100, 90] * 40, "estimate": [100] * 120}
    >>> buffer_for(pd.DataFrame(rows), window=100, risk=0.05).share.__round__(3)
    0.091
    """
    if not 0 < risk < 1:
        raise ValueError(f"a risk of {risk!r}; a risk is a chance between 0 and 1; give 0.05 for one window in twenty")
    names = errors["counter"].unique()
    if len(names) != 1:
        raise ValueError(f"errors of {len(names)} counters ({', '.join(names)}); a buffer is for one; choose its rows")
    check_tokens("window", window)
    filled = filled_windows(errors, window, together, seed)
    return read_off(filled, errors, window, risk, together)


def read_off(
    filled: FilledWindows, errors: pd.DataFrame, window: int, risk: float, together: str | None = None
) -> Buffer:
    """Read the buffer of a risk off windows that are filled already; see :func:`buffer_for`.

    Parameters
    ----------
    filled : FilledWindows
        Filled with these errors, this window and `together`.
    errors, window, risk, together
        As in :func:`buffer_for`.

    Returns
    -------
    Buffer
        The same that :func:`buffer_for` finds.

    Raises
    ------
    ValueError
        If the risk is not between 0 and 1.

    Examples
    --------
    >>> errors = pd.DataFrame({"counter": "mine", "exact": [110, 100, 90] * 40, "estimate": [100] * 120})
    >>> filled = filled_windows(errors, 100)
    >>> [read_off(filled, errors, 100, risk).share.__round__(3) for risk in (0.05, 0.5)]
    [0.091, 0.0]
    """
    if not 0 < risk < 1:
        raise ValueError(f"a risk of {risk!r}; a risk is a chance between 0 and 1; give 0.05 for one window in twenty")
    warning = _doubt(errors, window, risk, together)
    name = str(errors["counter"].iloc[0])
    return Buffer(filled.share(risk), *filled.interval(risk), risk, window, len(errors), name, warning)


def _doubt(errors: pd.DataFrame, window: int, risk: float, together: str | None) -> str:
    """Say when documents are too few: a tail needs some ten cases beyond it, a sum of many at least thirty."""
    n = len(errors) if together is None else errors[together].nunique()
    in_window = 1 if together else max(1, round(window / max(errors["estimate"].mean(), 1)))
    needed = max(30, math.ceil(10 / risk)) if in_window < 5 else 30
    what = "documents" if together is None else f"values of {together!r}"
    return "" if n >= needed else f"{n} {what} are too few for a risk of {risk:g}; {needed} are needed; add texts"


def consequences(
    budgets: Budget | Mapping[str, Budget], errors: pd.DataFrame, together: str | None = None, seed: int = 0
) -> pd.DataFrame:
    """Say what counting with each counter does to a budget's window.

    The window is filled until the counter says that the usable part is full.

    Parameters
    ----------
    budgets : Budget or mapping of str to Budget
        One budget, or several by name. A reserve named "safety" may be used up before anything overflows.
    errors : DataFrame
        What :func:`compare` returns, of one counter or several.
    together : str, optional
        As in :func:`buffer_for`.
    seed : int
        Of the random windows.

    Returns
    -------
    DataFrame
        One row a budget and counter: window, usable, safety and filled (the mean of what is really used) in
        tokens, wasted (mean tokens of the usable part that stay empty), overflow (the chance of one),
        over (mean tokens above, when there is one).

    Examples
    --------
    >>> rows = {"counter": "mine", "exact": [50] * 9, "estimate": [100] * 9}
    >>> consequences(Budget(1_000), pd.DataFrame(rows))[["filled", "wasted", "overflow"]].to_dict("list")
    {'filled': [500.0], 'wasted': [500.0], 'overflow': [0.0]}
    """
    named = {budgets.name or "budget": budgets} if isinstance(budgets, Budget) else budgets
    rows = []
    for budget_name, budget in named.items():
        for counter_name, group in errors.groupby("counter", observed=True):
            filled = ratios(group, max(budget.usable, 1), together, seed)
            rows.append({"budget": budget_name, "counter": counter_name} | _outcome(budget, filled))
    return pd.DataFrame(rows)


def _outcome(budget: Budget, ratio: Floats) -> dict[str, float]:
    usable, safety = max(budget.usable, 0), budget.sizes.get("safety", 0)
    used = usable * ratio
    over = used - usable - safety
    sizes = {"window": budget.window, "usable": usable, "safety": safety, "filled": used.mean()}
    above = over[over > 0].mean() if (over > 0).any() else 0.0
    return sizes | {"wasted": np.maximum(usable - used, 0).mean(), "overflow": (over > 0).mean(), "over": above}


def bounds(text: str) -> tuple[int, int]:
    """Enclose a text's count without tokenising it, for certain.

    A byte-level token has at least one byte, so tokens <= bytes of UTF-8; it has at most 128 in o200k_base and
    cl100k_base, and in both one ends before every blank that follows a word.

    Parameters
    ----------
    text : str
        Any string.

    Returns
    -------
    tuple of int
        Fewest and most tokens.

    Examples
    --------
    >>> bounds("Hello world")
    (2, 11)
    """
    size = len(text.encode("utf-8", "replace"))
    words = sum(1 for _ in _WORD_END.finditer(text)) + 1 if text else 0
    return max(words, -(-size // _LONGEST_TOKEN)), size + 2 * sum(map(_lone, text)) if not text.isascii() else size


def _lone(character: str) -> bool:
    """Say whether it is half a surrogate pair: mended to U+FFFD, it has three bytes where `replace` writes one."""
    return "\ud800" <= character <= "\udfff"


def certify(text: str, limit: int) -> Literal["fits", "too long", "count"]:
    """Say without tokenising whether a text fits, if that is certain.

    Parameters
    ----------
    text : str
        Any string.
    limit : int
        In tokens.

    Returns
    -------
    {"fits", "too long", "count"}
        "count" where only counting can say.

    Examples
    --------
    >>> [certify("Hello world", limit) for limit in (1, 5, 11)]
    ['too long', 'count', 'fits']
    """
    fewest, most = bounds(text)
    return "fits" if most <= limit else "too long" if fewest > limit else "count"
