"""Forecasts of a conversation's size.

Continuations, called paths, are drawn from the sizes of past turns:

    context(t) = start + pace * (sum of t drawn turn sizes)
    pace       = exp(a normal number with mean 0 and standard deviation spread)
    spread     = 0.7 * sqrt(min(0.36 + 1.2 / n, max(8 v, min(25 v, 0.112))))
    v          = (squared coefficient of variation of the n past turns) / n

For each path, the past turns are resampled, and the turn sizes are drawn from this resample (the bootstrap, applied
twice; B. Efron, 1979).

Turns are drawn independently, which loses trends and lulls. The pace, one number for each path, represents such trends
and lulls. After a few turns, the pace has the spread of conversations in general. After many turns, the spread depends
on how similar the turns are, so that a thousand equal turns predict the next turn. The squared variation of few turns
is shrunk towards 0.6, as if two more turns had been seen. Without the factor 0.7, the spread was too wide for sources
to which it had not been fitted. With this factor, the middle 90 % of paths covered 92 to 100 of 100 conversations,
after 3 to 60 turns (2026-11-26).

The numbers 0.36 and 1.2 were fitted on 2026-11-22 to 152 conversations of at least 6 turns from eight public sources
(chats, retrieval, agents). The numbers 8 and 0.6 were fitted to the same conversations on 2026-11-23. The middle 90 %
of paths then covered 94 to 100 of 100 conversations of seven sources, after a third of the turns or after ten turns.
The numbers 25 and 0.112 account for the drift of even similar turns. With these two numbers, after thirty turns, the
upper end of the band is 1.5 times its lower end (a ratio of 1.5), and the band covers 13 of the 14 long conversations.
Without these numbers, the ratio is 1.3, and the band covers 12 of these conversations.

The eighth source is a session of a coding agent, whose turns come in bursts. No useful band contains such a session,
and :func:`notice` says so. In 41 recorded sessions of four coding agents, the turns of three agents have a median
variation of 150 to 220 % of their mean (2026-11-23). A band with a ratio of 9 covered 63 % of these sessions, and a
band drawn from other sessions, with a ratio of 24, covered 42 %. A few turns do not show such bursts, but other
sessions of the same kind do.

If five or more other conversations of the same kind are known, :func:`pace_beside` estimates the pace and its spread
from them, because a few turns say less about later growth than similar conversations do. If nine or more of these
conversations have more turns than the present one, each of these is predicted from the other conversations, and the
errors of these predictions determine the spread (:mod:`budgetkit.promise`). No fitted numbers are then used. Other
conversations that do not resemble the turns seen are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import check_tokens
from budgetkit.plan import Floats, Ints
from budgetkit.promise import upper

Sizes = Sequence[int] | Ints
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# variance of the logarithm of the pace: a constant part, and a part to divide by the turns seen
_PACE = 0.36
_FEW = 1.2
# factors of v, the variance of the turns seen: see above
_OWN = 8.0
_DRIFT = 25.0
_MOST_DRIFT = 0.112
_PRIOR_TURNS = 2
_PRIOR = 0.6
_OWN_SPREAD = 0.7
_UNLIKE = 3.0  # standard deviations between the mean turn seen and other conversations' means
# coefficient of variation from which turns count as bursts, and the minimum number of turns
_BURST = 1.0
_LEAST_TURNS = 6
_BURSTS = "{} come in bursts: their sizes vary by {:.0f} % of the mean; they are not forecast"
_AGENT = (
    f"turns of agents often come in bursts, which fewer than {_LEAST_TURNS} turns do not show; they are not "
    "forecast"
)
# more requests per turn than this show an agent; chats with customers had four at most
_AGENT_STEPS = 4
# For other conversations, this limit applies to the median of at least three; up to 1.2, forecasts proved right.
_BURST_OF_OTHERS = 1.3
_OTHERS_THAT_BURST = 3
_CHANGE = 0.16  # variance of the logarithm of the pace, if the mean turn is known
_ENOUGH = 5  # other conversations of the kind
# a tenth of a normal distribution lies beyond 1.645 standard deviations
_BAND = 0.1
_NEVER = np.iinfo(np.int64).max
_NORMAL = 1.645


class Pace(NamedTuple):
    """The factor by which later turns differ from past turns.

    The factor is lognormal: `middle` is its median, and `spread` is the standard deviation of its logarithm. If
    `is_whole` is True, the spread includes all differences between similar conversations, so the past turns are not
    resampled.
    """

    middle: float
    spread: float
    is_whole: bool = False


def paths(
    sizes: Sizes,
    turns: int,
    start: int = 0,
    samples: int = 1_000,
    seed: int = 0,
    pace: Pace | None = None,
) -> Ints:
    """Draw the context sizes of possible continuations of a conversation.

    Each row is one continuation, with a column for each later turn. A missing pace is estimated from the past turns.

    Examples
    --------
    >>> paths([100], 3, start=50, samples=2, pace=Pace(1.0, 0.0)).tolist()
    [[150, 250, 350], [150, 250, 350]]
    """
    seen = np.asarray(sizes, "int64")
    drawn, paces = draws(len(seen), turns, samples, seed, pace or own_pace(seen))
    return np.asarray(start + np.rint(np.cumsum(seen[drawn], axis=1) * paces).astype("int64"))


def draws(
    seen: int,
    turns: int,
    samples: int,
    seed: int,
    pace: Pace,
) -> tuple[Ints, Floats]:
    """Draw the past turns that each path repeats, and each path's pace.

    Examples
    --------
    >>> turns, paces = draws(1, 3, samples=2, seed=0, pace=Pace(1.0, 0.0))
    >>> turns.tolist(), paces.tolist()
    ([[0, 0, 0], [0, 0, 0]], [[1.0], [1.0]])
    """
    if not seen:
        raise ValueError("No past turns to draw from. Pass the sizes of at least one turn.")
    random = np.random.default_rng(seed)
    chosen = random.integers(0, seen, size=(check_tokens("samples", samples), turns))
    again = random.integers(0, seen, size=(samples, seen))
    paces = pace.middle * np.exp(random.normal(0, pace.spread, (samples, 1)))
    if pace.is_whole:
        return chosen, paces
    return np.take_along_axis(again, chosen, axis=1), paces


def own_pace(sizes: Sizes) -> Pace:
    """Estimate a conversation's pace from its own turns.

    Examples
    --------
    >>> [round(own_pace([100] * turns)[1], 2) for turns in (1, 10, 1_000)]
    [0.87, 0.23, 0.0]
    """
    seen = max(1, len(sizes))
    variance = _PACE + _FEW / seen
    mean = float(np.mean(sizes)) if len(sizes) else 0.0
    if mean:
        squares = float(((np.asarray(sizes, "float64") / mean - 1) ** 2).sum())
        of_a_turn = (squares + _PRIOR_TURNS * _PRIOR) / (seen - 1 + _PRIOR_TURNS) / seen
        drift = min(_MOST_DRIFT, _DRIFT * of_a_turn)
        variance = min(variance, max(_OWN * of_a_turn, drift))
    return Pace(1.0, _OWN_SPREAD * float(np.sqrt(variance)))


def notice(sizes: Sizes, others: Sequence[Sizes] = (), steps: float = 1) -> str:
    """Return a warning if a forecast is unreliable, otherwise "".

    `steps` is the number of requests per turn, which is large for agents.

    Examples
    --------
    >>> notice([100, 90, 110, 100, 900, 100])
    'turns come in bursts: their sizes vary by 140 % of the mean; they are not forecast'
    >>> notice([100] * 6), notice([5_000] * 6, [[100, 110, 90]] * 5)
    ('', 'the other conversations do not resemble this one and are left out')
    >>> notice([100, 90, 110], steps=10)
    'turns of agents often come in bursts, which fewer than 6 turns do not show; they are not forecast'
    """
    if len(sizes) < _LEAST_TURNS and steps > _AGENT_STEPS:
        return _AGENT
    known = [other for other in others if len(other) > 1]
    is_alike = len(known) < _ENOUGH or not len(sizes) or resembles(sizes, known)
    unlike = "the other conversations do not resemble this one and are left out"
    return bursts_notice(sizes, others) or ("" if is_alike else unlike)


def bursts_notice(sizes: Sizes, others: Sequence[Sizes] = ()) -> str:
    """Return a warning if the turns come in bursts, otherwise "".

    The past turns are judged first, and then the turns of at least three other conversations that resemble this one.

    Examples
    --------
    >>> bursts_notice([10, 9], [[10, 10, 10, 10, 10, 900]] * 3)
    'turns of other conversations come in bursts: their sizes vary by 229 % of the mean; they are not forecast'
    >>> bursts_notice([10, 9], [[10, 10, 10, 10, 10, 900]] * 2)
    ''
    >>> bursts_notice([10, 9], [[10, 20, 10, 20, 10, 20]] * 3)
    ''
    >>> bursts_notice([5_000, 5_100], [[10, 10, 10, 10, 10, 900]] * 3)
    ''
    """
    own = _variation(sizes)
    if own is not None and own > _BURST:
        return _BURSTS.format("turns", 100 * own)

    known = [other for other in others if _variation(other) is not None]
    if len(known) < _OTHERS_THAT_BURST or (len(sizes) and not resembles(sizes, known)):
        return ""
    middle = float(np.median([*map(_variation, known)]))
    if middle <= _BURST_OF_OTHERS:
        return ""
    return _BURSTS.format("turns of other conversations", 100 * middle)


def _variation(sizes: Sizes) -> float | None:
    """Return the coefficient of variation of turn sizes.

    If there are fewer than six turns, or no tokens, return None.
    """
    if len(sizes) < _LEAST_TURNS or sum(sizes) <= 0:
        return None
    return float(np.std(sizes, ddof=1) / np.mean(sizes))


def resembles(sizes: Sizes, others: Sequence[Sizes]) -> bool:
    """Return True if the turns seen resemble the turns of other conversations.

    The logarithms of the mean turn sizes are compared. Only the first n turns of each other conversation count, where
    n is the number of turns seen.

    Examples
    --------
    >>> resembles([120], [[100, 200]] * 5), resembles([9_000], [[100, 200]] * 5)
    (True, False)
    """
    seen = len(sizes)
    means = np.log([max(1.0, float(np.mean(other[:seen]))) for other in others])
    own = np.log(max(1.0, float(np.mean(sizes))))
    return bool(abs(own - means.mean()) <= _UNLIKE * np.sqrt(means.var(ddof=1) + _CHANGE))


def pace_beside(sizes: Sizes, others: Sequence[Sizes]) -> Pace | None:
    """Estimate a conversation's pace from its turns and similar conversations.

    If fewer than five other conversations have at least two turns, if these conversations do not resemble the turns
    seen, or if the turns seen have no tokens, return None.

        middle        = expected / (own mean)
        log(expected) = Z * log(own mean) + (1 - Z) * log(median later mean of the other conversations)
        Z             = n / (n + K)
        K             = (variance within conversations) / (variance between conversations)
        spread        = sqrt((variance between conversations) * (1 - Z) + 0.16)

    Here n is the number of turns seen, a later mean is the mean size of the turns after the first n, and the variances
    are computed from the logarithms of turn sizes.

    If at least nine of the other conversations have more than n turns, each of these is predicted from the remaining
    conversations. The spread is then chosen so that 90 % of these conversations lie within 1.645 standard deviations of
    their predictions.

    The formula is H. Bühlmann's credibility formula ("Experience rating and credibility", 1967), with E. Straub's
    weights of 1970. The constant 0.16 was fitted like the module's numbers 0.36 and 1.2.

    Examples
    --------
    >>> alike = [[100, 200], [100, 200, 200], [120, 200], [80, 200], [100, 200]]
    >>> [round(number, 2) for number in pace_beside([100], alike)[:2]]
    [2.0, 0.4]
    >>> pace_beside([100], alike[:4])
    """
    known = [np.maximum(other, 1) for other in others if len(other) > 1]
    seen = len(sizes)
    own = float(np.mean(sizes)) if len(sizes) else 0.0
    if len(known) < _ENOUGH or not own or not resembles(sizes, known):
        return None
    # The mean variance within the other conversations, and the further variance between their means.
    logs = [np.log(other) for other in known]
    counts = np.array([len(other) for other in logs])
    means = np.array([other.mean() for other in logs])
    squares = sum(float(((other - other.mean()) ** 2).sum()) for other in logs)
    within = squares / float((counts - 1).sum())
    apart = float(counts @ (means - counts @ means / counts.sum()) ** 2)
    apart -= (len(logs) - 1) * within
    between = max(0.0, apart / float(counts.sum() - (counts**2).sum() / counts.sum()))
    unseen = within / (within + seen * between) if within else float(not between)

    # The median of the others' later turns, and the distance of each from its prediction by the remaining ones.
    later = np.array([np.mean(other[seen:] if len(other) > seen else other) for other in known])
    first = np.array([np.mean(other[:seen]) for other in known])
    middles = np.array([np.median(np.delete(later, place)) for place in range(len(known))])
    expected = (1 - unseen) * np.log(first) + unseen * np.log(middles)
    goes_on = counts > seen
    distances = np.abs(np.log(later) - expected)[goes_on]
    middle = float(np.median(later) / own) ** unseen
    farthest = upper(distances.tolist(), _BAND)
    if farthest is None:
        return Pace(middle, float(np.sqrt(between * unseen + _CHANGE)))

    # The turns drawn for a path also vary about their mean, which the distances already include.
    drawn = float(np.var(sizes)) / own**2 / float(np.median(counts[goes_on] - seen))
    spread = float(np.sqrt(max(0.0, (farthest / _NORMAL) ** 2 - drawn)))
    return Pace(middle, spread, is_whole=True)


def straight_line(sizes: Sizes, turns: int, start: int = 0) -> Floats:
    """Return the context sizes if every later turn has the mean size.

    Examples
    --------
    >>> straight_line([100, 300], 3, start=50).tolist()
    [250.0, 450.0, 650.0]
    """
    return start + np.mean(sizes) * np.arange(1, turns + 1)


def fan(drawn: Ints | Floats) -> pd.DataFrame:
    """Return the quantiles of drawn continuations, turn by turn.

    The frame has the columns turn, low (5 %), lower (25 %), median, upper (75 %) and high (95 %).

    Examples
    --------
    >>> fan(paths([100], 2, pace=Pace(1.0, 0.0)))["median"].tolist()
    [100.0, 200.0]
    """
    ends = np.quantile(drawn, QUANTILES, axis=0)
    table = pd.DataFrame(ends.T, columns=["low", "lower", "median", "upper", "high"])
    table.insert(0, "turn", np.arange(1, len(table) + 1))
    return table


def first_over(drawn: Ints | Floats, limits: Mapping[str, float]) -> pd.DataFrame:
    """Return the turns in which drawn continuations first exceed each limit.

    The frame has one row for each limit, with the columns event, limit, reached (share of the continuations that exceed
    the limit), and low, median and high (the 5 %, 50 % and 95 % quantiles of the turn; missing if too few continuations
    exceed the limit).

    Examples
    --------
    >>> first_over(paths([600], 20, pace=Pace(1.0, 0.0)), {"window": 4_900}).values.tolist()
    [['window', 4900.0, 1.0, 9, 9, 9]]
    """
    rows = []
    for event, limit in limits.items():
        passed = drawn > limit
        is_reached = passed.any(axis=1)
        at = np.where(is_reached, passed.argmax(axis=1) + 1, _NEVER)
        turns = np.quantile(at, (0.05, 0.5, 0.95), method="higher").tolist()
        known = [pd.NA if turn == _NEVER else int(turn) for turn in turns]
        rows.append((event, float(limit), float(is_reached.mean()), *known))
    columns = ["event", "limit", "reached", "low", "median", "high"]
    return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns[3:], "Int64"))
