"""Costs of the same messages under the rules of several systems.

The comparison is not a forecast, since under another rule the agent would have seen less and acted differently. All
costs are for the *same* requests. Each cost is a range over the unpublished values: the length of summaries, and
whether dropped messages that were used later had to be read again.

    cost = fresh + cached * read + written * write + summary calls      (in tokens at the input price)

A rule that shortens every prompt is cheapest without a cache, but expensive if cached tokens cost a tenth of the input
price. A rule that acts once in a large window hardly changes the cost. So the cheapest rule depends on two numbers of
the model: the price of a cached token and the size of the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import budgetkit.frames as pd
from budgetkit.counters import Count
from budgetkit.lab.replay.cost import Price, Prices
from budgetkit.lab.replay.outcome import Replay
from budgetkit.lab.replay.prompt_cache import PromptCache
from budgetkit.lab.sessions.causes import used_later
from budgetkit.lab.sessions.session import NOT_LOGGED, Session
from budgetkit.lab.sessions.setup import (
    UNLIMITED,
    ReplaySetup,
    RuleOutcome,
    replay_setup,
    with_compaction,
)
from budgetkit.message import Data
from budgetkit.pruning import OldestFirst, Policy
from budgetkit.pruning.policies import System, Trigger
from budgetkit.pruning.policies.systems import policies_of
from budgetkit.trace import Trace

Systems = Iterable[str | Policy] | Mapping[str, str | Policy]
#: The eight systems that are compared by default.
USUAL = (
    "claude-code",
    "codex",
    "gemini-cli",
    "opencode",
    "pi",
    "cline",
    "anthropic-context-editing",
    "langchain",
)
#: The rule without any pruning.
AS_IT_WAS = "no pruning"
RECORDED = "as recorded"
#: Maximum deviation of the recorded session's replay from the bill, as a share, for ranking rules.
NEAR_THE_BILL = 0.05


def compare(
    source: Trace | Session,
    systems: Systems = USUAL,
    *,
    window: int | None = None,
    prices: Prices | str | None = None,
    cache: PromptCache | str | None = None,
    counter: Count | str | None = None,
) -> pd.DataFrame:
    """Compare the costs of several systems' rules on the same messages.

    All rows use the same prices. If a replay of the record differs from the bill by more than 5 %, the rows are not
    ranked but keep the given order.

    Parameters
    ----------
    source : Trace or Session
        A conversation. The growth and the first request of a recorded session determine the size of the content missing
        from its log.
    systems : names, policies, or a mapping to them
        The rules to compare: names in :data:`budgetkit.pruning.policies.NAMED`, or policies.
    window : int, optional
        Context window, in tokens; default: the model's window, or a larger window if a recorded prompt exceeds it.
    prices : Prices or str, optional
        Token prices, or the name of a model with these prices; default: the prices of each request's model on the day
        of the request.
    cache : PromptCache or str, optional
        The provider's prompt cache; default: the model's cache. Do not pass it for recorded sessions, whose cache reads
        are known.
    counter : callable or str, optional
        Counter of the texts, or its name; default: characters divided by 4, scaled to the session's growth.

    Returns
    -------
    DataFrame
        One row per rule, one for no pruning and, for a session, one for the record, sorted by cost if the rules are
        ranked. The columns are:

        - system, label, version: name of the rule, name and version of the system
        - least, most: lowest and highest cost under the assumptions, in US dollars; NaN if no price is known
        - relative: input cost, as a ratio to the input cost without a cache and without a rule
        - compactions: number of compactions
        - sent, cached: tokens sent, and tokens read from the cache
        - left, capped: numbers of messages dropped or shortened, and of results cut on arrival
        - used_later: number of dropped messages that were used later
        - first: first request in which the rule acted; 0 if there is none
        - overflows: number of requests that exceed the window
        - loops: number of compactions that follow a compaction in the request before
        - stops: request at which the product would stop because of repeated compactions; 0 if there is none
        - call_overflows: number of summary calls that exceed the window themselves
        - summary_cost: maximum cost of the summary calls, in US dollars, which the cost includes
        - assumed: assumed values, in words

        For a recorded session, ``attrs`` has:

        - replayed: cost of a replay of the unchanged session, in US dollars; NaN if unknown
        - replay_error, rule_error: deviations of this replay, and of a replay of Claude Code's rule, from the bill, as
          shares; NaN if unknown
        - own_trigger: prompt size above which Claude Code compacted the session, in tokens; None if it is unknown or
          `window` is given
        - price_gap: note on models without a price; empty if there are none
        - unlogged_summaries: number of compactions whose summary call is not in the log
        - disproved: the model's window if a recorded prompt is larger than this window; otherwise 0

    Raises
    ------
    ValueError
        If a cache is given for a recorded session.

    Examples
    --------
    >>> import budgetkit as bk
    >>> table = compare(bk.Session(bk.load_trace("made-up-session")), ["claude-code", "codex"])
    >>> table.loc[table["system"] == "claude-code", "compactions"].item()
    1
    """
    return comparison(replay_setup(source, window, prices, cache, counter), systems).table


def comparison(setup: ReplaySetup, systems: Systems = USUAL) -> Comparison:
    """Compare systems as in :func:`compare`, but keep the replays.

    Parameters
    ----------
    setup : ReplaySetup
        The conversation, prepared by :func:`replay_setup`.
    systems : names, policies, or a mapping to them
        As in :func:`compare`.

    Returns
    -------
    Comparison
        The table, and the replays of each rule by name.
    """
    outcomes = {AS_IT_WAS: setup.outcome(AS_IT_WAS, OldestFirst(), UNLIMITED)}
    for name, policy in policies_of(systems).items():
        acts_at = setup.acts_at
        if isinstance(policy, System) and policy.name == "claude-code" and acts_at is not None:
            # Claude Code's rule acts where its own compactions in this session did; that prompt was still sent.
            assumed = tuple(words for words in policy.assumed if "trigger" not in words)
            triggers = (Trigger("tokens", acts_at, above=True),)
            policy = replace(with_compaction(policy, triggers=triggers), assumed=assumed)
        outcomes[name] = setup.outcome(name, policy)
    rows = {name: setup.row(outcome) for name, outcome in outcomes.items()}
    unknown = ("replayed", "replay_error", "rule_error")
    attrs: dict[Any, Any] = dict.fromkeys(unknown, float("nan"))
    attrs |= {"own_trigger": setup.acts_at, "unlogged_summaries": 0, "disproved": setup.disproved}
    attrs["price_gap"] = setup.session.price_gap if setup.session else ""
    if setup.session is not None:
        rows[RECORDED] = recorded_row(setup.session)
        calls = setup.session.compactions()["call"]
        attrs["unlogged_summaries"] = int((calls == NOT_LOGGED).sum())
        if setup.record is not None:
            attrs["replayed"], _ = setup.costs(setup.as_held())
            attrs["replay_error"] = setup.error_of(attrs["replayed"])
        if setup.acts_at is not None and "claude-code" in rows:
            attrs["rule_error"] = setup.rule_error(rows["claude-code"])
    table = pd.DataFrame(rows.values())
    table.attrs = attrs
    if is_near(attrs["replay_error"]):
        table = ranked(table)
    return Comparison(table=table, outcomes=outcomes, setup=setup)


def is_near(error: float) -> bool:
    """Return True if a replay's error is small enough to rank rules.

    If the error is unknown (NaN), it counts as small enough.
    """
    return not abs(error) > NEAR_THE_BILL


def ranked(table: pd.DataFrame) -> pd.DataFrame:
    """Sort rules by mean cost; if unknown, by relative cost."""
    middle = table["least"] + table["most"]
    if middle.isna().all():
        middle = table["relative"]
    return table.iloc[middle.to_numpy().argsort(kind="stable")].reset_index(drop=True)


@dataclass(frozen=True)
class Comparison:
    """A comparison of rules: the table, and each rule's replays."""

    table: pd.DataFrame
    outcomes: Mapping[str, RuleOutcome]
    setup: ReplaySetup


def recorded_row(session: Session) -> Data:
    """Return a row for the session as it was billed."""
    totals = session.totals()
    cost = float(totals["cost"])
    gone = session.trace.gone
    pairs = used_later(session.trace)
    needs = pairs["needs"].to_numpy()
    zeros = ("capped", "first", "overflows", "loops", "stops", "call_overflows")
    return dict.fromkeys(zeros, 0) | {
        "system": RECORDED,
        "label": RECORDED,
        "version": "",
        "least": cost,
        "most": cost,
        "relative": float("nan"),
        "compactions": totals["compactions"],
        "sent": totals["prompt"],
        "cached": totals["read"],
        "left": int(np.count_nonzero(gone < len(gone))),
        "used_later": len(np.unique(needs[gone[needs] <= pairs["message"]])),
        "summary_cost": float("nan"),
        "assumed": "",
    }


#: Prices of a cached token, as multiples of the input price; 1 means no cache.
READS = (1.0, 0.5, 0.25, 0.1, 0.05)
#: Windows of today's models, in tokens.
WINDOWS = (128_000, 200_000, 272_000, 400_000, 1_000_000)
_ANSWER = 5.0  # price of a written token as a multiple of the input price, if unknown


def by_price_and_window(
    source: Trace | Session,
    systems: Systems = USUAL,
    reads: Iterable[float] = READS,
    windows: Iterable[int] = WINDOWS,
    *,
    counter: Count | str | None = None,
) -> pd.DataFrame:
    """Return each rule's relative cost for each cached-token price and window.

    The table marks the cheapest rule, and the prices at which another rule becomes the cheapest.

    Parameters
    ----------
    source : Trace or Session
        The conversation or recorded session to replay.
    systems : names, policies, or a mapping to them
        As in :func:`budgetkit.compare`.
    reads : iterable of float
        Prices of a cached token, as multiples of the input price; 1 means no cache.
    windows : iterable of int
        Sizes of the context windows to try, in tokens.
    counter : callable or str, optional
        As in :func:`budgetkit.compare`.

    Returns
    -------
    DataFrame
        One row per window, price and rule, with these columns:

        - window, read, system: the window, the price of a cached token, and the rule's name
        - acts: True if the rule changed any request
        - change: cost relative to no pruning, as a share; a prompt above the window is counted as if it fitted
        - cheapest: True for the cheapest row, among no pruning and the rules that act
        - turns: True for a cheapest row whose rule differs from the cheapest rule at the previous price

    Examples
    --------
    >>> import budgetkit as bk
    >>> rules = {"mask": bk.policies.ClearResults(keep_uses=3)}
    >>> table = by_price_and_window(bk.load_trace("coding-agent"), rules, [1.0, 0.02], [32_000])
    >>> table.loc[table["cheapest"], ["read", "system"]].values.tolist()
    [[1.0, 'mask'], [0.02, 'no pruning']]
    """
    setup = replay_setup(source, count=counter)
    base = setup.replayed(OldestFirst(), UNLIMITED)
    rows: list[Data] = []
    for window in windows:
        outcomes = {AS_IT_WAS: base}
        for name, rule in policies_of(systems).items():
            outcomes[name] = setup.replayed(rule, window)
        acts = {name: bool(outcome.acts.any()) for name, outcome in outcomes.items()}
        before = ""
        for read in reads:
            costs = {name: input_cost(outcome, setup, read) for name, outcome in outcomes.items()}
            acting = [name for name in costs if name == AS_IT_WAS or acts[name]]
            cheapest = min(acting, key=costs.__getitem__)
            rows += [
                {
                    "window": window,
                    "read": read,
                    "system": name,
                    "acts": acts[name],
                    "change": cost / costs[AS_IT_WAS] - 1,
                    "cheapest": name == cheapest,
                    "turns": name == cheapest and before not in ("", cheapest),
                }
                for name, cost in costs.items()
            ]
            before = cheapest
    return pd.DataFrame(rows)


def input_cost(outcome: Replay, setup: ReplaySetup, read: float) -> float:
    """Return the cost of prompts and summaries, in uncached input tokens.

    One unit is the price of an uncached input token.
    """
    # If cached tokens cost as much as input, there is no cache, so writes have no extra price.
    write = 1.0 if read >= 1 else setup.cache.write
    answer = _ANSWER
    known = setup.prices
    if known and known.input and known.output and known.input.base:
        answer = known.output.base / known.input.base
    # Prices are per million tokens. Answers are not input.
    fresh, output, cached, written = (Price(1e6 * factor) for factor in (1.0, answer, read, write))
    prices = Prices("", fresh, output, cached, written)
    return float(replace(outcome, prices=prices, output=0 * outcome.output).cost.sum())
