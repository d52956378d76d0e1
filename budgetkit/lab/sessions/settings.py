"""Another setting for a recorded session: one replay a value, with the errors of such a replay beside it.

    error = the larger of two:  the session replayed as it was held, against its bill
                                its program's rule, acting where the program compacted, against its bill

A range is widened by this error, and no difference within it is named. Where the session as it was held, replayed, is
more than 5 % off the bill, no value is called the cheapest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from warnings import catch_warnings

import numpy as np
import pandas as pd

from budgetkit.budget import brief, many
from budgetkit.counters import counter as counter_named
from budgetkit.lab.replay.cost import known_prices
from budgetkit.lab.sessions.causes import LIFE, used_later
from budgetkit.lab.sessions.comparing import (
    UNLIMITED,
    Record,
    ReplaySetup,
    as_held,
    compare_rule,
    cost_of,
    is_near,
    own_trigger,
    recorded_row,
    setup_of,
    with_compaction,
)
from budgetkit.lab.sessions.holding import MeasuredFraming
from budgetkit.lab.sessions.session import NOT_LOGGED, Session
from budgetkit.message import Data
from budgetkit.plan import Floats
from budgetkit.pruning import policy_of
from budgetkit.pruning.policies import System, Trigger
from budgetkit.trace import ints

#: Sizes at which a session might be compacted, in tokens.
THRESHOLDS = (
    50_000,
    75_000,
    100_000,
    150_000,
    200_000,
    250_000,
    400_000,
    600_000,
    1_000_000,
)
#: The newest tokens that might stay beside the summary.
TAILS = (0, 5_000, 10_000, 20_000, 40_000)
#: How long what was written to the prompt cache lives, in seconds.
LIVES = {"5m": 300.0, "1h": 3_600.0}
_AUTOMATIC = ("auto", None)  # compactions that were not made by hand
_RULES = (
    "codex",
    "opencode",
    "gemini-cli",
    "cline",
)  # of programs whose files are named like their rule
_COLUMNS = [
    "value",
    "low",
    "least",
    "most",
    "high",
    "sent",
    "cached",
    "compactions",
    "used_later",
    "overflows",
    "stops",
]


def what_if(
    session: Session,
    *,
    threshold: Iterable[int] | int | None = None,
    keep: Iterable[int] | int | None = None,
    cache_life: Iterable[str] | str | None = None,
    model: Iterable[str] | str | None = None,
    rule: str | None = None,
    window: int | None = None,
) -> pd.DataFrame:
    """Replay a recorded session with other settings: one row a value.

    Parameters
    ----------
    session : Session
        A recorded session.
    threshold : int or sequence of int, optional
        Sizes of a prompt above which it is compacted, in tokens.
    keep : int or sequence of int, optional
        The newest tokens that stay beside the summary.
    cache_life : {"5m", "1h"} or a sequence of them, optional
        How long what was written to the prompt cache lives, where the provider sells both.
    model : str or sequence of str, optional
        Other models: at their prices of today, with the tokens of their tokenizers.
    rule : str, optional
        The system whose compaction is replayed; that of the session's own program when left out.
    window : int, optional
        In tokens; the session's own when left out.

    Returns
    -------
    DataFrame
        One row a value, and one for the session as it was recorded: setting, value, low, least, most, high (in US
        dollars: least and most over the assumptions, low and high with the error of the replay), sent, cached (in
        tokens), compactions, used_later (messages that left and were used later), overflows (requests that exceed the
        window), stops (the request at which the program would stop compacting; 0 for none) and flat (whether the range
        meets that of the cheapest value). `attrs` has replay_error and rule_error (shares of the bill, with a sign;
        NaN where they are not known), billed (in US dollars) and is_ranked.

    Raises
    ------
    TypeError
        If not exactly one setting is named.
    ValueError
        If nothing was recorded, or the setting does not apply to this session.

    Examples
    --------
    >>> import budgetkit as bk
    >>> table = what_if(bk.Session(bk.load_trace("made-up-session")), threshold=[100_000, 150_000])
    >>> table["value"].tolist(), table["compactions"].tolist()
    (['as recorded', 100000, 150000], [1, 8, 1])
    """
    settings = {"threshold": threshold, "keep": keep, "cache_life": cache_life, "model": model}
    named = {name: values for name, values in settings.items() if values is not None}
    if len(named) != 1:
        raise TypeError(
            f"what_if() changes one setting at a time. Pass one of: {', '.join(settings)}."
        )
    [(setting, values)] = named.items()
    listed: list[Any] = [values] if isinstance(values, int | str) else [*values]
    setup = setup_of(session, window, None, None, None)
    record = setup.record
    if record is None:
        raise ValueError(
            "No usage was recorded in this session. Replay its trace with another policy instead."
        )
    if setting in ("threshold", "keep"):
        rows = _compacted(session, setup, rule, setting, listed)
    elif setting == "cache_life":
        rows = [_with_life(session, setup, record, life) for life in listed]
    else:
        rows = [_on_model(session, setup, record, name) for name in listed]

    billed = recorded_row(session)
    cost = float(billed["least"])
    replay_error = cost_of(setup, as_held(setup)) / cost - 1 if cost else float("nan")
    rule_error = float("nan")
    if setting in ("threshold", "keep"):
        rule_error = _rule_error(session, setup, rule, cost)
    error = np.nanmax([0.0, abs(replay_error), abs(rule_error)])
    table = pd.DataFrame([billed | {"value": "as recorded"}, *rows])
    errors = np.array([0.0, *[error] * len(rows)])
    table["low"] = table["least"] * (1 - errors)
    table["high"] = table["most"] * (1 + errors)
    middle = ((table["least"] + table["most"]) / 2)[1:]
    if middle.notna().any():
        table["flat"] = table["low"] <= table["high"].iloc[1 + int(np.nanargmin(middle))]
    else:
        table["flat"] = False
    table = table[[*_COLUMNS, "flat"]]
    table.insert(0, "setting", setting)
    table.attrs = {
        "replay_error": replay_error,
        "rule_error": rule_error,
        "billed": cost,
        "is_ranked": is_near(replay_error) and bool(middle.notna().any()),
    }
    return table


def usual_values(session: Session, setting: str) -> list[Any]:
    """Return the values to try for a setting: thresholds up to the largest prompt without compactions.

    Examples
    --------
    >>> import budgetkit as bk
    >>> usual_values(bk.Session(bk.load_trace("made-up-session")), "cache_life")
    ['5m', '1h']
    """
    if setting == "cache_life":
        return [*LIVES]
    if setting == "keep":
        return [*TAILS]
    setup = setup_of(session, None, None, None, None)
    framing = setup.framing
    if not isinstance(framing, MeasuredFraming):
        return [*THRESHOLDS]
    # A threshold near the instructions and tools would be reached again at once.
    whole = sum(framing.measured)
    first = framing.measured[0]
    within = [size for size in THRESHOLDS if 1.5 * first < size < whole]
    return within or [first + (whole - first) // 2]


def _system_of(session: Session, rule: str | None) -> System:
    """Return the system whose rule is replayed."""
    form = str(session.trace.fields.get("format"))
    policy = policy_of(rule or (form if form in _RULES else "claude-code"))
    if not isinstance(policy, System) or not policy.summarises:
        raise ValueError(
            f"The rule {brief(rule)} writes no summary. Choose one that does, for example 'claude-code'."
        )
    return policy


def _compacted(
    session: Session, setup: ReplaySetup, rule: str | None, setting: str, values: list[int]
) -> list[Data]:
    """Replay the session compacted at each threshold, or with each length of what stays."""
    system = _system_of(session, rule)
    pairs = used_later(setup.trace)
    acts_at = own_trigger(session.trace, _AUTOMATIC)
    rows = []
    for value in values:
        changes: Data = {"keep_tail": value} if setting == "keep" else {}
        mark = value if setting == "threshold" else acts_at
        if mark is not None:
            changes["triggers"] = (Trigger("tokens", mark, above=True),)
        policy = with_compaction(system, **changes)
        row, outcome = compare_rule(str(value), policy, setup, pairs, UNLIMITED)
        overflows = int(np.count_nonzero(outcome.sent > setup.budget.window))
        rows.append(row | {"value": value, "overflows": overflows})
    return rows


def _rule_error(session: Session, setup: ReplaySetup, rule: str | None, billed: float) -> float:
    """Return how far the rule, acting where the session was compacted, is from the bill.

    It is not known where the session was never compacted, or by hand. Calls for summaries are left out where the log
    does not hold them.
    """
    compactions = session.compactions()
    kinds = [row.get("trigger") for row in session.trace.fields.get("compactions") or ()]
    acts_at = own_trigger(session.trace, _AUTOMATIC)
    if acts_at is None or not billed or "manual" in kinds:
        return float("nan")
    row = _compacted(session, setup, rule, "threshold", [acts_at])[0]
    cost = (row["least"] + row["most"]) / 2
    if (compactions["call"] == NOT_LOGGED).all():
        cost -= row["summary_cost"]
    return float(cost / billed - 1)


def _with_life(session: Session, setup: ReplaySetup, record: Record, life: str) -> Data:
    """Replay the session as it was held with another life of what is written to the cache."""
    if life not in LIVES:
        raise ValueError(f"Unknown cache life {brief(life)}. Choose one of: {', '.join(LIVES)}.")
    is_long = life == "1h"
    prices = session.prices_by_request(is_long)
    if session.prices_by_request(False) == session.prices_by_request(True):
        raise ValueError(
            "The provider of this session sells one cache life only. Compare another setting."
        )
    pause = session.happened["pause"].to_numpy()[record.rows]
    missed = session.misses()
    expired = np.zeros(len(session.usage), "bool")
    expired[ints(missed.loc[missed["cause"] == LIFE, "request"]) - 1] = True
    most = np.where(expired[record.rows], UNLIMITED, record.read_as_held)
    head = ints(session.usage["cache_read_tokens"])[:1]
    most = np.where(pause > LIVES[life], np.minimum(most, head), most)
    changed = replace(
        record, read_as_held=most, prices=tuple(prices[row] for row in record.rows.tolist())
    )
    return _held_row(session, setup, changed, life)


def _on_model(session: Session, setup: ReplaySetup, record: Record, name: str) -> Data:
    """Replay the session as it was held at another model's prices, with the tokens of its tokenizer."""
    sizes = np.array(record.framing.messages(record.trace.messages, setup.count))
    low, usual, high, ratios = _token_ratios(session, name)
    hour = (session.usage["cache_write_1h_tokens"].fillna(0).to_numpy() > 0)[record.rows]
    short, long = (known_prices(name, hour=is_long) for is_long in (False, True))
    own = cost_of(setup, as_held(setup)) - record.beside
    share_beside = record.beside / own if own else 0.0
    rows = []
    for ratio in (low, high):
        # Texts are counted; for the part that the log does not hold, and for answers, the ratio has a range.
        scaled = np.round(sizes * np.concatenate(([ratio], ratios))).astype("int64")
        read = np.round(np.minimum(record.read_as_held, UNLIMITED) * usual).astype("int64")
        changed = replace(
            record,
            framing=MeasuredFraming(measured=tuple(scaled.tolist())),
            prices=tuple(long if is_long else short for is_long in hour.tolist()),
            answered=np.round(record.answered * ratio).astype("int64"),
            read_as_held=read,
            beside=0.0,
        )
        rows.append(_held_row(session, setup, changed, name))
    costs = [row["least"] * (1 + share_beside) for row in rows]
    return rows[-1] | {"least": min(costs), "most": max(costs)}


def _token_ratios(session: Session, name: str) -> tuple[float, float, float, Floats]:
    """Return how many tokens of another model's one token of the session's makes.

    The first three are a tenth of the messages, all of them and nine tenths, by size; the last is each message's own.
    """
    with catch_warnings(action="ignore"):
        own, other = (
            np.asarray(session.trace.counts(counter_named(model or "chars/4")), "float64")
            for model in (session.model, name)
        )
    usual = float(other.sum() / max(1.0, own.sum()))
    ratios = np.where(own > 0, other / np.maximum(own, 1), usual)
    large = ratios[own >= 50]
    if not len(large):
        return usual, usual, usual, ratios
    low, high = np.quantile(large, (0.1, 0.9))
    return float(low), usual, float(high), ratios


def _held_row(session: Session, setup: ReplaySetup, record: Record, value: str) -> Data:
    """Replay the session as it was held with a changed record."""
    changed = replace(setup, record=record)
    outcome = as_held(changed)
    cost = cost_of(changed, outcome)
    return recorded_row(session) | {
        "value": value,
        "least": cost,
        "most": cost,
        "sent": int(outcome.sent.sum()),
        "cached": int(outcome.cached.sum()),
    }


def sentences_of(table: pd.DataFrame) -> list[str]:
    """Say which values cost least within the error, what the others cost, and how sure that is.

    Parameters
    ----------
    table : DataFrame
        Of :func:`what_if`.

    Returns
    -------
    list of str
        Two to four sentences.

    Examples
    --------
    >>> import budgetkit as bk
    >>> table = what_if(bk.Session(bk.load_trace("made-up-session")), threshold=[100_000, 150_000])
    >>> sentences_of(table)[-1]
    'This is no forecast: with another setting the agent would have acted otherwise.'
    """
    no_forecast = "This is no forecast: with another setting the agent would have acted otherwise."
    attrs: Any = table.attrs
    rows: Any = table.iloc[1:].to_dict("records")
    for row in rows:
        row["name"] = f"{row['value']:,}" if isinstance(row["value"], int) else str(row["value"])
        row["middle"] = (row["least"] + row["most"]) / 2
    if table["least"].iloc[1:].isna().all():
        unknown = "No price is known for this session, so its settings cannot be compared by cost."
        return [unknown, no_forecast]
    error = f"Replayed as it was held, the session comes within {abs(attrs['replay_error']):.1%} of its bill"
    if not np.isnan(attrs["rule_error"]):
        error += f", and under its program's own rule within {abs(attrs['rule_error']):.1%}"
    if not attrs["is_ranked"]:
        return [
            f"{error}. That is more than 5 % off, so no value is called the cheapest.",
            no_forecast,
        ]

    cheapest = min(row["middle"] for row in rows)
    names = [row["name"] for row in rows if row["flat"]]
    if len(rows) == 1:
        sentences = [f"{names[0]} would have cost ${cheapest:,.2f}."]
    elif len(names) == len(rows):
        sentences = ["All these values cost the same within the error."]
    elif len(names) > 1:
        sentences = [f"{_joined(names)} cost the same within the error: choose any of them."]
    else:
        sentences = [f"{names[0]} costs least: ${cheapest:,.2f}."]
    dearest = max(rows, key=lambda row: row["middle"])
    if not dearest["flat"]:
        words = f"{dearest['name']} would have cost ${dearest['middle']:,.2f}"
        if dearest["middle"] > 1.05 * cheapest:
            words += f", {dearest['middle'] / cheapest:.1f} times as much"
        sentences.append(f"{words}.")

    most = max(rows, key=lambda row: row["used_later"])
    least = min(rows, key=lambda row: row["used_later"])
    if most["used_later"] > least["used_later"]:
        lost = many(most["used_later"], "message")
        sentences.append(
            f"{most['name']} drops {lost} that were used later, {least['name']} {least['used_later']:,}."
        )
    if too_large := [row["name"] for row in rows if row["overflows"]]:
        sentences.append(f"The window is too small for {_joined(too_large)}.")
    if stops := [row["name"] for row in rows if row["stops"]]:
        sentences.append(
            f"The program itself would stop, as it compacts again and again, at {_joined(stops)}."
        )
    recorded = f"${attrs['billed']:,.2f}"
    if attrs["billed"] < min(row["low"] for row in rows):
        sentences.append(f"As recorded it cost {recorded}, less than with any of these values.")
    elif table["flat"].iloc[0]:
        sentences.append(
            f"The recorded cost, {recorded}, lies within the error: no saving is certain."
        )
    else:
        sentences.append(f"As recorded it cost {recorded}.")
    return [*sentences, f"{error}.", no_forecast]


def _joined(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
