"""The same messages under another system's rule: what a session would have cost, in dollars, as a range.

This is no forecast: under another rule the agent would have seen less and acted otherwise. It says what the *same*
requests would have cost. What nobody publishes is a range: the length of a summary, and whether a message that left and
was used later had to be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from warnings import catch_warnings

import numpy as np
import pandas as pd

from budgetkit.budget import Allocation, Budget
from budgetkit.counters import counter as counter_named
from budgetkit.lab.replay.cost import Prices, prices_of
from budgetkit.lab.replay.cost import prices as look_up
from budgetkit.lab.replay.losses import needed_there
from budgetkit.lab.replay.prompt_cache import CACHES, IDEAL, PromptCache, provider_rules
from budgetkit.lab.replay.replaying import replay
from budgetkit.lab.replay.results import Replay
from budgetkit.lab.sessions.later_use import used_later
from budgetkit.lab.sessions.session import Session
from budgetkit.message import SYSTEM_ROLES, Message
from budgetkit.models import model
from budgetkit.models.products import catalogue_of
from budgetkit.pruning.policies import OldestFirst, Policy, System
from budgetkit.pruning.policies.systems import policy_of
from budgetkit.trace import Trace, usage_frame

Count = Callable[[str], int]
#: The eight systems that are compared when none is named.
USUAL: Final = (
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
AS_IT_WAS: Final = "nothing leaves"
RECORDED: Final = "as recorded"
#: The text that stands for instructions and tools that the log does not hold.
UNLOGGED: Final = "(instructions and tools that the log does not hold)"
#: A window in which no rule ever acts.
UNLIMITED: Final = 1 << 40
#: What stands in where nobody knows a model's window, in tokens.
USUAL_WINDOW: Final = 200_000


@dataclass(frozen=True, slots=True)
class Scaled:
    """Count as a counter does, times a number that a session's own growth says.

    Examples
    --------
    >>> Scaled(len, 0.25)("Hello world!"), Scaled(len, 0.25, unlogged=9_000)(UNLOGGED)
    (3, 9000)
    """

    count: Count
    scale: float = 1.0
    unlogged: int = 0

    def __call__(self, text: str) -> int:
        """Return the tokens of a text; of the text that stands for what the log does not hold, the tokens of that."""
        if text == UNLOGGED:
            return self.unlogged
        return round(self.count(text) * self.scale)


def compare(
    source: Trace | Session,
    systems: Iterable[str | Policy] | Mapping[str, str | Policy] = USUAL,
    *,
    window: int | None = None,
    prices: Prices | str | None = None,
    cache: PromptCache | str | None = None,
    counter: Count | str | None = None,
) -> pd.DataFrame:
    """Put the rules of several systems side by side on the same messages, the cheapest first.

    Parameters
    ----------
    source : Trace or Session
        A conversation; of a recorded session its own growth and first request say what the log does not hold.
    systems : names, policies, or a mapping to them
        Names of :data:`budgetkit.pruning.policies.NAMED` or policies.
    window : int, optional
        In tokens; the model's when left out.
    prices : Prices or str, optional
        What tokens cost, or the model whose prices hold; those of the session's model when left out.
    cache : PromptCache or str, optional
        The provider's prompt cache; that of the model when left out.
    counter : callable or str, optional
        How texts are counted; characters divided by 4, scaled by the session's own growth, when left out.

    Returns
    -------
    DataFrame
        One row a rule, sorted by cost: system, label, version, least and most (in US dollars, over the assumptions;
        NaN where no price is known), relative (input against the same without a cache and rule), compactions, sent,
        cached (tokens), left (messages that left), used_later (of these, used again by what came later), first (the
        first request at which the rule acted), overflows (requests that exceed the window), loops (compactions at two
        requests in a row), call_overflows (calls that write a summary and exceed the window themselves) and assumed
        (what is ours).

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
    systems: Iterable[str | Policy] | Mapping[str, str | Policy] = USUAL,
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
    setup = setup_of(source, window, prices, cache, counter)
    if isinstance(systems, Mapping):
        named = dict(systems)
    else:
        named = {(rule if isinstance(rule, str) else repr(rule)): rule for rule in systems}
    pairs = used_later(setup.trace)
    outcomes = {AS_IT_WAS: _outcome(AS_IT_WAS, OldestFirst(), setup, window=UNLIMITED)}
    outcomes |= {name: _outcome(name, policy_of(rule), setup) for name, rule in named.items()}
    rows = [_row(outcome, setup, pairs) for outcome in outcomes.values()]
    if isinstance(source, Session):
        rows.append(_recorded(source))
    table = pd.DataFrame(rows)
    if table["least"].notna().any():
        by = ["least", "relative"]
    else:
        by = ["relative"]
    table = table.sort_values(by, kind="stable", ignore_index=True)
    return Comparison(table=table, outcomes=outcomes, pairs=pairs, setup=setup)


@dataclass(frozen=True, slots=True)
class ReplaySetup:
    """A conversation as all rules see it: without its own compactions, with what its log does not hold.

    `places` says where each message of the log stands now, -1 for a summary of the session's own. `summary_tokens` is
    the range of these summaries, where it wrote any.
    """

    trace: Trace
    budget: Budget
    cache: PromptCache
    prices: Prices | None
    count: Count
    places: tuple[int, ...] = ()
    summary_tokens: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """What one rule did: with the shortest summaries, and with the longest; the same replay where it writes none."""

    name: str
    policy: Policy
    least: Replay
    most: Replay


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rules side by side: the table of :func:`compare`, each rule's replay by name, and which call needs what."""

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
    window, given, cache, count
        The window, prices, cache and counter of :func:`compare`; those of the session when None.

    Returns
    -------
    ReplaySetup
        What every rule is replayed on.
    """
    scaled = Scaled(count if callable(count) else counter_named(count or "chars/4"))
    is_long = False
    if isinstance(source, Session):
        trace = source.trace
        name = source.model
        scaled = replace(scaled, scale=source.counted[1], unlogged=max(0, source.unlogged))
        for_an_hour = int(source.usage["cache_write_1h_tokens"].fillna(0).sum())
        is_long = 2 * for_an_hour > int(source.usage["cache_write_tokens"].sum())
    else:
        trace = source
        name = source.model
    prices = prices_of(price)
    if prices is None and name is not None:
        prices = look_up(name, hour=is_long)
    with catch_warnings(
        action="ignore"
    ):  # a session may name a model that has ended, or that nobody knows
        own_cache = provider_rules(name) if name else IDEAL
    if isinstance(cache, PromptCache):
        rules = cache
    else:
        rules = CACHES[cache or own_cache]
    if is_long and rules.lifetime is not None:
        rules = replace(rules, lifetime=3_600.0)
    size = window or _window(trace, name)
    lines = (Allocation("instructions", required=True), Allocation("conversation"))
    budget = Budget(size, allocations=lines, undeclared="pool")
    whole, places = _whole(trace, scaled.unlogged)
    own_summaries = None
    if isinstance(source, Session):
        lengths = source.compactions()["summary"]
        lengths = lengths[lengths > 0]
        if lengths.empty:
            own_summaries = None
        else:
            own_summaries = (int(lengths.min()), int(lengths.max()))
    return ReplaySetup(
        trace=whole,
        budget=budget,
        cache=rules,
        prices=prices,
        count=scaled,
        places=places,
        summary_tokens=own_summaries,
    )


def _window(trace: Trace, name: str | None) -> int:
    """Return the window that the program's rules go by: as its log shows it, else the model's, else a usual one.

    Codex shows a share of the window that its rules go by. A session that was compacted although it never came near a
    large model's window was held in the usual one.
    """
    shown = trace.fields.get("window")
    if type(shown) is int:
        return catalogue_of("codex", shown)
    try:
        with catch_warnings(action="ignore"):
            whole = model(name or "", unknown="raise").window
    except ValueError:
        return USUAL_WINDOW
    largest = usage_frame(trace)["context_tokens"].max()  # missing where no usage is told
    if trace.fields.get("compactions") and largest <= USUAL_WINDOW:
        return min(whole, USUAL_WINDOW)
    return whole


def _whole(trace: Trace, unlogged: int) -> tuple[Trace, tuple[int, ...]]:
    """Return a conversation without its own compactions, with a message for what the log does not hold, and the places.

    A session's own summaries are left out; the place of each other message in what is returned stands beside it.
    """
    summaries: set[int] = set()
    for compaction in trace.fields.get("compactions") or ():
        summaries.update(
            range(compaction["at"], compaction["at"] + int(compaction.get("messages", 1)))
        )
    if unlogged:
        messages = [Message({"role": "system", "content": UNLOGGED})]
    else:
        messages = []
    places: list[int] = []
    for place, message in enumerate(trace.messages):
        if place in summaries:
            places.append(-1)
            continue
        places.append(len(messages))
        messages.append(message)
    return Trace(trace.id, tuple(messages), trace.tools), tuple(places)


def section_of(message: Message) -> str:
    """Return the section of a message: what is pruned is the whole conversation, this turn's steps among it."""
    if message.role in SYSTEM_ROLES:
        return "instructions"
    return "conversation"


def replayed(setup: ReplaySetup, policy: Policy, window: int | None = None) -> Replay:
    """Send the conversation through one rule, request by request."""
    if window is None:
        budget = setup.budget
    else:
        budget = setup.budget.assign(window=window)
    return replay(
        setup.trace,
        budget,
        policy,
        counter=setup.count,
        roles=section_of,
        section="conversation",
        by="request",
        cache=setup.cache,
        prices=setup.prices,
    )


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


def _row(outcome: RuleOutcome, setup: ReplaySetup, pairs: pd.DataFrame) -> dict[str, Any]:
    """Compare one rule: at the shortest and at the longest summaries, and with what was lost read again."""
    policy = outcome.policy
    least = outcome.least
    most = outcome.most
    _, needs, there = needed_there(most, pairs)
    # What no request ever holds, such as a call without a result, was not lost by a rule.
    lost = np.unique(needs[~there & ~most.placed.unsent[needs]])
    again = 0.0
    if setup.prices is not None:
        tokens = np.array([int(most.placed.tokens[lost].sum())])
        none = np.array([0])
        again = float(setup.prices.cost(tokens, none, none, np.array([_CALL * len(lost)]))[0])
    costs = [float(np.sum(least.cost)), float(np.sum(most.cost))]
    retention = most.kept
    totals = most.totals()
    summaries = np.array(retention.summaries)
    acts = np.flatnonzero(
        summaries + np.array(retention.shrunk_messages) + np.array(retention.dropped_messages)
    )
    compacts = np.flatnonzero(summaries)
    left = [request for request in (*retention.gone, *retention.shrunk) if request >= 0]
    return {
        "system": outcome.name,
        "label": policy.label if isinstance(policy, System) else outcome.name,
        "version": f"{policy.version}, {policy.date}" if isinstance(policy, System) else "",
        "least": min(costs),
        "most": max(costs) + again,
        "relative": float(totals["relative_cost"]),
        "compactions": int(np.sum(retention.summaries)),
        "sent": int(totals["sent"]),
        "cached": int(totals["cached"]),
        "left": len(left),
        "used_later": len(lost),
        "first": int(acts[0]) + 1 if len(acts) else 0,
        "overflows": int(np.count_nonzero(most.over)),
        "loops": int(np.count_nonzero(np.diff(compacts) == 1)),
        "call_overflows": int(np.count_nonzero(most.summary_prompts > setup.budget.window)),
        "assumed": "; ".join(policy.assumed) if isinstance(policy, System) else "",
    }


_CALL = 60  # tokens of the call that reads a lost message again


def _recorded(session: Session) -> dict[str, Any]:
    """Return the row of what was really billed."""
    totals = session.totals()
    cost = float(totals["cost"])
    gone = session.trace.gone
    pairs = used_later(session.trace)
    later, needs = (pairs[name].to_numpy(dtype=np.int64) for name in ("message", "needs"))
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
        "used_later": len(np.unique(needs[gone[needs] <= later])),
        "first": 0,
        "overflows": 0,
        "loops": 0,
        "call_overflows": 0,
        "assumed": "",
    }
