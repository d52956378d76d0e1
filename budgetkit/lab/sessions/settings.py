"""Replays of a recorded session with other settings, and their error.

    error = the larger of replay_error and rule_error      (shares of the bill)

The replay error is the deviation of the unchanged session's replay from its bill. The rule error is the same deviation
for a replay in which the rule of the session's program acts where the program compacted. Ranges are widened by the
larger error, and no difference within this error is reported. If no compaction of the session shows a rule's error, it
is assumed to be 9 %, the largest measured error. If the replay error is more than 5 %, no value is called the cheapest.
For several sessions, the cheapest value on the older half is tested on the newer half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from warnings import catch_warnings

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import brief, check_tokens
from budgetkit.budget.allocation import check_all
from budgetkit.budget.errors import unknown_name
from budgetkit.counters import counter as counter_named
from budgetkit.lab.replay.cost import known_prices
from budgetkit.lab.sessions.causes import LIFE
from budgetkit.lab.sessions.comparing import RECORDED, is_near, recorded_row
from budgetkit.lab.sessions.holding import MeasuredFraming
from budgetkit.lab.sessions.sentences import largest_error
from budgetkit.lab.sessions.session import Session
from budgetkit.lab.sessions.setup import (
    UNLIMITED,
    Record,
    ReplaySetup,
    own_trigger,
    replay_setup,
    with_compaction,
)
from budgetkit.message import Data
from budgetkit.pruning import policy_of
from budgetkit.pruning.policies import System, Trigger

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
#: Numbers of newest tokens kept next to the summary.
TAILS = (0, 5_000, 10_000, 20_000, 40_000)
#: Lifetimes of prompt cache writes, in seconds.
LIVES = {"5m": 300.0, "1h": 3_600.0}
_AUTOMATIC = ("auto", None)  # triggers of compactions that were not manual
# Programs whose files are named like their rule.
_RULES = ("codex", "opencode", "gemini-cli", "cline")
_COLUMNS = (
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
)
_LEAST_SESSIONS = 4  # two to choose a value, and two to test it
_DRAWS = 2_000


def what_if(
    session: Session | Iterable[Session],
    *,
    threshold: Iterable[int] | int | None = None,
    keep: Iterable[int] | int | None = None,
    cache_life: Iterable[str] | str | None = None,
    model: Iterable[str] | str | None = None,
    rule: str | None = None,
    window: int | None = None,
) -> pd.DataFrame:
    """Replay recorded sessions with other values of a setting.

    Parameters
    ----------
    session : Session or iterable of Session
        One or more recorded sessions. For several, the table has sums, and a value is chosen on the older half and
        tested on the newer half. Sessions without a known price, or with a replay that differs from the bill by more
        than 5 %, are excluded.
    threshold : int or sequence of int, optional
        Prompt sizes, in tokens, above which the prompt is compacted.
    keep : int or sequence of int, optional
        Number of newest tokens kept next to the summary.
    cache_life : {"5m", "1h"} or a sequence of them, optional
        Lifetime of cached prompts, if the provider offers both.
    model : str or sequence of str, optional
        Other models, at current prices and with counts of their own tokenizers.
    rule : str, optional
        The system whose compaction is replayed; default: the session's program.
    window : int, optional
        Context window, in tokens; default: the session's own.

    Returns
    -------
    DataFrame
        One row for the recorded session and one per value, with these columns:

        - setting, value: name and value of the setting
        - least, most: lowest and highest cost under the assumptions, in US dollars
        - low, high: these costs, widened by the error of the replay
        - sent, cached: tokens sent, and tokens read from the cache
        - compactions: number of compactions
        - used_later: number of dropped messages that were used later
        - overflows: number of requests that exceed the window
        - stops: request at which the program would stop because of repeated compactions; 0 if there is none
        - flat: True if the value's range overlaps the range of the cheapest value (for a single value, of the cheaper
          of it and the record); False for values at which prompts exceed the window or the program stops

        ``attrs`` has:

        - replay_error, rule_error: signed errors, as shares of the bill; NaN if unknown
        - billed: the bill, in US dollars
        - is_ranked: True if the replay is close enough to the bill to call a value the cheapest
        - missing: True if parts of the session could not be read or priced
        - model: the recorded model, if models are compared

        For several sessions, the errors are the largest of all sessions, missing is the number of sessions for which it
        is true, and ``attrs`` also has:

        - sessions, left_out: numbers of sessions used and excluded
        - chosen: the value that costs least on the older half
        - tried_on: number of newer sessions
        - saved, saved_low, saved_high: saving on the newer sessions with the chosen value, as a share of their bill,
          and its 95 % interval over these sessions and the errors of their replays; negative if the value costs more

    Raises
    ------
    TypeError
        If no setting or more than one setting is given.
    ValueError
        If no usage was recorded, the setting does not apply to this session, or fewer than four of several sessions can
        be used.

    Examples
    --------
    >>> import budgetkit as bk
    >>> table = what_if(bk.Session(bk.load_trace("made-up-session")), threshold=[100_000, 150_000])
    >>> table["value"].tolist(), table["compactions"].tolist()
    (['as recorded', 100000, 150000], [1, 8, 1])
    """
    settings: Data = {
        "threshold": threshold,
        "keep": keep,
        "cache_life": cache_life,
        "model": model,
    }
    passed = {name: values for name, values in settings.items() if values is not None}
    if len(passed) != 1:
        raise TypeError(f"Not exactly one setting to change. Pass one of: {', '.join(settings)}.")
    [(setting, values)] = passed.items()
    is_list = isinstance(values, Iterable) and not isinstance(values, str)
    listed = [*values] if is_list else [values]
    if setting in ("cache_life", "model"):
        check_all(setting, listed, str)
    if setting == "cache_life" and (unknown := [life for life in listed if life not in LIVES]):
        raise ValueError(unknown_name("cache life", unknown[0], LIVES))
    for size in listed if setting in ("threshold", "keep") else ():
        check_tokens(setting, size)

    def table_of(one: Session) -> pd.DataFrame:
        return _Trial(one, replay_setup(one, window), rule).table(setting, listed)

    if isinstance(session, Session):
        return table_of(session)
    return _over_all([*check_all("session", session, Session)], table_of)


def usual_values(sessions: Iterable[Session], setting: str) -> list[Any]:
    """Return the values of a setting that are tried by default.

    Examples
    --------
    >>> import budgetkit as bk
    >>> usual_values([bk.Session(bk.load_trace("made-up-session"))], "cache_life")
    ['5m', '1h']
    """
    if setting == "cache_life":
        return [*LIVES]
    if setting == "keep":
        return [*TAILS]
    within: set[int] = set()
    halves = []
    for session in sessions:
        framing = replay_setup(session).framing
        if isinstance(framing, MeasuredFraming):
            # A threshold near the instructions and tools would be reached again at once.
            whole = sum(framing.measured)
            first = framing.measured[0]
            within.update(size for size in THRESHOLDS if 1.5 * first < size < whole)
            halves.append((first + whole) // 2)
    return sorted(within) or halves[:1]


def _marked(table: pd.DataFrame) -> pd.DataFrame:
    """Flag the values whose range overlaps the cheapest value's range.

    Values at which a prompt exceeds the window or the program stops are excluded. If all values are, no row is flagged.
    A single value is also compared with the recorded session.
    """
    middle = (table["least"] + table["most"]) / 2
    is_usable = (table["overflows"] == 0) & (table["stops"] == 0)
    usable: Any = middle[1:][is_usable[1:]]
    table["flat"] = False
    if usable.notna().any():
        rivals: Any = usable if table["value"].nunique() > 2 else middle
        is_flat = table["low"] <= table["high"][rivals.idxmin()]
        table["flat"] = is_flat & table.index.isin([0, *usable.index])
    return table


@dataclass(frozen=True)
class _Trial:
    """A recorded session to replay with other settings."""

    session: Session
    setup: ReplaySetup
    rule: str | None

    def table(self, setting: str, values: list[Any]) -> pd.DataFrame:
        """Return a row for each value and for the recorded session."""
        setup = self.setup
        replay_error = setup.error_of(setup.costs(setup.as_held())[0])
        rule_error = float("nan")
        if setting == "model":
            rows = [self._on_model(name) for name in values]
        elif setting == "cache_life":
            rows = [self._with_life(life) for life in values]
        else:
            rows = [self._compacted(setting, value) for value in values]
            acts_at = own_trigger(self.session.trace, _AUTOMATIC)
            if acts_at is not None:
                rule_error = setup.rule_error(self._compacted("threshold", acts_at))
        billed = recorded_row(self.session) | {"value": RECORDED}
        table = pd.DataFrame([billed, *rows])
        attrs: dict[Any, Any] = {"replay_error": replay_error, "rule_error": rule_error}
        error = largest_error(attrs, has_rule=setting in ("threshold", "keep"))
        errors = np.where(table.index > 0, error, 0.0)
        table["low"] = table["least"] * (1 - errors)
        table["high"] = table["most"] * (1 + errors)
        table = _marked(table[[*_COLUMNS]].copy())
        table.insert(0, "setting", setting)
        is_priced = bool(table["least"][1:].notna().any())
        attrs |= {"billed": billed["least"], "is_ranked": is_near(replay_error) and is_priced}
        attrs["missing"] = bool(self.session.missing)
        if setting == "model":
            attrs["model"] = self.session.model
        table.attrs = attrs
        return table

    def _compacted(self, setting: str, value: int) -> Data:
        """Replay the session with another threshold or tail of compactions.

        The tail is the number of newest tokens kept next to the summary.
        """
        form = str(self.session.trace.fields.get("format"))
        system = policy_of(self.rule or (form if form in _RULES else "claude-code"))
        if not isinstance(system, System) or not system.summarises:
            raise ValueError(
                f"The rule {brief(self.rule)} writes no summary. Choose one that does, for example 'claude-code'."
            )
        changes: Data = {}
        mark: int | None = value
        if setting == "keep":
            changes["keep_tail"] = value
            mark = own_trigger(self.session.trace, _AUTOMATIC)
        if mark is not None:
            changes["triggers"] = (Trigger("tokens", mark, above=True),)
        outcome = self.setup.outcome(str(value), with_compaction(system, **changes), UNLIMITED)
        return self.setup.row(outcome) | {"value": value}

    def _with_life(self, life: str) -> Data:
        """Replay the recorded session with another cache lifetime."""
        session = self.session
        record = self.setup.facts
        prices = session.prices_by_request(life == "1h")
        if session.prices_by_request(False) == session.prices_by_request(True):
            raise ValueError(
                "The provider of this session offers only one cache lifetime. Compare another setting."
            )
        pause = session.happened["pause"][record.rows]
        missed = session.misses()
        expired = np.isin(record.rows, missed.loc[missed["cause"] == LIFE, "request"] - 1)
        most = np.where(expired, UNLIMITED, record.read_as_held)
        head = session.columns["cache_read_tokens"][:1]
        most = np.where(pause > LIVES[life], np.minimum(most, head), most)
        changed = replace(
            record, read_as_held=most, prices=tuple(prices[row] for row in record.rows.tolist())
        )
        return self._held_row(changed, life)

    def _on_model(self, name: str) -> Data:
        """Replay the recorded session with another model's prices and tokens."""
        record = self.setup.facts
        sizes = np.array(record.framing.messages(record.trace.messages, self.setup.count))
        # The ratio of each message's tokens with the other model; small messages count only in the total ratio.
        with catch_warnings(action="ignore"):
            own_tokens, tokens = (
                np.asarray(self.session.trace.counts(counter_named(model or "chars/4")), "float64")
                for model in (self.session.model, name)
            )
        usual = float(tokens.sum() / max(1.0, own_tokens.sum()))
        ratios = np.where(own_tokens > 0, tokens / np.maximum(own_tokens, 1), usual)
        large = ratios[own_tokens >= 50]
        ends = np.quantile(large, (0.1, 0.9)).tolist() if len(large) else [usual, usual]
        hour = self.session.columns["cache_write_1h_tokens"][record.rows] > 0
        short, long = (known_prices(name, hour=is_long) for is_long in (False, True))
        own = self.setup.costs(self.setup.as_held())[0] - record.beside
        share_beside = record.beside / own if own else 0.0
        rows = []
        for ratio in ends:
            # Texts are counted. Unlogged content and answers are scaled by the lower, then by the upper ratio.
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
            rows.append(self._held_row(changed, name))
        costs = [row["least"] * (1 + share_beside) for row in rows]
        return rows[-1] | {"least": min(costs), "most": max(costs)}

    def _held_row(self, record: Record, value: str) -> Data:
        """Replay the session with other recorded facts, and return its row."""
        changed = replace(self.setup, record=record)
        outcome = changed.as_held()
        cost, _ = changed.costs(outcome)
        return recorded_row(self.session) | {
            "value": value,
            "least": cost,
            "most": cost,
            "sent": int(outcome.sent.sum()),
            "cached": int(outcome.cached.sum()),
        }


def _added(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """Return the sums of several sessions' tables."""
    total = tables[0].copy()
    for name in _COLUMNS[1:]:
        total[name] = sum(table[name] for table in tables)
    return _marked(total)


def _over_all(sessions: list[Session], table_of: Callable[[Session], pd.DataFrame]) -> pd.DataFrame:
    """Add up sessions' tables, and test a value on the newer half.

    The value is the cheapest one on the older half.
    """
    tables = []
    for session in sorted(sessions, key=lambda one: np.nanmin(one.columns["time"])):
        with suppress(ValueError):
            tables.append(table_of(session))
    used = [table for table in tables if table.attrs["is_ranked"]]
    if len(used) < _LEAST_SESSIONS:
        raise ValueError(
            f"Too few usable sessions: {len(used):,} of {len(sessions):,} with a known price and a replay within 5 % "
            f"of the bill. Pass at least {_LEAST_SESSIONS} such sessions."
        )
    older, newer = used[: len(used) // 2], used[len(used) // 2 :]
    tries = _added(older)
    middle: Any = (tries["least"] + tries["most"])[1:]
    is_flat = tries["flat"][1:]
    chosen = int(middle[is_flat | (not is_flat.any())].idxmin())

    # Bootstrap the newer sessions, first with the upper, then with the lower end of each range.
    tried = pd.DataFrame([table.iloc[chosen] for table in newer])
    billed = np.array([table.attrs["billed"] for table in newer])
    draws = np.random.default_rng(0).integers(0, len(newer), (_DRAWS, len(newer)))
    saved_low, saved_high = (
        1 - tried[end].to_numpy()[draws].sum(axis=1) / billed[draws].sum(axis=1)
        for end in ("high", "low")
    )
    errors = pd.DataFrame([table.attrs for table in used])[["replay_error", "rule_error"]]
    total = _added(used)
    total.attrs = {
        **errors.abs().max().to_dict(),
        "billed": total.at[0, "least"],
        "is_ranked": True,
        "sessions": len(used),
        "left_out": len(sessions) - len(used),
        "missing": sum(table.attrs["missing"] for table in used),
        "chosen": total.at[chosen, "value"],
        "tried_on": len(newer),
        "saved": float(1 - (tried["least"] + tried["most"]).sum() / 2 / billed.sum()),
        "saved_low": float(np.quantile(saved_low, 0.025)),
        "saved_high": float(np.quantile(saved_high, 0.975)),
    }
    return total
