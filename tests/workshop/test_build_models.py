"""The script that updates data/models.csv: it prints the windows on which two registries disagree."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "build_models.py"
WINDOWS = {"gpt-4o": 64_000, "gpt-5": 400_000, "gpt-4.1": 1_047_576, "gpt-4.1-mini": 9}


def find_provider_model(name: str, *_: object) -> tuple[Any, Any]:
    """Answer as genai-prices does, whose gpt-4.1-mini stands for a family here."""
    if name not in WINDOWS:
        raise LookupError(name)
    entry = name.replace("-mini", "-family")
    return SimpleNamespace(id="openai"), SimpleNamespace(id=entry, context_window=WINDOWS[name])


@pytest.mark.parametrize(
    ("name", "kind", "window", "max_output", "sentence"),
    [
        (
            *("gpt-4o", "shared", 128_000),
            *(
                16_384,
                "gpt-4o: 128,000 tokens (litellm), but 64,000 in genai-prices, openai/gpt-4o.",
            ),
        ),
        ("gpt-5", "input", 272_000, 128_000, ""),  # 400,000 with the answer: one fact
        ("gpt-4.1", "shared", 1_047_576, "", ""),
        ("gpt-4.1-mini", "shared", 1_047_576, 32_768, ""),
        ("unknown", "shared", 8_192, "", ""),
    ],
)
def test_a_window_on_which_two_registries_disagree_is_printed_with_both_sources(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: str,
    window: int,
    max_output: int | str,
    sentence: str,
) -> None:
    spec = spec_from_file_location("build_models", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    registry = SimpleNamespace(find_provider_model=find_provider_model)
    monkeypatch.setattr(script, "get_snapshot", lambda: registry)
    row = {
        "name": name,
        "window": window,
        "kind": kind,
        "max_output": max_output,
        "source": "litellm",
    }
    assert script.conflict(row) == sentence
