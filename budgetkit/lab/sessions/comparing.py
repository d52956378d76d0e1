"""Dollar costs of the same messages under other systems' rules, and where the order of rules turns.

Each cost is a range.

This is no forecast: under another rule the agent would have seen less and acted otherwise. It says what the *same*
requests would have cost. Unpublished values are ranges: the length of a summary, and whether a message that left and
was used later had to be read again.

    cost = fresh + cached * read + written * write + summary calls      (in tokens at the input price)

A rule that shortens every prompt wins where nothing is cached, and loses where reading costs a tenth; a rule that acts
once in a large window hardly matters. Which is cheapest therefore depends on two numbers that differ from model to
model: what a cached token costs, and how large the window is.
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
#: The eight systems that are compared when none is named.
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
#: What is billed where nothing is pruned.
AS_IT_WAS = "nothing leaves"
RECORDED = "as recorded"
#: A replay of the record that is further off the bill, as a share, ranks nothing.
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
    """Compare the rules of several systems on the same messages, the cheapest first.

    All rows are at one price list. Where a replay of the record is more than 5 % off the bill, nothing is ranked: the
    rows stay in the order that they were named.

    Parameters
    ----------
    source : Trace or Session
        A conversation; of a recorded session its own growth and first request say what the log does not hold.
    systems : names, policies, or a mapping to them
        Names of :data:`budgetkit.pruning.policies.NAMED` or policies.
    window : int, optional
        In tokens; default: the model's, or a larger one if a recorded prompt exceeds it.
    prices : Prices or str, optional
        Token prices, or the name of a model to take them from; default: the prices of each request's model on its day.
    cache : PromptCache or str, optional
        The provider's prompt cache; default: the cache of the model. The reads of a session are recorded, so none is
        taken for one.
    counter : callable or str, optional
        How texts are counted; default: characters divided by 4, scaled by the session's own growth.

    Returns
    -------
    DataFrame
        One row per rule, sorted by cost: system, label, version, least and most (in US dollars, over the assumptions;
        NaN if no price is known), relative (input against the same without a cache and rule), compactions, sent,
        cached (tokens), left (messages that left or were shortened), capped (results cut on arrival), used_later (of
        those that left, used again by what came later), first (the first request where the rule acted), overflows
        (requests that exceed the window), loops (compactions at two requests in a row), stops (the request where the
        product would stop, as it compacts again and again; 0 for none), call_overflows (calls that write a summary and
        exceed the window themselves), summary_cost (what these calls cost at most, in US dollars, within the cost) and
        assumed (what is ours). Of a recorded session `attrs` holds replayed, what the session as it was held comes to
        in the same replay (in US dollars, beside the bill), replay_error and rule_error (how far that and the rule of
        Claude Code are from the bill, as shares; NaN if unknown), own_trigger, where Claude Code compacted it (in
        tokens), price_gap (a sentence on models without a price; empty for none),
        unlogged_summaries, how many of its compactions have no call in the log, and disproved, the model's
        window where a recorded prompt is larger.

    Raises
    ------
    ValueError
        If a cache is named for a recorded session.

    Examples
    --------
    >>> import budgetkit as bk
    >>> table = compare(bk.Session(bk.load_trace("made-up-session")), ["claude-code", "codex"])
    >>> table.loc[table["system"] == "claude-code", "compactions"].item()
    1
    """
    return comparison(replay_setup(source, window, prices, cache, counter), systems).table


def comparison(setup: ReplaySetup, systems: Systems = USUAL) -> Comparison:
    """Replay the rules of several systems on the same messages, and keep each replay beside the table.

    Parameters
    ----------
    setup : ReplaySetup
        Of :func:`setup_of`.
    systems : names, policies, or a mapping to them
        As in :func:`compare`.

    Returns
    -------
    Comparison
        The table and, by name, what each rule did.
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
    unknown = float("nan")
    attrs: dict[Any, Any] = {"replayed": unknown, "replay_error": unknown, "rule_error": unknown}
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
    """Tell whether a session's replay is close enough to its bill to rank rules."""
    return not abs(error) > NEAR_THE_BILL


def ranked(table: pd.DataFrame) -> pd.DataFrame:
    """Sort rules by the middle of their cost, or by the relative cost if no price is known."""
    middle = table["least"] + table["most"]
    if middle.isna().all():
        middle = table["relative"]
    return table.iloc[middle.to_numpy().argsort(kind="stable")].reset_index(drop=True)


@dataclass(frozen=True)
class Comparison:
    """A comparison of rules: the table, and the replays by rule."""

    table: pd.DataFrame
    outcomes: Mapping[str, RuleOutcome]
    setup: ReplaySetup


def recorded_row(session: Session) -> Data:
    """Return the row of the session as it was billed."""
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


#: What a cached token costs, as multiples of the input price; 1 is no cache.
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
    """Return the cheapest rule by cached-token price and by window.

    It also marks the prices where another rule becomes the cheapest.

    Parameters
    ----------
    source : Trace or Session
        A conversation.
    systems : names, policies, or a mapping to them
        As in :func:`budgetkit.compare`.
    reads : iterable of float
        Prices of a token that is read from the cache, as multiples of the input price; 1 is no cache.
    windows : iterable of int
        In tokens.
    counter : callable or str, optional
        As in :func:`budgetkit.compare`.

    Returns
    -------
    DataFrame
        One row per window, price and rule: window, read, system, acts (if it did anything), change (against nothing
        leaving, as a share; a prompt over the window is counted as if it fitted), cheapest (whether no other rule that
        acts, nor leaving all alone, costs less) and turns (whether another is cheapest here than at the price before).

    Examples
    --------
    >>> import budgetkit as bk
    >>> rules = {"mask": bk.policies.ClearResults(keep_uses=3)}
    >>> table = by_price_and_window(bk.load_trace("coding-agent"), rules, [1.0, 0.02], [32_000])
    >>> table.loc[table["cheapest"], ["read", "system"]].values.tolist()
    [[1.0, 'mask'], [0.02, 'nothing leaves']]
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
    """Return the cost of all prompts and summaries, in tokens at the input price."""
    # Where reading costs what input costs there is no cache, and nothing is written to one.
    write = 1.0 if read >= 1 else setup.cache.write
    answer = _ANSWER
    known = setup.prices
    if known and known.input and known.output and known.input.base:
        answer = known.output.base / known.input.base
    # A price is for a million tokens; the answers themselves are no input.
    fresh, output, cached, written = (Price(1e6 * factor) for factor in (1.0, answer, read, write))
    prices = Prices("", fresh, output, cached, written)
    return float(replace(outcome, prices=prices, output=0 * outcome.output).cost.sum())
