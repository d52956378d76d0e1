"""What pruning costs in memory: of what a turn needs of earlier ones, how much is still there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from budgetkit.budget.quoting import quoted
from budgetkit.inputs.budgets import AnyBudget, budget_of, read_budget
from budgetkit.inputs.configuration import filled_in
from budgetkit.inputs.conversations import AnyTrace, trace_of
from budgetkit.inputs.policies import AnyPolicies, policies_of
from budgetkit.lab.replay.evidence import evidence
from budgetkit.lab.replay.outcome import Replay
from budgetkit.lab.replay.replaying import replay
from budgetkit.plan.items import Flags, Ints
from budgetkit.pruning.history import NEVER


def losses(outcome: Replay, pairs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Say for each request how much of the evidence that it needs it still holds.

    Parameters
    ----------
    outcome : Replay
        What :func:`budgetkit.replay` returned.
    pairs : DataFrame, optional
        What needs what, as :func:`budgetkit.lab.replay.evidence.evidence` lists it.

    Returns
    -------
    DataFrame
        One row a request. Columns request, turn, needed, present, possible (int64, pairs of messages), share
        (float64, missing where nothing is needed) and source. Possible is what hindsight could have held: the most
        pairs whose earlier messages fit into the history's limit together. A tool result of which a placeholder is
        left, and a message that a summary replaced, count as absent; one that was brought back is there.

    Examples
    --------
    >>> import budgetkit as bk
    >>> trace = bk.load_trace("support-chat")
    >>> outcome = bk.replay(trace, bk.presets.working_memory(50_000), bk.policies.OldestFirst())
    >>> bool((losses(outcome)["share"].dropna() == 1).all())
    True
    """
    if pairs is None:
        pairs = evidence(outcome.trace)
    else:
        pairs = pairs
    sents = outcome.placed.sents
    at, needs, there = needed_there(outcome, pairs)
    needed = np.bincount(at, minlength=len(sents))
    present = np.bincount(at[there], minlength=len(sents))
    possible = _possible(outcome, needs, at)
    return pd.DataFrame(
        {
            "request": np.arange(1, len(sents) + 1),
            "turn": [request.number for request in outcome.placed.requests],
            "needed": needed,
            "present": present,
            "possible": possible,
            "share": np.where(needed > 0, present / np.maximum(needed, 1), np.nan),
            "source": pairs["source"].iloc[0] if len(pairs) else "none found",
        }
    )


def needed_there(outcome: Replay, pairs: pd.DataFrame) -> tuple[Ints, Ints, Flags]:
    """Return for each pair the request that needs it, the message that it needs, and whether it is there."""
    sents = outcome.placed.sents
    asks = np.array(
        [message.role == "assistant" for message in outcome.trace.messages], dtype=np.bool_
    )
    later, needs = (pairs[name].to_numpy(dtype=np.int64) for name in ("message", "needs"))
    # An answer is given to the request that ends before it; all else is first sent with the one that ends after it.
    at = np.where(
        asks[later], np.searchsorted(sents, later, "left"), np.searchsorted(sents, later, "right")
    )
    at, needs = at[at < len(sents)], needs[at < len(sents)]
    gone, shrunk = (
        np.array(column, dtype=np.int64)[needs]
        for column in (outcome.kept.gone, outcome.kept.shrunk)
    )
    there = (
        ~outcome.placed.unsent[needs]
        & ((gone == NEVER) | (gone > at))
        & ((shrunk == NEVER) | (shrunk > at))
    )
    return at, needs, there | _came_back(outcome, needs, at)


def _came_back(outcome: Replay, needs: Ints, at: Ints) -> Flags:
    back = {(request, slot) for request, slots in enumerate(outcome.returned) for slot in slots}
    return np.array(
        [pair in back for pair in zip(at.tolist(), needs.tolist(), strict=True)], dtype=np.bool_
    )


def _possible(outcome: Replay, needs: Ints, at: Ints) -> Ints:
    """Return how many needed pairs fit into each request, the smallest first; the last counts by the part that fits."""
    limits = outcome.columns[outcome.section]["limit"]
    tokens = outcome.placed.tokens
    possible = np.zeros(len(limits), dtype=np.int64)
    for request in np.unique(at).tolist():
        slots, pairs = np.unique(needs[at == request], return_counts=True)
        size = np.where(outcome.placed.prunable[slots], tokens[slots], 0)
        order = np.argsort(size / pairs, kind="stable")
        room = float(max(0, limits[request]))
        ends = np.cumsum(size[order])
        part = np.clip((room - (ends - size[order])) / np.maximum(size[order], 1), 0, 1)
        part[size[order] == 0] = 1
        possible[request] = int((part * pairs[order]).sum() + 1e-9)
    return possible


def evidence_shares(
    trace: AnyTrace,
    budget: AnyBudget,
    policies: AnyPolicies,
    caps: Iterable[int],
    pairs: pd.DataFrame | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Say how much evidence is left under several policies and history budgets.

    Parameters
    ----------
    trace : Trace, str, Path or sequence of messages
        The conversation; a string is a shipped trace's name or a path.
    budget : Budget, str, Path or callable
        A budget, or a preset or its name. Its remainder is given every cap in turn.
    policies : Policy, str, several of these, or mapping of str to Policy
        By the name they are to have; or names of `budgetkit.pruning.policies.NAMED`.
    caps : iterable of int
        History budgets, in tokens.
    pairs : DataFrame, optional
        What needs what, as :func:`budgetkit.lab.replay.evidence.evidence` lists it.
    **options
        Options of :func:`budgetkit.replay`.

    Returns
    -------
    DataFrame
        One row a policy and cap. Columns policy, cap, needed, present, share, possible (the share that hindsight
        could have kept), cached_share, relative_cost and source.

    Raises
    ------
    ValueError
        If the budget names no remainder.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.presets.working_memory(50_000, history_floor=0)
    >>> policies = {"oldest": bk.policies.OldestFirst()}
    >>> shares = evidence_shares(bk.load_trace("support-chat"), budget, policies, [500, 5_000])["share"]
    >>> bool(shares.is_monotonic_increasing)
    True
    """
    trace = trace_of(trace)
    budget = read_budget(budget)
    model, counter, _ = filled_in(budget, options.get("model"), options.get("counter"))
    options |= {
        name: value for name, value in (("model", model), ("counter", counter)) if value is not None
    }
    budget = budget_of(budget, model or trace.model, options.pop("window", None))
    if budget.remainder is None:
        names = quoted(budget.sections)
        raise ValueError(
            f"this budget names no remainder; its sections are {names}; pass remainder=... to Budget"
        )
    pairs = evidence(trace) if pairs is None else pairs
    by_name = policies_of(policies)
    rows = []
    for cap in caps:
        # What the floor of a preset promises may not exceed the cap that is tried.
        capped = budget.assign(
            **{budget.remainder: {"cap": cap, "floor": min(cap, budget.floors[budget.remainder])}}
        )
        for name, policy in by_name.items():
            outcome = replay(trace, capped, policy, **options)
            by_request = losses(outcome, pairs)
            totals = outcome.totals()
            needed = int(by_request["needed"].sum())
            present = int(by_request["present"].sum())
            possible = int(by_request["possible"].sum())
            row = {
                "policy": name,
                "cap": cap,
                "needed": needed,
                "present": present,
                "share": present / needed if needed else float("nan"),
                "possible": possible / needed if needed else float("nan"),
                "cached_share": totals["cached_share"],
                "relative_cost": totals["relative_cost"],
                "source": by_request["source"].iloc[0],
            }
            rows.append(row)
    columns = [
        "policy",
        "cap",
        "needed",
        "present",
        "share",
        "possible",
        "cached_share",
        "relative_cost",
        "source",
    ]
    return pd.DataFrame(rows, columns=columns)
