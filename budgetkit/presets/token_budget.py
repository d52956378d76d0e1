"""Budgets from configurations of two systems: anchor and Plan #195."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.allocation import Allocation, Fill, Reserve, check_choice
from budgetkit.budget.amounts import Amount, Share, check_tokens, exact_number
from budgetkit.budget.errors import out_of_range, unknown_name, wrong_type
from budgetkit.budget.quoting import brief, quoted
from budgetkit.files import Table, read_toml
from budgetkit.message import Data, Raw
from budgetkit.presets.application import ROLES, SECTIONS, TOOL_ROLES, Window, window_of, with_pool

FIELDS = {"source", "max_tokens", "priority", "overflow_strategy"}
STRATEGIES = ("truncate", "drop")


def token_budget(
    total_tokens: int,
    allocations: Iterable[Mapping[str, Any]] = (),
    reserve_tokens: int = 0,
    *,
    fill: Fill = "prefix",
    **changes: Any,
) -> Budget:
    """Return a budget from the arguments of anchor's `TokenBudget`.

    Parameters
    ----------
    total_tokens : int
        Context window in tokens, at least 1.
    allocations : iterable of mapping
        One mapping per source, with ``source`` (system, memory, retrieval, conversation, tool or user), ``max_tokens``
        above 0, and optionally a ``priority`` from 1 to 10 (default 5) and an ``overflow_strategy``, "truncate" or
        "drop".
    reserve_tokens : int, default 0
        Reserve for the answer, in tokens.
    fill : {"prefix", "skip", "knapsack"}
        Filling rule: "prefix" as in anchor's documentation, "skip" as in anchor's code.
    **changes
        Other fields of `budgetkit.Budget`.

    Returns
    -------
    Budget
        The budget. Sources without an allocation draw on the shared pool. The sections "system" and "user" are required
        unless their strategy is "drop".

    Raises
    ------
    ValueError
        If a number, source or strategy is invalid, if a source is repeated, or if reserve and caps exceed the window.

    Notes
    -----
    Fields, defaults and rules are those of anchor's "Token Budget Management" (document 004).

    Examples
    --------
    >>> system = {"source": "system", "max_tokens": 800, "priority": 10}
    >>> token_budget(8_192, [system, {"source": "retrieval", "max_tokens": 3_200}], 1_200).shared_pool
    2992
    """
    _tokens_within("total_tokens", total_tokens, 1)
    lines = [_rule(row) for row in allocations]
    twice = [a.section for a in lines if [b.section for b in lines].count(a.section) > 1]
    if twice:
        raise ValueError(
            f"Duplicate allocations for {quoted(dict.fromkeys(twice))}. Keep one for each source."
        )
    by_source = {"user": Allocation("user", required=True, importance=9)} | {
        a.section: a for a in lines
    }
    sections = [replace(by_source[source], fill=fill) for source in SECTIONS if source in by_source]
    roles = dict(ROLES)
    if "tool" in by_source:
        roles |= TOOL_ROLES
    remainder = "conversation" if "conversation" in by_source else None
    settings = {"window": total_tokens, "roles": roles, "remainder": remainder}
    reserve = Reserve("output", check_tokens("reserve_tokens", reserve_tokens), serves="output")
    return with_pool("token_budget", reserve, sections, settings, changes)


def _rule(row: Raw) -> Allocation:
    unknown = [brief(row)]
    if isinstance(row, Mapping):
        unknown = sorted(str(key) for key in row if key not in FIELDS)
    if unknown or not {"source", "max_tokens"} <= set(row):
        raise ValueError(
            wrong_type(
                "allocation",
                row,
                "a mapping with 'source' and 'max_tokens', and optionally 'priority' and 'overflow_strategy'",
            )
        )
    source = row["source"]
    strategy = row.get("overflow_strategy", "truncate")
    check_choice("source", source, tuple(SECTIONS))
    check_choice(f"overflow_strategy of {source}", strategy, STRATEGIES)
    return Allocation(
        source,
        _tokens_within(f"max_tokens of {source}", row["max_tokens"], 1),
        importance=_tokens_within(f"priority of {source}", row.get("priority", 5), 1, 10),
        overflow=strategy,
        keep=SECTIONS[source].get("keep", "first"),
        required=SECTIONS[source].get("required", False) and strategy == "truncate",
    )


def _tokens_within(what: str, number: object, least: int, most: int | None = None) -> int:
    tokens = check_tokens(what, number)
    if tokens < least or (most is not None and tokens > most):
        if most is None:
            range_text = f"{least} or more"
        else:
            range_text = f"a number from {least} to {most}"
        raise ValueError(out_of_range(what, tokens, range_text))
    return tokens


_TABLE = Table(lambda: read_toml("presets.toml")["agent_prompt"])
PRIORITIES = Table(lambda: _TABLE["priorities"])
POLICIES = ("truncate_low_priority", "drop_low_priority")
# The document has no section for the user's question; as an event of low priority it would be dropped first. Here it is
# required, comes last, and draws on the tokens that the document's numbers leave.
CURRENT: Data = {"current_message": {"max_tokens": None, "priority": "required"}}


def agent_prompt(
    window: Window | None = None, *configurations: Mapping[str, Any] | None, alone: bool = False
) -> Budget:
    """Split an agent's prompt by caps and priorities, as Plan #195 does.

    Required sections are allocated first, then the sections of high, medium and low priority, in that order. A section
    over its cap is cut according to its type. If the window is full, the policy decides whether low-priority sections
    are cut or dropped.

    Parameters
    ----------
    window : int, Model or str, optional
        Total tokens, before the output reserve; default: ``total_tokens`` of the last configuration.
    *configurations : mapping
        Configurations, such as an agent's own. Each configuration overrides the defaults and the configurations before
        it, and has the format of document 003, at the top level or under ``context_budget`` or
        ``agent.context_budget``. ``max_tokens`` takes tokens, a percentage ("12.5%") or None for no cap; ``sections``
        is read like ``allocations``. ``enabled: false`` removes all caps; inside a section, ``enabled: false`` switches
        that section off. A key with an empty value, such as "sections:" in YAML, is ignored.
    alone : bool, default False
        If true, the default sections are left out, except the current message.

    Returns
    -------
    Budget
        A budget without a remainder. Its last section, "current_message", is required and draws on the shared pool. The
        section "tools" for a conversation's tool schemas also draws on the pool, unless a configuration names it. The
        pool is negative if the configuration claims more than the window.

    Raises
    ------
    ValueError
        If a key, priority or policy is unknown, or an amount or mapping is invalid.

    Notes
    -----
    Rules and defaults are those of agent_ecology2's Plan #195 (document 003).

    Examples
    --------
    >>> agent_prompt().shared_pool
    1000
    >>> mine = {"rag_memories": {"max_tokens": "20%", "priority": "high"}}
    >>> agent_prompt(8_000, {"context_budget": {"allocations": mine}}).cap("rag_memories")
    1600
    """
    if isinstance(window, Mapping):
        raise ValueError(
            "Invalid window: a mapping. Pass a configuration second, as in agent_prompt(None, configuration)."
        )
    settings = _overlaid(configurations, alone)
    size = window_of(
        check_tokens("total_tokens", settings["total_tokens"]) if window is None else window
    )
    drops = settings["overflow_policy"] == "drop_low_priority"
    return Budget(
        reserves=[
            Reserve(
                "output",
                _amount("output_reserve", settings["output_reserve"]) or 0,
                serves="output",
            )
        ],
        allocations=[
            _allocation(s, rule, drops, settings["enabled"])
            for s, rule in settings["allocations"].items()
        ],
        deficit="signed",
        undeclared="pool",
        roles={
            role: section
            for role, section in read_toml("presets.toml")["roles"]["agent_prompt"].items()
            if section in settings["allocations"]
        },
        name="agent_prompt",
        **size,
    )


def _overlaid(configurations: Iterable[Raw | None], alone: bool = False) -> Data:
    usual: Data = _TABLE["defaults"]
    settings = usual | {"allocations": ({} if alone else usual["allocations"]) | CURRENT}
    for configuration in configurations:
        outer = _mapping("configuration", configuration)
        if "agent" in outer and "context_budget" not in outer:
            outer = _mapping("agent", outer["agent"])
            if "context_budget" not in outer:
                raise ValueError(
                    f"Missing key 'context_budget' under 'agent', which has: {quoted(outer) or 'no keys'}. Add it, or "
                    "omit the configuration."
                )
        inner = outer.get("context_budget", outer)
        inner = _known_fields("context_budget", inner, {*usual, "sections"})
        rules = {name: inner.pop(name, None) for name in ("sections", "allocations")}
        settings |= inner
        for name, sections in rules.items():
            for section, rule in _mapping(name, sections).items():
                what = f"section {brief(section)}"
                fields = _mapping(what, rule)
                known = _known_fields(what, fields, {"max_tokens", "priority", "enabled"})
                if "max_tokens" in fields:  # None is no cap, not an omission
                    known["max_tokens"] = fields["max_tokens"]
                settings["allocations"][section] = {
                    **settings["allocations"].get(section, {}),
                    **known,
                }
    settings["allocations"] |= {name: settings["allocations"].pop(name) for name in CURRENT}  # last
    check_choice("overflow_policy", settings["overflow_policy"], POLICIES)
    _check_switch("enabled of context_budget", settings["enabled"])
    return settings


def _known_fields(what: str, mapping: object, names: set[str]) -> Data:
    fields = _mapping(what, mapping)
    unknown = sorted(str(key) for key in fields if key not in names)
    if unknown:
        raise ValueError(f"Invalid {what}. {unknown_name('key', unknown[0], sorted(names))}")
    return {key: value for key, value in fields.items() if value is not None}


def _mapping(what: str, value: object) -> dict[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        example = (
            "a mapping, such as {'sections': {'rag_memories': {'max_tokens': 600}}}, or nothing"
        )
        raise ValueError(wrong_type(what, value, example))
    return dict(value)


def _check_switch(what: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ValueError(wrong_type(what, value, "true or false, without quotes"))


def _allocation(section: str, rule: Raw, drops: bool, enabled: bool) -> Allocation:
    priority = rule.get("priority", "medium")
    shown = rule.get("enabled", True)
    check_choice(f"priority of {brief(section)}", priority, tuple(PRIORITIES))
    _check_switch(f"enabled of section {brief(section)}", shown)
    keep = _TABLE["keeps"].get(section)
    cap = _amount(f"max_tokens of {brief(section)}", rule.get("max_tokens", 500))
    if not enabled:
        cap = None
    if not shown:
        cap = 0
    return Allocation(
        section,
        cap,
        importance=PRIORITIES[priority],
        required=priority == "required",
        when_full="drop" if drops and priority == "low" else "truncate",
        keep=keep or "first",
        granularity="line" if keep else "token",
    )


def _amount(what: str, value: object) -> Amount | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str) and value.strip().endswith("%"):
        number = value.strip()[:-1]
        try:
            return Share(Decimal(number if exact_number(number) is not None else "none") / 100)
        except (InvalidOperation, ValueError):
            limits = "a percentage from '0%' to '100%'"
            raise ValueError(out_of_range(what, f"{number}%", limits)) from None
    raise ValueError(wrong_type(what, value, "tokens (500), a percentage ('12.5%') or None"))
