"""What a value looks like at the end of a cell: one line of text, and a small page that no text in it can break."""

import inspect
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.budget.html import block, safe
from budgetkit.counters.characters import RULES
from budgetkit.inputs.budgets import setup_of
from budgetkit.plan.items import Items
from tests.messages import user

EVIL = "</div><script>alert(1)</script><img src=x onerror=alert(2)> $\\href{javascript:alert(3)}{x}$ & \"quoted\" 'x'"


class Page(HTMLParser):
    """Read a page as a browser does: its tags, their attributes, and the text that is seen."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.names: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        self.names |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile(text: str) -> list[Any]:
    name = text or "x"
    budget = bk.Budget(
        100, [bk.Reserve(f"r{name}", 10)], [bk.Allocation(name, 50), bk.Allocation("b")], name=text
    )
    trace = bk.Trace(text, (bk.Message({"role": name, "content": text}), bk.Message(user(text))))
    replay = bk.replay(
        trace, bk.Budget(100, undeclared="pool", name=text), bk.policies.OldestFirst()
    )
    model = bk.model("gpt-4o")
    named = type(model)(name, 100, max_output=20, provider=text, source=text)
    return [budget, bk.allocate(budget, {name: 80, "b": 90}), trace, replay, model, named]


@pytest.mark.parametrize("text", [EVIL, "chat", "\ud800", "a\nb\tc", "x" * 10_000])
def test_pages_are_whole_and_hold_any_text_as_text(text: str) -> None:
    """No tag and no attribute comes from a name, whatever is in it; MathJax is told to leave all of it alone."""
    shown = (
        hostile(text)
        if "\ud800" not in text
        else hostile("x") + [bk.Trace(text, (bk.Message({"role": text, "content": text}),))]
    )
    for value in shown:
        html = value._repr_html_()
        page = Page(html)
        assert set(page.tags) <= {"div", "b", "table", "tr", "th", "td"}
        assert page.open == []
        assert page.names <= {"class", "style", "title"}
        assert html.startswith('<div class="tex2jax_ignore mathjax_ignore"')
        assert "$" not in html
        assert len(html.encode()) < 12_000


MARKS = "\0\x1b\x7f\x9b\u202e\u2066"


def test_no_page_or_repr_holds_a_control_character_or_turns_its_text() -> None:
    """NUL, ESC and the marks from right to left were in both (Unicode's bidirectional algorithm, UAX 9)."""
    call = {"id": "1", "function": {"name": f"f{MARKS}", "arguments": "{}"}}
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [call]}]
    counted = bk.count_request({"model": f"m{MARKS}", "messages": messages})
    for value in [*hostile(f"a{MARKS}b"), counted]:
        assert not set(MARKS) & {*value._repr_html_(), *repr(value)}, value
    joiner_and_japanese_blank = "a\u200db \u3000"
    assert safe(joiner_and_japanese_blank) == joiner_and_japanese_blank


def test_a_page_is_a_plain_str() -> None:
    """On 0.3.0 it was a subclass of str, and marimo showed an error in its place."""
    counted = bk.count_request({"model": "gpt-4o", "messages": [user("Hi")]})
    for value in [*hostile("x"), counted, bk.Session(bk.load_trace("made-up-session"))]:
        assert type(value._repr_html_()) is str, value


def test_a_page_says_what_the_value_is() -> None:
    """A bar, a table and the sentences: what one shows to a colleague."""
    budget = bk.presets.chat("gpt-4o")
    assert "Budget chat: a window of 128,000 tokens" in Page(budget._repr_html_()).text
    assert 'title="retrieval: 32,000"' in budget._repr_html_()
    plan = bk.allocate(budget, {"system": 500, "conversation": 40_000})
    assert (
        "conversation loses 14,400 of 40,000 tokens because it is over its cap"
        in Page(plan._repr_html_()).text
    )
    trace = bk.load_trace("support-chat")
    assert "75 turns" in Page(trace._repr_html_()).text
    replay = bk.replay(
        trace, bk.presets.working_memory(4_000, output=500), bk.policies.OldestFirst()
    )
    assert "of the tokens sent" in Page(replay._repr_html_()).text
    assert "128,000" in Page(bk.model("gpt-4o")._repr_html_()).text


@given(
    st.text(),
    st.lists(st.tuples(st.text(), st.integers(-5, 10**12))),
    st.lists(st.lists(st.text(), max_size=3)),
)
def test_any_text_is_shown(title: str, parts: list[tuple[str, int]], rows: list[list[str]]) -> None:
    """What is read off the page is what was written, cut where it is long, without what a browser would obey."""
    page = Page(block(title, parts, rows, []))
    seen = [title, *(cell for row in rows for cell in row)]
    assert page.text.replace("\r", "\n") == safe("".join(seen)).replace("\r", "\n") or any(
        len(s) > 600 for s in seen
    )


def test_the_repr_of_a_trace_is_one_line() -> None:
    """555,277 characters in 0.1.0."""
    trace = bk.load_trace("support-chat")
    assert len(repr(trace)) < 100
    assert repr(trace).startswith("Trace('support-chat', ")
    assert repr(bk.Trace("a\nb" * 9_999, trace.messages)).count("\n") == 0


def test_no_repr_commands_a_terminal() -> None:
    """On 0.3.0 the repr of a budget or plan wrote an escape sequence in a section's name as it was."""
    items = Items([bk.Item("\x1b[2J", 10)])
    for value in [*hostile("\x1b[2J"), items]:
        assert repr(value).isprintable(), value


def test_a_framing_and_the_rule_of_the_same_name_count_alike() -> None:
    """Octopus divides UTF-16 units, in both: six emoji are 3 tokens or 6 otherwise."""
    both = set(RULES) & set(bk.requests.FRAMINGS)
    assert both >= {"octopus", "langchain", "praisonai"}
    assert {name: bk.requests.FRAMINGS[name].counter for name in both} == {
        name: RULES[name] for name in both
    }
    assert (
        bk.counter(bk.requests.FRAMINGS["octopus"].counter)("🎉🚀🔥👩‍👩‍👧‍👦🏳️‍🌈✅")
        == bk.counter("octopus")("🎉🚀🔥👩‍👩‍👧‍👦🏳️‍🌈✅")
        == 6
    )


def mine(text: str) -> int:
    """Count as somebody's own function does."""
    return len(text)


def public_values() -> dict[str, Any]:
    """One value of each kind that somebody gets to see at the end of a cell, some with functions inside."""
    budget = bk.presets.working_memory(4_000, output=500)
    talk = bk.Conversation(budget, counter=mine)
    talk.add(user("Hello"))
    plan = bk.fit(budget, [bk.Item("history", 3, payload="Hello")])
    trace = bk.load_trace("support-chat")
    return {
        "conversation": talk,
        "request": talk.request(),
        "built": bk.build(budget, mine, current="Hello"),
        "setup": setup_of(budget, mine),
        "function counter": bk.counter(mine),
        "exact counter": bk.counter("gpt-4o"),
        "calibrated counter": bk.counter("claude-sonnet-4-5"),
        "framing": bk.requests.FRAMINGS["octopus"],
        "policy": bk.policies.Summarise(100, text=lambda messages: "They talked."),
        "plan": plan,
        "decisions": plan.decisions,
        "items": plan.decisions.columns,
        "trace": trace,
        "replay": bk.replay(trace, budget, "oldest first"),
        "session": bk.Session(bk.load_trace("made-up-session")),
        "bill": bk.count_request({"model": "gpt-4o", "messages": [user("Hello")]}),
        "provider": bk.endpoints.provider_counter("openai", "gpt-4o"),
        "preset": bk.presets.PRESETS["chat"],
        "model": bk.model("gpt-4o"),
        "card": bk.DesignCard(),
        "app": bk.App(),
        "budget explorer": bk.BudgetExplorer("chat", window=8_192),
        "conversation explorer": bk.ConversationExplorer("support-chat", window=8_192),
    }


def test_no_value_shows_as_an_address() -> None:
    """An address says nothing, and differs from run to run, so that a saved notebook differs too."""
    shown = {name: repr(value) for name, value in public_values().items()}
    assert {name: text for name, text in shown.items() if " at 0x" in text} == {}


def test_every_public_class_says_what_its_values_are() -> None:
    """A class added later without a repr of its own is found here."""
    modules = [bk, *(getattr(bk, name) for name in dir(bk) if inspect.ismodule(getattr(bk, name)))]
    names = [
        (module, name) for module in modules for name in getattr(module, "__all__", dir(module))
    ]
    classes = {value for module, name in names if inspect.isclass(value := getattr(module, name))}
    own = {
        each
        for each in classes
        if each.__module__.startswith("budgetkit") and not name_is_private(each)
    }
    assert len(own) > 40
    assert {each.__qualname__ for each in own if each.__repr__ is object.__repr__} == set()


def name_is_private(kind: type) -> bool:
    return kind.__name__.startswith("_")


def test_a_conversation_shows_model_messages_and_tokens_in_one_line() -> None:
    talk = bk.Conversation(
        bk.presets.working_memory(4_000, output=500), model="gpt-4o", window=4_000
    )
    assert repr(talk) == "Conversation(gpt-4o, 0 messages, 0 of 4,000 tokens)"
    talk.add(user("Hello world"))
    expected = "Conversation(gpt-4o, 1 message, 1 of them not counted yet, 0 of 4,000 tokens)"
    assert repr(talk) == expected
    tokens = talk.request().plan.used
    assert 0 < tokens < 20
    # 3 are the request's own.
    assert repr(talk) == f"Conversation(gpt-4o, 1 message, {tokens - 3} of 4,000 tokens)"
    with talk._busy, talk._lock:  # nor does it wait for a request that is under way
        assert repr(talk).startswith("Conversation(gpt-4o, ")
