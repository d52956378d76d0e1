"""The panel that tunes a budget on the opened conversations.

Tuning runs in a separate thread on immutable values, so sliders never wait. The result stays until the next run, and
states the budget from which the tuning started.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
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
from budgetkit.lab.explorers.budget.results import BudgetStage, kept_deficit
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.commands import choose
from budgetkit.lab.explorers.conversation.controls import choose_main
from budgetkit.lab.explorers.conversation.results import ConversationStage
from budgetkit.lab.explorers.folds import (
    Content,
    button,
    choice,
    figure_part,
    refusal,
    table_text,
    text_part,
)
from budgetkit.lab.replay.cost import prices
from budgetkit.message import Data, Raw
from budgetkit.plan.batch import RequestBatch
from budgetkit.promise import FEWEST_FOR_A_GAIN
from budgetkit.pruning import OldestFirst

FEWEST = 2 * FEWEST_FOR_A_GAIN  # conversations; half of them are held out
EXAMPLE = "made-up-chats"  # shipped conversations, enough of them to tune on
PLAIN = "chat"  # a preset whose lines shrink with the window, so that a small one cuts something
SMALL_WINDOWS = (65_536, 32_768, 16_384, 8_192, 4_096, 2_048, 1_024, 512)
RISKS = {"0.01": "1 in 100", "0.05": "5 in 100", "0.1": "10 in 100"}
SELDOM = 0.2  # seconds between two reports of the progress


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

    def parts(self, stage: BudgetStage) -> list[Data]:
        """Return the parts of the panel: choices, progress and result."""
        base = stage.settings
        many = 0 if base.trace is None else len(stage.library.conversations(base.trace))
        if many < FEWEST:
            sentence = f"Tuning needs {FEWEST} conversations: it picks a setting on each half and tests it on the other"
            open_more = "Open a file with more conversations, or try the shipped file."
            tip = "Short made-up conversations"
            return [
                text_part(f"{sentence}. This file has {many:,}. {open_more}"),
                button(f"Open {EXAMPLE}", {"example": True}, tip=tip),
            ]
        idle = not self._run.runs and self._run.report is None
        if idle and not tokens_cut(stage, initial_budget(stage)):
            return self._nothing_cut(stage, many)
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

    def hear(self, stage: BudgetStage, event: Data) -> Any:
        """Handle choices, start and stop, or apply a chosen setting."""
        if event.get("objective") in OBJECTIVES:
            self._objective = str(event["objective"])
        elif event.get("risk") in RISKS:
            self._risk = str(event["risk"])
        elif "tune" in event and not self._run.runs:
            run = self._run = TuningRun()
            self._row = None
            work = run, stage, self._wanted(stage), float(self._risk)
            run.thread = threading.Thread(target=self._work, args=work, daemon=True)
            run.thread.start()
        elif "stop" in event:
            self._run.stopped.set()
        elif "example" in event:
            return choose(stage, EXAMPLE)
        elif "window" in event:
            base = stage.settings
            if event["preset"] != base.preset:
                base = replace(base, preset=str(event["preset"]), own=None, lines={}, locks={})
            return replace(base, window=int(event["window"]))
        elif "point" in event and self._run.report is not None:
            decided = self._run.report
            row = int(event["point"])
            if not 0 <= row < len(decided.tuned.table):
                return None  # the current setting
            self._row = row
            return with_setting(stage, sizes_of(decided.values, decided.setting(row)))
        return None

    def _wanted(self, stage: BudgetStage) -> str:
        """Return the chosen objective, or else the default objective.

        The default objective is "evidence" if needed messages are lost, otherwise "cut".
        """
        if self._objective:
            return self._objective
        if not isinstance(stage, ConversationStage):
            return "cut"  # which messages are needed is worked out when the tuning runs
        needed, present = stage.shown.evidence
        return "evidence" if needed > present else "cut"

    def _nothing_cut(self, stage: BudgetStage, many: int) -> list[Data]:
        """Explain that nothing is cut, and offer a smaller window."""
        settings = stage.settings
        whole_window = settings.budget.window
        demand = stage.file.demands()
        largest = int(demand.sum(axis=1).max())
        sentence = (
            f"Nothing is cut from these {many:,} conversations: the largest request asks for {largest:,} of "
            f"{whole_window:,} tokens. No setting can lose less. Tuning needs a window that is too small for "
            "some of the conversations"
        )
        parts = [text_part(f"{sentence}.")]
        # The largest small window that cuts more than a tenth of the demand, else of a preset that does.
        plain = replace(settings, preset=PLAIN, own=None, lines={}, locks={})
        for base, window in product((settings, plain), SMALL_WINDOWS):
            budget = replace(base, window=window).budget
            is_smaller = window < whole_window and budget.usable > 0
            if is_smaller and 10 * tokens_cut(stage, budget) > int(demand.to_numpy().sum()):
                preset = ""
                if base.preset != settings.preset:
                    preset = f" and choose the preset {PLAIN}"
                event = {"window": window, "preset": base.preset}
                return [*parts, button(f"Set the window to {window:,}{preset}", event)]
        return parts

    def _work(self, run: TuningRun, stage: BudgetStage, objective: str, risk: float) -> None:
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
            run.report = decide(stage, objective, risk, tell)
        except StoppedError:
            run.problem = "Stopped; nothing was chosen."
        # any error: without a report, the page would show the run as running for ever
        except Exception as problem:
            run.problem = refusal(problem)["text"]
        self._again()

    def _outcome(self, decided: TuningReport) -> list[Data]:
        """Return the advice, the chosen setting, a figure and a report."""
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
    stage: BudgetStage, objective: str, risk: float, tell: Callable[[str, float], None]
) -> TuningReport:
    """Find the settings that matter most, and tune them together."""
    # The second objective is "evidence"; if that is the first one, "cost" with known prices or else "cut".
    options = options_of(stage)
    costs = options["prices"].input is not None
    if objective == "cost" and not costs:
        raise ValueError("The price of this model is not known. Choose another objective.")
    second = "evidence"
    if objective == "evidence":
        second = "cost" if costs else "cut"
    objectives = (objective, second)
    tell("Counting answers", 0.0)
    count = options["counter"]
    traces = stage.file.traces
    budget = initial_budget(stage)
    lines = candidates(budget, traces, count, risk, stage.settings.locks)
    values: Values = lines
    if isinstance(stage, ConversationStage) and len(stage.policies) > 1:
        values = {**lines, "policy": stage.policies}

    def progress(sentence: str, low: float, high: float) -> Callable[[int, int], None]:
        return lambda done, of: tell(
            f"{sentence}: {done:,} of {of:,} conversations", low + (high - low) * done / of
        )

    progress_of = progress("One setting at a time", 0, 0.4)
    # Settings that exceed the window are left out, unless the current budget exceeds it, too.
    strict = kept_deficit(budget, "raise")
    moves = sensitivity(traces, strict, values, objective, progress=progress_of, **options)
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
        **options,
    )
    answers = [int(answer) for lengths in recorded_lengths(traces, count) for answer in lengths]
    return TuningReport(
        stage.file.name,
        budget,
        stage.settings.base.deficit,
        values,
        tuned,
        objectives,
        moves,
        answers,
    )


def initial_budget(stage: BudgetStage) -> Budget:
    """Return the budget to tune, with its own deficit rule."""
    budget = stage.settings.planned_budget if stage.requests is None else stage.plan.budget
    return kept_deficit(budget, stage.settings.base.deficit)


def options_of(stage: BudgetStage) -> Data:
    """Return the options of `tune`, as the explorer replays the conversations."""
    if isinstance(stage, ConversationStage):
        return {"policy": stage.policies[stage.settings.main], **stage.options}
    return {
        "policy": OldestFirst(),
        "counter": stage.counter,
        "framing": stage.framing,
        "prices": prices(stage.model.name),
    }


def tokens_cut(stage: BudgetStage, budget: Budget) -> int:
    """Return the tokens that a budget cuts in all the file's requests."""
    requests = stage.file
    if budget.name != stage.settings.budget.name:
        requests = replace(requests, roles=budget.roles)
    signed = replace(budget, deficit="signed", undeclared="pool")
    columns = RequestBatch(requests.demands()).columns(signed)
    return int(sum(section["cut"].sum() for section in columns.values()))


def with_setting(stage: BudgetStage, setting: Raw) -> BudgetSettings:
    """Return the explorer's settings with a tuned setting applied."""
    settings = stage.settings
    if isinstance(stage, ConversationStage) and "policy" in setting:
        settings = choose_main(stage, str(setting["policy"]))
    for line, tokens in _lines(setting).items():
        settings = settings.resize(line, tokens)
    return settings


def _lines(setting: Raw) -> Data:
    return {line: tokens for line, tokens in setting.items() if line != "policy"}
