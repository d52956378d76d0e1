"""Buffers: the share of a window to reserve for a counter's errors.

    ratio  = (sum of exact) / (sum of estimates)        of the usable part, filled with documents
    usable = window / (quantile of the ratio at 1 - risk)
    safety = 1 - usable / window

For example, a window of 8,192 tokens that is filled with English prose by chars/4 contains 0.9 to 1.1 times as many
actual tokens, as measured in 40 sources. If at most one of 20 windows of the next source may overflow, the ratio is
1.1, and the share to reserve is `1 - 1 / 1.1`, or 9 %. If no kind of text is given, the share is for windows of all
kinds, with a warning. If a kind is given, the sources of this kind determine the share, which is then about half as
large.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from budgetkit.budget import Budget, Reserve, Share, brief, check_tokens, quoted
from budgetkit.lab.accuracy.kind_windows import KindWindows, Resampled, Sources, has_sources
from budgetkit.lab.accuracy.kinds import CLASS, LANGUAGE, cells_of, labels_of, missing_kinds
from budgetkit.plan import Floats
from budgetkit.promise import lacking, needed

MIXED = "mixed"  # the mix with documents of all kinds in a window
KINDS = (CLASS, LANGUAGE)  # a window has one class or one language by default, whichever needs more
_STEPS = 12  # most rounds until the usable part and the ratio agree
_NEAR = 1e-4
#: Minimum sources for windows of one kind, as needed for a risk of 5 %; a smaller risk causes a warning.
FEWEST_TO_SPREAD = needed(0.05)


Mix = Resampled | KindWindows


@dataclass(frozen=True)
class FilledWindows:
    """Windows of one size, filled with documents at random."""

    window: int
    corpora: Sequence[Mix]
    errors: pd.DataFrame = field(compare=False, repr=False)
    mix: str | None
    wanted: tuple[str, ...] = ()  # the kinds of the given texts
    seen: int = 0  # number of sources, if kinds were named
    _known: dict[tuple[Mix, float], Floats] = field(default_factory=dict, compare=False, repr=False)

    def ratios(self, mix: Mix, size: float) -> Floats:
        """Return the ratios of exact to estimated tokens in windows.

        The windows have `size` estimated tokens.

        Each row of the result contains the windows of one resample.
        """
        if (mix, size) not in self._known:
            self._known[mix, size] = mix.ratios(size)
        return self._known[mix, size]

    def share(self, risk: float) -> float:
        """Return the smallest reserve that limits overflow to a risk.

        The reserve is a share of the window; `risk` is the accepted probability that a window overflows.

        Examples
        --------
        >>> errors = pd.DataFrame({"exact": [125], "estimate": [100]})
        >>> filled_windows(errors, 1_000).share(0.05)
        0.2
        """
        return self._share_of(self.worst(risk), risk)

    def interval(self, risk: float) -> tuple[float, float]:
        """Return the 95 % interval of the share to reserve."""
        mix = self.worst(risk)
        share = self._share_of(mix, risk)
        ratio = _quantile(self.ratios(mix, self.window * (1 - share)), mix.allowed(risk), axis=1)
        low, high = np.quantile(1 - 1 / np.maximum(ratio, 1), (0.025, 0.975)).tolist()
        return min(low, share), max(high, share)

    def worst(self, risk: float) -> Mix:
        """Return the mix that needs the largest share."""
        return max(self.corpora, key=lambda mix: self._share_of(mix, risk))

    def at(self, risk: float) -> Floats:
        """Return the ratios of windows without a reserve in the worst mix.

        The worst mix is the one that needs the largest share.
        """
        return self.ratios(self.worst(risk), float(self.window)).ravel()

    def read_off(self, risk: float) -> Buffer:
        """Return the buffer of these windows for a given risk.

        Examples
        --------
        >>> errors = pd.DataFrame({"counter": "mine", "exact": [110, 100, 90] * 400, "estimate": [100] * 1_200})
        >>> filled = filled_windows(errors, 100)
        >>> [filled.read_off(risk).share.__round__(3) for risk in (0.05, 0.5)]
        [0.091, 0.0]
        """
        needed(risk)  # raises if the risk is not between 0 and 1
        errors = self.errors
        share = self.share(risk)
        low, high = self.interval(risk)
        # The fewest sources of any known class, or 0 if the classes are unknown.
        sources = min(mix.sources for mix in self.corpora)
        seen = labels_of(errors)
        labels = [label for mix in self.corpora for label in mix.label] if sources else seen
        buffer = Buffer(
            share=share,
            low=low,
            high=high,
            risk=risk,
            window=self.window,
            documents=len(errors),
            counter=str(errors["counter"].iloc[0]),
            kinds=tuple(dict.fromkeys(labels)),
            needed=self.worst(risk).needed(self.window * (1 - share), risk),
        )
        if sources:
            # For known kinds, the sources of the class count, not the documents.
            return replace(buffer, warning=lacking(sources, risk, "sources of its class"))
        doubt = self._doubt(risk)
        if not doubt and not has_sources(errors):
            doubt = lacking(len(errors), risk, "documents")
        reasons = [doubt]
        if self.mix is not None or missing_kinds(self.wanted, seen):
            reasons.append(buffer.lacks(self.wanted))
        elif self.wanted:
            reasons.append(lacking(self.seen, risk, "sources"))
        elif has_sources(errors):
            reasons.append(lacking(errors["source"].nunique(), risk, "sources"))
        if self.mix is None and CLASS in errors and errors[CLASS].nunique() > 1:
            reasons.append(WORST)
        return replace(buffer, warning="; ".join(filter(None, reasons)))

    def _doubt(self, risk: float) -> str:
        """Return a warning if there are too few documents, or ""."""
        documents = len(self.errors)
        what = "documents"
        in_window = round(self.window / max(self.errors["estimate"].mean(), 1))
        if self.mix not in (None, MIXED):
            documents = self.errors[self.mix].nunique()
            what = f"values of {brief(self.mix)}"
            in_window = 1
        needed = max(30, math.ceil(10 / risk)) if in_window < 5 else 30
        if documents >= needed:
            return ""
        return f"too few {what} for a risk of {risk:g}: {documents} of {needed} needed; add texts"

    def _share_of(self, mix: Mix, risk: float) -> float:
        """Iterate to find the share to reserve in windows of one mix."""
        allowed = mix.allowed(risk)
        share = 0.0
        for _ in range(_STEPS):
            before = share
            ratio = float(_quantile(self.ratios(mix, self.window * (1 - share)), allowed))
            share = max(share, 1 - 1 / max(ratio, 1))
            if share - before < _NEAR:
                break
        return round(share, 12)


def _quantile(ratio: Floats, risk: float, axis: int | None = None) -> Floats:
    return np.asarray(np.quantile(ratio, 1 - risk, axis=axis, method="higher"))


def filled_windows(
    errors: pd.DataFrame,
    window: int,
    window_mix: str | None = None,
    seed: int = 0,
    kinds: Sequence[str] = (),
) -> FilledWindows:
    """Draw windows of documents at random.

    The windows predict the next source of each given kind if `window_mix` is not given, the errors include documents of
    each kind, and the errors come from at least 19 sources.

    Examples
    --------
    >>> errors = pd.DataFrame({"exact": [110, 100, 90] * 400, "estimate": [100] * 1_200})
    >>> filled_windows(errors, window=100).share(0.05).__round__(3)
    0.091
    """
    try:
        is_valid = bool((errors[["exact", "estimate"]] >= 0).all(axis=None))
    except (KeyError, TypeError):
        is_valid = False
    if not is_valid:
        raise ValueError(
            "Invalid errors. Pass the columns exact and estimate, with a number of tokens in each row, 0 or more."
        )
    # Columns with one value per window; None mixes all documents.
    columns: Sequence[str | None] = [column for column in KINDS if column in errors] or [None]
    if window_mix is not None:
        columns = [None if window_mix == MIXED else window_mix]
    of_any_kind = FilledWindows(
        window=window,
        corpora=[Resampled.of(errors, column, seed) for column in columns],
        errors=errors,
        mix=window_mix,
        wanted=tuple(dict.fromkeys(kinds)),
    )
    cells = cells_of(errors, kinds) if window_mix is None else None
    if cells is None:
        return of_any_kind

    names, labels = cells
    groups = Sources.of(errors, names)
    seen = len(np.unique(groups.sources))
    if seen < FEWEST_TO_SPREAD:
        return replace(of_any_kind, seen=seen)
    corpora = [KindWindows(groups, groups.labels.index(label), seed) for label in labels]
    return replace(of_any_kind, corpora=corpora, seen=seen)


#: At an accepted risk of 5 % over all windows, 12 % of the CJK windows overflowed, and 34 % of those with odd text.
WORST = "the risk is an average, and windows of the worst kind of text may overflow more often"


@dataclass(frozen=True)
class Buffer:
    """A safety buffer for an accepted risk.

    Parameters
    ----------
    share : float
        Smallest share of the window to reserve.
    low, high : float
        95 % interval of the share, from resampling kinds, sources and documents.
    risk : float
        Accepted probability of an overflow.
    window : int
        Size of the window, in tokens.
    documents : int
        Number of documents from which the buffer was computed.
    counter : str
        Name of the counter whose errors the buffer covers.
    warning : str
        Reasons why the buffer is unreliable; "" if there are none.
    kinds : tuple of str
        Classes and languages covered by the buffer.
    needed : float
        Share to reserve if only the observed texts of the worst of these kinds occur.

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
    kinds: tuple[str, ...] = ()
    needed: float = float("nan")

    def lacks(self, kinds: Iterable[str]) -> str:
        """Describe a conversation's kinds of text that the buffer does not cover.

        Parameters
        ----------
        kinds : iterable of str
            Classes or languages of the conversation's texts.

        Returns
        -------
        str
            A clause, or "" if all kinds are covered.

        Examples
        --------
        >>> Buffer(0.05, 0.04, 0.06, 0.05, 8_192, 500, "chars/4", kinds=("code", "prose")).lacks(["log", "prose"])
        "based on 'code', 'prose' only, so it promises nothing about 'log' in the conversation; add such texts"
        """
        missing = missing_kinds(kinds, self.kinds)
        if not missing:
            return ""
        return (
            f"based on {quoted(self.kinds)} only, so it promises nothing about {quoted(missing)} in the "
            "conversation; add such texts"
        )

    @property
    def reserve(self) -> Reserve:
        """The buffer as a safety reserve, rounded up to a thousandth."""
        return Reserve("safety", Share(math.ceil(round(self.share * 1_000, 6)) / 1_000))


def buffer_for(
    errors: pd.DataFrame,
    window: int,
    risk: float = 0.05,
    window_mix: str | None = None,
    seed: int = 0,
    kinds: Iterable[str] = (),
) -> Buffer:
    """Find the smallest safety share for an accepted risk of overflow.

    The windows are filled from resampled sources, so the guarantee covers unseen texts of the same kinds.

    Parameters
    ----------
    errors : DataFrame
        The errors of one counter, from :func:`budgetkit.lab.accuracy.compare`.
    window : int
        Size of the window, in tokens.
    risk : float
        Accepted probability of an overflow, between 0 and 1.
    window_mix : str, optional
        The texts that fill a window. Default: texts of one class or of one language, as in one conversation or project,
        whichever needs the larger buffer. A column name, such as "source", stands for texts with one value in that
        column, and "mixed" for documents of all kinds, whose errors cancel most.
    seed : int
        Seed for drawing the windows.
    kinds : iterable of str
        Classes or languages of your texts, by any usual name, or the result of :func:`budgetkit.lab.accuracy.kinds_of`.
        If the errors include documents of each kind and come from at least 19 sources, the buffer covers only the
        next source of these kinds and is usually smaller than a buffer for all kinds. Otherwise, the buffer covers
        windows of all kinds, with a warning.

    Returns
    -------
    Buffer
        The buffer with its interval and the kinds that it covers, and with a warning if there are too few documents, or
        only documents of other kinds.

    Raises
    ------
    ValueError
        If the errors are not of exactly one counter, a number of tokens is missing or negative, the risk is not between
        0 and 1, or the column does not exist.

    Examples
    --------
    >>> rows = {"counter": "mine", "exact": [110, 100, 90] * 400, "estimate": [100] * 1_200}
    >>> buffer_for(pd.DataFrame(rows), window=100, risk=0.05).share.__round__(3)
    0.091
    """
    names = errors["counter"].unique()
    if len(names) != 1:
        raise ValueError(
            f"The errors must be of one counter, not of [{quoted(names)}]. Pass the rows of one counter."
        )
    check_tokens("window", window)
    _check_mix(errors, window_mix)
    return filled_windows(errors, window, window_mix, seed, list(kinds)).read_off(risk)


def _check_mix(errors: pd.DataFrame, window_mix: str | None) -> None:
    if window_mix not in (None, MIXED) and window_mix not in errors:
        raise ValueError(
            f"Unknown window_mix {brief(window_mix)}. Choose 'mixed' or a column: {quoted(map(str, errors.columns))}."
        )


def consequences(
    budgets: Budget | Mapping[str, Budget],
    errors: pd.DataFrame,
    window_mix: str | None = None,
    seed: int = 0,
    kinds: Iterable[str] = (),
) -> pd.DataFrame:
    """Fill a budget's window according to each counter, and measure the overflow.

    The window is filled until the usable part is full according to the counter.

    Parameters
    ----------
    budgets : Budget or mapping of str to Budget
        One budget, or a mapping of names to several budgets. A reserve named "safety" is used up before an overflow.
    errors : DataFrame
        Errors from :func:`budgetkit.lab.accuracy.compare`, of one counter or several.
    window_mix : str, optional
        As in :func:`buffer_for`; default: texts of one class or one language, whichever overflows more often.
    seed : int
        Seed for drawing the windows.
    kinds : iterable of str
        Classes or languages of your texts, as in :func:`buffer_for`.

    Returns
    -------
    DataFrame
        One row for each budget and counter, with the columns budget, counter, documents (number of documents), window,
        usable, safety, filled (mean of the actual tokens), wasted (mean unused tokens of the usable part), overflow
        (probability of an overflow), overflow_low and overflow_high (95 % interval of this probability for other
        sources) and over (mean excess of an overflow). Sizes are in tokens.

    Raises
    ------
    ValueError
        If `window_mix` is not a column of the errors, or a number of tokens is missing or negative.

    Examples
    --------
    >>> rows = {"counter": "mine", "exact": [50] * 9, "estimate": [100] * 9}
    >>> consequences(Budget(1_000), pd.DataFrame(rows))[["filled", "wasted", "overflow"]].to_dict("list")
    {'filled': [500.0], 'wasted': [500.0], 'overflow': [0.0]}
    """
    _check_mix(errors, window_mix)
    kinds = list(kinds)
    named = {budgets.name or "budget": budgets} if isinstance(budgets, Budget) else budgets
    rows = []
    for budget_name, budget in named.items():
        for counter_name, group in errors.groupby("counter", observed=True):
            filled = filled_windows(group, max(budget.usable, 1), window_mix, seed, kinds)
            outcomes = [
                _outcome(budget, filled.ratios(mix, filled.window)) for mix in filled.corpora
            ]
            worst = max(outcomes, key=lambda outcome: (outcome["overflow"], outcome["filled"]))
            row = {"budget": budget_name, "counter": counter_name, "documents": len(group)}
            rows.append(row | worst)
    return pd.DataFrame(rows)


def _outcome(budget: Budget, ratio: Floats) -> dict[str, float]:
    usable = max(budget.usable, 0)
    safety = budget.sizes.get("safety", 0)
    used = usable * ratio
    over = used - usable - safety
    sizes = {"window": budget.window, "usable": usable, "safety": safety, "filled": used.mean()}
    low, high = np.quantile((over > 0).mean(axis=1), (0.025, 0.975))
    above = over[over > 0].mean() if (over > 0).any() else 0.0
    return sizes | {
        "wasted": np.maximum(usable - used, 0).mean(),
        "overflow": (over > 0).mean(),
        "overflow_low": low,
        "overflow_high": high,
        "over": above,
    }
