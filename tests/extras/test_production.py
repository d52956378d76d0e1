"""The how-to page "From the notebook to production", run: notebook, application and tests, each where it belongs."""

import doctest
import json
import re
import tempfile
from pathlib import Path

import pytest

import budgetkit as bk
from budgetkit import policies
from tests.core.test_live import again
from tests.extras.test_gate import run_pytest
from tests.workshop.test_packaging import core, run, wheel

__all__ = ["core", "wheel"]  # fixtures

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "notebook-to-production.md").read_text(
    encoding="utf-8"
)
CODE = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
NOTEBOOK = "\n".join(block for block in CODE if block.startswith(">>>"))
APPLICATION, PROJECT = (block for block in CODE if not block.startswith(">>>"))

# A model that says what was recorded, and the conversation taken up by another process every 50 requests.
BEFORE = """
import json
from types import SimpleNamespace as Any

said, tools, ends = json.load(open("recorded.json", encoding="utf-8"))
"""
AFTER = """
done = 0
for number, end in enumerate(ends):
    answer = Any(choices=[Any(message=said[end])] if end < len(said) else [])
    client = Any(chat=Any(completions=Any(create=lambda **request: answer)))
    if number % 50 == 49:
        talk = bk.Conversation.from_json(talk.to_json(), bk.policies.TriggerTarget(), "gpt-5.4")
    turn(client, *said[done:end])
    done = end + 1
"""


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the notebook's part in a folder, and give the folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    test = doctest.DocTestParser().get_doctest(NOTEBOOK, {}, "notebook", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0
    return tmp_path


def test_the_application_has_the_core_alone_and_the_numbers_of_the_replay(
    saved: Path, core: Path
) -> None:
    """300 recorded requests in an environment into which nothing but the core is installed."""
    once = bk.load_trace("coding-agent")
    rounds = [again(m.raw, number) for number in range(4) for m in once.messages[min(number, 1) :]]
    trace = bk.Trace("four times", tuple(map(bk.Message, rounds)), once.tools)
    budget = bk.state.from_json((saved / "budget.json").read_text(encoding="utf-8"))
    assert isinstance(budget, bk.Budget)
    assert budget.caps["system"] == 2_000
    policy = policies.TriggerTarget()
    outcome = bk.replay(
        trace, budget, policy, counter=bk.counter("gpt-5.4"), by="request", start_on="user"
    )
    ends = [request.sent for request in outcome.placed.requests][:300]
    assert len(ends) == 300
    recorded = [rounds, list(map(dict, once.tools)), ends]
    (saved / "recorded.json").write_text(json.dumps(recorded), encoding="utf-8")
    printed = run(core, "-I", "-W", "error", "-c", BEFORE + APPLICATION + AFTER, cwd=saved)
    frame = outcome.frame()[:300]
    columns = (frame[name].tolist() for name in ("sent", "history", "dropped_messages"))
    assert [tuple(map(int, line.split())) for line in printed.splitlines()] == [
        *zip(*columns, strict=True)
    ]
    assert frame["dropped_messages"].sum() > 0


def test_the_gate_opens_and_closes(saved: Path) -> None:
    (saved / "prompt.txt").write_text("Work step by step.", encoding="utf-8")
    assert "1 passed" in run_pytest(saved, PROJECT)
    (saved / "prompt.txt").write_text("Work step by step. " * 500, encoding="utf-8")
    said = run_pytest(saved, PROJECT)
    assert "1 failed" in said
    assert "above its cap (2,000)" in said
