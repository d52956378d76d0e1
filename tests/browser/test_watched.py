"""An explorer that follows the calls of a cell while they are watched."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Notebook
from tests.browser.explored import written

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
    lab = notebook(written(tmp_path, "explorer = bk.BudgetExplorer(window=8_192)\nexplorer"))
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
