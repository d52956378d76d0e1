"""ReplaySetup: a conversation prepared for replays under any rule.

For a recorded session, the requests, their models and answers, the sizes of messages and the misses not caused by a
rule come from the record. Misses caused by a rule are added. The unchanged session is replayed, too, to measure the
deviation of replays from the bill.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, pairwise
from typing import Any
from warnings import catch_warnings

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import Allocation, Budget
from budgetkit.budget.errors import unknown_name, wrong_kind
from budgetkit.counters import Count
from budgetkit.counters import counter as counter_named
from budgetkit.lab.replay.cost import Prices, known_prices, prices_of
from budgetkit.lab.replay.losses import needed_there
from budgetkit.lab.replay.outcome import Replay
from budgetkit.lab.replay.prompt_cache import CACHES, IDEAL, PromptCache, provider_rules
from budgetkit.lab.replay.replaying import replay
from budgetkit.lab.sessions.causes import COMPACTION, used_later
from budgetkit.lab.sessions.holding import MeasuredFraming, measure, summaries_of
from budgetkit.lab.sessions.session import NOT_LOGGED, Session
from budgetkit.message import RESULT_ROLES, SYSTEM_ROLES, Data, Message
from budgetkit.models import model
from budgetkit.models.limits import catalogue_of
from budgetkit.plan import Ints
from budgetkit.pruning import NEVER, OldestFirst, Policy
from budgetkit.pruning.policies import Compact, System
from budgetkit.requests import Framing
from budgetkit.trace import Trace, in_line, usage_columns

#: The text that represents unlogged instructions and tools.
UNLOGGED = "(instructions and tools missing from the log)"
#: A window in which no rule ever acts.
UNLIMITED = 1 << 40
#: The extended window offered by providers, in tokens.
EXTENDED_WINDOW = 1_000_000
#: The default for an unknown window, in tokens.
USUAL_WINDOW = 200_000
_CALL = 60  # tokens of the call that reads a lost message again


@dataclass(frozen=True)
class Scaled:
    """A counter scaled to a session's growth.

    Examples
    --------
    >>> Scaled(len, 0.25)("Hello world!")
    3
    """

    count: Count
    scale: float = 1.0

    def __call__(self, text: str) -> int:
        """Count the tokens in one text."""
        return round(self.count(text) * self.scale)


@dataclass(frozen=True)
class Record:
    """The recorded facts about a session's requests, for any rule.

    - `trace` and `framing` are those of the unchanged session.
    - `rows` are the indices of the session's requests in the usage.
    - `prices` and `answered` are the prices and the output tokens of each request.
    - `read_as_held` is the limit on each request's cache read after all recorded misses.
    - `most_read` is the limit after the misses that no rule causes, and `after_compaction` is the limit after a
      compaction.
    - `beside` is the cost of other requests, such as those on abandoned branches, in US dollars.
    """

    trace: Trace
    framing: Framing
    rows: Ints
    prices: tuple[Prices, ...]
    answered: Ints
    read_as_held: Ints
    most_read: Ints
    after_compaction: int
    beside: float


@dataclass(frozen=True)
class RuleOutcome:
    """The replays of a rule with its shortest and its longest summaries.

    Both are the same replay if the rule writes no summaries.
    """

    name: str
    least: Replay
    most: Replay


@dataclass(frozen=True)
class ReplaySetup:
    """A conversation prepared for replays, without its own compactions.

    The conversation includes the unlogged content. `places` has the new index of each logged message, or -1 for the
    session's own summaries. `summary_tokens` is the range of these summaries' sizes, if there are any. `record` has the
    facts about a recorded session's requests. `acts_at` is the prompt size above which Claude Code compacted the
    session, or None if this size is unknown, and `disproved` is the model's window if a recorded prompt is larger
    than this window, otherwise 0. Both are in tokens.
    """

    trace: Trace
    budget: Budget
    cache: PromptCache
    prices: Prices | None
    count: Count
    session: Session | None = None
    places: tuple[int, ...] = ()
    summary_tokens: tuple[int, int] | None = None
    framing: Framing | None = None
    record: Record | None = None
    acts_at: int | None = None
    disproved: int = 0

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """The pairs of a message and an earlier message that it uses."""
        return used_later(self.trace)

    def replayed(self, policy: Policy, window: int | None = None) -> Replay:
        """Replay the conversation under one rule.

        Recorded misses that are not caused by a rule are repeated.
        """
        outcome = self._sent_through(policy, window)
        record = self.record
        if record is None:
            return outcome
        compacts = np.array(outcome.kept.summaries) > 0
        after = np.where(compacts, record.after_compaction, UNLIMITED)
        return _with_misses(outcome, record, np.minimum(record.most_read, after))

    @property
    def facts(self) -> Record:
        """The recorded facts about the session's requests.

        Raise `ValueError` if nothing was recorded.
        """
        if self.record is None:
            raise ValueError(
                "No usage was recorded in this conversation. Pass a session of a coding agent."
            )
        return self.record

    def as_held(self) -> Replay:
        """Replay a recorded session with its own compactions and cache misses.

        An additional first message represents the unlogged content.
        """
        record = self.facts
        held = replace(self, trace=record.trace, framing=record.framing)
        outcome = held._sent_through(OldestFirst(), UNLIMITED)
        leave = outcome.placed.leave
        gone = np.where(leave < len(outcome.over), leave, NEVER).tolist()
        kept = replace(outcome.kept, gone=gone)
        outcome = replace(outcome, kept=kept, budget=self.budget)
        return _with_misses(outcome, record, record.read_as_held)

    def _sent_through(self, policy: Policy, window: int | None) -> Replay:
        return replay(
            self.trace,
            self.budget,
            policy,
            window=window,
            counter=self.count,
            roles=section_of,
            framing=self.framing,
            section="conversation",
            by="request" if self.record is None else "usage",
            cache=self.cache,
            prices=self.prices,
        )

    def costs(self, outcome: Replay) -> tuple[float, float]:
        """Return the dollar costs of a replay and of its summary calls.

        Each request is billed at its own model's prices. The costs are NaN if a price is unknown.
        """
        record = self.record
        if record is None:
            return float(outcome.cost.sum()), float(outcome.summary_cost.sum())
        sums = np.array([record.beside, 0.0])
        for prices in dict.fromkeys(record.prices):
            rows = np.array([of_request is prices for of_request in record.prices])
            part = replace(outcome, prices=prices)
            sums += part.cost[rows].sum(), part.summary_cost[rows].sum()
        return float(sums[0]), float(sums[1])

    def error_of(self, cost: float) -> float:
        """Return a cost's deviation from the session's bill, as a share."""
        billed = float(self.session.cost.sum()) if self.session is not None else 0.0
        return cost / billed - 1 if billed else float("nan")

    def rule_error(self, row: Data) -> float:
        """Return the deviation of a rule's replay from the bill.

        The deviation is a share of the bill. Summary calls missing from the log are excluded. Return NaN if a
        compaction was manual, because users compact at any size, which no rule predicts.
        """
        cost = (row["least"] + row["most"]) / 2
        if self.session is not None:
            if "manual" in [at.get("trigger") for at in self.session.trace.compactions]:
                return float("nan")
            if (self.session.compactions()["call"] == NOT_LOGGED).all():
                cost -= row["summary_cost"]
        return self.error_of(cost)

    def outcome(self, name: str, policy: Policy, window: int | None = None) -> RuleOutcome:
        """Replay one rule, with the shortest and the longest summaries."""
        if not isinstance(policy, System) or not policy.summarises:
            replay = self.replayed(policy, window)
            return RuleOutcome(name=name, least=replay, most=replay)
        short, long = self.summary_tokens or policy.summary_tokens
        least = most = self.replayed(policy.with_summaries(short), window)
        if long > short and any(least.kept.summaries):
            most = self.replayed(policy.with_summaries(long), window)
        return RuleOutcome(name=name, least=least, most=most)

    def row(self, outcome: RuleOutcome) -> Data:
        """Return a rule's row for the comparison table.

        The upper end of the cost assumes the longest summaries and rereading of lost messages.
        """
        most = outcome.most
        system = most.policy if isinstance(most.policy, System) else None
        _, needs, there = needed_there(most, self.pairs)
        # Messages in no request, such as a call without a result, were not lost by a rule.
        lost = np.unique(needs[~there & ~most.placed.unsent[needs]])
        again = 0.0
        if self.prices is not None:
            sent = int(most.placed.tokens[lost].sum())
            tokens = np.array([[sent], [0], [0], [_CALL * len(lost)]])
            again = float(self.prices.cost(*tokens)[0])
        cost, summary_cost = self.costs(most)
        costs = [self.costs(outcome.least)[0], cost]
        retention = most.kept
        totals = most.totals()
        acts = np.flatnonzero(most.acts)
        compacts = np.flatnonzero(retention.summaries)
        left = [request for request in (*retention.gone, *retention.shrunk) if request >= 0]
        # The results that the rule cuts on arrival.
        capped = sum(
            most.policy.arriving(tokens, role in RESULT_ROLES) < tokens
            for tokens, role in zip(most.placed.tokens.tolist(), most.trace.roles, strict=True)
        )
        return {
            "system": outcome.name,
            "label": system.label if system else outcome.name,
            "version": f"{system.version}, {system.date}" if system else "",
            "least": min(costs),
            "most": max(costs) + again,
            "relative": float(totals["relative_cost"]),
            "compactions": int(np.sum(retention.summaries)),
            "sent": int(totals["sent"]),
            "cached": int(totals["cached"]),
            "left": len(left),
            "capped": capped,
            "used_later": len(lost),
            "first": int(acts[0]) + 1 if len(acts) else 0,
            "overflows": int(np.count_nonzero(most.sent > self.budget.window)),
            "loops": int(np.count_nonzero(np.diff(compacts) == 1)),
            "stops": _stop(system.stops_after, compacts) if system else 0,
            "call_overflows": int(np.count_nonzero(most.summary_prompts > self.budget.window)),
            "summary_cost": summary_cost,
            "assumed": "; ".join(system.assumed) if system else "",
        }


def replay_setup(
    source: Trace | Session,
    window: int | None = None,
    price: Prices | str | None = None,
    cache: PromptCache | str | None = None,
    count: Any = None,
) -> ReplaySetup:
    """Prepare a conversation for replays under any rule.

    Parameters
    ----------
    source : Trace or Session
        The conversation or recorded session to prepare.
    window, price, cache, count
        The window, prices, cache and counter of :func:`compare`; default: those of the session or conversation.

    Returns
    -------
    ReplaySetup
        The conversation, prepared for replays.
    """
    if not isinstance(source, Trace | Session):
        raise TypeError(wrong_kind("conversation", source, "a Trace or a Session"))
    scaled = Scaled(count if callable(count) else counter_named(count or "chars/4"))
    is_long = False
    session = source if isinstance(source, Session) else None
    trace = source.trace if isinstance(source, Session) else source
    if session is not None:
        if price not in (None, session.prices):
            session = Session(trace, session.counter, price)
        price = session.prices
        if cache is not None:
            raise ValueError(
                "cache= does not apply to a recorded session, whose cache reads are known. Leave cache= out, or "
                "compare session.trace to replay its messages with another cache."
            )
        scaled = replace(scaled, scale=session.counted[1])
        for_an_hour = int(np.maximum(session.columns["cache_write_1h_tokens"], 0).sum())
        is_long = 2 * for_an_hour > int(session.columns["cache_write_tokens"].sum())
    name = source.model
    # A session may name a retired or unknown model.
    with catch_warnings(action="ignore"):
        own_cache = provider_rules(name) if name else IDEAL
    rules = cache or own_cache
    if not isinstance(rules, PromptCache):
        if rules not in [*CACHES]:
            raise ValueError(unknown_name("prompt cache", rules, CACHES))
        rules = CACHES[rules]
    if is_long and rules.lifetime is not None:
        rules = replace(rules, lifetime=3_600.0)
    prices = prices_of(price, rules.is_for_an_hour)
    if prices is None and name is not None:
        prices = known_prices(name, hour=rules.is_for_an_hour)
    if isinstance(cache, PromptCache) and price is None and prices is not None and prices.input:
        # A given cache also sets the prices of reads and writes.
        prices = replace(
            prices,
            cache_read=prices.input.times(cache.read),
            cache_write=prices.input.times(cache.write),
        )
    own_window, disproved = _windows(trace, name)
    lines = (Allocation("instructions", required=True), Allocation("conversation"))
    setup = ReplaySetup(
        trace=trace,
        budget=Budget(window or own_window, allocations=lines, undeclared="pool"),
        cache=rules,
        prices=prices,
        count=scaled,
        session=session,
        disproved=0 if window else disproved,
    )
    if session is not None and len(in_line(session.columns)):
        acts_at = None if window else own_trigger(trace)
        return _as_recorded(replace(setup, acts_at=acts_at), session)
    whole, places = _whole(trace)
    return replace(setup, trace=whole, places=places)


def _as_recorded(setup: ReplaySetup, session: Session) -> ReplaySetup:
    """Return the setup with a recorded session's sizes, requests and misses."""
    measured = measure(session)
    held = _with_unlogged(session.trace)
    sizes = np.concatenate(([measured.unlogged], measured.sizes))
    whole, places = _whole(held)
    stays = np.array(places) >= 0
    prices = session.prices_by_request()
    is_summary = session.columns["is_summary"]
    beside = np.setdiff1d(np.flatnonzero(~is_summary), measured.rows)
    lengths = [size for size in session.compactions()["summary"].tolist() if size > 0]
    own_summaries = (min(lengths), max(lengths)) if lengths else None

    # Limits on cache reads: after all misses, and after those that no rule causes.
    read = session.columns["cache_read_tokens"]
    missed = session.misses()
    is_compaction = (missed["cause"] == COMPACTION).to_numpy()
    at = missed["request"].to_numpy() - 1
    all_missed = np.full(len(read), UNLIMITED)
    all_missed[:1] = read[:1]
    all_missed[at] = read[at]
    # A compaction after a pause longer than the cache lifetime hides an expired cache.
    has_expired = (session.happened["pause"] > session.happened["life"])[at]
    most_read = all_missed.copy()
    most_read[at[is_compaction]] = UNLIMITED
    most_read[at[is_compaction & has_expired]] = read[:1]
    # After a compaction, only the head is read; its size is known from earlier compactions or the first request.
    heads = read[at[is_compaction & ~has_expired]]
    head = int(np.median(heads)) if len(heads) else int(read[:1].sum()) or UNLIMITED
    return replace(
        setup,
        trace=whole,
        # A request's cache read shows which prefix had expired.
        cache=replace(setup.cache, lifetime=None),
        places=places[1:],
        summary_tokens=own_summaries,
        framing=MeasuredFraming(measured=tuple(sizes[stays].tolist())),
        record=Record(
            trace=held,
            framing=MeasuredFraming(measured=tuple(sizes.tolist())),
            rows=measured.rows,
            prices=tuple(prices[row] for row in measured.rows.tolist()),
            read_as_held=all_missed[measured.rows],
            most_read=most_read[measured.rows],
            after_compaction=head,
            answered=session.columns["output_tokens"][measured.rows],
            beside=float(np.sum(session.cost[beside]) + session.searches_cost[measured.rows].sum()),
        ),
    )


def own_trigger(trace: Trace, kinds: Collection[str | None] = ("auto",)) -> int | None:
    """Return the prompt size above which a session was compacted, in tokens.

    This is the size of the last prompt before a compaction, or the smallest of several such sizes. Return None if
    there is no compaction of these kinds with a recorded size. Only Claude Code's log distinguishes automatic and
    manual compactions.
    """
    marks = []
    usage = usage_columns(trace)
    for compaction in trace.compactions:
        if compaction.get("trigger") in kinds and compaction.get("before_tokens"):
            places = usage["message_index"]
            prompts = usage["context_tokens"][(places >= 0) & (places < compaction["at"])]
            marks.append(min([int(compaction["before_tokens"]), *prompts[-1:].tolist()]))
    return min(marks, default=None)


def with_compaction(system: System, **changes: Any) -> System:
    """Return a system with other values for its compactions."""
    rules = tuple(
        replace(rule, **changes) if isinstance(rule, Compact) else rule for rule in system.policies
    )
    return replace(system, policies=rules)


def _windows(trace: Trace, name: str | None) -> tuple[int, int]:
    """Return the window for the program's rules, and any disproved window.

    The window is known from the log (Codex shows a share of the window used by its rules) or from the model. If a
    prompt exceeds this known window, the session used an extended window, and the second number is the known window.
    Otherwise, the second number is 0. A session that was compacted far below a large model's window used the usual
    window.
    """
    known = USUAL_WINDOW
    shown = trace.fields.get("window")
    largest = usage_columns(trace)["context_tokens"].max(initial=0)
    if type(shown) is int:
        known = catalogue_of("codex", shown)
    else:
        with catch_warnings(action="ignore"), suppress(ValueError):
            known = model(name or "", unknown="raise").window
        if trace.compactions and largest <= USUAL_WINDOW:
            known = min(known, USUAL_WINDOW)
    if largest > known:
        return max(int(largest), EXTENDED_WINDOW), known
    return known, 0


def _with_unlogged(trace: Trace) -> Trace:
    """Add a message for the unlogged content before a session's own messages.

    The indices of compactions and usage are shifted.
    """
    before = Message({"role": "system", "content": UNLOGGED})
    moved = [
        {
            **compaction,
            "at": compaction["at"] + 1,
            "first_kept": compaction.get("first_kept", compaction["at"]) + 1,
            "kept": [slot + 1 for slot in compaction.get("kept") or () if type(slot) is int],
        }
        for compaction in trace.compactions
    ]
    # If the log begins with an answer, its prompt cannot be replayed.
    usage = [
        {**row, "message_index": row["message_index"] + 1}
        for row in trace.fields.get("usage") or ()
        if row.get("message_index")
    ]
    fields = {"compactions": moved, "usage": usage}
    return Trace(trace.id, (before, *trace.messages), fields=fields)


def _whole(trace: Trace) -> tuple[Trace, tuple[int, ...]]:
    """Return a conversation without its compactions, and each message's new index.

    A session's own summaries are removed; their index is -1.
    """
    is_summary = summaries_of(trace)
    places = np.where(is_summary, -1, np.cumsum(~is_summary) - 1).tolist()
    messages = tuple(compress(trace.messages, ~is_summary))
    usage = [
        {**row, "message_index": places[row["message_index"]]}
        for row in trace.fields.get("usage") or ()
        if row.get("message_index") is not None and not is_summary[row["message_index"]]
    ]
    return Trace(trace.id, messages, trace.tools, fields={"usage": usage}), tuple(places)


def section_of(message: Message) -> str:
    """Return "instructions" or "conversation" as the section of a message.

    The whole conversation can be pruned, including the steps of the current turn.
    """
    return "instructions" if message.role in SYSTEM_ROLES else "conversation"


def _with_misses(outcome: Replay, record: Record, most: Ints) -> Replay:
    """Limit a replay's cache reads to `most`, and use the recorded answers."""
    cached = np.minimum(outcome.cached, most)
    cached[0] = min(int(outcome.sent[0]), int(most[0]))
    lacking = outcome.cached - cached
    written = np.where(outcome.written > 0, np.maximum(outcome.written + lacking, 0), 0)
    return replace(outcome, cached=cached, written=written, output=record.answered)


def _stop(most: int, compacts: Ints) -> int:
    """Return the request at which a product stops after repeated compactions.

    Return 0 if the product does not stop.
    """
    in_a_row = 0
    for last, request in pairwise(compacts.tolist()):
        in_a_row = in_a_row + 1 if request - last <= most else 0
        if 0 < most == in_a_row:
            return int(request) + 1
    return 0
