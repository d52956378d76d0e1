"""The values to try for each line, and a reserve for answers.

    reserve = the smallest r for which (1 + S(r)) / (1 + n) <= risk

Here n is the number of conversations, and S(r) is the sum, over these conversations, of the share of answers longer
than r. The answers in one conversation are not independent, so the conversation is the unit
(:mod:`budgetkit.promise`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from random import Random
from typing import Any, Literal

import numpy as np

from budgetkit.budget import Allocation, Budget, Reserve, Share, brief, check_choice
from budgetkit.budget.amounts import amount_of, tokens_of
from budgetkit.budget.validation import OUTPUT
from budgetkit.counters import Count, count_of
from budgetkit.inputs.budgets import AnyBudget, AnyCounter, budget_of
from budgetkit.inputs.conversations import AnyTrace, traces_of
from budgetkit.lab.deciding.objectives import Objective
from budgetkit.message import Data, Raw
from budgetkit.plan import Ints, with_undeclared
from budgetkit.promise import is_controlled, lacking, needed
from budgetkit.pruning import OldestFirst, Policy, policy_of
from budgetkit.trace import Trace, usage_frame

Kind = Literal["all", "call", "text"]


@dataclass(frozen=True)
class AnswerReserve:
    """A reserve for the answer, and its risk.

    Parameters
    ----------
    tokens : int
        The reserve, in tokens.
    risk : float
        Accepted average share of answers in the next conversation that are longer than the reserve.
    conversations : int
        Number of conversations with answers of the chosen kind.
    longest : int
        The longest observed answer, in tokens.
    cut_short : float
        Share of the observed answers that are longer than the reserve.

    Examples
    --------
    >>> AnswerReserve(90, risk=0.05, conversations=8, longest=90, cut_short=0.0).sentence
    'The longest answer seen has 90 tokens; a promise at 5 % risk needs 19 conversations, but there are 8.'
    """

    tokens: int
    risk: float
    conversations: int
    longest: int
    cut_short: float

    def __str__(self) -> str:
        """Return the result as a sentence."""
        return self.sentence

    @property
    def is_promise(self) -> bool:
        """True if there are enough conversations for a statistical guarantee."""
        return self.conversations >= needed(self.risk)

    @property
    def sentence(self) -> str:
        """The guarantee that the reserve gives, or the reason for having none."""
        if self.is_promise:
            return (
                f"On average, at most {100 * self.risk:g} % of the next answers are longer than {self.tokens:,} "
                f"tokens, judged by {self.conversations:,} conversations."
            )
        reason = lacking(self.conversations, self.risk)
        return f"The longest answer seen has {self.longest:,} tokens; {reason}."


def answer_reserve(
    traces: AnyTrace, counter: AnyCounter, risk: float = 0.05, kind: Kind = "all"
) -> AnswerReserve:
    """Find the smallest reserve for the answers of the next conversation.

    Parameters
    ----------
    traces : sequence of Trace, str or Path
        The conversations, or their paths or names.
    counter : str, Model or callable
        Function that counts the tokens in a text.
    risk : float, default 0.05
        Accepted share of answers that are longer than the reserve.
    kind : {"all", "call", "text"}
        The answers to use: all answers, answers with tool calls, or answers without tool calls.

    Returns
    -------
    AnswerReserve
        The reserve, found by conformal risk control over conversations. If there are too few conversations, the reserve
        is the longest observed answer, without a guarantee.

    Raises
    ------
    ValueError
        If no conversation has such an answer, or the risk is not between 0 and 1.

    Examples
    --------
    >>> import budgetkit as bk
    >>> reserve = answer_reserve(bk.load_traces("made-up-chats"), bk.counter("gpt-5.4"))
    >>> reserve.tokens, reserve.sentence
    (78, 'On average, at most 5 % of the next answers are longer than 78 tokens, judged by 48 conversations.')
    """
    check_choice("kind of answers", kind, ("all", "call", "text"))
    traces = traces_of(traces)
    lengths = recorded_lengths(traces, count_of(counter), kind)
    if not lengths:
        raise ValueError(
            f"No answers found (conversations: {len(traces):,}). Pass conversations with answers."
        )
    sizes = np.unique(np.concatenate(lengths))

    def is_enough(place: int) -> bool:
        return is_controlled([float((of > sizes[place]).mean()) for of in lengths], risk)

    # A larger reserve leaves fewer longer answers, so bisection finds the smallest sufficient one.
    last = len(sizes) - 1
    first = 0 if len(lengths) >= needed(risk) else last
    size = int(sizes[bisect_left(range(last), True, first, key=is_enough)])
    return AnswerReserve(
        tokens=size,
        risk=risk,
        conversations=len(lengths),
        longest=int(sizes[-1]),
        cut_short=float((np.concatenate(lengths) > size).mean()),
    )


def recorded_lengths(traces: Sequence[Trace], count: Count, kind: Kind = "all") -> list[Ints]:
    """Return the lengths of each conversation's answers, in tokens.

    The length of an answer is the number of output tokens that the provider reported. If there is no such number, the
    text and the tool calls of the answer are counted. Conversations without answers of this kind are left out.
    """
    lengths = []
    for trace in traces:
        billed: dict[int, int] = {}
        if trace.fields.get("usage"):
            usage = usage_frame(trace).dropna(subset=["message_index", "output_tokens"])
            usage = usage.loc[~usage["is_summary"], ["message_index", "output_tokens"]]
            billed = dict(usage.astype(int).values.tolist())
        tokens = []
        for place, message in enumerate(trace.messages):
            is_kind = kind == "all" or (kind == "call") == bool(message.tool_calls)
            if message.role == "assistant" and is_kind:
                calls = (f"{call.name}{call.arguments}" for call in message.tool_calls)
                tokens.append(billed.get(place) or count("".join([*message.texts, *calls])))
        if tokens:
            lengths.append(np.array(tokens, "int64"))
    return lengths


def reserve_of_answers(budget: Budget) -> Reserve | None:
    """Return the reserve for answers, or None if there is none.

    A reserve named "thinking" does not count as a reserve for answers. If there are several, the one named "output" is
    returned, or else the first.
    """
    reserves = [
        reserve
        for reserve in budget.reserves
        if reserve.serves == OUTPUT and reserve.name != "thinking"
    ]
    return min(reserves, key=lambda reserve: reserve.name != OUTPUT, default=None)


Setting = Raw  # for each line, the name of its value
Values = Mapping[str, Mapping[Any, Any]]  # for each line, its values by the names shown in tables
Vary = Mapping[str, Iterable[Any]]  # for each line, the values to try
NO_CAP = "no cap"
CANNOT_BE_PLANNED = "cannot be planned for every conversation"


def candidates(
    budget: AnyBudget,
    traces: AnyTrace,
    counter: AnyCounter,
    risk: float = 0.05,
    locked: Collection[str] = (),
) -> dict[str, Data]:
    """Return the values to try for each unlocked line.

    Explorers and :func:`budgetkit.lab.deciding.tune` use these values. No value for the answer's reserve is below the
    result of :func:`budgetkit.lab.deciding.answer_reserve`. A cap is tried at 0.5, 1 and 1.5 times its size. If the
    section that takes the remaining tokens has no cap, it is tried without a cap and with three caps.

    Parameters
    ----------
    budget : Budget, str, Path or Mapping
        The current budget, which determines the values to try.
    traces : sequence of Trace, str or Path
        The conversations, or their paths or names.
    counter : str, Model or callable
        Function that counts the tokens in a text.
    risk : float, default 0.05
        Accepted share of answers longer than their reserve.
    locked : collection of str
        Names of the reserves and sections to keep unchanged.

    Returns
    -------
    dict
        For each line, a mapping from the names shown in tables to sizes in tokens. A size of None means no cap.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.presets.working_memory(600, output=200, history_floor=0)
    >>> values = candidates(budget, bk.load_traces("made-up-chats"), bk.counter("gpt-5.4"))
    >>> {line: [*sizes] for line, sizes in values.items() if line in ("output", "history")}
    {'output': ['78', '139', '200'], 'history': ['no cap', '300', '200', '100']}
    """
    budget = with_undeclared(budget_of(budget), {})
    traces = traces_of(traces)
    count = count_of(counter)
    sizes: dict[str, list[int | None]] = {}

    # The reserve for answers: the needed one, the current one, and their mean.
    reserve = reserve_of_answers(budget)
    if reserve is not None and recorded_lengths(traces, count):
        least = answer_reserve(traces, count, risk).tokens
        now = budget.sizes[reserve.name]
        tried = [least, (least + now) // 2, now] if now > least else [least, 2 * least]
        sizes[reserve.name] = [size for size in tried if size < budget.window]

    # Caps; the remainder has none, and is also tried with a cap.
    for section, cap in budget.caps.items():
        if section == budget.remainder and cap is None:
            parts = [budget.usable * quarters // 4 for quarters in (3, 2, 1)]
            sizes[section] = [None, *(size for size in parts if size > 0)]
        elif cap:
            sizes[section] = [cap // 2, cap, cap * 3 // 2]
    return {
        line: {NO_CAP if size is None else f"{size:,}": size for size in of_line}
        for line, of_line in sizes.items()
        if of_line and line not in locked
    }


def setting_text(setting: Setting) -> str:
    """Format a setting on one line, as in "output 500, history 2,000"."""
    return ", ".join(f"{line} {value}" for line, value in setting.items())


def sizes_of(values: Values, setting: Mapping[str, str]) -> Data:
    """Replace the names of values in a setting with sizes.

    The policy keeps its name.
    """
    return {
        line: name if line == "policy" else values[line][name] for line, name in setting.items()
    }


def settings_to_try(values: Values, trials: int, seed: int) -> tuple[list[Data], str]:
    """Return all combinations of values, or a random sample of `trials`.

    The second value returned is "all" or "drawn at random".

    Examples
    --------
    >>> lines = {"output": {500: 500, 1_000: 1_000}, "window": dict.fromkeys(range(4_000, 8_000))}
    >>> settings, search = settings_to_try(lines, trials=3, seed=0)
    >>> len(settings), search
    (3, 'drawn at random')
    """
    choices = [list(by_name) for by_name in values.values()]
    if prod(map(len, choices)) <= trials:
        drawn = dict.fromkeys(product(*choices))
        search = "all"
    else:
        random = Random(seed)
        drawn = {}  # keeps the order, without duplicates
        while len(drawn) < trials:
            drawn[tuple(map(random.choice, choices))] = None
        search = "drawn at random"
    return [dict(zip(values, setting, strict=True)) for setting in drawn], search


def values_of(vary: Vary) -> dict[str, dict[Any, Any]]:
    """Return the values to try for each line, under their names.

    The names of policies are replaced with the policies themselves.
    """
    if not vary:
        raise ValueError("Nothing to vary. Pass sizes to try, such as {'output': [500, 1_000]}.")
    values = {}
    for line, choices in vary.items():
        by_name = dict(choices) if isinstance(choices, Mapping) else {c: c for c in choices}
        if line == "policy":
            by_name = {name: policy_of(choice) for name, choice in by_name.items()}
        if not by_name:
            raise ValueError(f"No values for {brief(line)}. Pass at least one.")
        values[line] = by_name
    return values


@dataclass(frozen=True)
class SearchSpace:
    """The current setting, the values to try, and the minimum reserve."""

    budget: Budget
    policy: Policy
    values: Values
    floor: AnswerReserve | None = None
    reserve: str = ""  # the name of the reserve with this floor

    def with_floor(self, traces: Sequence[Trace], count: Count, risk: float | None) -> SearchSpace:
        """Add the minimum reserve for answers if settings vary the reserve.

        The reserve varies if it is one of the lines, or a share of a varied window. Nothing is added if `risk` is None,
        or if no answers were recorded.
        """
        reserve = reserve_of_answers(self.budget)
        if risk is None or reserve is None or not recorded_lengths(traces, count):
            return self
        follows_window = isinstance(reserve.size, Share) and "window" in self.values
        if reserve.name not in self.values and not follows_window:
            return self
        return replace(self, floor=answer_reserve(traces, count, risk), reserve=reserve.name)

    def apply(self, setting: Setting) -> tuple[Budget, Policy]:
        """Return the budget and the policy of a setting."""
        lines = {line: self.values[line][name] for line, name in setting.items()}
        policy = lines.pop("policy", self.policy)
        return (self.budget.assign(**lines) if lines else self.budget), policy

    def is_present(self, setting: Setting) -> bool:
        """Return True if a setting is the current setting."""
        try:
            return self.apply(setting) == (self.budget, self.policy)
        except ValueError:  # the sizes are invalid together
            return False

    def is_short(self, setting: Setting) -> bool:
        """Return True if a setting reserves too little for answers."""
        if self.floor is None:
            return False
        signed = replace(self, budget=replace(self.budget, deficit="signed"))
        try:
            budget, _ = signed.apply(setting)
        except ValueError:  # the setting cannot be planned with any reserve
            return False
        return budget.sizes[self.reserve] < self.floor.tokens

    def present(self) -> Data:
        """Return the current setting."""
        now: Data = {line.name: line.tokens for line in self.budget}
        now["window"] = self.budget.window
        now |= {"policy": self.policy}
        return {
            line: next(
                (name for name, value in by_name.items() if value == now[line]),
                "current" if line == "policy" else now[line],
            )
            for line, by_name in self.values.items()
        }

    def tokens(self, line: str, name: Any) -> int:
        """Return a line's value in tokens.

        The value of a section without a cap is the window.
        """
        value = self.values[line][name]
        if isinstance(value, Mapping):
            value = value.get("cap", value.get("size"))
        elif isinstance(value, Reserve):
            value = value.size
        elif isinstance(value, Allocation):
            value = value.cap
        if value is None:
            return self.budget.window
        return tokens_of(amount_of("size", value), self.budget.window)

    def size(self, setting: Setting) -> int:
        """Add up the sizes of a setting's lines, in tokens."""
        return sum(self.tokens(line, name) for line, name in setting.items() if line != "policy")

    def notices(self, settings: Sequence[Setting], reasons: Sequence[str]) -> Iterator[str]:
        """Yield notices about settings that reserve too little for answers."""
        if self.floor is None:
            return
        need = f"{self.floor.tokens:,}"
        if self.is_short({}):
            now = self.budget.sizes[self.reserve]
            yield f"The current reserve of {now:,} tokens is below the {need} that answers need."
        below = sum(reason not in ("", CANNOT_BE_PLANNED) for reason in reasons)
        if below:
            yield (
                f"Left out {below:,} of {len(settings):,} settings, because they reserve less than the "
                f"{need} tokens that answers need. {self.floor.sentence}"
            )

    def corner(self, best: Setting, tried: Sequence[Setting], objective: Objective) -> list[str]:
        """Warn about a best setting at the edge of the tried values.

        The list returned has one warning or none.
        """
        ends = []
        for line, name in best.items():
            names = {setting[line] for setting in tried}
            if len(names) < 2:
                continue
            if line == "policy":
                if not isinstance(self.values[line][name], OldestFirst):
                    return []
                ends.append(f"policy {name} is the simplest")
                continue
            sizes = sorted(self.tokens(line, choice) for choice in names)
            size = self.tokens(line, name)
            if size not in (sizes[0], sizes[-1]):
                return []
            end = "largest" if size == sizes[-1] else "smallest"
            ends.append(f"{line} {name} is the {end}")
        if not ends:
            return []
        why = "A better setting may lie beyond them; try more values."
        if objective.at_a_corner:
            why = f"It wins because the objective counts {objective.at_a_corner}"
        return [f"The best setting is at the edge of the values tried: {', '.join(ends)}. {why}"]
