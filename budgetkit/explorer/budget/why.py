"""Why something was lost, with the smallest changes that would keep it, each a button that makes the change."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from budgetkit.budget import Allocation
from budgetkit.budget.quoting import brief, one_line
from budgetkit.explorer.budget.bar import bar
from budgetkit.explorer.budget.commands import move_line
from budgetkit.explorer.budget.requests import Requests
from budgetkit.explorer.budget.results import Results, kept_deficit, known_model, typed_demand
from budgetkit.explorer.budget.settings import OWN, Settings
from budgetkit.explorer.folds import button, choice, text
from budgetkit.explorer.library import Library
from budgetkit.figures.question import signed
from budgetkit.framing import framing_for
from budgetkit.message import RESULT_ROLES
from budgetkit.plan import Plan
from budgetkit.plan.allocating import allocate
from budgetkit.plan.fitting import fit
from budgetkit.plan.why import Mend

Data = dict[str, Any]
LONGEST = 90  # characters of a message


class WhyFold:
    """Why a section or a message was lost, and what would keep it."""

    def __init__(self, library: Library, again: Callable[[], None]) -> None:
        self._library = library
        self._of: str | int = ""
        self._offers: dict[str, Settings] = {}
        self._settings: Settings | None = None

    def parts(self, settings: Settings, found: Results) -> list[Data]:
        """Say the reasons in order, and what would keep it."""
        self._settings, self._offers = settings, {}
        plan, lost = found.plan, lost_sections(found.plan)
        if not lost:
            return [text("Nothing is lost, so there is nothing to mend.")]
        of = self._asked(plan, lost)
        why = plan.why(of)
        told: list[Data] = [text(_title(plan, of)), {"is": "list", "items": list(why.reasons)}]
        mends = [self._row(settings, found, mend, of) for mend in why.mends]
        if mends:
            rows = [{"key": str(i), **row} for i, row in enumerate(mends)]
            told += [text("What would keep it, each alone:"), {"is": "rows", "rows": rows}]
        else:
            told.append(text("No single change keeps all of it; two are needed, or a shorter text."))
        names = {each: f"{each}, {plan[each].cut:,} tokens" for each in lost}
        return [choice("Lost from", "of", names, why.section), *told]

    def hear(self, settings: Settings, found: Results, told: Data) -> Settings | None:
        """Ask about another section or message, or take a change."""
        if "mend" not in told:
            self._of = told.get("of", "")
            return None
        if self._settings is not settings or str(told["mend"]) not in self._offers:
            raise ValueError("the budget has changed since this was worked out; look at what is offered now")
        return self._offers[str(told["mend"])]

    def _asked(self, plan: Plan, lost: list[str]) -> str | int:
        """Return what was asked about, if it is lost still; else the section that loses most."""
        many = len(plan.decisions)
        if isinstance(self._of, int) and 0 <= self._of < many and _is_lost(plan, self._of):
            return self._of
        return self._of if self._of in lost else lost[0]

    def _row(self, settings: Settings, found: Results, mend: Mend, of: str | int) -> Data:
        """Offer a change as the settings that make it, planned again before it is offered."""
        said = {"text": mend.sentence}
        if mend.budget is None:
            return {**said, "note": "in the text itself"}
        for to in _ways(settings, found, self._library, mend):
            plan = planned(to, found, self._library)
            if _keeps(plan, of):
                self._offers[mend.line] = to
                shown = bar(to, replace(found, plan=plan))
                tip = difference(found.plan, plan)
                return {**said, "note": tip, "button": button("Do it", {"mend": mend.line}, tip=tip, bar=shown)}
        return {**said, "note": "a line that is locked would have to move"}


def lost_sections(plan: Plan) -> list[str]:
    """Return the sections that lose something, the most tokens first."""
    return [g.section for g in sorted(plan.grants, key=lambda grant: -grant.cut) if g.cut > 0]


def sections_told(plan: Plan, sentences: list[str]) -> list[str | None]:
    """Return for each sentence of a status the lost section that it is about, if it is about one."""
    lost = lost_sections(plan)
    words = [sentence.replace(",", " ").replace(":", " ").replace(".", " ").split() for sentence in sentences]
    return [next((section for section in lost if section in said), None) for said in words]


def planned(settings: Settings, found: Results, library: Library) -> Plan:
    """Plan the chosen turn under other settings."""
    model, _ = known_model(settings.model)
    signed_budget = settings.budget(model)
    if settings.trace is None:
        return allocate(signed_budget, typed_demand(settings, signed_budget))
    if not signed_budget.roles:
        signed_budget = replace(signed_budget, undeclared="pool")
    name = str(settings.trace)
    requests = Requests(library, name, signed_budget, found.counter, framing_for(model.name))
    return fit(signed_budget, requests.items(settings.conversation, found.turn), requests.cut)


def difference(before: Plan, after: Plan) -> str:
    """Say in a line what another plan changes: what is lost, and the room that is left."""
    cuts = {g.section: after[g.section].cut - g.cut for g in before.grants}
    lost = [f"{section} {signed(tokens, always=True)}" for section, tokens in cuts.items() if tokens]
    pairs = {"usable": (before.budget.usable, after.budget.usable)}
    if before.budget.remainder is not None and after.budget.remainder is not None:
        pairs[f"{before.budget.remainder} budget"] = (before.remainder, after.remainder)
    pairs["shared pool"] = (before.budget.shared_pool, after.budget.shared_pool)
    moved = [f"{name} {signed(a)} to {signed(b)}" for name, (a, b) in pairs.items() if a != b]
    return "; ".join([f"tokens cut: {', '.join(lost) or 'as before'}", *moved])


def _ways(settings: Settings, found: Results, library: Library, mend: Mend) -> Iterator[Settings]:
    """Give the settings that may make a change: its line moved, else the changed budget as one's own."""
    assert mend.budget is not None
    if mend.line != "importance":
        try:
            yield move_line(settings, found, library, mend.line, mend.after)
        except (ValueError, LookupError):
            return  # locked
    base = settings.base(found.model)
    changed = replace(base, allocations=_with_importance(base.allocations, mend.budget.allocations))
    if mend.line == "importance":
        yield replace(settings, own=changed, preset=OWN)
    elif not settings.locks:
        own = kept_deficit(mend.budget, base.deficit)
        yield replace(settings, own=own, preset=OWN, window=None, lines={})


def _with_importance(now: Sequence[Allocation], to: Sequence[Allocation]) -> tuple[Allocation, ...]:
    weights = {each.section: each.importance for each in to}
    return tuple(replace(each, importance=weights.get(each.section, each.importance)) for each in now)


def _keeps(plan: Plan, of: str | int) -> bool:
    if isinstance(of, str):
        return plan[of].cut == 0
    return not _is_lost(plan, of)


def _is_lost(plan: Plan, row: int) -> bool:
    return int(plan.decisions.kept[row]) < plan.decisions.columns.items[row].tokens


def _title(plan: Plan, of: str | int) -> str:
    if isinstance(of, str):
        return f"All of {one_line(of)}:"
    item = plan.decisions.columns.items[of]
    return f"The {_speaker(item.payload)} of {item.tokens:,} tokens, {_opening(item.payload)}:"


def _speaker(payload: Any) -> str:
    role = getattr(payload, "role", "item")
    return "tool result" if role in RESULT_ROLES else f"{role} message"


def _opening(payload: Any) -> str:
    said = one_line(str(getattr(payload, "text", "") or brief(payload)))
    return f"“{said[:LONGEST]}{'…' if len(said) > LONGEST else ''}”"
