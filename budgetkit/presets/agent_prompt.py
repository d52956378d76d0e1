"""A budget by sections of an agent's prompt, with priority classes (Plan #195)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from budgetkit.amounts import Amount, Share
from budgetkit.budget import Budget
from budgetkit.lines import Allocation, Granularity, Keep, Reserve, quoted
from budgetkit.presets.window import Window, window_of

PRIORITIES = {"required": 10, "high": 8, "medium": 5, "low": 2}
POLICIES = ("truncate_low_priority", "drop_low_priority")
#: How a section type is cut: lists of events from their old end, ranked memories from their weak end.
KEEPS: dict[str, tuple[Keep, Granularity]] = {
    "action_history": ("newest", "line"),
    "failure_history": ("newest", "line"),
    "rag_memories": ("best", "line"),
}
ROLES = {
    "system": "system_prompt",
    "tools": "system_prompt",
    "memory": "working_memory",
    "context": "rag_memories",
    "user": "action_history",
    "assistant": "action_history",
    "tool": "action_history",
    "function": "action_history",
    "current": "recent_events",
    "step": "action_history",
}
#: The system's defaults, as its document gives them.
DEFAULTS: dict[str, Any] = {
    "total_tokens": 4_000,
    "output_reserve": 0,
    "overflow_policy": "truncate_low_priority",
    "enabled": True,
    "allocations": {
        "system_prompt": {"max_tokens": 500, "priority": "required"},
        "working_memory": {"max_tokens": 800, "priority": "high"},
        "rag_memories": {"max_tokens": 600, "priority": "medium"},
        "action_history": {"max_tokens": 400, "priority": "medium"},
        "recent_events": {"max_tokens": 300, "priority": "low"},
        "subscribed_artifacts": {"max_tokens": 400, "priority": "medium"},
    },
}


def agent_prompt(window: Window | None = None, *configurations: Mapping[str, Any]) -> Budget:
    """Plan #195: a cap and a priority class for each section of an agent's prompt.

    Required sections come first, then high, medium and low; a section over its cap is cut by its type. When
    the total is full, the policy says whether low sections are cut or left out.

    Parameters
    ----------
    window : int or Model, optional
        Total tokens, before the output reserve; without it the last configuration's ``total_tokens``.
    *configurations : mapping
        Laid over the system's defaults in order, such as an agent's own; each as the document writes it,
        with or without its outer ``context_budget``. ``max_tokens`` takes tokens, a percentage ("12.5%") or
        None for no cap; ``sections`` is read like ``allocations``; ``enabled: false`` lifts every cap.

    Returns
    -------
    Budget
        Without a remainder; an over-committed configuration is shown as a negative pool.

    Raises
    ------
    ValueError
        If a key, a priority or a policy is unknown, or an amount is no amount.

    Notes
    -----
    Rules and defaults: agent_ecology2, Plan #195 (document 003).

    Examples
    --------
    >>> agent_prompt().shared_pool
    1000
    >>> mine = {"rag_memories": {"max_tokens": "20%", "priority": "high"}}
    >>> agent_prompt(8_000, {"context_budget": {"allocations": mine}}).cap("rag_memories")
    1600
    """
    settings = _overlaid(configurations)
    size, kind = window_of(settings["total_tokens"] if window is None else window)
    drops = settings["overflow_policy"] == "drop_low_priority"
    return Budget(
        size,
        [Reserve("output", _amount("output_reserve", settings["output_reserve"]) or 0, serves="output")],
        [_allocation(section, rule, drops, settings["enabled"]) for section, rule in settings["allocations"].items()],
        kind=kind,
        deficit="signed",
        undeclared="pool",
        roles={role: section for role, section in ROLES.items() if section in settings["allocations"]},
        name="agent_prompt",
    )


def _overlaid(configurations: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    settings = DEFAULTS | {"allocations": dict(DEFAULTS["allocations"])}
    for configuration in configurations:
        inner = dict(configuration.get("context_budget", configuration))
        rules = inner.pop("sections", {}) | inner.pop("allocations", {})
        _check_keys("configuration", inner, {*DEFAULTS, "sections"})
        settings |= inner
        for section, rule in rules.items():
            _check_keys(f"section {section!r}", rule, {"max_tokens", "priority"})
            settings["allocations"][section] = settings["allocations"].get(section, {}) | rule
    if settings["overflow_policy"] not in POLICIES:
        raise ValueError(
            f"overflow_policy is {settings['overflow_policy']!r}; known are {', '.join(POLICIES)}; choose one"
        )
    return settings


def _allocation(section: str, rule: Mapping[str, Any], drops: bool, enabled: bool) -> Allocation:
    priority = rule.get("priority", "medium")
    if priority not in PRIORITIES:
        raise ValueError(
            f"priority of {section!r} is {priority!r}; known are {', '.join(PRIORITIES)}; choose one of them"
        )
    keep, granularity = KEEPS.get(section, ("first", "token"))
    return Allocation(
        section,
        _amount(f"max_tokens of {section!r}", rule.get("max_tokens", 500)) if enabled else None,
        importance=PRIORITIES[priority],
        required=priority == "required",
        when_full="drop" if drops and priority == "low" else "truncate",
        keep=keep,
        granularity=granularity,
    )


def _amount(what: str, value: object) -> Amount | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str) and value.strip().endswith("%"):
        return _percent(what, value.strip()[:-1])
    raise ValueError(f"{what} is {value!r}; known are tokens (500), a percentage ('12.5%') and None; give one")


def _percent(what: str, number: str) -> Share:
    try:
        return Share(Decimal(number) / 100)
    except (InvalidOperation, ValueError):
        raise ValueError(
            f"{what} is '{number}%'; a percentage lies between 0% and 100%; write it like '12.5%'"
        ) from None


def _check_keys(what: str, given: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(given) - known)
    if unknown:
        raise ValueError(f"{what} has {quoted(unknown)}; known are {', '.join(sorted(known))}; remove or rename it")
