"""The script that compares the table of models with the registries that are installed."""

from importlib.metadata import PackageNotFoundError, version

import pytest

import budgetkit as bk
from scripts import compare_models

#: What the registries of these versions say otherwise, read on 2026-11-26, and why the table's own holds.
KNOWN = {
    ("genai-prices", "0.2.3"): """
        gpt-4.1.window gpt-4.1-mini.window gpt-4.1-nano.window gpt-5.5.window gpt-5.5-pro.window
        gemini-2.5-flash-lite.window gemini-3-flash-preview.window gemini-3.1-flash-lite.window gemini-3.5-flash.window
        gemini-3.5-flash-lite.window gemini-3.6-flash.window gemini-3.7-flash.window gemini-3.8-flash.window
        glm-5.3-flash.window gpt-4-32k.window
        gemini-2.5-flash-image.window deepseek-chat.window deepseek-reasoner.window""",
    ("litellm", "1.110.2"): """
        gemini-4-argon.max_output codestral-latest.window codestral-2508.window MiniMax-M2.window
        MiniMax-M2.max_output MiniMax-M2.1.window
        MiniMax-M2.1.max_output deepseek-v3.2.window deepseek-v3.2.max_output""",
}


@pytest.mark.parametrize(("registry", "release"), KNOWN)
def test_the_table_differs_from_registries_only_as_listed(registry: str, release: str) -> None:
    try:
        installed = version(registry)
    except PackageNotFoundError:
        pytest.skip(f"{registry} is not installed")
    if installed != release:
        pytest.skip(f"the table was compared with {registry} {release}, installed is {installed}")
    found = [each for each in compare_models.differences() if each.registry.startswith(registry)]
    known = KNOWN[registry, release].split()
    assert sorted(f"{each.row.name}.{each.field}" for each in found) == sorted(known)
    assert all(each.row.date in str(each) and release in str(each) for each in found)


def test_a_window_with_or_without_the_answer_is_one_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPT-5 is 272,000 for the prompt and 400,000 in all."""
    row = bk.model("gpt-5", ends="")
    entries = {"gpt-5": {"max_input_tokens": row.total, "max_output_tokens": 64_000}}
    monkeypatch.setattr(compare_models, "version", lambda _: "1.0")
    (difference,) = compare_models._with_litellm(row, entries)
    assert str(difference).startswith("gpt-5: max_output 128,000 (litellm")
    assert str(difference).endswith("64,000 in litellm 1.0, gpt-5")
