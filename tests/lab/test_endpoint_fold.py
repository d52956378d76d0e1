"""The fold that asks a provider to count: it sends what it said, when it is pressed, and never otherwise."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from budgetkit.extras.endpoints import ENDPOINTS
from budgetkit.lab.explorers.accuracy import AccuracyExplorer
from budgetkit.lab.explorers.accuracy.endpoint_fold import MOST_TEXTS
from budgetkit.lab.explorers.reach import Reach
from tests.extras.test_endpoints import Provider
from tests.extras.test_endpoints import provider as provider

TEXTS = [f"{'word ' * number}end" for number in range(1, 31)]
MAKERS = ("openai", "anthropic", "gemini")


@pytest.fixture
def explorer(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AccuracyExplorer:
    """An explorer whose providers all are a server of this machine, with the fold open; there is no key."""
    local = {}
    for name, endpoint in ENDPOINTS.items():
        monkeypatch.delenv(endpoint.key, raising=False)
        path = endpoint.url.partition("//")[2].partition("/")[2]
        local[name] = replace(endpoint, url=f"{provider.url}/{path}")
    monkeypatch.setattr("budgetkit.extras.endpoints.asking.ENDPOINTS", local)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    made = AccuracyExplorer("chars/4", TEXTS)
    made.view.opened = ["endpoint"]
    return made


def tell(explorer: AccuracyExplorer, **event: str) -> None:
    """Do what a hand does in the fold."""
    explorer._heard(explorer.view, {"kind": "fold", "fold": "endpoint", **event}, [])


def parts(explorer: AccuracyExplorer, kind: str) -> list[dict[str, Any]]:
    """Return the parts of one kind, as the page has them."""
    (fold,) = explorer.view.folds
    return [part for part in fold["parts"] if part["is"] == kind]


def rows(explorer: AccuracyExplorer) -> list[dict[str, str]]:
    """Return the ways of counting."""
    table: list[dict[str, str]] = parts(explorer, "rows")[0]["rows"]
    return table


def answered(explorer: AccuracyExplorer) -> None:
    """Wait until the provider has answered."""
    end = time.monotonic() + 30
    while parts(explorer, "progress"):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_three_ways_stand_side_by_side_with_their_cost_and_use(explorer: AccuracyExplorer) -> None:
    """000: approximate, the provider's tokenizer, the provider's endpoint, and when to use each."""
    estimate, exact, endpoint = rows(explorer)
    assert estimate["text"].startswith("chars/4: ") and "next to nothing" in estimate["note"]
    assert exact["text"].startswith("o200k_base: ") and "on this machine" in exact["note"]
    assert endpoint["text"] == "a provider's count endpoint: nobody was asked"
    assert "a call over the network" in endpoint["note"] and "never in a loop" in endpoint["note"]


def test_nothing_is_sent_before_the_button_is_pressed(
    explorer: AccuracyExplorer, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    tell(explorer, send="openai")  # no provider is chosen yet
    tell(explorer, provider="openai")
    explorer.controls.risk.value = 0.1
    tell(explorer)
    tell(explorer, send="anthropic")  # another one than the one that was offered
    (button,) = parts(explorer, "button")
    assert button["tells"] == {"send": "openai"}
    assert provider.asked == []


@pytest.mark.parametrize("maker", MAKERS)
def test_a_press_sends_what_was_said_and_shows_the_count_beside_the_others(
    explorer: AccuracyExplorer, provider: Provider, monkeypatch: pytest.MonkeyPatch, maker: str
) -> None:
    endpoint = ENDPOINTS[maker]
    monkeypatch.setenv(endpoint.key, "secret-key")
    tell(explorer, provider=maker)
    offer = parts(explorer, "text")[-1]["text"]
    assert f"{MOST_TEXTS} texts" in offer
    assert endpoint.provider in offer and "gpt-4o" in offer and endpoint.key in offer
    tell(explorer, send=maker)
    answered(explorer)
    assert rows(explorer)[-1]["text"].startswith(f"{maker}'s count endpoint: ")
    # And one that says what a request costs without a text.
    assert len(provider.asked) == MOST_TEXTS + 1
    fold: Any = explorer._folds._made["endpoint"]
    words = sum(len(text.split()) for text in fold._request.sample.texts)
    assert f"{words:,} tokens" in rows(explorer)[-1]["text"]

    tell(explorer, send=maker)  # answers are kept
    answered(explorer)
    assert len(provider.asked) == MOST_TEXTS + 1


def test_sliders_move_while_a_provider_is_slow(
    explorer: AccuracyExplorer, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    provider.delay = 0.5
    tell(explorer, provider="openai")
    tell(explorer, send="openai")
    assert "Asking openai about 20 texts" in parts(explorer, "progress")[0]["text"]
    explorer.controls.risk.value = 0.2
    assert explorer.settings.risk == 0.2
    assert parts(explorer, "progress")
    answered(explorer)


def test_without_a_key_one_sentence_says_what_is_missing(
    explorer: AccuracyExplorer, provider: Provider
) -> None:
    tell(explorer, provider="anthropic")
    assert parts(explorer, "text")[-1]["text"] == (
        "ANTHROPIC_API_KEY is not set; put your key into that environment variable"
    )
    assert parts(explorer, "button") == []
    tell(explorer, send="anthropic")
    assert provider.asked == []


def test_a_refusal_is_a_sentence_and_the_explorer_goes_on(
    explorer: AccuracyExplorer, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    provider.refuse = (401, {}, {"error": {"message": "bad key secret-key"}})
    tell(explorer, provider="openai")
    tell(explorer, send="openai")
    answered(explorer)
    problem = parts(explorer, "text")[-1]
    assert problem["level"] == "error"
    assert "it refused the key" in problem["text"] and "secret-key" not in problem["text"]
    assert len(rows(explorer)) == 3
    assert parts(explorer, "button")


def test_without_the_extra_the_other_ways_are_still_compared(
    explorer: AccuracyExplorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Any:
        raise ImportError('asking a provider needs httpx; pip install "budgetkit[endpoints]"')

    monkeypatch.setattr("budgetkit.lab.explorers.accuracy.endpoint_fold.import_module", missing)
    tell(explorer, provider="openai")
    assert "budgetkit[endpoints]" in parts(explorer, "text")[-1]["text"]
    assert len(rows(explorer)) == 3


def test_a_served_app_asks_nobody(
    explorer: AccuracyExplorer, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has the page would spend the key of whoever started the server."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    explorer.reach = Reach()
    tell(explorer, provider="openai")
    tell(explorer, send="openai")
    assert "no text is sent to a provider" in explorer.status
    assert provider.asked == []
