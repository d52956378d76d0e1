"""Reasons for a loss, and the smallest fixes as buttons."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from budgetkit.budget import brief, one_line
from budgetkit.lab.explorers.budget.charts import bar
from budgetkit.lab.explorers.budget.controls import resize, use_unused_caps
from budgetkit.lab.explorers.budget.results import BudgetStage, kept_deficit
from budgetkit.lab.explorers.budget.settings import OWN, BudgetSettings, enough_window
from budgetkit.lab.explorers.folds import Content, button, choice, set_line, text_part
from budgetkit.lab.figures.question import signed
from budgetkit.lab.figures.window import left_of_pool, too_many
from budgetkit.message import RESULT_ROLES, Data
from budgetkit.plan import Plan
from budgetkit.plan.reasons import Mend

LONGEST = 90  # characters of a message


class WhyFold(Content):
    """Panel about a loss and the changes that would prevent it."""

    def __init__(self, again: Callable[[], None]) -> None:
        super().__init__(again)
        self._of: str | int = ""
        self._offers: dict[str, BudgetSettings] = {}
        self._settings: BudgetSettings | None = None

    def parts(self, stage: BudgetStage) -> list[Data]:
        """Return the parts of the panel: reasons for a loss, and fixes."""
        self._settings = stage.settings
        self._offers = {}
        plan = stage.plan
        lost = lost_sections(plan)
        if not lost:
            return [text_part("Nothing is lost, so there is nothing to fix.")]
        # The selected section or message while it is still lost, else the largest loss.
        of = self._of
        is_item = isinstance(of, int) and 0 <= of < len(plan.decisions)
        if of not in lost and not (is_item and _is_lost(plan, of)):
            of = lost[0]
        why = plan.why(of)
        names = {section: f"{section}, {plan[section].cut:,} tokens" for section in lost}
        parts: list[Data] = [
            choice("Section", "of", names, why.section),
            text_part(_title(plan, of)),
            {"is": "list", "items": list(why.reasons)},
        ]
        rows = [{"key": str(i), **self._row(stage, m, of)} for i, m in enumerate(why.mends)]
        if rows:
            sentence = "To keep all of it, make one of these changes:"
            return [*parts, text_part(sentence), {"is": "rows", "rows": rows}]
        none = "No single change keeps all of it. Make two changes, or shorten the text."
        return [*parts, text_part(why.unmended or none)]

    def hear(self, stage: BudgetStage, event: Data) -> BudgetSettings | None:
        """Show another loss, or return the settings with the chosen fix."""
        if "mend" not in event:
            self._of = event.get("of", "")
            return None
        if self._settings is not stage.settings or str(event["mend"]) not in self._offers:
            raise ValueError(
                "These fixes are out of date, because the budget has changed. Choose one of the current fixes."
            )
        return self._offers[str(event["mend"])]

    def _row(self, stage: BudgetStage, mend: Mend, of: str | int) -> Data:
        """Return a change's row, with a button if the change works.

        A change works if a new plan with it no longer has the loss.
        """
        row = {"text": mend.sentence, "note": "A locked section or reserve prevents this change."}
        if mend.budget is None:
            return {**row, "note": "Change the text itself; no setting can."}
        for to in _ways(stage, mend):
            after = replace(stage, settings=to).plan
            if not _is_lost(after, of):
                key = f"{mend.line} {len(self._offers)}"  # two changes may concern the same line
                self._offers[key] = to
                offer = _offer(stage, after, "Apply", {"mend": key})
                return {**row, "note": offer["tip"], "button": offer}
        return row


def remedies(stage: BudgetStage) -> list[Data]:
    """Return single changes to offer, each tested with a new plan."""
    plan = stage.plan
    budget = plan.budget
    left = left_of_pool(plan)
    lost = lost_sections(plan)
    buttons = []

    def offer(label: str, tells: Data, after: Plan | None) -> None:
        if after is None or any(after[grant.section].cut > grant.cut for grant in plan.grants):
            return
        buttons.append(_offer(stage, after, label, tells))

    def offer_line(label: str, line: str, size: int) -> None:
        after = _moved(stage, resize, line, size)
        offer(f"{label} {size:,}", set_line(line, size), after)

    if left < 0 and budget.reserves:
        largest = max(budget.reserves, key=lambda reserve: budget.sizes[reserve.name]).name
        offer_line(f"Lower {largest} to", largest, budget.sizes[largest] + left)
    for section in lost[:1]:
        grant = plan[section]
        cap = budget.caps[section]
        highest = (cap or grant.granted) + left
        after = _moved(stage, use_unused_caps, section)
        if grant.demand > highest and after and not after[section].cut:
            tells = {"kind": "unused", "section": section}
            offer(f"Fit all {grant.demand:,} in unused caps", tells, after)
        elif left > 0 and cap is not None:
            offer_line(f"Raise {section} to", section, min(grant.demand, highest))
    if lost or left < 0:

        def is_whole(window: int) -> bool:
            after = _moved(stage, resize, "window", window)
            return after is not None and not lost_sections(after)

        for window in enough_window(budget, stage.model, is_whole):
            offer_line("Set window to", "window", window)
    return buttons


def _moved(
    stage: BudgetStage, change: Callable[..., BudgetSettings], *values: str | int
) -> Plan | None:
    """Return the plan after a change, or None if the change fails.

    A change fails if it is not allowed, or if the window is then too small.
    """
    try:
        after = replace(stage, settings=change(stage, *values)).plan
    except (ValueError, LookupError):
        return None
    return None if too_many(after) else after


def _offer(stage: BudgetStage, after: Plan, label: str, tells: Data) -> Data:
    """Return a button that makes a change and previews the resulting bar."""
    if rest := sum(grant.cut for grant in after.grants):
        label = f"{label} ({rest:,} still cut)"
    tip = difference(stage.plan, after)
    return button(label, tells, tip=tip, bar=bar(stage, after))


def lost_sections(plan: Plan) -> list[str]:
    """Return the sections that lose something, largest loss first."""
    return [g.section for g in sorted(plan.grants, key=lambda grant: -grant.cut) if g.cut > 0]


def difference(before: Plan, after: Plan) -> str:
    """Summarise the difference between two plans, in tokens cut and left."""
    cuts = {g.section: after[g.section].cut - g.cut for g in before.grants}
    lost = [
        f"{abs(tokens):,} {'more' if tokens > 0 else 'fewer'} tokens of {section}"
        for section, tokens in cuts.items()
        if tokens
    ]
    pairs = {"Usable window": (before.budget.usable, after.budget.usable)}
    if before.budget.remainder is not None and after.budget.remainder is not None:
        pairs[f"Budget for {before.budget.remainder}"] = (before.remainder, after.remainder)
    for section, cap in before.budget.caps.items():
        changed = after.budget.caps.get(section)
        is_own = section != before.budget.remainder and before.budget.window == after.budget.window
        if is_own and cap is not None and changed is not None:
            pairs[f"Cap of {section}"] = (cap, changed)
    pairs["Shared pool"] = (before.budget.shared_pool, after.budget.shared_pool)
    moved = [f"{name}: {signed(a)} \u2192 {signed(b)}." for name, (a, b) in pairs.items() if a != b]
    return " ".join([f"Cuts {' and '.join(lost) or 'as many tokens as before'}.", *moved])


def _ways(stage: BudgetStage, mend: Mend) -> Iterator[BudgetSettings]:
    """Yield settings that make a change to the budget."""
    settings = stage.settings
    assert mend.budget is not None
    if mend.line not in ("importance", "limit_items"):
        try:
            yield settings.resize(mend.line, mend.after)
        except (ValueError, LookupError):
            return  # locked
    base = settings.base
    if mend.line == "importance":
        weights = {line.section: line.importance for line in mend.budget.allocations}
        allocations = tuple(
            replace(line, importance=weights.get(line.section, line.importance))
            for line in base.allocations
        )
        yield replace(settings, own=replace(base, allocations=allocations), preset=OWN)
    elif not settings.locks:
        changed_budget = kept_deficit(mend.budget, base.deficit)
        yield replace(settings, own=changed_budget, preset=OWN, window=None, lines={})


def _is_lost(plan: Plan, of: str | int) -> bool:
    """Return True if a section or an item loses tokens."""
    if isinstance(of, str):
        return plan[of].cut != 0
    return int(plan.decisions.kept[of]) < plan.decisions.columns.items[of].tokens


def _title(plan: Plan, of: str | int) -> str:
    if isinstance(of, str):
        return f"Section {one_line(of)}:"
    item = plan.decisions.columns.items[of]
    role = getattr(item.payload, "role", "item")
    speaker = "tool result" if role in RESULT_ROLES else f"{role} message"
    opening = one_line(str(getattr(item.payload, "text", "") or brief(item.payload)))
    if len(opening) > LONGEST:
        opening = f"{opening[:LONGEST]}…"
    return f"The {speaker} of {item.tokens:,} tokens, “{opening}”:"
