"""Every number of the documents that the project grew from comes out.

000 and 002 are Octopus, 001 the memory engine, 003 Plan #195, 004 anchor.
"""

from collections.abc import Callable

import pytest

import budgetkit as bk
from budgetkit import presets, state
from budgetkit.conversation import assembly
from budgetkit.plan.decisions import OVER_CAP
from budgetkit.plan.fitting import fit
from budgetkit.truncation import cutter
from tests.messages import assistant, system, user

OCTOPUS = {"system": 1_200, "procedure": 300, "knowledge": 1_500, "episodes": 400, "current": 100}


def test_s1_document_000_history_budget() -> None:
    """000's example: 150,000 less six terms."""
    budget = presets.working_memory(150_000, output=8_192)
    assert bk.allocate(budget, OCTOPUS)["history"].limit == 138_308


def test_s2_document_002_history_budget() -> None:
    """002 holds a fixed 500 for the current message and reserves no answer; the difference is explained."""
    budget = presets.working_memory(150_000, output=0, current="fixed")
    assert bk.allocate(budget, OCTOPUS)["history"].limit == 146_100
    assert 146_100 - 138_308 == 8_192 + 100 - 500


def test_s2_document_002_window_that_leaves_room_for_the_answer() -> None:
    """002's window is the usable part: the output reserve is known and claims nothing."""
    usable = presets.working_memory(150_000, output=8_192, current="fixed", kind="usable")
    assert bk.allocate(usable, OCTOPUS)["history"].limit == 146_100
    assert usable.sizes["output"] == 8_192


@pytest.mark.parametrize(("text", "tokens"), [("", 1), ("abc", 1), ("Hello world", 2)])
def test_s3_document_000_counts_characters(text: str, tokens: int) -> None:
    """000: a quarter of the characters, rounded down, at least 1."""
    assert bk.counter("chars/4")(text) == tokens


def test_s3_document_000_counts_messages() -> None:
    """000: 4 tokens for each message, none for its role, no priming."""
    octopus = bk.requests.FRAMINGS["octopus"]
    assert octopus.request([user("Hello world")], bk.counter("chars/4")) == 6


def test_s4_document_000_defaults() -> None:
    """000's `MemoryConfig`."""
    budget = presets.working_memory()
    assert budget.window == 100_000
    assert budget.sizes["output"] == 4_096
    assert budget.floors["history"] == 4_000
    assert (budget.cap("knowledge"), budget.cap("episodes")) == (3_000, 1_000)


EMOJI = (
    "\U0001f389\U0001f680\U0001f525\U0001f469‍\U0001f469‍\U0001f467‍\U0001f466\U0001f3f3️‍\U0001f308✅"
)


@pytest.mark.parametrize(
    ("name", "unit", "tokens"),
    [
        ("chars/4", "utf16", 6),
        ("chars/4", None, 3),
        ("bytes/4", None, 13),
        ("cl100k_base", None, 38),
        ("o200k_base", None, 23),
    ],
)
def test_s5_document_000_length_depends_on_the_unit(
    name: str, unit: str | None, tokens: int
) -> None:
    """000's .NET counts UTF-16 units, Python code points; neither is near the truth for emoji."""
    assert len(EMOJI.encode("utf-16-le")) // 2 == 24
    assert len(EMOJI) == 15
    assert len(EMOJI.encode()) == 54
    assert bk.counter(name, **({"unit": unit} if unit else {}))(EMOJI) == tokens


@pytest.mark.parametrize(
    ("window", "reserve", "safety", "memory"),
    [
        (128_000, 4_096, 6_400, 117_501),
        (16_385, 2_457, 819, 13_106),
        (8_192, 1_228, 409, 6_552),
        (4_096, 614, 204, 3_275),
        (2_000, 500, 100, 1_397),
        (1_000, 500, 50, 447),
        (600, 500, 30, 67),
        (400, 500, 20, 0),
        (200_000, 4_096, 10_000, 185_901),
        (1_000_000, 4_096, 50_000, 945_901),
    ],
)
def test_s6_document_001_calculator(window: int, reserve: int, safety: int, memory: int) -> None:
    """001's formula with empty messages (3 priming tokens) and no directive; 400 is clamped to 0."""
    budget = presets.memory_engine(window)
    plan = bk.allocate(budget, {"messages": 3})
    assert (budget.sizes["output"], budget.sizes["safety"]) == (reserve, safety)
    assert plan["memory"].limit == memory
    assert plan.is_constrained == (memory < 1_000)


def test_s7_document_001_breakpoints() -> None:
    """The reserve's minimum binds below 3,334, its maximum from 27,307; constrained flips at 1,000."""
    reserve = bk.Share(0.15, 500, 4_096)
    assert [bk.Share(0.15).of(w) for w in (3_333, 3_334)] == [499, 500]
    assert [reserve.of(w) for w in (3_333, 3_334)] == [500, 500]
    assert [bk.Share(0.15).of(w) for w in (27_306, 27_307)] == [4_095, 4_096]
    assert reserve.of(27_306) == 4_095
    assert reserve.of(27_307) == reserve.of(1_000_000) == 4_096
    budget = presets.memory_engine(10_000, output=0, safety=0)
    assert bk.allocate(budget, {"messages": 9_001}).is_constrained
    assert not bk.allocate(budget, {"messages": 9_000}).is_constrained


def test_s8_document_001_counts() -> None:
    """001: 3 priming, 4 a message, content and role."""
    count = bk.counter("gpt-4o")
    assert count("Hello world") == 2
    assert bk.requests.FRAMINGS["memory-engine"].request([user("Hello world")], count) == 10


@pytest.mark.parametrize(
    "content",
    [None, [{"type": "text", "text": "Hello world"}], "<|endoftext|>", "a lone surrogate \ud83d"],
)
def test_s9_document_001_contents_that_raise_there(content: object) -> None:
    """Null content, lists of parts and the text of special tokens are counted here."""
    count = bk.counter("gpt-4o")
    assert bk.requests.FRAMINGS["memory-engine"].request([assistant(content)], count) >= 8


def test_s10_document_001_wasted_space() -> None:
    """30 % of a 128,000 window."""
    assert bk.Share(0.30).of(128_000) == 38_400


def test_s11_document_003_allocations() -> None:
    """003's example caps come to 3,000 of its 4,000."""
    budget = presets.agent_prompt()
    assert (budget.window, budget.capped, budget.shared_pool) == (4_000, 3_000, 1_000)


def test_s11_document_003_visibility() -> None:
    """3,200 of 4,000 is 80 %; above 90 % of its cap a section is marked, at exactly 90 % it is not."""
    plan = bk.allocate(
        presets.agent_prompt(),
        {"system_prompt": 450, "working_memory": 780, "rag_memories": 400, "unplanned": 1_570},
    )
    text = assembly.describe(plan, counter=lambda text: 0, framing=bk.requests.FRAMINGS["text"])
    assert "Using 3,200/4,000 tokens (80%)" in text
    assert "- system_prompt: 450/500\n" in text
    assert "- working_memory: 780/800 (near its limit)\n" in text


def test_s11_document_003_budget_text_is_counted_inside_the_budget() -> None:
    """The text's own tokens are in the number that it shows, and it is left out where it has no room."""
    count = bk.counter("gpt-4o")
    plan = bk.allocate(presets.agent_prompt(), {"system_prompt": 450})
    text = assembly.describe(plan, count)
    sent = bk.requests.FRAMINGS["openai"].message(system(text), count)
    assert sent == count(text) + 4
    assert f"Using {450 + sent:,}/4,000" in text
    full = bk.allocate(bk.Budget(100, (), [bk.Allocation("history")]), {"history": 100})
    assert assembly.describe(full, count) == ""


def _halved(text: str, cap: int, count: Callable[[str], int]) -> str:
    """A twin of the generic truncation that 003 sketches: halve until it fits, stop at 100 characters."""
    length = len(text)
    while count(text[:length]) > cap and length > 100:
        length //= 2
    return text[:length] + "\n[cut]"


def test_s12_document_003_halving_can_exceed_the_cap_and_waste_half_of_it() -> None:
    """Halving keeps between half of the cap and more than the cap; `truncate` keeps the cap."""
    count = bk.counter("o200k_base")
    dense = "\U0001f9ea" * 200
    assert count(_halved(dense, 20, count)) > 20
    words = "word " * 4_000
    total = count(words)
    wasteful = count(_halved(words, total // 2 - 10, count))
    assert wasteful < 0.6 * (total // 2 - 10)
    for text, cap in ((dense, 20), (words, total // 2 - 10)):
        kept = count(bk.truncation.truncate(text, cap, count))
        assert 0.9 * cap <= kept <= cap


def _lines_left(text: str, cap: int, count: Callable[[str], int], newest: bool) -> str:
    """A twin of the strategies that 003 sketches for lists: let go of line after line, but never of the last."""
    lines = text.split("\n")
    while count("\n".join(lines)) > cap and len(lines) > 1:
        lines = lines[1:] if newest else lines[:-1]
    return "\n".join(lines) + "\n[cut]"


@pytest.mark.parametrize(("section", "newest"), [("action_history", True), ("rag_memories", False)])
def test_s12_document_003_lists_stop_at_a_line_over_the_cap(section: str, newest: bool) -> None:
    """One long line stays whole there, and its marker comes on top; here neither a text nor a plan exceeds the cap."""
    count = bk.counter("o200k_base")
    text = "\n".join(f"{i} looked for the invoice in every drawer " * 8 for i in range(5))
    assert count(_lines_left(text, 20, count, newest)) > 20
    assert (
        0
        < count(
            bk.truncation.truncate(text, 20, count, keep="tail" if newest else "head", by="line")
        )
        <= 20
    )
    budget = presets.agent_prompt(None, {"sections": {section: {"max_tokens": 20}}})
    item = bk.Item(section, count(text), payload=text)
    plan = fit(budget, [item], cutter(count))
    assert 0 < plan[section].granted <= 20
    assert count(plan.decisions.items[0].payload) == plan[section].granted


#: The document's own sections; what is being asked is none of them, and draws on what their figures leave.
SECTIONS_003 = (
    *("system_prompt", "working_memory", "rag_memories", "action_history"),
    *("recent_events", "subscribed_artifacts"),
)


def test_s13_document_003_priority_classes() -> None:
    """Required is never starved, then high, medium, low; a disabled section has 0."""
    rules = {"system_prompt": {"max_tokens": 500}, "rag_memories": {"max_tokens": 0}}
    budget = presets.agent_prompt(900, {"context_budget": {"allocations": rules}})
    plan = bk.allocate(budget, dict.fromkeys(SECTIONS_003, 1000))
    granted = {grant.section: grant.granted for grant in plan.grants if grant.demand}
    nothing = dict.fromkeys(SECTIONS_003[2:], 0)
    assert granted == {"system_prompt": 500, "working_memory": 400, **nothing}


@pytest.mark.parametrize(
    ("window", "medium", "low"), [(2_300, [600, 400, 0], 0), (2_800, [600, 400, 400], 100)]
)
def test_s13_document_003_medium_comes_before_low(window: int, medium: list[int], low: int) -> None:
    """Required 500 and high 800 are there; low gets nothing before every medium section has its cap."""
    budget = presets.agent_prompt(window)
    plan = bk.allocate(budget, dict.fromkeys(SECTIONS_003, 1000))
    assert [plan[s].granted for s in ("system_prompt", "working_memory")] == [500, 800]
    assert [
        plan[s].granted for s in ("rag_memories", "action_history", "subscribed_artifacts")
    ] == medium
    assert plan["recent_events"].granted == low


def test_s14_document_004_shared_pool() -> None:
    """004's example: pool 2,992, effective window 6,992, and what each source may count on."""
    budget = bk.Budget(
        8_192,
        [bk.Reserve("output", 1_200)],
        [bk.Allocation("system", 800), bk.Allocation("retrieval", 3_200)],
        undeclared="pool",
    )
    assert (budget.shared_pool, budget.usable) == (2_992, 6_992)
    assert [budget.cap(s) for s in ("system", "retrieval", "memory")] == [800, 3_200, 2_992]


PARTS = ("system", "memory", "conversation", "retrieval", "tool")
#: A preset, its window, the caps of its sections, its reserve for the answer and the rest of the window.
PRESET_TABLE = [
    (presets.chat, 8_192, (819, 819, 1_638, 2_048), 1_228, 1_640),
    (presets.rag, 8_192, (819, 409, 819, 3_276), 1_228, 1_641),
    (presets.agent, 8_192, (1_228, 819, 1_228, 1_638, 1_228), 1_228, 823),
    (presets.chat, 4_096, (409, 409, 819, 1_024), 614, 821),
    (presets.rag, 4_096, (409, 204, 409, 1_638), 614, 822),
    (presets.agent, 4_096, (614, 409, 614, 819, 614), 614, 412),
]


@pytest.mark.parametrize(("make", "window", "caps", "reserve", "pool"), PRESET_TABLE)
def test_s15_s16_document_004_presets(
    make: Callable[[int], bk.Budget], window: int, caps: tuple[int, ...], reserve: int, pool: int
) -> None:
    """004's tables: floors of shares, and the pool takes what rounding leaves."""
    budget = make(window)
    assert tuple(map(budget.cap, PARTS[: len(caps)])) == caps
    assert (budget.sizes["output"], budget.shared_pool) == (reserve, pool)


def test_s16_document_004_pools_at_128000() -> None:
    """The three pools of a 128,000 window."""
    made = (presets.chat(128_000), presets.rag(128_000), presets.agent(128_000))
    assert [budget.shared_pool for budget in made] == [25_600, 25_600, 12_800]


@pytest.mark.parametrize(
    ("make", "smallest"), [(presets.chat, 10), (presets.rag, 20), (presets.agent, 10)]
)
def test_s17_document_004_smallest_window(make: Callable[[int], bk.Budget], smallest: int) -> None:
    """Below the smallest window a part would come to nothing: an error that names it."""
    assert make(smallest).shared_pool >= 0
    refusal = rf"leaves '\w+' 0 tokens. Choose a window of {smallest} or more"
    with pytest.raises(ValueError, match=refusal):
        make(smallest - 1)


@pytest.mark.parametrize(
    ("make", "smallest"), [(presets.chat, 10), (presets.rag, 20), (presets.agent, 10)]
)
def test_s17_document_004_smallest_window_holds_for_a_change_too(
    make: Callable[[int], bk.Budget], smallest: int
) -> None:
    """A slider that moves the window below it is told the same; a section that is switched off is meant to be 0."""
    assert make(8_192).assign(window=smallest) == make(smallest)
    refusal = rf"leaves '\w+' 0 tokens. Choose a window of {smallest} or more"
    with pytest.raises(ValueError, match=refusal):
        make(8_192).assign(window=smallest - 1)
    assert make(8_192).assign(memory=0).cap("memory") == 0
    assert make(8_192).assign(memory=bk.Share(0)).cap("memory") == 0


def test_s18_document_004_over_commitment_raises_at_construction() -> None:
    """One token too many is an error that says how to mend it; an exact fit leaves a pool of 0."""
    refusal = r"Reserves \(3\) and caps \(8\) exceed the window \(10\) by 1 token\."
    with pytest.raises(ValueError, match=refusal):
        bk.Budget(10, [bk.Reserve("output", 3)], [bk.Allocation("system", 8)])
    assert bk.Budget(10, [bk.Reserve("output", 3)], [bk.Allocation("system", 7)]).shared_pool == 0


ITEMS = [
    bk.Item("retrieval", tokens, score, payload=name)
    for name, tokens, score in (
        ("A", 800, 0.95),
        ("B", 700, 0.85),
        ("C", 600, 0.70),
        ("D", 400, 0.60),
    )
]


@pytest.mark.parametrize(
    ("rule", "names", "tokens"),
    [
        ({"fill": "prefix"}, "AB", 1_500),
        ({"fill": "skip"}, "ABD", 1_900),
        ({"overflow": "drop"}, "", 0),
        ({"overflow": "drop", "cap": 2_500}, "ABCD", 2_500),
    ],
)
def test_s19_document_004_overflow(rule: dict[str, object], names: str, tokens: int) -> None:
    """Its text stops at C, its code goes on to D; drop keeps all or nothing, and equality fits."""
    budget = bk.Budget(8_192, (), [bk.Allocation("retrieval", 2_000, keep="best")]).assign(
        retrieval=rule
    )
    plan = fit(budget, ITEMS)
    assert "".join(item.payload for item in plan.decisions.items) == names
    assert plan["retrieval"].granted == tokens
    assert plan.decisions.dropped("retrieval", OVER_CAP) == 4 - len(names)


@pytest.mark.parametrize("reserve", [1_000, 1_001])
def test_s20_document_004_reserve_that_leaves_nothing_raises(reserve: int) -> None:
    """004: a reserve of the whole window, or more, is an error."""
    with pytest.raises(ValueError, match="fill the window"):
        bk.Budget(1_000, [bk.Reserve("output", reserve)], [bk.Allocation("history")])


def test_s21_octopus_inspector() -> None:
    """5,420 of 150,000 is 3.6 %."""
    plan = bk.allocate(bk.Budget(150_000, (), [bk.Allocation("history")]), {"history": 5_420})
    assert f"{plan.used / plan.budget.window:.1%}" == "3.6%"


def test_document_002_components_stand_in_their_order() -> None:
    """The six components of a working memory, and the best three of what was retrieved."""
    budget = presets.working_memory(100_000)
    assert budget.sections == ("system", "procedure", "knowledge", "episodes", "history", "current")
    passages = [bk.Item("knowledge", 100, score=s) for s in (0.1, 0.9, 0.5, 0.7)]
    plan = fit(budget, passages)
    assert [d.outcome for d in plan.decisions] == ["dropped", "kept", "kept", "kept"]


def test_document_003_persists() -> None:
    """A budget that was changed for one tick comes back from JSON and YAML as it was."""
    changed = presets.agent_prompt().assign(rag_memories=900)
    assert (
        state.from_json(state.to_json(changed))
        == changed
        == state.from_yaml(state.to_yaml(changed))
    )


def test_document_003_shipped_defaults_are_over_committed_and_readable() -> None:
    """Eight caps of 3,500 in 3,000: a signed pool, and a sentence once something is lost for it, not an error."""
    caps = dict(zip("abcdefgh", (800, 600, 400, 300, 200, 300, 400, 500), strict=True))
    sections = {s: {"max_tokens": 0} for s in presets.agent_prompt().sections}
    sections |= {name: {"max_tokens": cap} for name, cap in caps.items()}
    budget = presets.agent_prompt(None, {"output_reserve": 1_000, "sections": sections})
    assert budget.shared_pool == -500
    assert bk.allocate(budget, {"a": 800}).warnings == ()
    assert "by 500 tokens. Lower a cap or a reserve" in bk.allocate(budget, caps).warnings[0]


def test_the_four_systems_are_one_subtraction() -> None:
    """On equal claims, what remains is the same under each system's name."""
    claims = 1_000
    octopus = bk.allocate(presets.working_memory(8_192, output=500), {"system": claims})[
        "history"
    ].limit
    engine = presets.memory_engine(8_192, output=500, safety=0)
    memory = bk.allocate(engine, {"messages": claims})["memory"].limit
    pool = bk.Budget(
        8_192, [bk.Reserve("output", 500)], [bk.Allocation("system", claims)]
    ).shared_pool
    assert len({octopus, memory, pool, 8_192 - 500 - claims}) == 1
