"""Playing a conversation in the explorer: two policies side by side, from numbers that are sent once."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Notebook
from tests.browser.explored import written
from tests.browser.test_report import COUNT_FRAMES

CELL = """explorer = bk.ConversationExplorer("support-chat", window=6_000, policies=["oldest first", "summarise"])
explorer"""


def test_it_is_sent_once_plays_smoothly_and_takes_the_explorer_along(
    notebook: Callable[[Path], Notebook], tmp_path: Path
) -> None:
    lab = notebook(written(tmp_path, CELL))
    lab.page.evaluate("jupyterapp.shell.collapseLeft()")
    lab.run_all()
    page = lab.page
    card = page.locator(".bk-play")
    card.scroll_into_view_if_needed()
    expect(card.locator(".bk-play-range")).to_be_hidden()
    lab.wait_for_charts(6)
    page.evaluate(COUNT_FRAMES)
    card.get_by_role("button", name="Play").click()
    expect(card.locator(".bk-play-where")).to_contain_text("turn 5 of 75")
    expect(card.locator(".bk-lane")).to_have_count(2)
    card.get_by_role("button", name="Pause").click()
    frames = sorted(set(page.evaluate("window.drawn")))
    gaps = sorted(
        later - earlier
        for earlier, later in zip(frames, frames[1:], strict=False)
        if later - earlier > 2
    )
    print(
        f"{len(gaps)} frames, median {gaps[len(gaps) // 2]:.1f} ms, 95 in 100 under {gaps[int(len(gaps) * 0.95)]:.1f}"
    )
    assert gaps[len(gaps) // 2] < 25
    card.locator(".bk-play-range").fill("60")
    expect(page.locator(".bk-kpi[data-key=now] span")).to_have_text("sent at turn 60")
    expect(card.locator(".bk-lane-told").first).to_contain_text("sent;")
    lab.shoot("play")
    assert lab.violations(".bk-play") == []
    lab.set_theme("dark")
    lab.resize(640)
    card.scroll_into_view_if_needed()
    lab.shoot("play-640-dark")
    assert lab.violations(".bk-play") == []
    assert card.evaluate("card => card.scrollWidth <= card.clientWidth")
    lab.execute("explorer.undo(); assert explorer.config['turn'] != 60")


WATCHED = """import time
from types import SimpleNamespace as Object
answer = {"choices": [{"message": {"role": "assistant", "content": "word " * 200}}], "usage": {"prompt_tokens": 9}}
client = Object(chat=Object(completions=Object(create=lambda **asked: answer)))
said = [{"role": "user", "content": "Hello"}]
with bk.watch(client, explorer=explorer) as watched:
    for turn in range(12):
        client.chat.completions.create(model="gpt-4o", messages=said)
        said += [answer["choices"][0]["message"], {"role": "user", "content": f"Question {turn}"}]
        time.sleep(0.5)
assert watched.refused == [], watched.refused"""


def test_the_bar_grows_while_the_calls_of_a_cell_are_watched(
    notebook: Callable[[Path], Notebook], tmp_path: Path
) -> None:
    cell = CELL.replace(
        'ConversationExplorer("support-chat", window=6_000, policies=["oldest first", "summarise"])',
        "BudgetExplorer(window=8_192)",
    )
    lab = notebook(written(tmp_path, cell))
    lab.run_all()
    page = lab.page
    expect(page.locator(".bk-kpi[data-key=pool]")).to_be_visible()
    page.evaluate(
        """code => {
            const source = document.querySelector(".bk-source");
            window.seen = [];
            const note = () => window.isDone || window.seen.push(source.textContent);
            new MutationObserver(note).observe(source, { characterData: true, childList: true, subtree: true });
            jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.requestExecute({ code }).done.then(
                reply => { window.isDone = reply.content.status; });
        }""",
        WATCHED,
    )
    page.wait_for_function("window.isDone")
    assert page.evaluate("window.isDone") == "ok"
    expect(page.locator(".bk-source")).to_contain_text("watched-1, 24 messages: turn 12 of 12")
    grown = [text for text in page.evaluate("window.seen") if text.startswith("watched-1, ")]
    assert len(set(grown)) >= 4, "it has grown while the cell ran"
    lab.shoot("watched")
