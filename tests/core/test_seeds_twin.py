"""The documents' formulas as they stand there, in floats and plain loops, beside the presets, on any numbers."""

from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit import presets
from tests.core.test_seeds import SECTIONS_003

WINDOWS = st.integers(2_000, 2_000_000)
TOKENS = st.integers(0, 60_000)


def octopus(window: int, output: int, asked: dict[str, int]) -> int:
    """Documents 000 and 002: what the others really take, and at least 4,000, whatever is left."""
    caps = {"knowledge": 3_000, "episodes": 1_000}
    left = window - output
    for component in ("system", "procedure", "knowledge", "episodes", "current"):
        left -= min(asked[component], caps.get(component, asked[component]))
    return max(left, 4_000, 0)


@given(
    st.integers(10_000, 2_000_000), st.integers(0, 9_000), st.lists(TOKENS, min_size=5, max_size=5)
)
def test_octopus_history(window: int, output: int, sizes: list[int]) -> None:
    asked = dict(
        zip(("system", "procedure", "knowledge", "episodes", "current"), sizes, strict=True)
    )
    plan = bk.allocate(presets.working_memory(window, output=output), asked | {"history": 10**9})
    assert plan["history"].limit == octopus(window, output, asked)
    usable = presets.working_memory(window, kind="usable", current="fixed")
    asked["current"] = 500
    assert bk.allocate(usable, asked | {"history": 10**9})["history"].limit == octopus(
        window, 0, asked
    )


def memory_engine(window: int, messages: int, directive: int) -> int:
    """Document 001, in floats, as its code multiplies."""
    reserve = max(500, min(4_096, int(window * 0.15)))
    return max(0, window - messages - directive - reserve - int(window * 0.05))


@given(WINDOWS, TOKENS, TOKENS)
def test_memory_engine_memory(window: int, messages: int, directive: int) -> None:
    plan = bk.allocate(
        presets.memory_engine(window), {"messages": messages, "directive": directive}
    )
    expected = memory_engine(window, messages, directive)
    assert (plan["memory"].limit, plan.is_constrained) == (expected, expected < 1_000)


CAPS_003 = dict(zip(SECTIONS_003, (500, 800, 600, 400, 300, 400), strict=True))
MEDIUM = ("rag_memories", "action_history", "subscribed_artifacts")
CLASSES = (("system_prompt",), ("working_memory",), MEDIUM, ("recent_events",))


def agent_prompt(total: int, policy: str, asked: dict[str, int]) -> dict[str, int]:
    """Document 003: class by class; of a full window, what is low is cut or left out."""
    granted = {}
    for names in CLASSES:
        for name in names:
            wanted = min(asked[name], CAPS_003[name])
            fits = wanted <= total
            granted[name] = (
                wanted
                if fits
                else 0
                if policy == "drop_low_priority" and names is CLASSES[3]
                else total
            )
            total -= granted[name]
    return granted


@given(
    st.integers(500, 4_000),
    st.sampled_from(["truncate_low_priority", "drop_low_priority"]),
    st.lists(st.integers(0, 1_200), min_size=6, max_size=6),
)
def test_agent_prompt_classes(total: int, policy: str, sizes: list[int]) -> None:
    asked = dict(zip(SECTIONS_003, sizes, strict=True))
    plan = bk.allocate(
        presets.agent_prompt(total, {"context_budget": {"overflow_policy": policy}}), asked
    )
    assert {name: plan[name].granted for name in asked} == agent_prompt(total, policy, asked)


SHARES = {
    "chat": {"system": 0.10, "memory": 0.10, "conversation": 0.20, "retrieval": 0.25},
    "rag": {"system": 0.10, "memory": 0.05, "conversation": 0.10, "retrieval": 0.40},
    "agent": {"system": 0.15, "memory": 0.10, "conversation": 0.15, "retrieval": 0.20, "tool": 0.15},
}  # fmt: skip


@given(st.sampled_from([*SHARES]), WINDOWS)
def test_anchors_presets_and_their_pools(name: str, window: int) -> None:
    """Document 004: each part is `int` of a float, and the pool has the rest."""
    caps = {section: int(window * share) for section, share in SHARES[name].items()}
    budget = presets.PRESETS[name](window)
    assert {section: budget.cap(section) for section in caps} == caps
    assert budget.shared_pool == window - int(window * 0.15) - sum(caps.values())
