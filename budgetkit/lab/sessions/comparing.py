"""Dollar costs of the same messages under other systems' rules.

Each cost is a range.

This is no forecast: under another rule the agent would have seen less and acted otherwise. It says what the *same*
requests would have cost. What nobody publishes is a range: the length of a summary, and whether a message that left and
was used later had to be read again.

Of a recorded session the requests, their models and answers, the sizes of messages and the misses that no rule causes
are those of the record; what a rule breaks comes on top. The session as it was held is replayed, too, which says how
far such a replay is from the bill.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from warnings import catch_warnings

import numpy as np
import pandas as pd

from budgetkit.budget import Allocation, Budget
from budgetkit.counters import Count
from budgetkit.counters import counter as counter_named
from budgetkit.lab.replay import Prices, Replay, prices_of
from budgetkit.lab.replay.cost import known_prices
from budgetkit.lab.replay.losses import needed_there
from budgetkit.lab.replay.prompt_cache import CACHES, IDEAL, PromptCache, provider_rules
from budgetkit.lab.replay.replaying import replay
from budgetkit.lab.sessions.causes import COMPACTION, used_later
from budgetkit.lab.sessions.holding import MeasuredFraming, measure, summaries_of
from budgetkit.lab.sessions.session import NOT_LOGGED, Session
from budgetkit.message import RESULT_ROLES, SYSTEM_ROLES, Data, Message, Raw
from budgetkit.models import model
from budgetkit.models.limits import catalogue_of
from budgetkit.plan import Flags, Ints
from budgetkit.pruning import NEVER, OldestFirst, Policy, policy_of
from budgetkit.pruning.policies import Compact, System, Trigger
from budgetkit.requests import Framing
from budgetkit.trace import Trace, flags, in_line, ints, usage_frame

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
#: The text that stands for instructions and tools that the log does not hold.
UNLOGGED = "(instructions and tools that the log does not hold)"
#: A window in which no rule ever acts.
UNLIMITED = 1 << 40
#: The extended window that providers sell beside a model's own, in tokens.
EXTENDED_WINDOW = 1_000_000
_NEAR_THE_BILL = 0.05  # a replay of what was done that is further off ranks nothing
#: What stands in where nobody knows a model's window, in tokens.
USUAL_WINDOW = 200_000


@dataclass(frozen=True)
class Scaled:
    """Count as a counter does, times a number that a session's own growth says.

    Examples
    --------
    >>> Scaled(len, 0.25)("Hello world!")
    3
    """

    count: Count
    scale: float = 1.0

    def __call__(self, text: str) -> int:
        """Return the tokens of a text."""
        return round(self.count(text) * self.scale)


def compare(
    source: Trace | Session,
    systems: Systems = USUAL,
    *,
    window: int | None = None,
    prices: Prices | str | None = None,
    cache: PromptCache | str | None = None,
    counter: Count | str | None = None,
) -> pd.DataFrame:
    """Put the rules of several systems side by side on the same messages, the cheapest first.

    All rows are at one price list. Where a replay of what was done is more than 5 % off the bill, nothing is ranked:
    the rows stay in the order in which they were named.

    Parameters
    ----------
    source : Trace or Session
        A conversation; of a recorded session its own growth and first request say what the log does not hold.
    systems : names, policies, or a mapping to them
        Names of :data:`budgetkit.pruning.policies.NAMED` or policies.
    window : int, optional
        In tokens; the model's when left out, or a larger one where a recorded prompt disproves it.
    prices : Prices or str, optional
        What tokens cost, or the model whose prices hold; those of each request's model and day when left out.
    cache : PromptCache or str, optional
        The provider's prompt cache; that of the model when left out. The reads of a session are recorded, so none is
        taken for one.
    counter : callable or str, optional
        How texts are counted; characters divided by 4, scaled by the session's own growth, when left out.

    Returns
    -------
    DataFrame
        One row a rule, sorted by cost: system, label, version, least and most (in US dollars, over the assumptions;
        NaN where no price is known), relative (input against the same without a cache and rule), compactions, sent,
        cached (tokens), left (messages that left or were shortened), capped (results cut on arrival), used_later (of
        those that left, used again by what came later), first (the first request at which the rule acted), overflows
        (requests that exceed the window), loops (compactions at two requests in a row), stops (the
        request at which the product would stop, as it compacts again and again; 0 for none), call_overflows (calls that
        write a summary and exceed the window themselves), summary_cost (what these calls cost at most, in US dollars,
        within the cost) and assumed (what is ours). Of a recorded session `attrs` holds replayed, what the session as
        it was held comes to in the same replay (in US dollars, beside the bill), own_trigger, where Claude Code
        compacted it (in tokens), unlogged_summaries, how many of its compactions have no call in the log, and
        disproved, the model's window where a recorded prompt is larger.

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
    return comparison(
        source, systems, window=window, prices=prices, cache=cache, counter=counter
    ).table


def comparison(
    source: Trace | Session,
    systems: Systems = USUAL,
    *,
    window: int | None = None,
    prices: Prices | str | None = None,
    cache: PromptCache | str | None = None,
    counter: Count | str | None = None,
) -> Comparison:
    """Replay the rules of several systems on the same messages, and keep each replay beside the table.

    Parameters
    ----------
    source, systems, window, prices, cache, counter
        As in :func:`compare`.

    Returns
    -------
    Comparison
        The table and, by name, what each rule did.
    """
    if isinstance(source, Session) and prices not in (None, source.prices):
        source = Session(source.trace, source.counter, prices)
    setup = setup_of(source, window, prices, cache, counter)
    pairs = used_later(setup.trace)
    outcomes = {AS_IT_WAS: _outcome(AS_IT_WAS, OldestFirst(), setup, window=UNLIMITED)}
    policies = rules_of(systems)
    trigger = None
    if setup.record is not None and window is None:
        trigger = own_trigger(setup.record.trace)
    if trigger is not None:
        policies = {name: _acting_at(trigger, policy) for name, policy in policies.items()}
    outcomes |= {name: _outcome(name, policy, setup) for name, policy in policies.items()}
    rows = [_row(outcome, setup, pairs) for outcome in outcomes.values()]
    held_cost = float("nan")
    unlogged_summaries = 0
    if isinstance(source, Session):
        rows.append(recorded_row(source))
        unlogged_summaries = int((source.compactions()["call"] == NOT_LOGGED).sum())
        if setup.record is not None:
            held_cost = cost_of(setup, as_held(setup))
    table = pd.DataFrame(rows)
    table.attrs |= {
        "replayed": held_cost,
        "own_trigger": trigger,
        "unlogged_summaries": unlogged_summaries,
        "disproved": 0 if window else _disproved_window(setup.trace, source.model),
    }
    if is_ranked(table):
        table = ranked(table)
    return Comparison(table=table, outcomes=outcomes, pairs=pairs, setup=setup)


def rules_of(systems: Systems) -> dict[str, Policy]:
    """Return policies by name."""
    if isinstance(systems, Mapping):
        named = dict(systems)
    else:
        named = {(rule if isinstance(rule, str) else repr(rule)): rule for rule in systems}
    return {name: policy_of(rule) for name, rule in named.items()}


def is_ranked(table: pd.DataFrame) -> bool:
    """Say whether rules may be ranked: the session as it was held, replayed, comes within 5 % of the bill.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compare`.

    Returns
    -------
    bool
        Also True where nothing was recorded, or no price is known.
    """
    billed = table.loc[table["system"] == RECORDED, "least"].max()
    return not billed > 0 or is_near(replayed_cost(table) / billed - 1)


def is_near(error: float) -> bool:
    """Return whether a replay of a session as it was held is near enough to its bill to rank anything."""
    return not abs(error) > _NEAR_THE_BILL


def ranked(table: pd.DataFrame) -> pd.DataFrame:
    """Sort rules by cost, or where no price is known by the relative cost."""
    by = ["least", "relative"] if table["least"].notna().any() else ["relative"]
    return table.sort_values(by, kind="stable", ignore_index=True)


def replayed_cost(table: pd.DataFrame) -> float:
    """Return the cost of the session as it was held, in the same replay; NaN where it was not."""
    cost: float = table.attrs.get("replayed", float("nan"))
    return cost


@dataclass(frozen=True)
class ReplaySetup:
    """A conversation as every rule sees it, without its own compactions.

    It includes the content that the log does not hold.

    `places` says where each message of the log stands now, -1 for a summary of the session's own. `summary_tokens` is
    the range of these summaries, where it wrote any. `record` is what a recorded session says of its requests.
    """

    trace: Trace
    budget: Budget
    cache: PromptCache
    prices: Prices | None
    count: Count
    places: tuple[int, ...] = ()
    summary_tokens: tuple[int, int] | None = None
    framing: Framing | None = None
    record: Record | None = None


@dataclass(frozen=True)
class Record:
    """The recorded facts about a session's requests, whatever the rule.

    `trace` and `framing` are the session as it was held, `rows` the places of its requests in the usage. `prices` are
    those of each request, `answered` its output, `read_as_held` what it read at most where it missed, and `most_read`
    the same where no rule causes the miss; `after_compaction` is what is read at most after one. `beside` is what
    requests beside the line cost, in US dollars, such as those on branches that were left.
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
    """One rule's replays, with the shortest and with the longest summaries.

    Both are the same replay if the rule writes none.
    """

    name: str
    policy: Policy
    least: Replay
    most: Replay


@dataclass(frozen=True)
class Comparison:
    """A comparison of rules: table, replays by rule, and needed messages."""

    table: pd.DataFrame
    outcomes: Mapping[str, RuleOutcome]
    pairs: pd.DataFrame
    setup: ReplaySetup


def setup_of(
    source: Trace | Session,
    window: int | None,
    price: Prices | str | None,
    cache: PromptCache | str | None,
    count: Any,
) -> ReplaySetup:
    """Prepare a conversation for any rule.

    Parameters
    ----------
    source : Trace or Session
        A conversation.
    window, price, cache, count
        The window, prices, cache and counter of :func:`compare`; those of the session when None.

    Returns
    -------
    ReplaySetup
        What every rule is replayed on.
    """
    session = source if isinstance(source, Session) else None
    trace = source.trace if isinstance(source, Session) else source
    scaled = Scaled(count if callable(count) else counter_named(count or "chars/4"))
    is_long = False
    if session is not None:
        price = session.prices if price is None else price
        if cache is not None:
            raise ValueError(
                "A recorded session takes no cache=: its reads are recorded. Leave cache= out, or compare "
                "session.trace to replay its messages with another cache."
            )
        scaled = replace(scaled, scale=session.counted[1])
        for_an_hour = int(session.usage["cache_write_1h_tokens"].sum())
        is_long = 2 * for_an_hour > int(session.usage["cache_write_tokens"].sum())
    name = source.model
    prices = prices_of(price)
    if prices is None and name is not None:
        prices = known_prices(name, hour=is_long)
    if isinstance(cache, PromptCache) and price is None and prices is not None and prices.input:
        # A cache that is given says what its tokens cost, too.
        prices = replace(
            prices,
            cache_read=prices.input.times(cache.read),
            cache_write=prices.input.times(cache.write),
        )
    # A session may name a model that has ended, or that nobody knows.
    with catch_warnings(action="ignore"):
        own_cache = provider_rules(name) if name else IDEAL
    rules = cache if isinstance(cache, PromptCache) else CACHES[cache or own_cache]
    if is_long and rules.lifetime is not None:
        rules = replace(rules, lifetime=3_600.0)
    size = window or _window(trace, name)
    lines = (Allocation("instructions", required=True), Allocation("conversation"))
    setup = ReplaySetup(
        trace=trace,
        budget=Budget(size, allocations=lines, undeclared="pool"),
        cache=rules,
        prices=prices,
        count=scaled,
    )
    if session is not None and len(in_line(session.usage)):
        return _as_recorded(setup, session, price)
    whole, places = _whole(trace)
    return replace(setup, trace=whole, places=places)


def _as_recorded(setup: ReplaySetup, session: Session, price: Prices | str | None) -> ReplaySetup:
    """Return the setup with a recorded session's sizes, requests and misses."""
    measured = measure(session)
    held = _with_unlogged(session.trace)
    sizes = np.concatenate(([measured.unlogged], measured.sizes))
    whole, places = _whole(held)
    stays = np.array(places) >= 0
    if price is None:
        prices = session.prices_by_request()
    else:
        prices = (setup.prices or Prices(""),) * len(session.usage)
    beside = np.setdiff1d(np.arange(len(session.usage)), measured.rows)
    beside = beside[~flags(session.usage["is_summary"])[beside]]
    lengths = session.compactions()["summary"]
    lengths = lengths[lengths > 0]
    own_summaries = None
    if not lengths.empty:
        own_summaries = (int(lengths.min()), int(lengths.max()))
    all_missed, most_read, head = _most_read(session, measured.rows)
    return replace(
        setup,
        trace=whole,
        # What expired before a request, and what did not, is told by its read.
        cache=replace(setup.cache, lifetime=None),
        places=places[1:],
        summary_tokens=own_summaries,
        framing=_framing(sizes[stays]),
        record=Record(
            trace=held,
            framing=_framing(sizes),
            rows=measured.rows,
            prices=tuple(prices[row] for row in measured.rows.tolist()),
            read_as_held=all_missed,
            most_read=most_read,
            after_compaction=head,
            answered=ints(session.usage["output_tokens"])[measured.rows],
            beside=float(np.sum(session.cost[beside]) + session.searches_cost[measured.rows].sum()),
        ),
    )


def _framing(sizes: Ints) -> Framing:
    return MeasuredFraming(measured=tuple(sizes.tolist()))


def _most_read(session: Session, rows: Ints) -> tuple[Ints, Ints, int]:
    """Return each request's limits on cache reads after misses.

    One holds for misses of any cause, the other for those that no rule causes.

    The third is what is read at most after any compaction: the head that stays, as the session's own ones show it, or
    as its first request does.
    """
    read = ints(session.usage["cache_read_tokens"])
    missed = session.misses()
    is_compaction = flags(missed["cause"] == COMPACTION)
    places = ints(missed["request"]) - 1
    whole = np.full(len(read), UNLIMITED)
    whole[:1] = read[:1]
    whole[places] = read[places]
    # A compaction after a pause that nothing outlives hides that pause.
    happened = session.happened
    has_expired = flags(happened["pause"] > happened["life"])[places]
    most = whole.copy()
    most[places[is_compaction]] = UNLIMITED
    most[places[is_compaction & has_expired]] = read[:1]
    heads = read[places[is_compaction & ~has_expired]]
    head = int(np.median(heads)) if len(heads) else int(read[:1].sum()) or UNLIMITED
    return whole[rows], most[rows], head


def own_trigger(trace: Trace, kinds: Collection[str | None] = ("auto",)) -> int | None:
    """Return the prompt above which a session's program compacted it, in tokens; None where it never did.

    It is the last prompt that was sent before a compaction, the smallest of several. Only Claude Code's log names the
    kind of a compaction: automatic or by hand.
    """
    marks = []
    for compaction in trace.fields.get("compactions") or ():
        prompts = [
            int(row["context_tokens"])
            for row in trace.fields.get("usage") or ()
            if row.get("message_index") is not None and row["message_index"] < compaction["at"]
        ]
        if compaction.get("trigger") in kinds and compaction.get("before_tokens"):
            marks.append(min([int(compaction["before_tokens"]), *prompts[-1:]]))
    return min(marks, default=None)


def _acting_at(tokens: int, policy: Policy) -> Policy:
    """Let Claude Code's rule act where its own compactions in this session did; any other rule is as it was.

    That prompt was still sent.
    """
    if not isinstance(policy, System) or policy.name != "claude-code":
        return policy
    assumed = tuple(words for words in policy.assumed if "trigger" not in words)
    acting = with_compaction(policy, triggers=(Trigger("tokens", tokens, above=True),))
    return replace(acting, assumed=assumed)


def with_compaction(system: System, **changes: Any) -> System:
    """Return a system whose compactions have other values."""
    rules = tuple(
        replace(rule, **changes) if isinstance(rule, Compact) else rule for rule in system.policies
    )
    return replace(system, policies=rules)


def _window(trace: Trace, name: str | None) -> int:
    """Return the window that the program's rules go by: as its log shows it, else the model's, else a usual one.

    Codex shows a share of the window that its rules go by. A prompt that is larger than the window disproves it: then
    the session was held in an extended one. A session that was compacted although it never came near a
    large model's window was held in the usual one.
    """
    largest = usage_frame(trace)["context_tokens"].max()  # missing where no usage is told
    if _disproved_window(trace, name):
        return max(int(largest), EXTENDED_WINDOW)
    whole = _named_window(trace, name)
    if "window" not in trace.fields and trace.fields.get("compactions") and largest <= USUAL_WINDOW:
        return min(whole, USUAL_WINDOW)
    return whole


def _named_window(trace: Trace, name: str | None) -> int:
    """Return the window as the log shows it, else the model's, else a usual one."""
    shown = trace.fields.get("window")
    if type(shown) is int:
        return catalogue_of("codex", shown)
    try:
        with catch_warnings(action="ignore"):
            return model(name or "", unknown="raise").window
    except ValueError:
        return USUAL_WINDOW


def _disproved_window(trace: Trace, name: str | None) -> int:
    """Return the named window if a recorded prompt exceeds it, else 0."""
    whole = _named_window(trace, name)
    return whole if usage_frame(trace)["context_tokens"].max() > whole else 0


def _with_unlogged(trace: Trace) -> Trace:
    """Add a message for the unlogged content before a session's own.

    Compactions and usage move along.
    """
    before = Message({"role": "system", "content": UNLOGGED})
    moved = [
        {
            **compaction,
            "at": compaction["at"] + 1,
            "first_kept": compaction.get("first_kept", compaction["at"]) + 1,
            "kept": [slot + 1 for slot in compaction.get("kept") or () if type(slot) is int],
        }
        for compaction in trace.fields.get("compactions") or ()
    ]
    usage = [_moved(row, 1) for row in trace.fields.get("usage") or ()]
    fields = {"compactions": moved, "usage": usage}
    return Trace(trace.id, (before, *trace.messages), fields=fields)


def _moved(row: Raw, by: int) -> Raw:
    """Move the message that a usage record is of."""
    if row.get("message_index") is None:
        return row
    return {**row, "message_index": row["message_index"] + by}


def _whole(trace: Trace) -> tuple[Trace, tuple[int, ...]]:
    """Return a conversation without its own compactions, and where each message stands in it.

    A session's own summaries are left out, and their place is -1.
    """
    is_summary = summaries_of(trace)
    places = np.where(is_summary, -1, np.cumsum(~is_summary) - 1)
    messages = tuple(
        message
        for message, left_out in zip(trace.messages, is_summary.tolist(), strict=True)
        if not left_out
    )
    usage = [
        _moved(row, int(places[row["message_index"]]) - row["message_index"])
        for row in trace.fields.get("usage") or ()
        if row.get("message_index") is not None and not is_summary[row["message_index"]]
    ]
    whole = Trace(trace.id, messages, trace.tools, fields={"usage": usage})
    return whole, tuple(places.tolist())


def section_of(message: Message) -> str:
    """Return the section of a message: "instructions" or "conversation".

    The whole conversation is pruned, the steps of the current turn among it.
    """
    if message.role in SYSTEM_ROLES:
        return "instructions"
    return "conversation"


def replayed(setup: ReplaySetup, policy: Policy, window: int | None = None) -> Replay:
    """Send the conversation through one rule, request by request.

    Misses that the record tells, and that no rule causes, happen again.
    """
    outcome = _sent_through(setup, setup.trace, setup.framing, policy, window)
    record = setup.record
    if record is None:
        return outcome
    compacts = np.array(outcome.kept.summaries) > 0
    most = np.where(
        compacts, np.minimum(record.most_read, record.after_compaction), record.most_read
    )
    return _with_misses(outcome, record, most)


def _sent_through(
    setup: ReplaySetup,
    trace: Trace,
    framing: Framing | None,
    policy: Policy,
    window: int | None = None,
) -> Replay:
    budget = setup.budget if window is None else setup.budget.assign(window=window)
    return replay(
        trace,
        budget,
        policy,
        counter=setup.count,
        roles=section_of,
        framing=framing,
        section="conversation",
        by="request" if setup.record is None else "usage",
        cache=setup.cache,
        prices=setup.prices,
    )


def _with_misses(outcome: Replay, record: Record, most: Ints) -> Replay:
    """Let requests read no more than the record says; the answers are the recorded ones."""
    cached = np.minimum(outcome.cached, most)
    cached[0] = min(int(outcome.sent[0]), int(most[0]))
    lacking = outcome.cached - cached
    written = np.where(outcome.written > 0, np.maximum(outcome.written + lacking, 0), 0)
    return replace(outcome, cached=cached, written=written, output=record.answered)


def cost_of(setup: ReplaySetup, outcome: Replay) -> float:
    """Return a rule's cost in US dollars; NaN if unknown.

    Each request is billed at its own model's prices.
    """
    beside = 0.0 if setup.record is None else setup.record.beside
    return beside + sum(float(part.cost[rows].sum()) for part, rows in _by_prices(setup, outcome))


def summary_cost_of(setup: ReplaySetup, outcome: Replay) -> float:
    """Return the cost of a rule's summary calls; NaN if unknown.

    It is in US dollars.
    """
    parts = _by_prices(setup, outcome)
    return sum(float(part.summary_cost[rows].sum()) for part, rows in parts)


def _by_prices(setup: ReplaySetup, outcome: Replay) -> list[tuple[Replay, Flags]]:
    """Return the replay at each of the record's prices, and the requests that have them."""
    record = setup.record
    if record is None:
        return [(outcome, np.ones(len(outcome.over), "bool"))]
    return [
        (
            replace(outcome, prices=prices),
            np.array([of_request is prices for of_request in record.prices]),
        )
        for prices in dict.fromkeys(record.prices)
    ]


def as_held(setup: ReplaySetup) -> Replay:
    """Replay a recorded session with its own compactions and cache misses.

    Parameters
    ----------
    setup : ReplaySetup
        Of a recorded session.

    Returns
    -------
    Replay
        On the session's own messages, with one more before them for what the log does not hold.

    Raises
    ------
    ValueError
        If nothing was recorded.
    """
    record = setup.record
    if record is None:
        raise ValueError("nothing was recorded of this conversation; give a session with usage")
    outcome = _sent_through(setup, record.trace, record.framing, OldestFirst(), UNLIMITED)
    leave = outcome.placed.leave
    gone = np.where(leave < len(outcome.over), leave, NEVER).tolist()
    kept = replace(outcome.kept, gone=gone)
    outcome = replace(outcome, kept=kept, budget=setup.budget)
    return _with_misses(outcome, record, record.read_as_held)


def _outcome(
    name: str, policy: Policy, setup: ReplaySetup, window: int | None = None
) -> RuleOutcome:
    """Replay one rule, at the shortest and at the longest summaries where it writes any."""
    if not isinstance(policy, System) or not policy.summarises:
        outcome = replayed(setup, policy, window)
        return RuleOutcome(name=name, policy=policy, least=outcome, most=outcome)
    short, long = setup.summary_tokens or policy.summary_tokens
    least = most = replayed(setup, policy.with_summaries(short), window)
    if long > short and any(least.kept.summaries):
        most = replayed(setup, policy.with_summaries(long), window)
    return RuleOutcome(name=name, policy=policy, least=least, most=most)


def compare_rule(
    name: str, policy: Policy, setup: ReplaySetup, pairs: pd.DataFrame, window: int | None = None
) -> tuple[Data, Replay]:
    """Replay one rule; return its row, and its replay with the longest summaries."""
    outcome = _outcome(name, policy, setup, window)
    return _row(outcome, setup, pairs), outcome.most


def _row(outcome: RuleOutcome, setup: ReplaySetup, pairs: pd.DataFrame) -> Data:
    """Return one rule's row of the comparison.

    The upper end of its cost has the longest summaries, and reads the lost messages again.
    """
    policy = outcome.policy
    system = policy if isinstance(policy, System) else None
    most = outcome.most
    _, needs, there = needed_there(most, pairs)
    # What no request ever holds, such as a call without a result, was not lost by a rule.
    lost = np.unique(needs[~there & ~most.placed.unsent[needs]])
    again = 0.0
    if setup.prices is not None:
        tokens = np.array([int(most.placed.tokens[lost].sum())])
        none = np.array([0])
        again = float(setup.prices.cost(tokens, none, none, np.array([_CALL * len(lost)]))[0])
    costs = [cost_of(setup, outcome.least), cost_of(setup, most)]
    retention = most.kept
    totals = most.totals()
    acts = np.flatnonzero(most.acts)
    compacts = np.flatnonzero(retention.summaries)
    left = [request for request in (*retention.gone, *retention.shrunk) if request >= 0]
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
        "capped": _capped(most),
        "used_later": len(lost),
        "first": int(acts[0]) + 1 if len(acts) else 0,
        "overflows": int(np.count_nonzero(most.over)),
        "loops": int(np.count_nonzero(np.diff(compacts) == 1)),
        "stops": _stop(policy, compacts),
        "call_overflows": int(np.count_nonzero(most.summary_prompts > setup.budget.window)),
        "summary_cost": summary_cost_of(setup, most),
        "assumed": "; ".join(system.assumed) if system else "",
    }


def _stop(policy: Policy, compacts: Ints) -> int:
    """Return the request, from 1, at which a product gives up compacting again and again; 0 for none."""
    most = policy.stops_after if isinstance(policy, System) else 0
    in_a_row = 0
    for last, request in pairwise(compacts.tolist()):
        in_a_row = in_a_row + 1 if request - last <= most else 0
        if 0 < most == in_a_row:
            return int(request) + 1
    return 0


def _capped(outcome: Replay) -> int:
    """Count the results that a rule cuts when they arrive; such a rule acts, although nothing ever leaves."""
    roles = [message.role for message in outcome.trace.messages]
    arrivals = zip(outcome.placed.tokens.tolist(), roles, strict=True)
    return sum(
        outcome.policy.arriving(tokens, role in RESULT_ROLES) < tokens for tokens, role in arrivals
    )


_CALL = 60  # tokens of the call that reads a lost message again


def recorded_row(session: Session) -> Data:
    """Return the row of the session as it was billed."""
    totals = session.totals()
    cost = float(totals["cost"])
    gone = session.trace.gone
    pairs = used_later(session.trace)
    later, needs = (ints(pairs[name]) for name in ("message", "needs"))
    return {
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
        "capped": 0,
        "used_later": len(np.unique(needs[gone[needs] <= later])),
        "first": 0,
        "overflows": 0,
        "loops": 0,
        "stops": 0,
        "call_overflows": 0,
        "summary_cost": float("nan"),
        "assumed": "",
    }
