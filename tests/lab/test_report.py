"""Reports: one file that asks for nothing, in which every text is text, and whose numbers are the replay's."""

import json
import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.extras.shell.program import run
from budgetkit.lab.explorers import report
from budgetkit.lab.explorers.base import Explorer
from tests.hostile import BIDI, MARKUP, ODD

HOSTILE = (
    *ODD,
    *MARKUP,
    *BIDI,
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "$\\frac{1}{2}$",
    "]]>",
    "\"'>",
)


class Page(HTMLParser):
    """What a page is made of: its elements with their attributes, and the JSON that lies in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside = ""
        self.found: dict[str, str] = {}
        self.feed(text)
        self.data = json.loads(self.found["bk-data"])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = (
            dict(attrs).get("id") or tag if tag in ("script", "style", "title", "h1") else ""
        )

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.found[self.inside] = self.found.get(self.inside, "") + data


def saved(explorer: Explorer, folder: Path, name: str = "report.html") -> str:
    explorer.save(folder / name)
    return (folder / name).read_text("utf-8")


@pytest.fixture(scope="module")
def conversation() -> bk.ConversationExplorer:
    return bk.ConversationExplorer("coding-agent", window=16_000)


@pytest.mark.parametrize(("name", "window"), [("coding-agent", 16_000), ("support-chat", 9_000)])
def test_the_messages_of_a_request_are_those_of_the_replay(
    name: str, window: int, tmp_path: Path
) -> None:
    explorer = bk.ConversationExplorer(name, window=window, policies=["oldest first"])
    requests = Page(saved(explorer, tmp_path)).data["requests"]
    outcome = explorer.replay
    assert requests["turns"] == outcome.frame()["turn"].tolist()
    assert len(requests["messages"]) == len(outcome.trace.messages)
    assert any(requests["gone"]), "something is dropped"
    kept = outcome.frame()["history"].tolist()
    for request, expected in enumerate(kept, start=1):
        total = sum(
            tokens
            for tokens, first, gone in zip(
                requests["tokens"], requests["first"], requests["gone"], strict=True
            )
            if first <= request and not 0 < gone <= request
        )
        assert total == expected


def test_a_budget_shows_the_messages_that_each_turn_asks_for(tmp_path: Path) -> None:
    explorer = bk.BudgetExplorer("chat", "support-chat", window=8_192)
    requests = Page(saved(explorer, tmp_path)).data["requests"]
    assert requests["turns"] == list(range(1, 76))
    trace = bk.load_trace("support-chat")
    for request, turn in enumerate(trace.turns, start=1):
        assert sum(first <= request for first in requests["first"]) == turn.sent
    assert Page(saved(bk.BudgetExplorer("chat"), tmp_path)).data["requests"] == {}


def test_a_report_is_one_file_that_forbids_itself_any_request(
    conversation: bk.ConversationExplorer, tmp_path: Path
) -> None:
    text = saved(conversation, tmp_path)
    page = Page(text)
    assert len(text.encode()) < 2_000_000
    assert "plotly" not in text.lower()
    assert not re.search(r"https?://(?!www\.w3\.org/)", text.replace(page.found["bk-data"], ""))
    loads = [
        tag
        for tag, given in page.elements
        if {"src", "srcset", "data", "action"} & given.keys() or tag == "link"
    ]
    assert loads == []
    policy = next(given["content"] for tag, given in page.elements if given.get("http-equiv"))
    assert (
        policy is not None
        and policy.startswith("default-src 'none';")
        and "'unsafe-eval'" not in policy
    )
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]
    assert [*page.data["tables"]] == [
        *("timeline", "caching", "dropping", "fan", "spending"),
    ]
    assert page.found["h1"].startswith("coding-agent in 16,000 tokens of gpt-5.4: oldest first")


def test_the_same_explorer_gives_the_same_bytes_and_another_one_like_it_too(tmp_path: Path) -> None:
    made = {
        saved(bk.BudgetExplorer("chat", "support-chat", window=8_192), tmp_path) for _ in range(2)
    }
    made |= {saved(bk.BudgetExplorer("chat", "support-chat", window=8_192), tmp_path, "other.htm")}
    assert len(made) == 1


def test_every_text_of_a_conversation_is_text(tmp_path: Path) -> None:
    said = [
        {"role": "user" if i % 2 == 0 else "assistant", "content": text, "name": text}
        for i, text in enumerate(HOSTILE)
    ]
    trace = bk.Trace(HOSTILE[-6], tuple(map(bk.Message, said)))
    budget = bk.Budget(
        8_000, [bk.Reserve("<b>out</b>", 500)], [bk.Allocation("</script>", 900)], undeclared="pool"
    )
    plain = bk.BudgetExplorer("chat", "support-chat")
    known = {tag for tag, _ in Page(saved(plain, tmp_path)).elements}
    for explorer in (
        bk.BudgetExplorer(budget, trace),
        bk.ConversationExplorer(trace, policies={"<i>": "oldest first"}),
    ):
        text = saved(explorer, tmp_path)
        page = Page(text)
        assert {tag for tag, _ in page.elements} <= known | {"tspan", "circle", "title"}
        assert [tag for tag, _ in page.elements].count("script") == 2
        assert not any(name.startswith("on") for _, given in page.elements for name in given)
        shown = [message[1] for message in page.data["requests"]["messages"]]
        assert any("$\\frac{1}{2}$" in each for each in shown)
        # Half a character, further control characters, and the marks that reverse the text around them are replaced.
        hidden = "[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
        assert shown == [re.sub(hidden, "\ufffd", each) for each in HOSTILE]


@pytest.mark.slow
def test_a_page_that_grows_too_large_keeps_less_of_tables_and_messages(tmp_path: Path) -> None:
    said = [
        {"role": ("user", "assistant")[i % 2], "content": f"{i} " + "long words " * 100}
        for i in range(6_000)
    ]
    explorer = bk.BudgetExplorer(
        "chat", bk.Trace("long", tuple(map(bk.Message, said))), counter="chars/4"
    )
    text = saved(explorer, tmp_path)
    assert len(text.encode()) <= report.LARGEST
    page = Page(text)
    assert len(page.data["requests"]["messages"]) == 6_000
    assert page.data["tables"]["turns"]["all"] == 3_000 > len(page.data["tables"]["turns"]["rows"])


def test_a_report_is_html_and_what_stands_there_stays_when_it_cannot_be_written(
    conversation: bk.ConversationExplorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=r"Cannot save a page as 'report\.pdf'"):
        conversation.save("report.pdf")
    (tmp_path / "report.html").write_text("before")

    def fails(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="no space left"):
        conversation.save(tmp_path / "report.html")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


def test_the_other_explorers_save_what_they_show(tmp_path: Path) -> None:
    text = saved(bk.DesignCard("chat", "mixed-language", window=8_192), tmp_path)
    kinds = ["Code, data", "Code, data", "CJK", "CJK", "Prose", "Prose"]
    assert [row["kind"] for row in Page(text).data["strip"]["rows"]] == kinds
    without_scripts = text.partition("<noscript>")[2].partition("</noscript>")[0]
    assert "How far off is chars/4?" in without_scripts
    assert without_scripts.count("<tr>") == 1 + 6
    accuracy = Page(saved(bk.AccuracyExplorer(), tmp_path))
    assert len(accuracy.data["tables"]) == 5
    assert accuracy.data["requests"] == {}


def test_the_command_writes_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    goal = tmp_path / "made.html"
    assert (
        run(
            [
                "report",
                "support-chat",
                "-o",
                str(goal),
                "-b",
                "working_memory",
                "-p",
                "octopus",
                "-p",
                "oldest-first",
            ]
        )
        == 0
    )
    assert capsys.readouterr().out.startswith(f"{goal}: ")
    page = Page(goal.read_text("utf-8"))
    assert page.found["h1"].endswith("octopus, oldest first")
    assert (
        run(["report", "support-chat", "--plan", "-m", "gpt-4.1", "-o", str(goal), "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out) == {
        "report": str(goal),
        "bytes": goal.stat().st_size,
    }
    assert run(["report", "support-chat", "-o", str(tmp_path / "made.pdf")]) == 2
    assert "Use a name that ends in .html" in capsys.readouterr().err


def test_a_report_names_the_file_and_not_where_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "secret-folder" / "mine.json"
    path.parent.mkdir()
    path.write_text('[{"role": "user", "content": "Where is my parcel?"}]', encoding="utf-8")
    for explorer in (bk.BudgetExplorer("chat", path), bk.ConversationExplorer(path)):
        explorer.save(tmp_path / "report.html")
        written = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert "mine.json" in written
        assert "secret-folder" not in written


def test_a_conversation_in_which_nothing_is_asked_has_empty_figures() -> None:
    explorer = bk.ConversationExplorer(
        [bk.Message({"role": "assistant", "content": "Anybody there?"})], window=2_000
    )
    figure = bk.figures.dropping.spec(explorer.replay)
    assert figure["data"] == []


@pytest.mark.parametrize("make", [bk.BudgetExplorer, bk.ConversationExplorer])
def test_a_conversation_with_a_title_goes_by_it(make: Callable[..., Any], tmp_path: Path) -> None:
    said = (
        bk.Message({"role": "user", "content": "Hi"}),
        bk.Message({"role": "assistant", "content": "Hello"}),
    )
    explorer = make(trace=bk.Trace("c3", said, fields={"title": "A billing service"}), window=8_192)
    assert "A billing service" in Page(saved(explorer, tmp_path)).found["h1"]
    assert explorer.view.state["source"].startswith("A billing service: ")


def test_a_refusal_that_stands_in_the_explorer_is_not_what_its_report_says(tmp_path: Path) -> None:
    explorer = bk.BudgetExplorer("chat", "support-chat", window=8_192)
    before = saved(explorer, tmp_path)
    explorer.load("no budget")
    refused = explorer.status
    assert explorer.view.state["status"]["level"] == "error"
    assert saved(explorer, tmp_path) == before
    assert explorer.status == refused
