"""Plan #195's own configuration: its schema, and a budget written back as it is written there."""

from __future__ import annotations

import json
from dataclasses import fields
from decimal import Decimal
from typing import Any, Final

from budgetkit.budget import Budget
from budgetkit.budget.allocation import Allocation
from budgetkit.budget.amounts import Amount, Share
from budgetkit.budget.quoting import quoted
from budgetkit.files import read_bytes
from budgetkit.presets.agent_prompt import POLICIES, PRIORITIES, agent_prompt

_CLASSES = {importance: name for name, importance in PRIORITIES.items()}
#: JSON Schema of what `agent_prompt` reads, as it stands in a file under ``context_budget``.
CONTEXT_BUDGET_SCHEMA: Final[dict[str, Any]] = json.loads(read_bytes("context_budget.schema.json"))


def to_context_budget(budget: Budget) -> dict[str, Any]:
    """Write a budget as an agent's ``context_budget``, with the names of its priority classes.

    Parameters
    ----------
    budget : Budget
        One that `agent_prompt` can make, its lines changed or not.

    Returns
    -------
    dict
        Plain data, as JSON and YAML hold it; ``agent_prompt(None, data)`` is the same budget.

    Raises
    ------
    ValueError
        If the budget says something that this configuration has no words for, such as a floor.

    Notes
    -----
    Form and names: agent_ecology2, Plan #195 (document 003).

    Examples
    --------
    >>> to_context_budget(agent_prompt(8_000).assign(rag_memories=900))["context_budget"]["allocations"]["rag_memories"]
    {'max_tokens': 900, 'priority': 'medium'}
    """
    outputs = [_amount(reserve.size) for reserve in budget.reserves]
    found = {
        "context_budget": {
            "total_tokens": budget.window,
            "output_reserve": outputs[0] if outputs else 0,
            "overflow_policy": POLICIES["drop" in [a.when_full for a in budget.allocations]],
            "allocations": {a.section: _rule(a) for a in budget.allocations},
        }
    }
    again = agent_prompt(None, found)
    other = [f.name for f in fields(Budget) if f.compare and getattr(again, f.name) != getattr(budget, f.name)]
    if other:
        raise ValueError(
            f"a context_budget has no words for this budget's {quoted(other)}; it is for what agent_prompt makes and "
            "its lines with other amounts; save any budget with budgetkit.state"
        )
    return found


def _rule(allocation: Allocation) -> dict[str, Any]:
    priority = _CLASSES.get(allocation.importance, "medium")
    return {"max_tokens": None if allocation.cap is None else _amount(allocation.cap), "priority": priority}


def _amount(amount: Amount) -> int | str:
    if isinstance(amount, Share):
        return f"{(Decimal(str(amount.ratio)) * 100).normalize():f}%"
    return amount
