"""Outcomes of replays, as frames of requests, sections and messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import Budget, block, brief
from budgetkit.budget.errors import wrong_type
from budgetkit.lab.replay.cost import Prices
from budgetkit.lab.replay.prefix import PrefixLayout
from budgetkit.lab.replay.prompt_cache import PromptCache
from budgetkit.plan import Flags, Floats, Ints
from budgetkit.pruning import NEVER, SHRUNK, SUMMARISED, Policy
from budgetkit.pruning.dropping import Retention
from budgetkit.trace import UNSENT, Trace

Columns = dict[str, dict[str, Ints]]


@dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """The result of a replay: its requests, kept messages and costs.

    Parameters
    ----------
    trace, budget, policy, cache, prices
        The arguments of :func:`budgetkit.replay`, converted.
    placed : PrefixLayout
        Positions and sizes of the conversation's messages.
    kept : Retention
        The kept messages, with the requests that contain each of them.
    columns : dict
        Planned values of each section, such as demand and limit; int64 arrays, shape (requests,), in tokens.
    granted : dict
        Tokens of each section in the requests; int64 arrays, shape (requests,).
    over : int64 array, shape (requests,)
        Tokens above the history's limit. If other sections shrink for the history's floor, only the tokens still
        missing count.
    equal : int64 array, shape (requests,)
        Tokens in the longest prefix shared with the previous request.
    cached, written : int64 array, shape (requests,)
        Tokens read from the prompt cache, and tokens written to it.
    output : int64 array, shape (requests,)
        Number of tokens in the answer to each request.
    warnings : tuple of str
        A warning about prices that do not include one-hour cache writes, and one about the request whose history is
        furthest below its floor, if they apply.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.presets.working_memory(4_000, output=500, history_floor=0)
    >>> outcome = bk.replay(bk.load_trace("support-chat"), budget, bk.policies.SlidingWindow(5))
    >>> outcome
    Replay(SlidingWindow(5) on 'support-chat', 75 requests)
    """

    trace: Trace
    budget: Budget
    policy: Policy
    cache: PromptCache
    placed: PrefixLayout
    kept: Retention
    columns: Columns
    granted: dict[str, Ints]
    over: Ints
    equal: Ints
    cached: Ints
    written: Ints
    output: Ints
    prices: Prices | None = None
    warnings: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        """The section that was pruned."""
        return self.placed.section

    @property
    def sent(self) -> Ints:
        """Size of each request, in tokens."""
        return sum(self.granted.values(), np.zeros_like(self.over))

    @property
    def acts(self) -> Flags:
        """True for each request in which the policy changed the history."""
        kept = self.kept
        return np.array(kept.summaries) + kept.shrunk_messages + kept.dropped_messages > 0

    @property
    def cost(self) -> Floats:
        """Cost of each request in US dollars, or NaN if unknown.

        The cost includes the summary calls.
        """
        sent = self.sent
        if self.prices is None:
            return np.full(len(sent), np.nan)
        fresh = sent - self.cached - self.written
        cost = self.prices.cost(fresh, self.cached, self.written, self.output)
        return cost + self.summary_cost

    @property
    def summary_cost(self) -> Floats:
        """Cost of each request's summary calls in dollars, or NaN if unknown.

        A call that shares the session's prefix reads the prompt before the cut from the cache, and pays the full
        input price for its instruction only. A call with a separate prompt pays the full input price for that prompt,
        or the price of cache writes if its system caches the prompt; each repeated call then reads the prompt from the
        cache.
        """
        prompt = self.summary_prompts
        if self.prices is None:
            return np.full(len(prompt), np.nan)
        cached = written = none = np.zeros_like(prompt)
        fresh = prompt
        call = self.policy.summary_call
        if call is not None and call.prefix == "shared":
            fresh = np.array(self.kept.summaries) * call.instruction
            cached = prompt - fresh
        elif call is not None and call.cache_write:
            fresh, written = none, prompt
        cost = self.prices.cost(fresh, cached, written, np.array(self.kept.summary_output))
        if call is not None and call.prefix != "shared":
            cost = cost + self.prices.cost(none, (call.calls - 1) * prompt, none, none)
        return cost

    @property
    def summary_prompts(self) -> Ints:
        """Input tokens of each request's summary calls; 0 if it has none."""
        retention = self.kept
        calls = np.array(retention.summaries)
        read = np.array(retention.summary_input)
        wrote = np.array(retention.summary_output)
        call = self.policy.summary_call
        if call is None:
            return read
        instruction = calls * call.instruction
        if call.prefix == "shared":
            return np.asarray(np.where(calls > 0, self.sent - wrote + read + instruction, 0))
        sent = np.minimum(read, calls * call.input_cap) if call.input_cap is not None else read
        return np.asarray(sent + instruction)

    def frame(self) -> pd.DataFrame:
        """Return one row per request.

        Returns
        -------
        DataFrame
            The frame has the columns request, turn, limit, history, others, sent, cached, written, fresh, dropped,
            dropped_messages, shrunk_messages, summary_calls, summary_input, summary_output, over and output (int64),
            and cost (float64, in US dollars). The columns request and turn are numbers from 1, dropped_messages,
            shrunk_messages and summary_calls are counts, and the remaining int64 columns are in tokens.
            ``sent = history + others = cached + written + fresh``.
        """
        kept = self.kept
        sent = self.sent
        history = self.granted[self.section]
        return pd.DataFrame(
            {
                **self.places,
                "limit": self.columns[self.section]["limit"],
                "history": history,
                "others": sent - history,
                "sent": sent,
                "cached": self.cached,
                "written": self.written,
                "fresh": sent - self.cached - self.written,
                "dropped": kept.dropped,
                "dropped_messages": kept.dropped_messages,
                "shrunk_messages": kept.shrunk_messages,
                "summary_calls": kept.summaries,
                "summary_input": kept.summary_input,
                "summary_output": kept.summary_output,
                "over": self.over,
                "output": self.output,
                "cost": self.cost,
            }
        )

    def sections(self) -> pd.DataFrame:
        """Return one row per request and section.

        Returns
        -------
        DataFrame
            The frame has the columns request, turn, section, demand, limit, tokens and cut (int64, except section). The
            demand of the pruned section includes all messages that have ever entered it.
        """
        frames = []
        for section, column in self.columns.items():
            rows = pd.DataFrame({**self.places, "section": section, **column})
            if section == self.section:
                # All messages that ever entered it, and its pinned messages.
                sizes = np.where(self.placed.prunable, self.placed.tokens, 0)
                entered = np.bincount(self.placed.entry, sizes, len(self.over) + 1)
                pinned = self.granted[section] - np.array(self.kept.tokens)
                rows["demand"] = np.cumsum(entered.astype("int64"))[:-1] + pinned
            rows["tokens"] = self.granted[section]
            rows["cut"] = (rows["demand"] - rows["tokens"]).clip(lower=0)
            frames.append(rows)
        names = ["request", "turn", "section", "demand", "limit", "tokens", "cut"]
        return pd.concat(frames, ignore_index=True)[names]

    @property
    def places(self) -> dict[str, Any]:
        """The number and the turn of each request."""
        turns = [request.number for request in self.placed.requests]
        return {"request": np.arange(1, len(turns) + 1), "turn": turns}

    def messages(self) -> pd.DataFrame:
        """Return one row per message, with its first and last request.

        Returns
        -------
        DataFrame
            The frame has the columns message (index in the trace), turn, role, section, tokens, first (the first
            request that contains the message), shrunk (the request in which the message became a placeholder), gone
            (the first request without the message) and fate ("kept", "shrunk", "summarised", "dropped" or "not sent").
            The request numbers are Int64 and missing if the event never happens.
        """
        placed = self.placed
        slots = np.arange(len(placed.tokens))
        first = np.searchsorted(placed.sents, slots, "right")
        never = placed.unsent | (first >= len(placed.sents))
        gone = np.array(self.kept.gone, "int64")
        state = np.array(self.kept.state, "int64")
        fates = np.select(
            [
                placed.unsent,
                (gone == NEVER) & (state == SHRUNK),
                gone == NEVER,
                state == SUMMARISED,
            ],
            [UNSENT, "shrunk", "kept", "summarised"],
            "dropped",
        )
        return pd.DataFrame(
            {
                "message": slots,
                "turn": self.trace.turn_numbers,
                "role": self.trace.roles,
                "section": [item.section for item in placed.tally.past],
                "tokens": placed.tokens,
                "first": _when(np.where(never, NEVER, first)),
                "shrunk": _when(np.array(self.kept.shrunk)),
                "gone": _when(gone),
                "fate": fates,
            }
        )

    def totals(self) -> dict[str, float]:
        """Return the totals of tokens, messages, calls and costs.

        Returns
        -------
        dict
            The keys are sent, cached, written, fresh, dropped, dropped_messages, summary_calls, summary_input, over and
            output (numbers of tokens, messages or calls), cached_share (share of the sent tokens), relative_cost (input
            cost divided by its cost without a cache) and cost (US dollars).
        """
        frame = self.frame()
        names = ["sent", "cached", "written", "fresh", "dropped", "dropped_messages"]
        names += ["summary_calls", "summary_input", "over", "output"]
        sums = {name: int(frame[name].sum()) for name in names}
        return {
            **sums,
            "cached_share": sums["cached"] / max(1, sums["sent"]),
            "relative_cost": self.cache.relative_cost(
                sums["cached"], sums["written"], sums["fresh"]
            ),
            "cost": float(np.sum(self.cost)),
        }

    def absent(self, request: int) -> list[int]:
        """List the messages missing from a request because of pruning.

        Parameters
        ----------
        request : int
            Request number, counting from 1.

        Returns
        -------
        list of int
            Indices of the missing messages in the trace.
        """
        if not 1 <= request <= len(self.over):
            raise ValueError(f"No request {request} in this replay. Choose 1 to {len(self.over)}.")
        return [slot for slot, gone in enumerate(self.kept.gone) if NEVER < gone < request]

    def present(self, request: int) -> list[int]:
        """List the messages in a request, including placeholders but not summaries."""
        absent = {*self.absent(request), *np.flatnonzero(self.placed.unsent).tolist()}
        return [s for s in range(self.placed.requests[request - 1].sent) if s not in absent]

    def __repr__(self) -> str:
        return f"Replay({self.policy!r} on {brief(self.trace.id)}, {len(self.over)} requests)"

    def _repr_html_(self) -> str:
        totals = self.totals()
        shown = [
            (name, int(totals[name]))
            for name in ("cached", "written", "fresh", "dropped", "over", "output")
        ]
        rows = [
            (name, tokens, f"{tokens / max(1, totals['sent']):.0%} of the tokens sent")
            for name, tokens in shown
        ]
        cost = [] if np.isnan(totals["cost"]) else [f"Cost: ${totals['cost']:,.4f}"]
        title = f"Replay of {brief(self.trace.id)}: {self.policy!r}, {len(self.over):,} requests"
        title += f", {int(totals['sent']):,} tokens sent"
        return block(title, shown[:3], [("tokens", "all requests", ""), *rows], cost)


def rank_policies(replays: Mapping[str, Replay] | Iterable[Replay] | Replay) -> pd.DataFrame:
    """Compare replays of several policies, cheapest first.

    Parameters
    ----------
    replays : mapping of str to Replay, Replay, or several
        One or more replays. In a mapping, the keys are the names of the replays; otherwise, the replays are named after
        their policies.

    Returns
    -------
    DataFrame
        One row for each replay, with the column policy and the columns of :meth:`Replay.totals`, sorted by cost if all
        costs are known, otherwise by relative cost.

    Raises
    ------
    TypeError
        If a value is not a replay.
    ValueError
        If there are no replays.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.presets.working_memory(4_000, output=500, history_floor=0)
    >>> trace = bk.load_trace("support-chat")
    >>> policies = {"oldest": bk.policies.OldestFirst(), "low mark": bk.policies.TriggerTarget()}
    >>> replays = {name: bk.replay(trace, budget, policy) for name, policy in policies.items()}
    >>> bk.deciding.rank_policies(replays)["policy"].tolist()
    ['low mark', 'oldest']
    """
    if isinstance(replays, Mapping):
        named = list(replays.items())
    else:
        entries: Iterable[Any] = replays if isinstance(replays, Iterable) else [replays]
        named = [(repr(getattr(entry, "policy", None)), entry) for entry in entries]
    for _, entry in named:
        if not isinstance(entry, Replay):
            expected = "results of bk.replay, in a list or a mapping"
            raise TypeError(wrong_type("replay", entry, expected))
    if not named:
        raise ValueError("No replays to rank. Pass at least one.")
    table = pd.DataFrame([{"policy": name, **replay.totals()} for name, replay in named])
    by = "cost" if table["cost"].notna().all() else "relative_cost"
    return table.sort_values(by, kind="stable", ignore_index=True)


def _when(requests: Ints) -> pd.Series[int]:
    """Convert indices of requests to request numbers, counting from 1.

    The number is missing for an event that never happens.
    """
    counted = pd.Series(requests + 1, dtype="Int64")
    return counted.mask(pd.Series(requests == NEVER))
