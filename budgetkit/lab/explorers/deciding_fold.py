"""The panel that tunes a budget on the opened conversations.

Tuning runs in a separate thread on immutable values, so sliders never wait. The result stays until the next run, and
states the budget from which the tuning started.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from budgetkit.budget import Budget, quoted
from budgetkit.lab.deciding import sensitivity, tune
from budgetkit.lab.deciding.objectives import OBJECTIVES
from budgetkit.lab.deciding.report import PRESENT, TuningReport, front, matter
from budgetkit.lab.deciding.space import (
    Values,
    candidates,
    recorded_lengths,
    setting_text,
    sizes_of,
)
from budgetkit.lab.explorers.budget.results import BudgetResults, FileRequests, kept_deficit
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.commands import choose
from budgetkit.lab.explorers.conversation.controls import choose_main
from budgetkit.lab.explorers.conversation.results import ConversationSettings
from budgetkit.lab.explorers.folds import (
    Content,
    button,
    choice,
    figure_part,
    refusal,
    table_text,
    text_part,
)
from budgetkit.lab.explorers.stage import AnyStage
from budgetkit.lab.replay.cost import prices
from budgetkit.message import Data, Raw
from budgetkit.plan.batch import RequestBatch
from budgetkit.promise import FEWEST_FOR_A_GAIN
from budgetkit.pruning import OldestFirst, Policy

FEWEST = 2 * FEWEST_FOR_A_GAIN  # conversations; half of them are held out
EXAMPLE = "made-up-chats"  # shipped conversations, enough of them to tune on
PLAIN = "chat"  # a preset whose lines shrink with the window, so that a small one cuts something
SMALL_WINDOWS = (65_536, 32_768, 16_384, 8_192, 4_096, 2_048, 1_024, 512)
RISKS = {"0.01": "1 in 100", "0.05": "5 in 100", "0.1": "10 in 100"}
SELDOM = 0.2  # seconds between two reports of the progress


@dataclass(frozen=True)
class TuningCase:
    """The inputs of a tuning run, independent of later changes."""

    base: BudgetSettings
    requests: FileRequests
    budget: Budget
    deficit: str  # the rule of the initial budget
    policies: Mapping[str, Policy]
    options: Data  # of `tune`

    def cut(self, budget: Budget) -> int:
        """Return the tokens that a budget cuts in all requests."""
        requests = self.requests
        if budget.name != self.budget.name:
            requests = replace(requests, roles=budget.roles)
        signed = replace(budget, deficit="signed", undeclared="pool")
        columns = RequestBatch(requests.demands()).columns(signed)
        return int(sum(section["cut"].sum() for section in columns.values()))


@dataclass
class TuningRun:
    """One tuning run: its progress, its stop flag and its result."""

    sentence: str = "Starting"
    done: float = 0.0
    shown_at: float = 0.0
    stopped: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    report: TuningReport | None = None
    problem: str = ""

    @property
    def runs(self) -> bool:
        """True if the tuning is still running."""
        return self.thread is not None and self.report is None and not self.problem


class StoppedError(RuntimeError):
    """The error for a run that the user stopped."""


class DecideFold(Content):
    """Panel for tuning a budget, with choices, progress and result."""

    def __init__(self, again: Callable[[], None]) -> None:
        super().__init__(again)
        self._objective = ""
        self._risk = "0.05"
        self._run = TuningRun()
        self._row: int | None = None

    def parts(self, stage: AnyStage) -> list[Data]:
        """Return the parts of the panel: choices, progress and result."""
        base = stage.settings.budget_settings
        many = 0 if base.trace is None else len(stage.library.conversations(base.trace))
        if many < FEWEST:
            sentence = f"Tuning needs {FEWEST} conversations: it picks a setting on each half and tests it on the other"
            open_more = "Open a file with more conversations, or try the shipped file."
            tip = "Short made-up conversations"
            return [
                text_part(f"{sentence}. This file has {many:,}. {open_more}"),
                button(f"Open {EXAMPLE}", {"example": True}, tip=tip),
            ]
        case = case_of(stage)
        if not self._run.runs and self._run.report is None and not case.cut(case.budget):
            return self._nothing_cut(case, many)
        shown = {name: aim.than_at_present() for name, aim in OBJECTIVES.items()}
        parts = [choice("Objective", "objective", shown, self._wanted(stage))]
        parts.append(choice("Answers cut short", "risk", RISKS, self._risk))
        run = self._run
        if run.runs:
            return [
                *parts,
                {"is": "progress", "value": run.done, "text": run.sentence},
                button("Stop", {"stop": True}),
            ]
        label = f"Tune on {many:,} conversations"
        parts.append(
            button(label, {"tune": True}, tip="Each half tests the setting chosen on the other")
        )
        if run.problem:
            parts.append(text_part(run.problem, "error"))
        if run.report is None:
            return parts
        return [*parts, *self._outcome(run.report)]

    def hear(self, stage: AnyStage, event: Data) -> Any:
        """Handle choices, start and stop, or apply a point of the front."""
        if event.get("objective") in OBJECTIVES:
            self._objective = str(event["objective"])
        elif event.get("risk") in RISKS:
            self._risk = str(event["risk"])
        elif "tune" in event and not self._run.runs:
            run = self._run = TuningRun()
            self._row = None
            work = run, case_of(stage), self._wanted(stage), float(self._risk)
            run.thread = threading.Thread(target=self._work, args=work, daemon=True)
            run.thread.start()
        elif "stop" in event:
            self._run.stopped.set()
        elif "example" in event:
            return choose(stage, EXAMPLE)
        elif "window" in event:
            base = stage.settings.budget_settings
            if event["preset"] != base.preset:
                base = replace(base, preset=str(event["preset"]), own=None, lines={}, locks={})
            return stage.settings.with_budget(replace(base, window=int(event["window"])))
        elif "point" in event and self._run.report is not None:
            decided = self._run.report
            row = int(event["point"])
            if not 0 <= row < len(decided.tuned.table):
                return None  # the current setting
            self._row = row
            return with_setting(stage, sizes_of(decided.values, decided.setting(row)))
        return None

    def _wanted(self, stage: AnyStage) -> str:
        """Return the chosen objective, or else the default objective.

        The default objective is "evidence" if needed messages are lost, otherwise "cut".
        """
        if self._objective:
            return self._objective
        if isinstance(stage.results, BudgetResults):
            return "cut"  # which messages are needed is worked out when the tuning runs
        needed, present = stage.results.shown.evidence
        return "evidence" if needed > present else "cut"

    def _nothing_cut(self, case: TuningCase, many: int) -> list[Data]:
        """Explain that nothing is cut, and offer a smaller window."""
        demand = case.requests.demands()
        largest = int(demand.sum(axis=1).max())
        sentence = (
            f"Nothing is cut from these {many:,} conversations: the largest request asks for {largest:,} of "
            f"{case.budget.window:,} tokens. No setting can lose less. Tuning needs a window that is too small for "
            "some of the conversations"
        )
        parts = [text_part(f"{sentence}.")]
        # The largest small window that cuts more than a tenth of the demand, else of a preset that does.
        plain = replace(case.base, preset=PLAIN, own=None, lines={}, locks={})
        for base, window in product((case.base, plain), SMALL_WINDOWS):
            budget = replace(base, window=window).budget
            is_smaller = window < case.budget.window and budget.usable > 0
            if is_smaller and 10 * case.cut(budget) > int(demand.to_numpy().sum()):
                preset = ""
                if base.preset != case.base.preset:
                    preset = f" and choose the preset {PLAIN}"
                event = {"window": window, "preset": base.preset}
                return [*parts, button(f"Set the window to {window:,}{preset}", event)]
        return parts

    def _work(self, run: TuningRun, case: TuningCase, objective: str, risk: float) -> None:
        """Tune in a separate thread, and show the progress."""

        def tell(sentence: str, done: float) -> None:
            if run.stopped.is_set():
                raise StoppedError("stopped by the user")
            run.sentence = sentence
            run.done = done
            if time.monotonic() - run.shown_at > SELDOM:
                run.shown_at = time.monotonic()
                self._again()

        try:
            run.report = decide(case, objective, risk, tell)
        except StoppedError:
            run.problem = "Stopped; nothing was chosen."
        # any error: without a report, the page would show the run as running for ever
        except Exception as problem:
            run.problem = refusal(problem)["text"]
        self._again()

    def _outcome(self, decided: TuningReport) -> list[Data]:
        """Return the advice, the chosen setting, the front and a report."""
        row = decided.advised if self._row is None else self._row
        budget = decided.budget
        if row != PRESENT:
            lines = _lines(sizes_of(decided.values, decided.setting(row)))
            budget = replace(budget, deficit="signed").assign(**lines)
        budget = kept_deficit(budget, decided.deficit)
        table = front.table(decided, row)
        figure = figure_part(
            "front",
            front.title,
            f"Means over the {len(decided.tuned.parts[0]):,} conversations of one half; the sentence above covers all "
            "of them. Click a point to set all sliders.",
            front.draw(table),
            table_text(table.drop(columns=["front", "point"])),
            "point",
        )
        matters = (
            f"Settings with the largest effect, each changed alone: {', '.join(decided.matter)}."
        )
        setting: Data = {"key": "set", "text": setting_text(decided.setting(row)), "note": matters}
        if row != PRESENT:
            setting["button"] = button("Set the sliders", {"point": row})
        return [
            text_part(decided.sentence(row), "fits" if decided.holds(row) else "cut"),
            {"is": "rows", "rows": [setting]},
            figure,
            {
                "is": "copy",
                "title": "Report to copy",
                "text": decided.report(row, budget),
            },
        ]


def decide(
    case: TuningCase, objective: str, risk: float, tell: Callable[[str, float], None]
) -> TuningReport:
    """Find the settings that matter most, and tune them together."""
    # The second objective is "evidence"; if that is the first one, "cost" with known prices or else "cut".
    costs = case.options["prices"].input is not None
    if objective == "cost" and not costs:
        raise ValueError("The price of this model is not known. Choose another objective.")
    second = "evidence"
    if objective == "evidence":
        second = "cost" if costs else "cut"
    objectives = (objective, second)
    tell("Counting answers", 0.0)
    count = case.options["counter"]
    traces = case.requests.traces
    lines = candidates(case.budget, traces, count, risk, case.base.locks)
    values: Values = lines
    if len(case.policies) > 1:
        values = {**lines, "policy": dict(case.policies)}

    def progress(sentence: str, low: float, high: float) -> Callable[[int, int], None]:
        return lambda done, of: tell(
            f"{sentence}: {done:,} of {of:,} conversations", low + (high - low) * done / of
        )

    progress_of = progress("One setting at a time", 0, 0.4)
    # Settings that exceed the window are left out, unless the current budget exceeds it, too.
    strict = kept_deficit(case.budget, "raise")
    moves = sensitivity(traces, strict, values, objective, progress=progress_of, **case.options)
    if not (moved := matter(moves)):
        raise ValueError(
            f"None of {quoted(values)} changes the {OBJECTIVES[objective].noun} of these conversations. Choose "
            "another objective or a smaller window, or unlock a section or reserve."
        )
    vary = {line: values[line] for line in values if line in moved}
    progress_of = progress("All settings together", 0.4, 1.0)
    no_more = ("evidence",) if objectives[1] == "evidence" else ()
    tuned = tune(
        traces,
        strict,
        vary,
        objectives,
        progress=progress_of,
        risk=risk,
        no_more=no_more,
        **case.options,
    )
    answers = [int(answer) for lengths in recorded_lengths(traces, count) for answer in lengths]
    return TuningReport(
        case.requests.name, case.budget, case.deficit, values, tuned, objectives, moves, answers
    )


def case_of(stage: AnyStage) -> TuningCase:
    """Return an explorer's current state as the inputs of a tuning run."""
    results = stage.results
    bare: BudgetResults = results.budget_results
    base = stage.settings.budget_settings
    budget = bare.plan.budget
    requests = FileRequests.of(base, stage.library, bare.counter)
    assert requests is not None, "the conversations of the file have been counted"
    policies: Mapping[str, Policy] = {}
    options: Data = {
        "policy": OldestFirst(),
        "counter": bare.counter,
        "framing": requests.framing,
        "prices": prices(bare.model.name),
    }
    if isinstance(stage.settings, ConversationSettings):
        budget = results.run.budget
        requests = replace(requests, roles=results.run.roles)
        policies = results.policies
        options = {"policy": policies[results.main], **results.run.options}
    deficit = base.base.deficit
    return TuningCase(
        base=base,
        requests=requests,
        budget=kept_deficit(budget, deficit),
        deficit=deficit,
        policies=policies,
        options=options,
    )


def with_setting(stage: AnyStage, setting: Raw) -> Any:
    """Return the explorer's settings with a tuned setting applied."""
    if isinstance(stage.settings, ConversationSettings):
        name = str(setting.get("policy", stage.settings.main))
        base = with_setting(stage.budget, setting)
        return replace(choose_main(stage, name), budget_settings=base)
    settings = stage.settings
    for line, tokens in _lines(setting).items():
        settings = settings.resize(line, tokens)
    return settings


def _lines(setting: Raw) -> Data:
    return {line: tokens for line, tokens in setting.items() if line != "policy"}
