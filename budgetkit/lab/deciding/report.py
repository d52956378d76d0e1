"""Tuning reports: the table, the front, and a sentence for each setting.

A setting gives a value to each varied line: the window, a reserve, a section or the policy. The front consists of the
settings that no other setting beats in all objectives.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from budgetkit.budget import Budget, one_line
from budgetkit.lab.deciding.objectives import OBJECTIVES, percent
from budgetkit.lab.deciding.space import Values, reserve_of_answers, setting_text
from budgetkit.lab.deciding.tuning import TuningResult
from budgetkit.lab.figures.question import Question, Spec, label, line, points, spec_of, table_rows
from budgetkit.message import Raw
from budgetkit.state import to_yaml

_PROXY = (
    "Unless the conversation marks them, needed messages are those that a later message refers to by name. This "
    "compares settings, not answers."
)


#: The number of the current setting, which is not a row of the table.
PRESENT = -1


@dataclass(frozen=True)
class TuningReport:
    """The report of a tuning on the conversations in a file."""

    source: str
    budget: Budget
    deficit: str
    values: Values
    tuned: TuningResult
    objectives: tuple[str, str]
    moves: pd.DataFrame
    answers: Sequence[int]

    @property
    def matter(self) -> list[str]:
        """Up to three lines with the largest effect on the objective."""
        return matter(self.moves)

    @property
    def advised(self) -> int:
        """The row of the recommended setting, or `PRESENT` for the current setting."""
        return PRESENT if self.tuned.stays or self.tuned.row is None else self.tuned.row

    def setting(self, row: int) -> dict[str, str]:
        """Return each line's value in a setting, as in the table."""
        values = self.tuned.best if row == PRESENT else self.tuned.table.iloc[row]
        return {line: str(values[line]) for line in self.tuned.best}

    def sentence(self, row: int) -> str:
        """Describe the gain of a setting, with an interval, in sentences."""
        tuned = self.tuned
        aim = OBJECTIVES[self.objectives[0]]
        if row not in (PRESENT, tuned.row):
            return tuned.gain_at(row).sentence("this budget", aim, f" ({self._lost(row)})")
        bound = ""
        if self.objectives[1] == "evidence":
            bound = f" without more {OBJECTIVES['evidence'].noun}"
        aside = "" if tuned.row is None else f" ({self._lost(tuned.row)})"
        sentences = [tuned.verdict("this budget", aside, bound)]
        if row == PRESENT and tuned.candidate != tuned.best:
            candidate = setting_text(self.setting(tuned.row or 0))
            sentences.append(f"Keep the current setting. The best candidate is {candidate}.")
        return " ".join([*sentences, *tuned.notices])

    def holds(self, row: int) -> bool:
        """Return True if a setting's gain is reliably above 0."""
        return row != PRESENT and self.tuned.gain_at(row).holds

    def table(self, chosen: int) -> pd.DataFrame:
        """Return a table of the settings, with the means of their objectives.

        The means are over the first half of the conversations. Settings that were left out have no row.
        """
        means = self.tuned.table[[*self.tuned.aims]]
        rows = range(len(means))
        names = [setting_text(self.setting(row)) for row in rows]
        front = self.tuned.table["front"].to_numpy()
        standing = np.where(front, "on the front", "beaten").astype(object)
        if chosen != PRESENT:
            standing[chosen] = "chosen"

        table = pd.DataFrame(
            np.vstack([means, self._now]),
            columns=[OBJECTIVES[name].noun for name in self.objectives],
        )
        table.insert(0, "setting", [*names, "current"])
        table["standing"] = [*standing, "current"]
        table["front"] = [*front, False]
        table["point"] = [*rows, PRESENT]
        return table.dropna(ignore_index=True)

    def report(self, row: int, budget: Budget) -> str:
        """Return the report as Markdown, with the budget."""
        aim = OBJECTIVES[self.objectives[0]]
        chosen_on, held_out = map(len, self.tuned.parts)
        # The share of recorded answers that are longer than the reserve.
        reserve = reserve_of_answers(budget)
        size = 0 if reserve is None else budget.sizes[reserve.name]
        cut_short = sum(answer > size for answer in self.answers) / max(1, len(self.answers))
        how = (
            f"{self.tuned.tried:,} settings were tried on {chosen_on + held_out:,} conversations of "
            f"{_as_text(one_line(self.source))}, split at random into two halves (seed {self.tuned.seed}); each half "
            "is measured with the setting that the other half chose. "
            f"{100 * cut_short:.1f} % of the recorded answers are longer than the {size:,} tokens reserved for them. "
            f"{_PROXY}"
        )
        now = aim.form.format(self._now[0])
        parts = [
            "# Which budget?",
            f"**{_as_text(self.sentence(row))}**",
            how,
            "## What matters",
            f"The effect of each setting alone, in {aim.noun} per conversation (currently {now}):",
            "\n".join(f"- {_moved(line, self.moves, aim.form)}" for line in self.matter),
        ]
        # The settings that no other setting beats, without duplicates.
        table = self.table(row)
        shown = table[table["standing"] != "beaten"].sort_values(table.columns[1], kind="stable")
        shown = shown.drop(columns=["front", "point"])
        shown = shown.drop_duplicates([*shown.columns[1:]])
        lines: list[Any] = [shown.columns, *shown.itertuples(index=False)]
        head, *body = (f"| {' | '.join(map(_cell, line))} |" for line in lines)
        parts += ["## Best trade-offs", "\n".join([head, "|" + "---|" * shown.shape[1], *body])]
        return "\n\n".join([*parts, "## The budget", f"```yaml\n{to_yaml(budget)}```"]) + "\n"

    def _lost(self, row: int) -> str:
        """Describe a setting's losses and cost.

        The cost is described only if it is the second objective.
        """
        place = self.objectives.index("evidence")
        gain = self.tuned.gain_at(row, place)
        now, then = gain.before.sum(), gain.after.sum()
        words = "" if place == 0 else "needed messages lost "
        lost = f"{then:,.0f} {words}instead of {now:,.0f}" if then else "no needed message lost"
        if self.objectives[1] != "cost":
            return lost
        saved = self.tuned.gain_at(row, 1).share
        return f"{lost}, {percent(abs(saved))} % {'cheaper' if saved >= 0 else 'more expensive'}"

    @property
    def _now(self) -> Any:
        """The mean objectives of the current setting."""
        return self.tuned.scores[self.tuned.parts[0], 0].mean(axis=0)


def matter(moves: pd.DataFrame) -> list[str]:
    """List up to three lines that affect the objective most."""
    moving = moves[(moves["spread"] > 0) & moves["change"].notna()]
    return [str(line) for line in moving["line"].drop_duplicates().head(3)]


def _moved(line: str, moves: pd.DataFrame, form: str) -> str:
    """Describe the effect of changing one line alone."""
    of_line = moves[(moves["line"] == line) & moves["mean"].notna()].sort_values(
        "mean", kind="stable"
    )
    ends = [
        f"{form.format(row['mean'])} at {row['value']}" for row in table_rows(of_line.iloc[[0, -1]])
    ]
    return f"{_as_text(one_line(line))}: {' to '.join(dict.fromkeys(ends))}"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return _as_text(str(value))


def _as_text(text: str) -> str:
    """Escape the characters that have a meaning in Markdown."""
    return re.sub(r"[\\`*\[\]<|]", r"\\\g<0>", text)


_COLOURS = {
    "beaten": "#9aa0a6",
    "on the front": "#0072b2",
    "chosen": "#d55e00",
    "current": "#009e73",
}


def _draw(table: pd.DataFrame) -> Spec:
    first, second = table.columns[1:3]
    words = {aim.noun: aim.form for aim in OBJECTIVES.values()}

    def hover(row: Raw) -> str:
        sizes = "<br>".join(f"{name}: {words[name].format(row[name])}" for name in (first, second))
        return f"{label(row['setting'], 80)}<br>{sizes}"

    best = table[table["front"]].sort_values(first)
    dotted = {"color": _COLOURS["on the front"], "width": 1, "dash": "dot"}
    drawn = [
        line(
            best[first], best[second], line=dotted, mode="lines", hoverinfo="skip", showlegend=False
        )
    ]
    for kind, colour in _COLOURS.items():
        if len(group := table[table["standing"] == kind]):
            tips = {"hovertext": [*map(hover, table_rows(group))], "hoverinfo": "text"}
            marker = {"color": colour, "size": 13 if kind in ("chosen", "current") else 8}
            labels = {"name": kind, "customdata": group["point"].tolist()}
            drawn.append(points(group[first], group[second], marker=marker, **labels, **tips))
    axes = [{"title": f"{name}, a conversation", "nticks": 6} for name in (first, second)]
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    return spec_of(drawn, 340, *axes, showlegend=True, legend=legend, meta={"top": 34})


#: Draw all tried settings by two objectives, with a line through those that no other setting beats.
front = Question(
    "Which settings are worth choosing?", lambda decided, chosen: decided.table(chosen), _draw
)
