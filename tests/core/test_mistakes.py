"""Common mistakes and the errors that answer them: each names the problem, then the fix."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.files import extra

BUDGET = bk.Budget(1_000, [bk.Reserve("output", 200)], [bk.Allocation("history", 500)])


def import_missing() -> None:
    with extra("lab", "a figure"):
        import_module("a_library_that_nobody_has")


#: A mistake, the error that it raises, and its whole text; "..." stands for a list that may grow.
MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    # a wrong name
    "preset": (
        lambda: bk.Conversation("wroking_memory", window=8_192),
        LookupError,
        "Unknown preset 'wroking_memory'. Did you mean 'working_memory'? Choose one of: 'chat', ...",
    ),
    "model": (
        lambda: bk.model("gtp-4o", unknown="raise"),
        ValueError,
        "Unknown model 'gtp-4o'. Did you mean 'gpt-4o'? Choose one of the models in budgetkit.models.models(), ...",
    ),
    "counter": (
        lambda: bk.counter("abacus"),
        ValueError,
        "Unknown counter 'abacus'. Choose a ratio ('chars/4', 'bytes/4', 'words/0.75'), an encoding ...",
    ),
    "section": (
        lambda: bk.allocate(BUDGET, {"histroy": 100}),
        LookupError,
        "Unknown section 'histroy'. Did you mean 'history'? Choose one of: 'history'. "
        "Give a new section its own Allocation in the Budget, or set undeclared='pool'.",
    ),
    "line": (
        lambda: BUDGET.assign(ouput=100),
        LookupError,
        "Unknown reserve or section 'ouput'. Did you mean 'output'? Choose one of: 'window', 'history', 'output'. "
        "Give a new section its own Allocation in the Budget.",
    ),
    "setting": (
        lambda: bk.presets.rag(8_192, ouput=100),
        TypeError,
        "Unknown setting of rag: 'ouput'. Did you mean 'output'? Choose one of: 'output', 'fill', ...",
    ),
    "choice": (
        lambda: bk.Allocation("history", keep="latest"),  # type: ignore[arg-type]
        ValueError,
        "Invalid keep of 'history': 'latest'. Choose one of: 'first', 'newest', 'best'.",
    ),
    "policy": (
        lambda: bk.replay("support-chat", "chat", policy="oldest", window=8_192),
        LookupError,
        "Unknown policy 'oldest'. Did you mean 'oldest first'? Choose one of: 'oldest first', ...",
    ),
    "key": (
        lambda: bk.state.from_dict({"budgetkit": 1, "budget": {"windw": 100}}),
        ValueError,
        "Unknown key in budget: 'windw'. Did you mean 'window'? Choose one of: 'allocations', ...",
    ),
    "effort": (
        lambda: bk.limits.thinking("gpt-5", "hgh"),
        ValueError,
        "Invalid effort: 'hgh'. Choose one of: 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'.",
    ),
    # a wrong type or unit
    "text for tokens": (
        lambda: bk.presets.chat("8k"),
        TypeError,
        "Invalid window: '8k'. Expected a whole number of tokens, or a Share for a ratio.",
    ),
    "fraction of tokens": (
        lambda: bk.Budget(1_000.5),  # type: ignore[arg-type]
        TypeError,
        "Invalid window: 1000.5. Expected a whole number of tokens, or a Share for a ratio.",
    ),
    "per cent for a ratio": (
        lambda: bk.Share(15),
        ValueError,
        "Invalid ratio: 15. Use a number from 0 to 1, such as 0.15 for 15 %.",
    ),
    "negative tokens": (lambda: bk.Budget(-1), ValueError, "Invalid window: -1. Use 0 or more."),
    "text for an item": (
        lambda: bk.fit(BUDGET, ["Hello"]),  # type: ignore[list-item]
        TypeError,
        "Invalid item 0: a value of type str. Expected an Item, such as Item('history', 40).",
    ),
    "number for a counter": (
        lambda: bk.counter(4),  # type: ignore[arg-type]
        TypeError,
        "Invalid counter: 4. Expected a model, a function or a name such as 'gpt-5.4' or 'chars/4'.",
    ),
    "text for a request": (
        lambda: bk.count_request("Hello"),
        ValueError,
        "Invalid JSON in the request: Expecting value: line 1 column 1 (char 0). "
        "Pass the body as JSON text or a dictionary.",
    ),
    "message without a role": (
        lambda: bk.Message({"content": "Hello"}),
        ValueError,
        "Message without a role: it has 'content'. "
        "Choose one of: system, developer, user, assistant, tool, function.",
    ),
    # a path that leads nowhere, a missing package
    "path of a budget": (
        lambda: bk.replay("support-chat", Path("nowhere.yaml")),
        FileNotFoundError,
        "File not found: nowhere.yaml. Check the path. You can also choose a preset: 'chat', ...",
    ),
    "path of a conversation": (
        lambda: bk.load_trace("nowhere.jsonl"),
        FileNotFoundError,
        "File not found: nowhere.jsonl. Check the path. Shipped traces: coding-agent, ...",
    ),
    "extra": (
        import_missing,
        ImportError,
        "Missing optional dependency 'a_library_that_nobody_has', which a figure needs. "
        "Run: pip install 'budgetkit[lab]'",
    ),
    # a contradiction
    "window missing": (
        lambda: bk.Conversation("chat"),
        ValueError,
        "Preset 'chat' needs a window. Add window= in tokens or a model, for example model='gpt-5.4'.",
    ),
    "too many claims": (
        lambda: bk.Budget(1_000, [bk.Reserve("output", 600)], [bk.Allocation("history", 500)]),
        ValueError,
        "Reserves (600) and caps (500) exceed the window (1,000) by 100 tokens. Lower a cap or a reserve.",
    ),
    "floor above cap": (
        lambda: bk.Budget(1_000, (), [bk.Allocation("history", 100, floor=200)]),
        ValueError,
        "The floor of 'history' (200) is above its cap (100). Lower the floor or raise the cap.",
    ),
    "target above trigger": (
        lambda: bk.policies.TriggerTarget(bk.Share(0.5), bk.Share(0.8)),
        ValueError,
        "Invalid target Share(0.8) for trigger Share(0.5). Use 0 < target <= trigger.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_error_names_the_problem_and_the_fix(mistake: str) -> None:
    make, kind, text = MISTAKES[mistake]
    with pytest.raises(kind) as error:
        make()
    message = str(error.value.args[0])
    if text.endswith("..."):
        assert message.startswith(text.removesuffix("..."))
    else:
        assert message == text
