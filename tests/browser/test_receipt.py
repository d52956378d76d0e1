"""A receipt opened from a file, with the network off: model, window and reserve move over stored answers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

import budgetkit as bk
from tests.browser.conftest import PATIENCE

#: Sets every model, window and reserve by hand, and reads what stands there.
READ_ALL = """() => {
    const [model, size, reserve] = document.querySelectorAll(".bk-receipt-controls :is(select, input[type=range])");
    const set = (node, value) => {
        node.value = value;
        for (const name of ["input", "change"]) node.dispatchEvent(new Event(name, { bubbles: true }));
    };
    const text = (selector) => document.querySelector(selector)?.textContent ?? "";
    const points = [];
    for (const { value } of model.options) {
        set(model, value);
        for (let window_ = 0; window_ <= Number(size.max); window_++) {
            set(size, window_);
            for (let part = 0; part <= Number(reserve.max); part++) {
                set(reserve, part);
                points.push({
                    point: document.getElementById("bk-receipt").dataset.point,
                    pool: text(".bk-kpi[data-key=pool] b"),
                    history: text(".bk-kpi[data-key=remainder] b"),
                    planned: text(".bk-scale b"),
                    window: size.parentNode.querySelector(".bk-share").textContent,
                });
            }
        }
    }
    return points;
}"""


def answer(name: str) -> bk.Plan:
    """Plan one point with nothing but the kit."""
    model_name, window, reserve = name.split("|")
    budget = bk.presets.chat(replace(bk.model(model_name), window=int(window), max_output=None))
    if reserve != "as set":
        budget = budget.assign(output=bk.Share(f"0.{int(reserve.removesuffix(' %')):02}"))
    return bk.allocate(budget, bk.presets.PRESETS["chat"].demand)


@pytest.mark.parametrize("width", [390, 1_200])
def test_every_point_of_a_receipt_is_what_allocate_says(
    chromium: Browser, tmp_path: Path, width: int
) -> None:
    path = tmp_path / "receipt.html"
    bk.DesignCard("chat", window=8_192).share(path)
    context = chromium.new_context(viewport={"width": width, "height": 900}, offline=True)
    context.set_default_timeout(1_000 * PATIENCE)
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(path.as_uri())
    expect(page.locator(".bk-kpi[data-key=pool] b")).to_have_text("1,640")

    points: list[dict[str, Any]] = page.evaluate(READ_ALL)
    assert len({each["point"] for each in points}) > 100
    for each in points:
        plan = answer(each["point"])
        assert each["pool"] == f"{plan.budget.shared_pool:,}"
        assert each["history"] == f"{plan.remainder:,}"
        assert each["planned"] == f"planned {plan.remainder:,}"
        window = f"{plan.budget.window:,}"
        assert each["window"] == window or each["window"].startswith(f"{window} ("), (
            "it snaps, and says so"
        )

    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = (
        Axe()
        .run(page, options={"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa"]}})
        .response
    )
    assert [each["id"] for each in found["violations"]] == []
    assert complaints == []
    context.close()
