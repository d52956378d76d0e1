"""The BudgetExplorer class, its reading panel and its status."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from budgetkit.budget import Budget, many
from budgetkit.budget.html import colour
from budgetkit.counters import Count
from budgetkit.lab.explorers.base import Explorer, Kind
from budgetkit.lab.explorers.budget.charts import charts, scene
from budgetkit.lab.explorers.budget.controls import COMMANDS, controls, initial_settings
from budgetkit.lab.explorers.budget.notices import status, texts
from budgetkit.lab.explorers.budget.results import BudgetStage
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.budget.why import lost_sections, remedies
from budgetkit.lab.explorers.commands import OF_CONVERSATIONS, file_entry
from budgetkit.lab.explorers.reading import parted, speaker, whole, words
from budgetkit.lab.explorers.shelves import Library, title_of
from budgetkit.lab.explorers.view import view_of
from budgetkit.message import Data, Message
from budgetkit.plan import Plan
from budgetkit.plan.decisions import FITS, Decision
from budgetkit.state import to_dict
from budgetkit.trace import Trace
from budgetkit.truncation.cutting import SECTION_MARKERS as MARKERS

# Items shown of each section: the newest kept, the last lost, and the first.
NEWEST = 40
GONE = 15
FIRST = 2


def reading(stage: BudgetStage) -> Data:
    """Return the plan's items for the reading panel, or {}.

    The result is {} if no conversation is open, or if the plan has no items.
    """
    plan = stage.plan
    if stage.trace is None or not len(plan.decisions):
        return {}
    reasons = plan.decisions.reasons
    numbers = {"kept": int((reasons == FITS).sum()), "cut": len(plan.decisions.cuts)}
    numbers["dropped"] = len(reasons) - sum(numbers.values())
    fates = ", ".join(f"{number:,} {word}" for word, number in numbers.items() if number)
    trace = stage.trace
    sent = len(trace.request(stage.turn))
    items = f"{many(len(reasons), 'item')}: {sent:,} of the {many(len(trace.messages), 'message')}"
    if others := len(reasons) - sent:
        items += f", {others:,} passages or tool schemas"
    note = f"{fates} of {items}. To see why, click an item, or select it with the arrow keys and press Enter."
    return {
        "title": f"Outcome of turn {stage.turn:,}",
        "note": note,
        "blocks": list(_blocks(plan)),
    }


def _blocks(plan: Plan) -> Iterator[Data]:
    """Yield blocks for shown items, and for gaps of hidden items."""
    decisions = plan.decisions
    columns = decisions.columns

    # Each section's first, newest and last lost items, and every cut item.
    shown = set(decisions.cuts)
    for section in columns.sections:
        rows = np.asarray(columns.rows(section))
        stays = decisions.reasons[rows] == FITS
        for some in (rows[:FIRST], rows[stays][-NEWEST:], rows[~stays][-GONE:]):
            shown.update(some.tolist())

    start = 0
    for row in (*sorted(shown), len(decisions)):
        if hidden := row - start:
            gone = int((decisions.reasons[start:row] != FITS).sum())
            state = {0: "all kept", hidden: "all dropped"}.get(gone, f"{gone:,} dropped")
            yield {
                "key": f"gap {start}",
                "label": f"{many(hidden, 'item')} not shown here",
                "mark": f"{many(int(columns.tokens[start:row].sum()), 'token')}, {state}",
                "level": "gap",
                "pieces": [],
            }
        if row < len(decisions):
            yield _block(plan, row, decisions[row])
        start = row + 1


def _block(plan: Plan, row: int, decision: Decision) -> Data:
    """Return an item's block, with its outcome and its section's numbers."""
    before = plan.decisions.columns.items[row].payload
    after = decision.item.payload
    grant = plan[decision.section]
    size = many(decision.tokens, "token")
    label = decision.section
    pieces = whole(str(before or ""))
    if isinstance(before, Message):
        label = speaker(before)
        pieces = whole(words(before))
    if decision.outcome == "cut":
        size = f"{decision.kept:,} of {size}"
        if isinstance(before, Message) and isinstance(after, Message):
            pieces = parted(before.text, after.text, MARKERS.values())
    why = "Kept whole"
    if decision.outcome != "kept":
        why = f"{decision.outcome.capitalize()}: {decision.reason}"
    return {
        **({} if decision.outcome == "kept" else {"asks": row}),
        "key": str(row),
        "section": decision.section,
        "color": colour(decision.section),
        "label": f"#{row:,} {label}",
        "mark": f"{size}, {decision.outcome}",
        "level": {"kept": "", "cut": "cut", "dropped": "gone"}[decision.outcome],
        "why": f"{why}. {decision.section} asks for {grant.demand:,} tokens, may take {grant.limit:,} "
        f"and gets {grant.granted:,}.",
        "pieces": pieces,
    }


def requests(stage: BudgetStage) -> Data:
    """Return the turns with their messages, or {} if there are none."""
    if stage.turns is None or stage.trace is None:
        return {}
    messages = stage.trace.messages
    ends = [turn.sent for turn in stage.trace.turns]
    first = np.searchsorted(ends, np.arange(len(messages)), side="right") + 1
    return {
        "by": "turn",
        "turns": stage.turns.demand.index.tolist(),
        "request": stage.turn or 1,
        "note": "The newest messages that this turn asks for, before the budget cuts any.",
        "messages": messages,
        "first": first.tolist(),
        "gone": [],
        "tokens": [],
    }


def status_with_reasons(stage: BudgetStage) -> Data:
    """Return the status, with the cut section that each sentence names."""
    notice = status(stage)
    lost = lost_sections(stage.plan)
    asks = []
    for text in (notice["text"], *notice["more"]):
        words = re.split(r"[,:.\s]+", text)
        asks.append(next((word for word in words if word in lost), None))
    return {**notice, "asks": asks, "remedies": remedies(stage)}


def heading(stage: BudgetStage) -> str:
    """Return a report's title: the budget, its window and the conversation."""
    settings = stage.settings
    budget = stage.budget
    trace = stage.trace
    whose = "" if trace is None else f", {title_of(str(settings.trace), trace)}"
    name = budget.name or "Custom budget"
    return f"{name}: {budget.window:,} tokens of {settings.model}{whose}"


BudgetView = view_of("BudgetView", ("waterfall", "sections", "turns", "errors", "conversations"))


class BudgetExplorer(Explorer):
    """An explorer of a budget, with sliders.

    Parameters
    ----------
    budget : str or Budget, default "chat"
        A preset's name, or the initial budget.
    trace : str, path, Trace, sequence of Trace or of messages, optional
        The conversations to plan: the name of a shipped conversation, a path, or loaded traces. If there are none,
        the user enters the demands.
    model : str, optional
        The model, whose window is used for a preset. Default: the conversation's own model, or `DEFAULT_MODEL`.
    counter : str, Counter or callable, optional
        The counter or its name; default: the model's own counter.
    window : int, optional
        Context window, in tokens, in place of the window of the budget or the model.

    Raises
    ------
    ValueError, LookupError, OSError
        If an argument is unknown or cannot be read.

    Examples
    --------
    >>> explorer = BudgetExplorer("chat", window=8_192)
    >>> explorer
    BudgetExplorer(chat, gpt-5.4, window=8,192)
    >>> explorer.move("conversation", 2_000)
    >>> explorer.budget.cap("conversation"), explorer.budget.shared_pool
    (2000, 1278)
    """

    stage: BudgetStage
    kind: ClassVar[Kind] = Kind(
        commands={**OF_CONVERSATIONS, **COMMANDS},
        name="budget",
        view=BudgetView,
        stage=BudgetStage,
        scene=scene,
        controls=controls,
        status=status_with_reasons,
        charts=charts,
        entry=file_entry,
        texts=texts,
        reader=reading,
        requests=requests,
        heading=heading,
    )

    def __init__(
        self,
        budget: str | Budget = "chat",
        trace: str | Path | Trace | Sequence[Any] | None = None,
        *,
        model: str | None = None,
        counter: str | Count | None = None,
        window: int | None = None,
    ) -> None:
        view = self.kind.view()
        library = Library(view.report)
        settings = initial_settings(
            BudgetSettings(), library, trace, budget, model, counter, window
        )
        super().__init__(settings, library, view)

    @property
    def plan(self) -> Plan:
        """The plan of the chosen turn or of the entered sizes.

        The deficit rule of its budget is "signed".
        """
        return self.stage.plan

    @property
    def config(self) -> Data:
        """All settings as plain data."""
        now = self.settings
        return {
            "model": now.model,
            "preset": now.preset,
            "counter": self.stage.counter.name,
            "trace": now.trace,
            "conversation": now.conversation if now.trace else None,
            "turn": self.stage.turn or None,
            "locked": sorted({line.name for line in self.budget} & set(now.locks)),
            **to_dict(self.budget),
        }

    def lock(self, line: str, on: bool = True) -> None:
        """Lock a reserve or section at its current size, or unlock it.

        Parameters
        ----------
        line : str
            A section or a reserve of the budget.
        on : bool, default True
            If True, lock the section or reserve; if False, unlock it.
        """
        self._run_command("lock", line=line, on=on)

    def pin(self) -> None:
        """Pin the budget for comparison, or unpin it."""
        self._run_command("pin")

    def __repr__(self) -> str:
        now = self.settings
        name = (now.own and now.own.name) or now.preset
        return f"{type(self).__name__}({name}, {now.model}, window={self.budget.window:,})"
