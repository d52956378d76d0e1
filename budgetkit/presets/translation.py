"""Translate budgets to and from other systems' formats.

The same rule applies to all systems: the written configuration is read back as the system itself would read it, and
each difference between the two budgets is listed as a setting without an equivalent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from decimal import Decimal
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.allocation import Allocation, check_choice
from budgetkit.budget.amounts import Amount, Share, check_tokens
from budgetkit.budget.errors import wrong_type
from budgetkit.budget.quoting import brief
from budgetkit.files import Table, read_toml
from budgetkit.message import Data, Raw
from budgetkit.presets.application import SECTIONS, working_memory
from budgetkit.presets.token_budget import POLICIES, PRIORITIES, agent_prompt, token_budget

#: Steps of an agent's turn can be dropped like earlier messages, but the turn's question stays.
_STEP = {"step": "history"}
_ROLES = Table(
    lambda: (own := read_toml("presets.toml")["roles"]) | {"request": own["working_memory"] | _STEP}
)
_OCTOPUS = {
    "MaxWorkingMemoryTokens": "window",
    "OutputReserve": "output",
    "MinHistoryTokens": "history_floor",
    "MaxKnowledgeTokens": "knowledge",
    "MaxEpisodeTokens": "episodes",
}
_LANGCHAIN = {"strategy": "last", "include_system": True, "allow_partial": False}
#: Differences in a system's behaviour that no field expresses.
_DONE = {
    "anchor": (
        "sources without an allocation take the whole window",
        "a system prompt over its cap, or a question that does not fit, is left out",
    ),
    "langchain": (
        "a tool call may be separated from its results",
        "the question is dropped if the steps after it fill the request",
    ),
}
#: Fields that only affect how budgetkit reads and shows a budget.
_OURS = {"allocations", "reserves", "roles", "remainder", "name"}


@dataclass(frozen=True, slots=True)
class Translation:
    """A budget, and its configuration in another system.

    Parameters
    ----------
    budget : Budget
        The budget that the configuration describes.
    config : dict
        The configuration, as plain data for JSON or YAML.
    unsaid : tuple of str
        Settings without an equivalent, one text for each.

    Examples
    --------
    >>> translate({"MaxWorkingMemoryTokens": 8_000, "PruningStrategy": "FIFO"}, "octopus").unsaid
    ("PruningStrategy: 'FIFO'",)
    """

    budget: Budget
    config: Data
    unsaid: tuple[str, ...] = ()


def translate(given: Budget | Mapping[str, Any] | Any, system: str) -> Translation:
    """Convert a budget to or from another system's configuration.

    Parameters
    ----------
    given : Budget, Mapping or object
        A budget, whose sections get the system's names; or a configuration, as plain data or as the system's own
        object, such as anchor's ``TokenBudget`` (a pydantic model or a dataclass).
    system : {"anchor", "octopus", "plan-195", "langchain"}
        anchor's ``TokenBudget``, Octopus' ``MemoryConfig``, Plan #195's ``context_budget``, or the arguments of
        LangChain's ``trim_messages``.

    Returns
    -------
    Translation
        The configuration, the budget that it describes, and the settings without an equivalent.

    Raises
    ------
    ValueError
        If the system is unknown, the configuration is invalid for it, or the system rejects the budget's numbers.
    TypeError
        If a size is not a whole number, such as the text "8000".

    Notes
    -----
    The fields are those of anchor's "Token Budget Management" (document 004), filled as astro-anchor 0.2.0 does, of
    Octopus' "Token Budget" (document 000), of agent_ecology2's Plan #195 (document 003), and of langchain-core 1.7.2.

    Examples
    --------
    >>> from budgetkit.presets import working_memory
    >>> translation = translate(working_memory(16_000, output=1_000), "octopus")
    >>> translation.config["MaxWorkingMemoryTokens"], translation.config["MinHistoryTokens"], translation.unsaid
    (16000, 4000, ())
    >>> translate(working_memory(8_000, output=1_000), "langchain").config["max_tokens"]
    7000
    """
    check_choice("system", system, tuple(_SYSTEMS))
    called, write, read = _SYSTEMS[system]
    if not isinstance(given, Budget):
        config = _fields_of(given, system)
        budget, unsaid = read(config)
        return Translation(
            budget, config, tuple(f"{name}: {brief(value)}" for name, value in unsaid.items())
        )
    # The other system's names of sections, by role.
    names: dict[str, str] = {}
    for role, theirs in _ROLES[called].items():
        ours = given.roles.get(role)
        if ours in given.sections and theirs not in {*given.sections, *names.values()}:
            names.setdefault(str(ours), theirs)
    renamed = replace(
        given,
        allocations=[
            replace(a, section=names.get(a.section, a.section)) for a in given.allocations
        ],
        reserves=[
            replace(r, serves=names.get(r.serves, r.serves) if r.serves else None)
            for r in given.reserves
        ],
        remainder=names.get(given.remainder, given.remainder) if given.remainder else None,
    )
    config = write(renamed)
    there, _ = read(config)
    notes = [f"{ours}: renamed {theirs}" for ours, theirs in names.items()]
    return Translation(
        there, config, (*notes, *_differences(renamed, there), *_DONE.get(system, ()))
    )


def _fields_of(given: Any, system: str) -> Data:
    """Return a configuration as plain data, replacing enumerations with their values."""
    if isinstance(given, Mapping):
        return dict(given)
    if callable(getattr(given, "model_dump", None)):
        return dict(given.model_dump(mode="json"))
    if is_dataclass(given) and not isinstance(given, type):
        return asdict(
            given,
            dict_factory=lambda pairs: {
                name: getattr(value, "value", value) for name, value in pairs
            },
        )
    raise ValueError(
        wrong_type(f"budget of {system}", given, "a Budget, a mapping, or the system's own object")
    )


def trimmed(max_tokens: int) -> Budget:
    """Return a budget in which only the history is pruned.

    Examples
    --------
    >>> trimmed(4_000).usable
    4000
    """
    lines = [
        Allocation("system", required=True, importance=10),
        Allocation("history", importance=6, keep="newest"),
        Allocation("current", required=True, importance=10),
    ]
    return Budget(
        max_tokens, (), lines, undeclared="pool", deficit="signed", roles=_ROLES["request"]
    )


def _differences(ours: Budget, theirs: Budget) -> Iterator[str]:
    """Yield the differences between two budgets' settings, lines and order."""
    for what in fields(Budget):
        if what.compare and what.name not in _OURS:
            yield from _differing(what.name, getattr(ours, what.name), getattr(theirs, what.name))
    here = _lines(ours)
    there = _lines(theirs)
    for name in here | there:
        if name in here and name in there:
            for what in fields(here[name]):
                both = (getattr(line[name], what.name) for line in (here, there))
                yield from _differing(f"{name}.{what.name}", *both)
        else:
            yield f"{name}: {f'removed, was {brief(here[name])}' if name in here else 'added'}"
    places = [
        ", ".join(name for name in line if name in here and name in there) for line in (here, there)
    ]
    yield from _differing("order", *places)


def _lines(budget: Budget) -> Data:
    lines = {f"reserve {line.name}": line for line in budget.reserves}
    return lines | {line.section: line for line in budget.allocations}


def _differing(what: str, ours: object, theirs: object) -> Iterator[str]:
    if ours != theirs:
        yield f"{what}: {brief(ours)} becomes {brief(theirs)}"


def _to_anchor(budget: Budget) -> Data:
    allocations = [
        {
            "source": a.section,
            "max_tokens": budget.caps[a.section],
            "priority": min(10, max(1, a.importance)),
            "overflow_strategy": a.overflow,
        }
        for a in budget.allocations
        if budget.caps[a.section] and a.section in SECTIONS
    ]
    return {
        "total_tokens": budget.window,
        "allocations": allocations,
        "reserve_tokens": budget.reserved,
    }


def _from_anchor(config: Raw) -> tuple[Budget, Data]:
    settings, others = _split_fields(
        config, {"total_tokens", "allocations", "reserve_tokens"}, "total_tokens"
    )
    check_tokens("total_tokens", settings["total_tokens"])
    budget = token_budget(**settings, fill="skip", order="open by item")
    lines = [
        *budget.allocations,
        *(Allocation(s, fill="skip") for s in SECTIONS if s not in budget.sections),
    ]
    return replace(budget, allocations=[replace(line, keep="best") for line in lines]), others


def _to_octopus(budget: Budget) -> Data:
    caps = {section: budget.window if cap is None else cap for section, cap in budget.caps.items()}
    return {
        "MaxWorkingMemoryTokens": budget.window,
        "OutputReserve": budget.sizes.get("output", 0),
        "MinHistoryTokens": budget.floors.get("history", 0),
        "MaxKnowledgeTokens": caps.get("knowledge", 0),
        "MaxEpisodeTokens": caps.get("episodes", 0),
    }


def _from_octopus(config: Raw) -> tuple[Budget, Data]:
    named = {name.lower(): name for name in _OCTOPUS}  # JSON may write them in camel case
    settings, others = _split_fields(
        {named.get(str(key).lower(), key): config[key] for key in config}, set(_OCTOPUS)
    )
    sizes: Data = {_OCTOPUS[name]: check_tokens(name, value) for name, value in settings.items()}
    return working_memory(**sizes), others


def _to_plan_195(budget: Budget) -> Data:
    outputs = [_amount(reserve.size) for reserve in budget.reserves if reserve.name == "output"]
    inside = {
        "total_tokens": budget.window,
        "output_reserve": outputs[0] if outputs else 0,
        "overflow_policy": POLICIES["drop" in [a.when_full for a in budget.allocations]],
        "allocations": {a.section: _section(a) for a in budget.allocations},
    }
    return {"context_budget": inside}


def _section(a: Allocation) -> Data:
    optional = {name: i for name, i in PRIORITIES.items() if name != "required"}
    nearest = min(optional, key=lambda name: abs(optional[name] - a.importance))
    return {
        "max_tokens": None if a.cap is None else _amount(a.cap),
        "priority": "required" if a.required else nearest,
    }


def _amount(amount: Amount) -> int | str:
    if isinstance(amount, Share):
        return f"{(Decimal(str(amount.ratio)) * 100).normalize():f}%"
    return amount


def _to_langchain(budget: Budget) -> Data:
    required = any(a.required for a in budget.allocations if a.section == "system")
    return {"max_tokens": budget.usable, **_LANGCHAIN, "include_system": required}


def _from_langchain(config: Raw) -> tuple[Budget, Data]:
    settings, others = _split_fields(config, {"max_tokens"}, "max_tokens")
    others = {"include_system": False} | others
    return trimmed(**settings), {
        name: value for name, value in others.items() if (name, value) not in _LANGCHAIN.items()
    }


def _split_fields(config: Raw, names: set[str], needed: str = "") -> tuple[Data, Data]:
    """Split a configuration into known and unknown fields."""
    if needed and needed not in config:
        raise ValueError(f"Missing key {brief(needed)} in the configuration. Add it.")
    return (
        {n: config[n] for n in config if n in names},
        {str(n): config[n] for n in config if n not in names},
    )


_Write = Callable[[Budget], Data]
_Read = Callable[[Raw], tuple[Budget, Data]]
#: For each system, the role table and the functions that write and read its configuration.
_SYSTEMS: dict[str, tuple[str, _Write, _Read]] = {
    "anchor": ("application", _to_anchor, _from_anchor),
    "octopus": ("working_memory", _to_octopus, _from_octopus),
    "plan-195": ("agent_prompt", _to_plan_195, lambda config: (agent_prompt(None, config), {})),
    "langchain": ("request", _to_langchain, _from_langchain),
}
