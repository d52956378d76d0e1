"""Comparison of several models or budgets at one window.

Each column shows the contents of the window, the shared pool, the history budget, the number of turns without cuts, the
error of the cheap count by kind of text, and the cost of the prompt. If budgets are pinned, the columns are the pinned
budgets and the current budget. Otherwise, the columns are models of several makers with the current budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from string import ascii_uppercase
from typing import Final

import numpy as np

from budgetkit.budget.html import HATCHED, colour
from budgetkit.counters import basis_of
from budgetkit.lab.accuracy.document_figures import signed_percent
from budgetkit.lab.app.headline import OWN, fitting, misjudgements
from budgetkit.lab.app.strip import LABELS
from budgetkit.lab.explorers.budget.charts import claim_name
from budgetkit.lab.explorers.budget.results import BudgetStage
from budgetkit.lab.explorers.budget.settings import BudgetSettings, longest_window
from budgetkit.lab.explorers.folds import Content, button, text_part
from budgetkit.lab.explorers.shelves import Library
from budgetkit.lab.figures.question import signed
from budgetkit.lab.figures.window import takes_the_rest, window_claims
from budgetkit.lab.replay.cost import prices
from budgetkit.message import Data
from budgetkit.models import DEFAULT_MODEL, resolve

#: Models from several makers, including an open one.
MAKERS: Final = (DEFAULT_MODEL, "claude-sonnet-5", "gemini-3.8-flash", "Llama-3.3-70B-Instruct")
MOST_PINS: Final = 5


class Side(BudgetStage):
    """A column of the comparison: settings and their results."""

    @property
    def title(self) -> str:
        """The model and the budget's name."""
        return f"{self.model.name}, {self.plan.budget.name or 'own budget'}"

    @property
    def bar(self) -> list[Data]:
        """The segments of the window, as percentages."""
        plan = self.plan
        rest = plan.budget.remainder if takes_the_rest(plan.budget) else None
        lines = [claim for claim in window_claims(plan) if claim.tokens > 0]
        whole = max(1, sum(claim.tokens for claim in lines))
        segments = []
        for claim in lines:
            name = claim_name(plan, claim, rest)
            segments.append(
                {
                    "name": name,
                    "tip": f"{name}: {claim.tokens:,} tokens",
                    "width": 100 * claim.tokens / whole,
                    "color": colour(claim.line),
                    "hatch": claim.line in HATCHED,
                }
            )
        return segments

    @property
    def lines(self) -> dict[str, str]:
        """The size of each reserve and the cap of each section."""
        budget = self.plan.budget
        caps = {name: "no cap" if cap is None else f"{cap:,}" for name, cap in budget.caps.items()}
        return {name: f"{size:,}" for name, size in budget.sizes.items() if name not in caps} | caps

    @property
    def cost(self) -> str:
        """The cost of the prompt without a cache."""
        nothing = np.array([0])
        prompt = nothing + self.plan.used
        dollars = float(prices(self.model).cost(prompt, nothing, nothing, nothing)[0])
        return "no price known" if np.isnan(dollars) else f"${dollars:.4f}"

    def figures(self) -> dict[str, str]:
        """Return the column's cells under their row names."""
        plan = self.plan
        budget = plan.budget
        remainder = "none"
        if budget.remainder is not None:
            remainder = f"{signed(plan.remainder)} ({budget.remainder})"
        named = {
            "window": f"{budget.window:,}",
            "shared pool": signed(budget.shared_pool),
            "history budget": remainder,
            "without cuts": fitting(self),
        }
        about = "about " if basis_of(self.best) == "estimate" else ""
        for row in misjudgements(self):
            name = f"cheap-count error: {LABELS[row.kind]}"
            if name not in named or row.where == OWN:
                named[name] = f"{about}{signed_percent(row.error, 0)}"
        return {**named, "cost of the prompt, uncached": self.cost}


def sides(settings: BudgetSettings, library: Library) -> list[Side]:
    """Return the columns: pinned budgets, or models of several makers.

    The current budget is always included.
    """
    plain = settings.unpinned
    if settings.pins:
        budgets = settings.pins if plain in settings.pins else (*settings.pins, plain)
        return [Side(budget, library) for budget in budgets]
    window = settings.budget.window
    names = dict.fromkeys([settings.model, *MAKERS])
    return [Side(at_window(plain, name, window), library) for name in names]


def at_window(settings: BudgetSettings, name: str, window: int) -> BudgetSettings:
    """Return the settings for another model, with at most the given window.

    If the other model's longest window is shorter, the longest window is used.
    """
    longest = longest_window(resolve(name))
    missing = None
    if longest is not None and window > longest and name != settings.model:
        missing = window
        window = longest
    return replace(settings, model=name, window=window, missing_window=missing)


def table(columns: Sequence[Side], pins: int = 0) -> Data:
    """Return the columns of the comparison for the page.

    If budgets are pinned, only the rows that differ are included.
    """
    figures = [side.figures() | (side.lines if pins else {}) for side in columns]
    names = dict.fromkeys(name for column in figures for name in column)
    rows = [
        {"name": name, "cells": [column.get(name, "none") for column in figures]} for name in names
    ]
    if pins:
        rows = [row for row in rows if len(set(row["cells"])) > 1]
    heads: list[Data] = []
    for place, (side, letter) in enumerate(zip(columns, ascii_uppercase, strict=False)):
        head: Data = {"title": side.title, "bar": side.bar}
        if place < pins:
            head |= {"title": f"{letter}: {side.title}", "unpin": {"unpin": place}}
        elif pins:
            head["title"] = f"Current: {side.title}"
        heads.append(head)
    return {"is": "sides", "columns": heads, "rows": rows, "differ": pins > 0}


class SidesFold(Content):
    """A panel that compares several models or budgets."""

    def parts(self, stage: BudgetStage) -> list[Data]:
        """Return the parts of the panel: a sentence and the columns."""
        columns = sides(stage.settings, stage.library)
        window = stage.plan.budget.window
        shorter = [side.model.name for side in columns if side.settings.missing_window]
        sentence = f"The same budget of {window:,} tokens for models from several makers. Pin budgets to compare them."
        if stage.settings.pins:
            sentence = "The rows show the differences between A and the other budgets."
        if shorter:
            sentence += (
                f" Models with smaller windows use their longest window: {', '.join(shorter)}."
            )
        parts = [text_part(sentence), table(columns, len(stage.settings.pins))]
        if stage.settings.pins:
            parts.append(button("Remove all pins", {"clear": True}))
        return parts

    def hear(self, stage: BudgetStage, event: Data) -> BudgetSettings | None:
        """Remove one pin or all pins, as the user asks.

        Return None for any other event.
        """
        pins = stage.settings.pins
        if event.get("clear"):
            return stage.settings.unpinned
        place = event.get("unpin")
        if isinstance(place, int) and 0 <= place < len(pins):
            return replace(stage.settings, pins=(*pins[:place], *pins[place + 1 :]))
        return None


def pin_column(stage: BudgetStage) -> BudgetSettings:
    """Add the current settings to the comparison, or remove them."""
    settings = stage.settings
    plain = settings.unpinned
    pins = tuple(pinned for pinned in settings.pins if pinned != plain)
    if pins == settings.pins:
        pins = (*pins, plain)[-MOST_PINS:]
    return replace(settings, pins=pins)
