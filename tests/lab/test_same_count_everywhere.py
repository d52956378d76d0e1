"""One model's count is the same number and the same word in every place that shows it.

Counters, requests, conversations, replays, the gate, explorers, the card, reports and tables of models each ask for a
model's counter. The best vocabulary that is installed counts in all of them; where it comes with an extra that is not
here, the same places are tried with the estimate.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

import budgetkit as bk
from budgetkit.counters import basis_for, basis_of, nearer_of, vocabularies
from budgetkit.counters.encodings import vocabulary
from budgetkit.counters.reconstructed import is_usable
from budgetkit.extras.shell.gate import check
from budgetkit.extras.shell.program import run
from budgetkit.files import read_toml
from budgetkit.lab.deciding import compare_models, solve_models
from budgetkit.lab.explorers.accuracy import charts, notices
from budgetkit.lab.explorers.reading import CheckFold

TEXT = "Zuständigkeit: def total(items): return sum(items)  您的包裹已于星期一离开仓库\n" * 20
MESSAGES = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": TEXT},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "And now?"},
]
TRACE = bk.load_trace(MESSAGES)
CLAUDES = ["claude-sonnet-4-5", "claude-opus-4-8"]
MODELS = ["gpt-4o", *CLAUDES, "deepseek-v4-flash", "qwen3-32b", "gemini-2.5-pro", "kimi-k2"]


@pytest.fixture(autouse=True)
def gemma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lay a file where Gemini's vocabulary is looked for, with its digest: nobody may ship Gemma's own."""
    folder = tmp_path / "tokenizers"
    folder.mkdir()
    path = folder / "tokenizer.model"
    path.write_bytes(vocabulary("cl100k_base"))
    rows: list[dict[str, Any]] = read_toml("vocabularies.toml")["vocabulary"]
    row = next(row for row in rows if row["name"] == "gemma3")
    monkeypatch.setitem(row, "sha256", [hashlib.sha256(path.read_bytes()).hexdigest()])
    monkeypatch.setenv(vocabularies.FOLDERS, str(folder))
    vocabularies._cached_file.cache_clear()
    vocabularies._of_file.cache_clear()


def words(sentence: str) -> set[str]:
    """Return what a sentence about a count says that the count rests on."""
    marks = {
        "exact": ("exactly with", ", the tokenizer of"),
        "reconstructed": ("reconstructed", "rebuilt"),
        "estimate": ("estimate", "stands in", "in place of"),
    }
    return {basis for basis, texts in marks.items() if any(text in sentence for text in texts)}


@pytest.mark.parametrize("model", MODELS)
def test_a_conversation_has_the_size_of_its_request_in_every_place(model: str) -> None:
    """A request costs once what is neither a message nor a tool: a table of models names the messages alone."""
    count = bk.counter(model)
    budget = bk.presets.chat(bk.model(model))
    request = bk.count_request({"model": model, "messages": MESSAGES})
    conversation = bk.Conversation("chat", model=model)
    conversation.add(MESSAGES)
    outcome = bk.replay(TRACE, budget, "oldest first", counter=count)

    sizes = {
        "conversation": conversation.request().tokens,
        "replay": int(outcome.frame()["sent"].iloc[-1]),
        "plan": bk.fit(budget, TRACE.items(2, count, budget.roles)).used,
        "explorer": bk.BudgetExplorer("chat", TRACE, model=model).plan.used,
        "card": bk.DesignCard("chat", TRACE, model=model).plan.used,
    }
    assert sizes == dict.fromkeys(sizes, request.tokens)
    of_messages = sum(row.tokens for row in request.ledger if row.message is not None)
    assert compare_models([TRACE], [model], bk.presets.chat)["largest"].tolist() == [of_messages]
    assert bk.accuracy.ways([TEXT], model)["tokens"].tolist() == [count(TEXT)]


def test_a_vocabulary_that_is_laid_down_later_counts_everywhere_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A notebook that names its folder after the first count once kept the framing of the estimate."""
    request = {"model": "gemini-2.5-pro", "messages": MESSAGES}
    folders = os.environ[vocabularies.FOLDERS]
    monkeypatch.delenv(vocabularies.FOLDERS)
    for _ in range(2):
        conversation = bk.Conversation("chat", model="gemini-2.5-pro")
        conversation.add(MESSAGES)
        assert conversation.request().tokens == bk.count_request(request).tokens
        monkeypatch.setenv(vocabularies.FOLDERS, folders)


@pytest.mark.parametrize("model", MODELS)
def test_every_place_says_what_the_count_rests_on_in_one_word(model: str) -> None:
    count = bk.counter(model)
    basis = basis_of(count)
    budget = bk.presets.chat(bk.model(model))
    assert basis_for(count, bk.model(model)) == basis

    tables = [bk.accuracy.ways([TEXT], model), compare_models([TRACE], [model], bk.presets.chat)]
    tables.append(solve_models([TRACE], [model], bk.presets.chat, "window"))
    assert [table["basis"].tolist() for table in tables] == [[basis]] * 3
    assert tables[0]["kind"].tolist() == ["estimate" if basis == "estimate" else "tokenizer"]

    # The check fails because of an estimate without a buffer, and of nothing else; no finding takes the count for one.
    checked = check(budget, traces=[TRACE], model=model)
    codes = {failure.code for failure in checked.failures} | {
        finding.code for finding in checked.findings
    }
    assert ("estimate" in codes) == (basis == "estimate")
    assert "stand-in-without-buffer" not in codes
    explorer = bk.BudgetExplorer("chat", TRACE, model=model)
    fold = CheckFold(lambda: None)
    rows = json.dumps(fold.parts(explorer.stage))
    assert ("stand-in-without-buffer" in rows) == (basis == "estimate")


@pytest.mark.parametrize("model", MODELS)
def test_every_sentence_on_a_screen_says_what_the_count_rests_on_and_how_to_get_nearer(
    model: str,
) -> None:
    count = bk.counter(model)
    basis = basis_of(count)
    nearer = nearer_of(count)
    card = bk.DesignCard("chat", TRACE, model=model).view.state
    explorer = bk.BudgetExplorer("chat", TRACE, model=model).view.state
    conversation = bk.ConversationExplorer(TRACE, model=model).view.state
    accuracy = bk.AccuracyExplorer("chars/4", ["Hello world", TEXT], model=model)
    sentences = {
        "card": card["strip"]["note"],
        "explorer": explorer["source"],
        "conversation explorer": conversation["source"],
        "accuracy explorer": " ".join(
            [notices.source(accuracy.stage), *notices.status(accuracy.stage)["more"]]
        ),
    }
    for place, sentence in sentences.items():
        assert words(sentence.replace(nearer, "") if nearer else sentence) == {basis}, place
        assert (nearer in sentence) if nearer else ("It could be" not in sentence), place

    # Chosen as the counter that is looked at, it is called an estimate where it is one.
    for name in (notices.counter_label(count), charts.short_counter_label(count)):
        assert ("estimate" in name) == (basis == "estimate")


@pytest.mark.skipif(not is_usable(), reason="ctok is not installed")
def test_an_error_held_against_claudes_tokenizer_is_not_called_about(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What was rebuilt is not an estimate of unknown width: "itself an estimate, 0 % to 0 % off" stood here once."""
    accuracy = bk.AccuracyExplorer("chars/4", ["Hello world", TEXT], model="claude-sonnet-4-5")
    more = " ".join(notices.status(accuracy.stage)["more"])
    assert "a reconstruction of its tokenizer." in more
    assert "itself an estimate" not in more
    rows = bk.DesignCard("chat", TRACE, model="claude-sonnet-4-5").view.state["strip"]["rows"]
    assert not [row["verdict"] for row in rows if row["verdict"].startswith("about")]


def test_the_shell_says_what_a_count_rests_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "request.json"
    path.write_text(
        json.dumps({"model": "claude-sonnet-4-5", "messages": MESSAGES}), encoding="utf-8"
    )
    counter = bk.counter("claude-sonnet-4-5")
    run(["count", str(path), "--as", "request"])
    line = capsys.readouterr().out.splitlines()
    request = bk.count_request(path.read_text(encoding="utf-8"))
    low, high = request.interval
    assert (
        f"{request.basis.capitalize()}, {low:,} to {high:,} tokens: counted by the {request.counted_by}."
        in line
    )
    assert not nearer_of(counter) or f"It could be {nearer_of(counter)}." in line
    run(["fit", str(path), "-m", "claude-sonnet-4-5"])
    assert f"Counted with {counter.name}." in capsys.readouterr().err
