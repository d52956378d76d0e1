"""Comparison of models, and the effect of more tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from budgetkit.budget import Allocation, Budget
from budgetkit.counters import basis_of, counter
from budgetkit.inputs.budgets import AnyModel, preset_of
from budgetkit.inputs.conversations import AnyTrace, traces_of
from budgetkit.lab.replay.cost import Prices, prices
from budgetkit.lab.replay.outcome import Replay
from budgetkit.lab.replay.replaying import replay
from budgetkit.message import Data
from budgetkit.models import Model, model, models_of
from budgetkit.plan import Plan, fit
from budgetkit.plan.items import Items
from budgetkit.pruning import Policy
from budgetkit.pruning.policies.systems import policy_of


def compare_models(
    traces: AnyTrace,
    models: AnyModel | Iterable[AnyModel],
    preset: str | Callable[[Model], Budget],
    policy: Policy | str | None = None,
    price: Callable[[str], Prices] = prices,
) -> pd.DataFrame:
    """Compare models on the same conversations.

    Parameters
    ----------
    traces : sequence of Trace, str or Path
        The conversations, or their paths or names.
    models : str or Model, or an iterable of these
        The models to compare, or their names.
    preset : callable or str
        Function that returns the budget for a model, or a preset's name.
    policy : Policy or str, optional
        The pruning policy; default: drop the oldest messages first.
    price : callable, optional
        Function that returns the prices for a model's name.

    Returns
    -------
    DataFrame
        One row for each model, in the order given, with the columns model, window (in tokens), ends (the model's end
        date; empty if unknown), largest (tokens of the longest conversation), conversations (number of conversations),
        fits (share of the conversations without losses), breaks (the section with losses in the largest number of
        conversations; empty if nothing is lost), first_loss (median turn of the first loss; missing if nothing is
        lost), cost (total in US dollars with an ideal prompt cache; missing if a price is unknown), tax (the model's
        tokens for these texts divided by the first model's), exact (True if the model's tokens are counted exactly)
        and basis (of the counts: "exact", "reconstructed" or "estimate").

    Examples
    --------
    >>> import budgetkit as bk
    >>> names = ["gpt-5.4", "claude-haiku-4-5"]
    >>> table = compare_models(bk.load_traces("made-up-chats"), names, bk.presets.working_memory)
    >>> table[["model", "window", "fits"]].values.tolist()
    [['gpt-5.4', 1050000, 1.0], ['claude-haiku-4-5', 200000, 1.0]]
    """
    conversations = traces_of(traces)
    make = preset_of(preset)
    pruning = policy_of("oldest first" if policy is None else policy)
    rows = []
    base = 0
    for facts in map(model, models_of(models)):
        count = counter(facts)
        budget = make(facts)
        options: Data = {"counter": count, "prices": price(facts.name)}
        sizes = [int(trace.counts(count).sum()) for trace in conversations]
        base = base or sum(sizes)
        outcomes = [replay(trace, budget, pruning, **options) for trace in conversations]
        losses = [_first_losses(outcome) for outcome in outcomes]
        turns = [min(lost.values()) for lost in losses if lost]
        sections = Counter(section for lost in losses for section in lost)
        rows.append(
            {
                "model": facts.name,
                "window": facts.window,
                "ends": facts.ends,
                "largest": max(sizes),
                "conversations": len(conversations),
                "fits": float(np.mean([not lost for lost in losses])),
                "breaks": sections.most_common(1)[0][0] if sections else "",
                "first_loss": float(np.median(turns)) if turns else np.nan,
                "cost": float(sum(np.sum(outcome.cost) for outcome in outcomes)),
                "tax": np.float64(sum(sizes)) / base,
                "exact": count.exact,
                "basis": basis_of(count),
            }
        )
    return pd.DataFrame(rows)


def _first_losses(outcome: Replay) -> dict[str, int]:
    """Return the turn of each section's first loss."""
    first = {}
    history = outcome.section
    for section, column in sorted(outcome.columns.items(), key=lambda pair: pair[0] == history):
        lost = outcome.kept.dropped if section == history else column["cut"]
        if len(places := np.flatnonzero(lost)):
            first[section] = outcome.placed.requests[places[0]].number
    return first


def token_prices(plan: Plan, more: int = 100) -> pd.DataFrame:
    """List the effect of more tokens for each line of a budget.

    A line is the window, a reserve or a section.

    Parameters
    ----------
    plan : Plan
        A plan of items, or of plain numbers.
    more : int, default 100
        Number of tokens to add to the window or to a cap, or to take from a reserve.

    Returns
    -------
    DataFrame
        One row for each line, largest gain first. A reserve of 0 tokens has no row, and neither has a line whose change
        would split a group that a required section needs whole. An uncapped section has a row
        only if it loses something; in that case, its floor is raised. The frame has the columns line, change (tokens
        added or taken), tokens (int64, net gain of all sections over the current plan), gross (int64, sum of the
        gains of those sections that gain), items and score (int64 and float64, changes in the number and in the total
        score of the kept items), gap (float64, score that the best choice of items would add to the changed plan; 0
        for a plan of numbers) and gap_now (float64, the score that this choice would add to the current plan).

    Raises
    ------
    ValueError
        If the plan was loaded and cannot be planned again, or `more` is not above 0.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(1_000, [bk.Reserve("output", 200)], [bk.Allocation("notes", 300), bk.Allocation("history")])
    >>> plan = bk.allocate(budget, {"notes": 500, "history": 600})
    >>> token_prices(plan)[["line", "change", "tokens"]].values.tolist()
    [['window', 100, 100], ['output', -100, 100], ['notes', 100, 0], ['history', 100, 0]]
    """
    if plan.replan is None or more < 1:
        raise ValueError(
            f"Cannot plan again with {more} more tokens. Pass a plan made by fit or allocate, and 1 token or more."
        )
    # Each line with its change and the changed budget.
    free = replace(plan.budget, deficit="signed")
    changes = [("window", more, free.assign(window=free.window + more))]
    for row in free:
        if row.tokens is not None and (row.tokens or row.kind == "allocation"):
            change = -min(more, row.tokens) if row.kind == "reserve" else more
            changes.append((row.name, change, free.assign(**{row.name: row.tokens + change})))
        elif row.kind == "allocation" and plan[row.name].cut:
            # It may already take everything left, so only a floor gives it more.
            floor = plan[row.name].granted + min(more, plan[row.name].cut)
            changes.append((row.name, more, free.assign(**{row.name: {"floor": floor}})))

    rows = []
    gap_now = _gap(plan)
    tokens_now, items_now, score_now = _kept(plan)
    for line, change, budget in changes:
        try:
            other = plan.replan(budget, plan.contents)
        except ValueError:
            continue
        tokens, items, score = _kept(other)
        granted = {grant.section: grant.granted for grant in plan.grants}
        gains = [grant.granted - granted.get(grant.section, 0) for grant in other.grants]
        rows.append(
            {
                "line": line,
                "change": change,
                "tokens": tokens - tokens_now,
                "gross": sum(max(0, gain) for gain in gains),
                "items": items - items_now,
                "score": score - score_now,
                "gap": _gap(other),
                "gap_now": gap_now,
            }
        )
    table = pd.DataFrame(rows)
    return table.sort_values(["tokens", "score"], ascending=False, kind="stable", ignore_index=True)


def _kept(plan: Plan) -> tuple[int, int, float]:
    is_kept = plan.decisions.kept > 0
    scores = np.array([item.score for item in plan.decisions.columns.items], "float64")
    return plan.used, int(is_kept.sum()), float(scores[is_kept].sum())


def _gap(plan: Plan) -> float:
    """Return the score that a better choice of items could add.

    The best choice is made in each section alone, within the section's limit.
    """
    gap = 0.0
    for grant in plan.grants:
        rows = plan.decisions.columns.rows(grant.section)
        items = [plan.decisions.columns.items[row] for row in rows]
        if len(items) < 2 or not any(item.score for item in items):
            continue
        alone = Allocation(grant.section, keep="best", fill="knapsack")
        best = fit(Budget(max(grant.limit, 1), (), [alone]), Items(items))
        now = sum(
            item.score for item, row in zip(items, rows, strict=True) if plan.decisions.kept[row]
        )
        gap += max(0.0, _kept(best)[2] - now)
    return round(gap, 9)
