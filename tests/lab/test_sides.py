"""Several models or budgets side by side at one window, and the receipt that is sent to somebody else."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import budgetkit as bk
from budgetkit.lab.app.card import RESERVES, receipt
from budgetkit.lab.app.sides import MAKERS, Side, sides, table
from budgetkit.models import DEFAULT_MODEL


def cells(card: bk.DesignCard) -> dict[str, list[str]]:
    drawn = table(sides(card.settings, card.library))
    return {row["name"]: row["cells"] for row in drawn["rows"]}


def test_one_click_sets_a_model_of_each_maker_side_by_side_at_one_window() -> None:
    card = bk.DesignCard("chat", "mixed-language", window=8_192)
    card.view.opened = ["sides"]
    fold = card.view.folds[0]
    assert [part["is"] for part in fold["parts"]] == ["text", "sides"]
    rows = cells(card)
    assert rows["window"] == ["8,192"] * len(MAKERS)
    for place, name in enumerate(MAKERS):
        other = bk.DesignCard("chat", "mixed-language", model=name, window=8_192)
        assert rows["shared pool"][place] == f"{other.budget.shared_pool:,}"
        assert rows["history budget"][place] == f"{other.plan.remainder:,} (conversation)"
        told = re.search(r"(\d+) of 35 turns fit", other.view.state["headline"]["title"])
        assert told is not None
        assert rows["without cuts"][place] == f"{told[1]} of 35 turns"
        error = other.errors.set_index(["kind", "where"])["error"]["CJK", "conversation"]
        assert (
            f"{100 * error:.0f} %".replace("-", "\u2212") in rows["cheap-count error: CJK"][place]
        )
        price = bk.cost.prices(name).input
        cost = (
            "no price known"
            if price is None
            else f"${other.plan.used * float(price.of(np.array([1]))[0]) / 1e6:.4f}"
        )
        assert rows["cost of the prompt, uncached"][place] == cost


def test_a_model_without_that_window_stands_at_its_longest_and_that_is_said() -> None:
    card = bk.DesignCard("chat", model="gemini-3.8-flash", window=1_000_000)
    card.view.opened = ["sides"]
    assert (
        "use their longest window: Llama-3.3-70B-Instruct."
        in card.view.folds[0]["parts"][0]["text"]
    )
    assert cells(card)["window"] == ["1,000,000", "1,000,000", "1,000,000", "128,000"]


def test_two_pins_stand_side_by_side_with_what_is_set() -> None:
    card = bk.DesignCard("chat", "mixed-language", window=8_192)
    card.pin()
    assert card.view.state["actions"]["pinned"]
    card.move("conversation", 3_000)
    assert not card.view.state["actions"]["pinned"]
    card.pin()
    assert "sides" in card.view.opened
    assert cells(card)["history budget"] == ["1,638 (conversation)", "3,000 (conversation)"]
    card.set(model="claude-sonnet-4-5")
    assert [side.title for side in sides(card.settings, card.library)] == [
        *("gpt-5.4, chat", "gpt-5.4, chat", "claude-sonnet-4-5, chat")
    ]
    card.undo()
    card.pin()
    assert len(card.settings.pins) == 1, "what is pinned is let go by pinning it again"
    card._receive_fold_event({"fold": "sides", "clear": True})
    assert card.settings == replace(card.settings, pins=())
    assert card.view.state["bar"]["pinned"] is None


def test_pins_are_named_columns_of_what_differs_and_each_can_be_let_go() -> None:
    """Two pins were both called "gpt-4o, chat"; of ten rows eight were the same, and none said what moved."""
    card = bk.DesignCard("chat", "mixed-language", window=8_192)
    card.move("retrieval", 2_000)
    card.pin()
    card.move("retrieval", 1_000)
    card.pin()
    card.move("system", 400)
    card._receive_fold_event({"fold": "sides"})
    drawn = next(part for part in card.view.folds[0]["parts"] if part["is"] == "sides")
    assert [column["title"] for column in drawn["columns"]] == [
        *("A: gpt-5.4, chat", "B: gpt-5.4, chat", "Current: gpt-5.4, chat")
    ]
    rows = {row["name"]: row["cells"] for row in drawn["rows"]}
    assert rows["retrieval"] == ["2,000", "1,000", "1,000"]
    assert rows["system"] == ["819", "819", "400"]
    assert "window" not in rows
    assert all(len(set(cells)) > 1 for cells in rows.values())
    _first, second = card.settings.pins
    card._receive_fold_event({"fold": "sides", **drawn["columns"][0]["unpin"]})
    assert card.settings.pins == (second,)
    assert card.settings.pinned == second.budget
    card._receive_fold_event({"fold": "sides", "unpin": 7})
    assert card.settings.pins == (second,)


def test_a_bar_of_a_side_has_the_window_in_it() -> None:
    card = bk.DesignCard("working_memory", "support-chat", window=16_384)
    bar = Side(card.settings, card.library).bar
    assert sum(segment["width"] for segment in bar) == pytest.approx(100)
    assert "free" in {segment["name"] for segment in bar}


def test_a_receipt_holds_the_answers_of_the_kit() -> None:
    card = bk.DesignCard("chat", window=8_192)
    stored = receipt(card.settings, card.library)
    for name, point in stored["points"].items():
        model, window, reserve = name.split("|")
        if "refused" in point:
            continue
        budget = bk.presets.chat(int(window))
        if bk.model(model).kind == "input":
            continue  # its answer stands beside the window; the browser's test has it
        if reserve != "as set":
            budget = budget.assign(output=bk.Share(f"0.{int(reserve.removesuffix(' %')):02}"))
        plan = bk.allocate(budget, bk.presets.PRESETS["chat"].demand)
        kpis = {kpi["key"]: kpi["value"] for kpi in point["kpis"]}
        assert kpis["pool"] == f"{budget.shared_pool:,}"
        assert kpis["remainder"] == f"{plan.remainder:,}"
        assert point["strip"]["line_text"] == f"planned {plan.remainder:,}"
    assert len(stored["reserves"]) == 1 + len(RESERVES)
    assert stored["now"] == [DEFAULT_MODEL, 8_192, "as set"]


def test_a_receipt_is_one_small_file_of_numbers_and_a_picture(tmp_path: Path) -> None:
    secret = "the parcel of Mrs Example"
    messages = [
        {"role": "user", "content": secret},
        {"role": "assistant", "content": "It has left."},
    ] * 20
    card = bk.DesignCard("chat", messages, window=8_192)
    card.share(tmp_path / "mine.html")
    page = (tmp_path / "mine.html").read_text()
    assert secret not in page
    assert len(page.encode()) < 2_000_000
    assert not re.search(r"""(?:src|href)=["']?https?:""", page)
    picture = ElementTree.fromstring((tmp_path / "mine.svg").read_text())
    words = " ".join(picture.itertext())
    assert f"{card.plan.remainder:,}" in words
    assert "How far off is chars/4?" in words
    card.share(tmp_path / "mine.html", texts=True)
    assert secret in (tmp_path / "mine.html").read_text()
    with pytest.raises(ValueError, match=r"Use a name that ends in \.html"):
        card.share(tmp_path / "mine.pdf")


def test_a_share_in_the_page_sends_two_files(monkeypatch: pytest.MonkeyPatch) -> None:
    card = bk.DesignCard("chat", window=8_192)
    sent: list[Any] = []
    monkeypatch.setattr(
        card.view, "send", lambda content, buffers=None: sent.append((content, buffers))
    )
    card._receive(card.view, {"kind": "share"}, [])
    content, buffers = next(each for each in sent if each[0]["kind"] == "shared")
    assert content["names"] == ["budget.html", "budget.svg"]
    data = re.search(r'id="bk-data">(.*?)</script>', buffers[0].decode(), re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["receipt"]["now"][0] == DEFAULT_MODEL
