"""Solve a budget backwards: the smallest window, the largest reserve, the least cap for which something holds.

    smallest n with  so_that(plan(budget with line = n))      and not with n - 1

Where more of a line can only help, or only harm, the place is found by halving. Where sizes are shares, or a section
is dropped whole, a larger window may cut more; then every size on a grid is tried first, and the answer says so.

Windows are looked for up to the one beyond which none grants more (:func:`budgetkit.plan.why.settled_window`), so
that "no window will do" is said only where it is so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

import numpy as np
import pandas as pd

from budgetkit.budget import Budget, Share
from budgetkit.budget.amounts import MOST_TOKENS, check_tokens
from budgetkit.budget.quoting import brief, quoted
from budgetkit.counters import basis_of
from budgetkit.counters import counter as counter_of
from budgetkit.inputs.budgets import AnyBudget, AnyCounter, AnyModel, Setup, preset_of, setup_of
from budgetkit.inputs.conversations import AnyTrace, trace_of, traces_of
from budgetkit.lab.replay.cost import MILLION, Prices, prices_of
from budgetkit.models.resolved import resolve
from budgetkit.plan.allocating import allocate_columns
from budgetkit.plan.items import Ints
from budgetkit.plan.why import nearest, settled_window
from budgetkit.promise import is_controlled, lacking, misses
from budgetkit.trace import DEFAULT_ROLES, Trace

Room = Literal["helps", "harms", "unknown"]


@dataclass(frozen=True)
class Planned:
    """The grants of many demands under one budget; a row is a turn, or a conversation."""

    budget: Budget
    columns: Mapping[str, Mapping[str, Ints]]
    index: pd.MultiIndex | pd.Index

    def total(self, column: str) -> Ints:
        """Sum a column over all sections, in each row."""
        return sum((c[column] for c in self.columns.values()), np.zeros(len(self.index), np.int64))

    @property
    def cut(self) -> Ints:
        """Tokens cut in each row."""
        return self.total("cut")

    @property
    def granted(self) -> Ints:
        """Tokens sent in each row."""
        return self.total("granted")

    @property
    def overrun(self) -> bool:
        """Whether what is required in some row is more than the window holds."""
        claims = self.budget.held.items()
        reserved = sum(
            np.minimum(self.columns[section]["granted"], tokens) for section, tokens in claims
        )
        return bool((self.granted - reserved > self.budget.window - self.budget.reserved).any())

    @property
    def conversations(self) -> Ints:
        """The number of the conversation that each row belongs to; every row its own where nothing says so."""
        return conversations_of(self.index)


def conversations_of(index: pd.MultiIndex | pd.Index) -> Ints:
    """Return the number of the conversation that each row of demands belongs to."""
    if index.nlevels > 1:
        level = index.get_level_values(0)
    else:
        level = index
    return np.asarray(pd.factorize(level)[0], dtype=np.int64)


def planned(budget: Budget, demands: pd.DataFrame) -> Planned:
    """Plan all rows of a frame of demands."""
    by_section = {str(name): demands[name].to_numpy() for name in demands.columns}
    return Planned(budget, allocate_columns(budget, by_section, len(demands)), demands.index)


@dataclass(frozen=True)
class Condition:
    """Something that must hold of all plans.

    Parameters
    ----------
    name : str
        In words, as it stands in an answer: "nothing is cut".
    holds : callable
        From the plans to whether it holds.
    room : {"unknown", "helps", "harms"}
        What more room does to it: where it helps, the smallest window is looked for, where it harms, the largest.
        That no window will do is said only where this is known.
    risk : float, optional
        Where it promises something of the next conversation: the chance that this misses it.
    tokens : int, default 0
        The most that it asks of a section beyond the demands, in tokens.

    Examples
    --------
    >>> import budgetkit as bk
    >>> fewer = Condition("at most 900 tokens are sent", lambda plans: plans.granted.max() <= 900)
    >>> bk.solve({"history": 5_000}, bk.Budget(1_000, (), [bk.Allocation("history")]), "window", fewer).holds
    True
    """

    name: str
    holds: Callable[[Planned], bool]
    room: Room = "unknown"
    risk: float | None = None
    tokens: int = 0

    def lacking(self, conversations: int) -> str:
        """Say how many conversations are missing; empty where there are enough."""
        if self.risk is None:
            return ""
        return lacking(conversations, self.risk)


def nothing_cut(section: str | None = None) -> Condition:
    """Say that nothing is cut, of one section or of any.

    Parameters
    ----------
    section : str, optional
        The section; all when left out.

    Returns
    -------
    Condition
        For :func:`budgetkit.solve`.

    Examples
    --------
    >>> nothing_cut("history").name
    'nothing of history is cut'
    """
    if section is None:
        return Condition("nothing is cut", lambda plans: not plans.cut.any(), "helps")
    return Condition(
        f"nothing of {section} is cut",
        lambda plans: not plans.columns[section]["cut"].any(),
        "helps",
    )


def cut_at_most(
    share: float,
    of: Literal["conversations", "turns"] = "conversations",
    *,
    only_these: bool = False,
) -> Condition:
    """Say that at most a share of conversations, or of a conversation's turns, loses something.

    It is a promise about the next conversation, so it needs 19 of them for a share of 5 %, and 99 for 1 %.

    Parameters
    ----------
    share : float
        From 0 to 1; above 0 for a promise.
    of : {"conversations", "turns"}
        What is counted: conversations of which something is cut, or such turns, in the mean of conversations.
    only_these : bool, default False
        Whether it is said of the given conversations alone, which promises nothing of the next.

    Returns
    -------
    Condition
        For :func:`budgetkit.solve`.

    Raises
    ------
    ValueError
        If the share is not between 0 and 1, or it is of something else.

    Examples
    --------
    >>> cut_at_most(0.05).name
    'at most 5 % of conversations are cut'
    >>> cut_at_most(0.05).lacking(8)
    'a promise of 5 % needs 19 conversations; there are 8'
    """
    if not 0 <= share <= 1 or of not in ("conversations", "turns"):
        raise ValueError(
            f"a share of {share} of {of}; known are 0 to 1, of 'conversations' or 'turns'; give these"
        )
    is_promise = not only_these and 0 < share < 1

    def holds(plans: Planned) -> bool:
        is_cut = plans.cut > 0
        conversations = plans.conversations
        turns = np.bincount(conversations)
        cut_turns = np.bincount(conversations, is_cut)
        if of == "turns":
            if is_promise:
                return is_controlled((cut_turns / turns).tolist(), share)
            return bool(is_cut.mean() <= share)
        if is_promise:
            return int((cut_turns > 0).sum()) <= misses(len(turns), share)
        return bool((cut_turns > 0).mean() <= share)

    these = "these " if only_these else ""
    name = f"at most {100 * share:g} % of {these}{of} are cut"
    return Condition(name, holds, "helps", share if is_promise else None)


def holds_turns(turns: int, section: str = "history") -> Condition:
    """Say that a section holds the last turns whole, in every row of a frame with a level "turn".

    Parameters
    ----------
    turns : int
        How many, at least 1.
    section : str, default "history"
        The section.

    Returns
    -------
    Condition
        For :func:`budgetkit.solve`.

    Examples
    --------
    >>> holds_turns(20).name
    'history holds 20 turns'
    """
    if turns < 1:
        raise ValueError(
            f"the last {turns} turns are to be held; known is a number of turns; give 1 or more"
        )

    def holds(plans: Planned) -> bool:
        column = plans.columns[section]
        before = np.zeros(len(column["demand"]), dtype=np.int64)
        for number in np.unique(plans.conversations):
            rows = np.flatnonzero(plans.conversations == number)
            before[rows[turns:]] = column["demand"][rows[:-turns]]
        return bool((column["granted"] >= np.maximum(column["demand"] - before, 0)).all())

    return Condition(f"{section} holds {turns} turns", holds, "helps")


def at_least(section: str, tokens: int) -> Condition:
    """Say that a section may take at least so many tokens, in every row.

    Parameters
    ----------
    section : str
        The section.
    tokens : int
        What its limit is to be at least, in tokens, whatever it asks for.

    Returns
    -------
    Condition
        For :func:`budgetkit.solve`.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(8_000, [bk.Reserve("output", 1_000)], [bk.Allocation("system"), bk.Allocation("history")])
    >>> print(bk.solve({"system": 500, "history": 0}, budget, "window", at_least("history", 4_000)))
    window 5,500 is the smallest so that history may take 4,000 tokens.
    """
    check_tokens("tokens", tokens)
    name = f"{section} may take {tokens:,} tokens"

    def holds(plans: Planned) -> bool:
        return bool((plans.columns[section]["limit"] >= tokens).all())

    return Condition(name, holds, "helps", tokens=tokens)


def bill_at_most(dollars: float, prices: Prices | str, answer: int = 0) -> Condition:
    """Say that all rows together cost at most a sum.

    Every row is a request. What it sends costs the full price of input, as if nothing were read from a cache, so the
    true bill is at most that.

    Parameters
    ----------
    dollars : float
        The sum, in US dollars.
    prices : Prices or str
        What tokens cost, or the model whose prices hold.
    answer : int, default 0
        Tokens of each answer.

    Returns
    -------
    Condition
        For :func:`budgetkit.solve`, which then looks for the largest window.

    Raises
    ------
    ValueError
        If the sum is below 0, or a price is not known.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(8_000, [bk.Reserve("output", 1_000)], [bk.Allocation("history")])
    >>> print(bk.solve({"history": 500_000}, budget, "window", bill_at_most(0.10, "gpt-4o")))
    window 41,000 is the largest so that the bill is at most $0.10.
    """
    if not dollars >= 0:
        raise ValueError(
            f"a bill of at most {brief(dollars)}; a sum is 0 or more, in US dollars; give 1.50, say"
        )
    paid = prices_of(prices)
    if paid is None or paid.input is None or (answer and paid.output is None):
        raise ValueError(
            "a bill without prices; the price of input is needed; give prices='gpt-4o', say"
        )

    def holds(plans: Planned) -> bool:
        sent = plans.granted
        cost = sent * paid.input.of(sent)  # type: ignore[union-attr]
        if answer and paid.output is not None:
            cost = cost + answer * paid.output.of(sent)
        return float(cost.sum()) / MILLION <= dollars

    return Condition(f"the bill is at most ${dollars:,.2f}", holds, "harms")


Demands = Mapping[str, int] | pd.DataFrame | Trace | str | PathLike[str] | Iterable[Any]
Find = Literal["smallest", "largest"]
Method = Literal["bisection", "scan"]
_GRID = 1_025  # sizes that a scan tries


@dataclass(frozen=True)
class Solution:
    """The size of a line for which a condition holds.

    Parameters
    ----------
    line : str
        "window", a reserve or a section.
    value : int, optional
        The size, in tokens; None where no size was found.
    so_that : str
        The condition, in words.
    find : {"smallest", "largest"}
        Which end was looked for.
    method : {"bisection", "scan"}
        How: by halving, or by trying a grid of sizes and halving where it flips.
    step : int
        Tokens between two sizes of the grid; between them a scan may have missed a size that does. 1 by bisection.
    budget : Budget, optional
        The budget with that size.
    binds : str
        Where no size was found: what is in the way.
    is_proved : bool
        Where no size was found: whether there is none.

    Examples
    --------
    >>> print(Solution("window", 1_110, "nothing is cut", "smallest", "bisection"))
    window 1,110 is the smallest so that nothing is cut.
    """

    line: str
    value: int | None
    so_that: str
    find: Find
    method: Method
    step: int = 1
    budget: Budget | None = None
    binds: str = ""
    is_proved: bool = True

    @property
    def holds(self) -> bool:
        """Whether some size satisfies the condition."""
        return self.value is not None

    def __str__(self) -> str:
        if self.value is None:
            if self.is_proved:
                none = f"No {self.line} will do"
            else:
                none = f"No {self.line} was found"
            return f"{none} so that {self.so_that}: {self.binds}"
        sentence = f"{self.line} {self.value:,} is the {self.find} so that {self.so_that}"
        if self.method == "bisection":
            return f"{sentence}."
        return f"{sentence}, of a scan in steps of {self.step:,} tokens."


def solve(
    demands: Demands,
    budget: AnyBudget,
    line: str,
    so_that: Condition | None = None,
    *,
    counter: AnyCounter | None = None,
    model: AnyModel | None = None,
    window: int | None = None,
    find: Find | None = None,
    between: tuple[int, int] | None = None,
) -> Solution:
    """Find the size of one line for which a condition holds.

    Parameters
    ----------
    demands : mapping of str to int, DataFrame, Trace, messages, str, Path, or several of these
        What each section asks for, in tokens: one demand, the turns of a conversation, or several conversations; a
        conversation also as its messages, its file or the name of a shipped one.
    budget : Budget, str, Path or callable
        The budget to change, or a preset or its name.
    line : str
        ``"window"``, a reserve or a section, whose cap is solved for.
    so_that : Condition, optional
        What must hold; :func:`budgetkit.lab.deciding.nothing_cut` when left out.
    find : {"smallest", "largest"}, optional
        Which end to look for: the largest reserve, the largest of what more room harms, else the smallest.
    counter : str, Model or callable, optional
        What counts conversations; that of `model`, else o200k_base, when left out.
    model : str or Model, optional
        The model that answers: its window for a preset, its counter and its framing.
    window : int, optional
        Another window to begin with, in tokens.
    between : tuple of int, optional
        The sizes to look among, in tokens; when left out, windows up to the one beyond which none grants more.

    Returns
    -------
    Solution
        Its value holds, and the next size toward the other end does not; None comes with what binds. A condition
        that promises something of the next conversation has no value where there are too few of them.

    Raises
    ------
    LookupError
        If there is no line of that name.
    ValueError
        If the range is empty.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(8_000, [bk.Reserve("output", 1_000)], [bk.Allocation("system"), bk.Allocation("history")])
    >>> print(solve({"system": 500, "history": 9_000}, budget, "window"))
    window 10,500 is the smallest so that nothing is cut.
    >>> solve({"system": 500, "history": 5_000}, budget, "output").value
    2500
    """
    setup = setup_of(budget, counter, None, model, window)
    budget = setup.budget
    frame = _frame(demands, setup)
    condition = so_that or nothing_cut()
    kinds = {line_of_budget.name: line_of_budget.kind for line_of_budget in budget} | {
        "window": "window"
    }
    if line not in kinds:
        raise LookupError(
            f"no line {brief(line)} in this budget; its lines are {quoted(kinds)}; name one of them"
        )

    # Which end is looked for, and up to where.
    harms = condition.room == "harms"
    ends: Find = find or ("largest" if (kinds[line] == "reserve") != harms else "smallest")
    low, high = between or _range(budget, frame, line, kinds[line], condition)
    if not 0 <= low < high:
        raise ValueError(
            f"sizes between {low:,} and {high:,}; the first is the smaller, from 0 on; give (0, 8_000)"
        )
    if ends == "largest" and kinds[line] == "window" and between is None:
        # The smallest window that holds the reserves and what is required; below it nothing can be planned.
        low = nearest(lambda size: _can_be_planned(budget, frame, line, size), low, high) or low
    near, far = (low, high) if ends == "smallest" else (high, low)
    is_monotone = _is_monotone(budget, line, kinds[line])

    def search(wanted: Condition) -> tuple[int | None, int]:
        """Return the size for which a condition holds, and the step of the grid."""

        def holds(size: int) -> bool:
            plans = _planned(budget, frame, line, size)
            return plans is not None and not plans.overrun and wanted.holds(plans)

        if not is_monotone:
            return _scan(holds, near, far)
        return (near if holds(near) else nearest(holds, near, far)), 1

    lacking = condition.lacking(len(np.unique(conversations_of(frame.index))))
    if lacking:
        # No promise; what can be said is of the conversations that there are.
        value, step = search(nothing_cut())
        if value is None:
            seen = ""
        else:
            seen = f"; the {ends} {line} that cuts none of these is {value:,}"
        return Solution(
            line=line,
            value=None,
            so_that=condition.name,
            find=ends,
            method="bisection" if is_monotone else "scan",
            step=step,
            binds=f"{lacking}{seen}.",
            is_proved=False,
        )

    value, step = search(condition)
    is_whole = between is None and (is_monotone or kinds[line] == "window")
    return Solution(
        line=line,
        value=value,
        so_that=condition.name,
        find=ends,
        method="bisection" if is_monotone else "scan",
        step=step,
        budget=None if value is None else budget.assign(**{line: value}),
        binds="" if value is not None else _binds(budget, frame, line, far),
        is_proved=is_whole and condition.room != "unknown",
    )


def solve_models(
    traces: AnyTrace,
    models: Iterable[AnyModel],
    preset: str | Callable[..., Budget],
    line: str,
    so_that: Condition | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Find the size of one line for several models, each of which counts the conversations with its own tokenizer.

    Parameters
    ----------
    traces : sequence of Trace
        The conversations.
    models : iterable of str or Model
        By name.
    preset : str or callable
        A preset's name, or a function from a model to its budget.
    line, so_that
        As :func:`solve` takes them.
    **options
        What else :func:`solve` takes: find, between.

    Returns
    -------
    DataFrame
        One row a model, in the order given: model, window (of the model, in tokens), value (Int64, missing where no
        size was found), is_within (whether a window that was found is within the model's own), exact (whether the
        model's tokens are counted exactly), basis (what they rest on: "exact", "reconstructed" or "estimate") and
        sentence.

    Examples
    --------
    >>> import budgetkit as bk
    >>> chats = bk.load_traces("made-up-chats")[:5]
    >>> table = solve_models(chats, ["gpt-4o", "gpt-4.1"], bk.presets.working_memory, "window")
    >>> table[["model", "window", "value"]].values.tolist()
    [['gpt-4o', 128000, 4952], ['gpt-4.1', 1047576, 4952]]
    """
    rows = []
    make = preset_of(preset)
    for name in models:
        facts = resolve(name).facts
        count = counter_of(facts)
        budget = make(facts)
        demands = [
            trace.demand(count, roles=budget.roles or DEFAULT_ROLES) for trace in traces_of(traces)
        ]
        solution = solve(demands, budget, line, so_that, **options)
        rows.append(
            {
                "model": facts.name,
                "window": facts.window,
                "value": pd.NA if solution.value is None else solution.value,
                "is_within": solution.value is not None
                and (line != "window" or solution.value <= facts.window),
                "exact": count.exact,
                "basis": basis_of(count),
                "sentence": str(solution),
            }
        )
    if rows:
        return pd.DataFrame(rows).astype({"value": "Int64"})
    return pd.DataFrame(rows)


def _frame(demands: Demands, setup: Setup) -> pd.DataFrame:
    """Put demands into one frame; of several conversations the first level of the index is their number."""
    demands = _opened(demands)
    if isinstance(demands, pd.DataFrame):
        return demands
    if isinstance(demands, Trace):
        framing = None if setup.model is None else setup.framing
        return demands.demand(setup.counter, setup.budget.roles or None, framing)
    if isinstance(demands, Mapping):
        return pd.DataFrame([dict(demands)])
    several: Any = demands
    if not isinstance(several, Iterable):
        forms = "a mapping from section to tokens, a DataFrame of turns, a conversation, and a list of these"
        raise TypeError(f"demands of {brief(demands)}; known are {forms}; give one of these")
    frames = [_frame(demand, setup) for demand in several]
    if not frames:
        raise ValueError(
            "no demands; what is solved for is read off what sections ask for; give at least one"
        )
    return (
        pd.concat(frames, keys=range(len(frames)), names=["conversation"])
        .fillna(0)
        .astype(np.int64)
    )


def _opened(demands: Any) -> Any:
    """Return the conversations of a file or of a shipped name, and those that are passed as messages; others as are."""
    if isinstance(demands, str | PathLike):
        traces = traces_of(demands)
        return traces[0] if len(traces) == 1 else traces
    if isinstance(demands, pd.DataFrame):
        is_conversation = "role" in demands.columns
    elif isinstance(demands, Mapping):
        is_conversation = isinstance(demands.get("messages"), list | tuple)
    else:
        is_conversation = bool(demands) and isinstance(demands, list | tuple)
        is_conversation = is_conversation and all(map(_is_spoken, demands))
    return trace_of(demands) if is_conversation else demands


def _is_spoken(value: Any) -> bool:
    """Say whether a value is a message: it says who speaks, or of which type it is."""
    if isinstance(value, Mapping):
        return "role" in value or isinstance(value.get("type"), str)
    return hasattr(value, "role") or hasattr(value, "content")


def _range(
    budget: Budget, frame: pd.DataFrame, line: str, kind: str, condition: Condition
) -> tuple[int, int]:
    """Return the sizes among which something can change: a cap may grow by what no other line claims."""
    if kind == "window":
        needs = {
            str(name): int(frame[name].max()) + condition.tokens if len(frame) else 0
            for name in frame.columns
        }
        settled = settled_window(budget, needs)
        if condition.room != "unknown":
            return 1, settled
        return 1, min(MOST_TOKENS, 2 * (settled + budget.reserved + budget.capped))
    if kind == "reserve" or budget.deficit != "raise":
        return 0, max(1, budget.window)
    now = next(
        line_of_budget.tokens or 0 for line_of_budget in budget if line_of_budget.name == line
    )
    return 0, max(1, now + max(0, budget.unclaimed))


def _planned(budget: Budget, frame: pd.DataFrame, line: str, size: int) -> Planned | None:
    try:
        return planned(budget.assign(**{line: size}), frame)
    except ValueError:  # the budget refuses such a size: its caps do not fit, say
        return None


def _can_be_planned(budget: Budget, frame: pd.DataFrame, line: str, size: int) -> bool:
    plans = _planned(budget, frame, line, size)
    return plans is not None and not plans.overrun


def _is_monotone(budget: Budget, line: str, kind: str) -> bool:
    """Say whether more of a line can only help one side: whole numbers of tokens, and sections cut anywhere."""
    sizes = [reserve.size for reserve in budget.reserves]
    sizes += [
        size
        for allocation in budget.allocations
        for size in (allocation.cap, allocation.floor)
        if size
    ]
    has_shares = any(isinstance(size, Share) for size in sizes)
    is_cut_anywhere = all(
        a.overflow == "truncate" and a.when_full == "truncate" for a in budget.allocations
    )
    if kind == "window":
        return is_cut_anywhere and not has_shares
    capped = [allocation for allocation in budget.allocations if allocation.cap is not None]
    return is_cut_anywhere and (kind != "allocation" or len(capped) <= 1)


def _scan(holds: Callable[[int], bool], near: int, far: int) -> tuple[int | None, int]:
    """Try a grid of sizes from the near end on, and halve the first gap at whose far side the condition holds."""
    grid = np.unique(np.linspace(near, far, _GRID).round().astype(np.int64))
    ordered = [int(size) for size in (grid if near <= far else grid[::-1])]
    step = max(abs(b - a) for a, b in zip(ordered, ordered[1:], strict=False))
    for place, size in enumerate(ordered):
        if holds(size):
            return (size if place == 0 else nearest(holds, ordered[place - 1], size)), step
    return None, step


def _binds(budget: Budget, frame: pd.DataFrame, line: str, far: int) -> str:
    """Say which section still loses most at the most favourable end, and to which limit."""
    plans: Any = _planned(budget, frame, line, far)
    if plans is None or plans.overrun:
        return f"with {line} at {far:,} the reserves, caps and required sections claim more than the window."
    section, column = max(plans.columns.items(), key=lambda pair: int(pair[1]["cut"].sum()))
    if not column["cut"].any():
        return f"even with {line} at {far:,} it does not hold, though nothing is cut."
    cap = plans.budget.caps[section]
    is_capped = cap is not None and (column["limit"] >= cap).any()
    if is_capped:
        limit = f"its cap of {cap:,} tokens"
    else:
        limit = "what others leave it"
    return f"with {line} at {far:,} {section} still loses {int(column['cut'].sum()):,} tokens to {limit}."
