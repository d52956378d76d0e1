"""Decide: the fold of an explorer that tunes its budget on the conversations of its file, when a button says so.

The work is done in a thread of its own, from values that nobody changes; a slider waits for none of it. What it found
stays until the next run, and says which budget it began from.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.quoting import quoted
from budgetkit.counters import Counter
from budgetkit.deciding.candidates import Values, candidates, tokens_of
from budgetkit.deciding.decided import Decided, front, matter
from budgetkit.deciding.models import recorded_lengths
from budgetkit.deciding.sensitivity import sensitivity
from budgetkit.deciding.tuned import OBJECTIVES
from budgetkit.deciding.tuning import tune
from budgetkit.explorer.budget.commands import move_line, set_amount
from budgetkit.explorer.budget.results import Results, kept_deficit
from budgetkit.explorer.budget.settings import Settings
from budgetkit.explorer.drawing import listed, refusal
from budgetkit.explorer.folds import button, choice, text
from budgetkit.explorer.library import Library
from budgetkit.framing import framing_for
from budgetkit.pruning.policies import OldestFirst, Policy
from budgetkit.replay.cost import Prices, prices
from budgetkit.replay.explorer.settings import Settings as ConversationSettings
from budgetkit.trace import Trace

Data = dict[str, Any]
FEWEST = 8  # conversations: half of them are held out, and fewer than four say nothing
RISKS = {"0.01": "1 in 100", "0.05": "5 in 100", "0.1": "10 in 100"}
SELDOM = 0.2  # seconds between two looks at how far it is


@dataclass(frozen=True)
class Case:
    """What is tuned: values that stay as they are while an explorer moves on."""

    source: str
    traces: Sequence[Trace]
    budget: Budget
    count: Counter
    policy: Policy
    policies: Mapping[str, Policy]
    prices: Prices | None
    deficit: str
    locked: frozenset[str]
    options: Mapping[str, Any]


@dataclass
class Run:
    """One run of tuning: how far it is, whether it was stopped, and what came of it."""

    said: str = "Beginning"
    done: float = 0.0
    told: float = 0.0
    stopped: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    found: Decided | None = None
    problem: str = ""

    @property
    def runs(self) -> bool:
        """Whether it is still at work."""
        return self.thread is not None and self.found is None and not self.problem


class Stopped(RuntimeError):
    """The work was stopped by hand."""


class DecideFold:
    """Objective and risk, the front, what matters, and the sentence to take to a meeting."""

    def __init__(self, library: Library, again: Callable[[], None]) -> None:
        self._library, self._again = library, again
        self._objective, self._risk = "", "0.05"
        self._run = Run()
        self._row: int | None = None

    def parts(self, settings: Any, found: Any) -> list[Data]:
        """Say what can be chosen, how far the work is, and what it found."""
        base = base_of(settings)
        many = 0 if base.trace is None else len(self._library.conversations(base.trace))
        if many < FEWEST:
            said = f"Tuning chooses on half of the conversations of a file and measures on the other; this has {many:,}"
            return [text(f"{said}. Open a file with at least {FEWEST}, such as made-up-chats.")]
        shown = {name: less.format("") for name, (_, less, _) in OBJECTIVES.items()}
        parts = [choice("I want", "objective", shown, self._wanted(found))]
        parts.append(choice("Answers that may be cut short", "risk", RISKS, self._risk))
        run = self._run
        if run.runs:
            return [*parts, {"is": "progress", "value": run.done, "text": run.said}, button("Stop", {"stop": True})]
        label = f"Tune on {many:,} conversations"
        parts.append(button(label, {"tune": True}, tip="Half of them choose, the other half measures"))
        if run.problem:
            parts.append(text(run.problem, "error"))
        return parts if run.found is None else [*parts, *self._told(run.found, settings, found)]

    def hear(self, settings: Any, found: Any, told: Data) -> Any:
        """Choose an objective or a risk, begin, stop, or set the sliders to a point of the front."""
        if told.get("objective") in OBJECTIVES:
            self._objective = str(told["objective"])
        elif told.get("risk") in RISKS:
            self._risk = str(told["risk"])
        elif "tune" in told and not self._run.runs:
            self._begin(case_of(settings, found, self._library), self._wanted(found))
        elif "stop" in told:
            self._run.stopped.set()
        elif "point" in told and self._run.found is not None:
            decided, row = self._run.found, int(told["point"])
            if not 0 <= row < len(decided.tuned.table):
                return None  # the present setting
            self._row = row
            return with_setting(settings, found, self._library, tokens_of(decided.values, decided.setting(row)))
        return None

    def _wanted(self, found: Any) -> str:
        """Return what is to be small: what was chosen, else what is needed, unless nothing is found needed."""
        nothing_needed = not isinstance(found, Results) and not found.shown.evidence[0]
        return self._objective or ("cut" if nothing_needed else "evidence")

    def _begin(self, case: Case, objective: str) -> None:
        run = Run()
        asked = objective, float(self._risk)
        run.thread = threading.Thread(target=self._work, args=(run, case, *asked), daemon=True, name="budgetkit tuning")
        self._run, self._row = run, None
        run.thread.start()

    def _work(self, run: Run, case: Case, objective: str, risk: float) -> None:
        try:
            run.found = decide(case, objective, risk, lambda said, done: self._tell(run, said, done))
        except Stopped:
            run.problem = "Stopped; nothing was chosen."
        except Exception as problem:  # whatever it is: a run that died in silence would run for ever in the page
            run.problem = refusal(problem)["text"]
        self._again()

    def _tell(self, run: Run, said: str, done: float) -> None:
        if run.stopped.is_set():
            raise Stopped("stopped by hand")
        run.said, run.done = said, done
        if time.monotonic() - run.told > SELDOM:
            run.told = time.monotonic()
            self._again()

    def _told(self, decided: Decided, settings: Any, found: Any) -> list[Data]:
        row = decided.advised if self._row is None else self._row
        lines = _lines(tokens_of(decided.values, decided.setting(row)))
        budget = kept_deficit(replace(decided.budget, deficit="signed").assign(**lines), decided.deficit)
        named = ", ".join(f"{line} {value}" for line, value in decided.setting(row).items())
        table = front.table(decided, row)
        figure = {
            "title": front.title,
            "note": f"Means of the {len(decided.tuned.parts[0]):,} conversations that were chosen on; the sentence is "
            "about the others. A click on a point sets all sliders.",
            "spec": front.draw(table),
            "table": listed(table.drop(columns=["front", "point"])),
            "click": "point",
        }
        sets = button("Set the sliders", {"point": row})
        matters = f"What matters most, each moved alone: {', '.join(decided.matter)}."
        return [
            text(decided.sentence(row), "fits" if decided.holds(row) else "cut"),
            {"is": "rows", "rows": [{"key": "set", "text": named, "note": matters, "button": sets}]},
            {"is": "figure", "name": "front", "figure": figure},
            {"is": "copy", "title": "Take this to the meeting", "text": decided.report(row, budget)},
        ]


def decide(case: Case, objective: str, risk: float, tell: Callable[[str, float], None]) -> Decided:
    """Find the lines that matter, and tune these together; `tell` is told how far it is, and may end it."""
    objectives = (objective, _second(case, objective))
    tell("Counting answers", 0.0)
    values: Values = candidates(case.budget, case.traces, case.count, risk, case.locked)
    if case.policies:
        values["policy"] = dict(case.policies)
    given = {"policy": case.policy, "prices": case.prices, **case.options}

    def progress(said: str, low: float, high: float) -> Callable[[int, int], None]:
        return lambda done, of: tell(f"{said}: {done:,} of {of:,} conversations", low + (high - low) * done / of)

    told = progress("One line at a time", 0, 0.4)
    strict = kept_deficit(case.budget, "raise")  # what exceeds the window is left out, unless the present budget does
    moves = sensitivity(case.traces, strict, values, objective, progress=told, **given)
    lines = matter(moves)
    if not lines:
        raise ValueError(
            f"none of {quoted(values)}, each moved alone, changes the {OBJECTIVES[objective][0]} of these "
            "conversations; choose another objective, a smaller window, or unlock a line"
        )
    vary = {line: values[line] for line in values if line in lines}
    told = progress("Settings together", 0.4, 1.0)
    tuned = tune(case.traces, strict, vary, objectives, progress=told, **given)
    answers = [int(each) for said in recorded_lengths(case.traces, case.count) for each in said]
    return Decided(case.source, case.budget, case.deficit, values, tuned, objectives, moves, answers)


def _second(case: Case, objective: str) -> str:
    """Return the objective beside the first one: what is needed and lost, or beside that the cost."""
    costs = case.prices is not None and case.prices.input is not None
    if objective == "cost" and not costs:
        raise ValueError("the price of this model is not known, so no setting is cheaper; choose another objective")
    return "evidence" if objective != "evidence" else "cost" if costs else "cut"


def base_of(settings: Any) -> Settings:
    """Return the half of an explorer's settings that is about the budget."""
    held: Settings = settings.base if isinstance(settings, ConversationSettings) else settings
    return held


def case_of(settings: Any, found: Any, library: Library) -> Case:
    """Return what an explorer shows as a case to tune."""
    base = base_of(settings)
    traces = library.conversations(str(base.trace))
    if isinstance(settings, ConversationSettings):
        options = {name: value for name, value in found.run.options.items() if name != "prices"}
        own, count, money = found.run.budget, found.run.count, found.run.prices
        policy, policies = found.policies[found.main], dict(found.policies)
        model = found.bare.model
    else:
        bare: Results = found
        count, own, policy, policies = bare.counter, bare.plan.budget, OldestFirst(), {}
        options = {"count": count, "framing": framing_for(bare.model.name)}
        money, model = prices(bare.model.name), bare.model
    several, deficit = policies if len(policies) > 1 else {}, base.base(model).deficit
    own, locked = kept_deficit(own, deficit), frozenset(base.locks)
    return Case(str(base.trace), traces, own, count, policy, several, money, deficit, locked, options)


def with_setting(settings: Any, found: Any, library: Library, setting: Mapping[str, Any]) -> Any:
    """Return the explorer's settings with all lines of a row of the table."""
    if isinstance(settings, ConversationSettings):
        name = str(setting.get("policy", settings.main))
        base = with_setting(settings.base, found.bare, library, setting)
        chosen = settings.chosen if name in settings.chosen else (*settings.chosen, name)
        return replace(settings, base=base, main=name, chosen=chosen)
    for line, tokens in _lines(setting).items():
        now = replace(found, plan=replace(found.plan, budget=settings.budget(found.model)))
        change: Callable[..., Any] = set_amount if tokens is None else move_line
        settings = change(settings, now, library, line, tokens)
    return settings


def _lines(setting: Mapping[str, Any]) -> dict[str, Any]:
    return {line: tokens for line, tokens in setting.items() if line != "policy"}
