"""The set-up as text to take away: Python that makes the same budget, YAML and JSON that restore it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.allocation import Allocation, Reserve
from budgetkit.budget.amounts import Amount, Share
from budgetkit.budget.quoting import one_line
from budgetkit.lab.explorers.budget.amount_edits import names
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.models import Model
from budgetkit.state import to_json, to_yaml
from budgetkit.trace import shipped_traces


def texts(
    settings: BudgetSettings, model: Model, budget: Budget, counter: str = ""
) -> dict[str, str]:
    """Return the set-up in every format, with the model, the counter and the file where they are named."""
    program = python(settings, model, budget)
    written = to_yaml(budget)
    if counter:
        program += _counting(settings, counter)
        written = f"# {_beside(settings, counter)}\n{written}"
    return {"python": program, "yaml": written, "json": to_json(budget)}


def _beside(settings: BudgetSettings, counter: str) -> str:
    """Return in one line what a budget is set up with; the file without its folders, for reports are shared."""
    if settings.conversation:
        which = f", conversation {settings.conversation + 1:,}"
    else:
        which = ""
    if settings.trace:
        conversation = f"; {settings.trace}{which}"
    else:
        conversation = ""
    if counter == settings.model:
        tokenizer = "its own tokenizer"
    else:
        tokenizer = counter
    return one_line(f"{settings.model}, counted with {tokenizer}{conversation}")


def _counting(settings: BudgetSettings, counter: str) -> str:
    """Return the lines that count, and that read the conversation."""
    lines = f"\ncount = {counter_of(settings)}"
    if settings.trace is None:
        return lines
    if settings.conversation:
        which = f", conversation={settings.conversation}"
    else:
        which = ""
    read = f"trace = bk.load_trace({settings.path or settings.trace!r}{which})"
    is_known = settings.path or settings.trace in shipped_traces()
    return f"{lines}\n{read if is_known else f'# Write the path of the file here: {read}'}"


def counter_of(settings: BudgetSettings) -> str:
    """Return the call that makes the counter."""
    return f"bk.counter({repr(settings.counter) if settings.counter else f'bk.model({settings.model!r})'})"


def python(settings: BudgetSettings, model: Model, budget: Budget) -> str:
    """Return a program that makes the budget.

    Examples
    --------
    >>> import budgetkit as bk
    >>> model = bk.model("gpt-4o")
    >>> budget = bk.presets.chat(model).assign(conversation=2_000)
    >>> print(python(BudgetSettings("chat", lines={"conversation": 2_000}), model, budget))
    import budgetkit as bk
    <BLANKLINE>
    budget = bk.presets.chat(bk.model('gpt-4o')).assign(conversation=2000)
    """
    changes = {**settings.lines, **settings.locks}
    base = settings.base(model)
    same = (base.deficit, base.undeclared, names(base, {})) == (
        budget.deficit,
        budget.undeclared,
        names(budget, {}),
    )
    if settings.own is not None or not same:
        return f"import budgetkit as bk\n\nbudget = {_call('bk.Budget', budget)}"
    preset_names = names(budget, {})
    moved = {name: amount for name, amount in changes.items() if name in preset_names}
    first, opening = _made(settings, model)
    return f"{opening}\n\nbudget = {first}{_assigned(moved)}"


def _made(settings: BudgetSettings, model: Model) -> tuple[str, str]:
    call = f"bk.presets.{settings.preset}"
    if settings.window is None:
        return f"{call}(bk.model({settings.model!r}))", "import budgetkit as bk"
    if model.kind == "shared":
        return f"{call}({settings.window})", "import budgetkit as bk"
    sized = f"replace(bk.model({settings.model!r}), window={settings.window}, max_output=None)"
    return f"{call}({sized})", "from dataclasses import replace\n\nimport budgetkit as bk"


def _assigned(moved: Mapping[str, Amount | None]) -> str:
    if not moved:
        return ""
    simple = {name: amount for name, amount in moved.items() if re.fullmatch(r"[A-Za-z_]\w*", name)}
    arguments = [f"{name}={_value(amount)}" for name, amount in simple.items()]
    other = {name: amount for name, amount in moved.items() if name not in simple}
    if other:
        arguments.append(
            "**{" + ", ".join(f"{name!r}: {_value(amount)}" for name, amount in other.items()) + "}"
        )
    return f".assign({', '.join(arguments)})"


def _value(value: Any) -> str:
    if isinstance(value, Share):
        return f'bk.Share("{value.ratio}"{value.written_bounds})'
    if isinstance(value, Reserve | Allocation):
        return _call(f"bk.{type(value).__name__}", value)
    if isinstance(value, tuple):
        return "[\n" + "".join(f"        {_value(entry)},\n" for entry in value) + "    ]"
    if isinstance(value, Mapping):
        return (
            "{\n"
            + "".join(f"        {key!r}: {_value(entry)},\n" for key, entry in value.items())
            + "    }"
        )
    return repr(value)


def _call(name: str, value: Any) -> str:
    changed = [f for f in fields(value) if f.init and _differs(getattr(value, f.name), f.default)]
    arguments = [f"{f.name}={_value(getattr(value, f.name))}" for f in changed]
    if not isinstance(value, Budget):
        return f"{name}({', '.join(arguments)})"
    return f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def _differs(value: Any, default: object) -> bool:
    empty = isinstance(value, tuple | dict) and not value
    return not empty and bool(value != default)
