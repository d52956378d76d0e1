"""The model table, and the four routes from a name to a model."""

import datetime
import time
import warnings
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

import budgetkit as bk
from budgetkit.counters import encoding_names
from budgetkit.lab.app.sides import MAKERS
from budgetkit.models import Model, RetiredModelWarning, UnknownModelWarning, model, models, resolve
from budgetkit.models.names import family_encoding, nearest_names
from budgetkit.requests import image_price

DOCUMENT_001 = {
    "gpt-4o": 128_000,
    "gpt-4o-mini": 128_000,
    "gpt-4-turbo": 128_000,
    "gpt-4": 8_192,
    "gpt-3.5-turbo": 16_385,
    "gpt-3.5-turbo-16k": 16_385,
}


@pytest.mark.parametrize(("name", "window"), DOCUMENT_001.items())
def test_the_six_models_of_document_001_keep_its_windows(name: str, window: int) -> None:
    assert model(name, unknown="raise").window == window


def test_a_shared_window_holds_prompt_and_answer_an_input_window_the_prompt_alone() -> None:
    shared, separate = model("gpt-4o"), model("gpt-5")
    assert (shared.kind, shared.window, shared.max_output, shared.total) == (
        *("shared", 128_000, 16_384, 128_000),
    )
    assert (separate.kind, separate.window, separate.max_output) == ("input", 272_000, 128_000)
    assert separate.total == 400_000


def test_the_table_has_the_models_of_fifteen_providers() -> None:
    assert len(models()) >= 170
    assert {known.provider for known in models()} == {
        "OpenAI", "Anthropic", "Google", "DeepSeek", "Mistral", "Meta", "Qwen", "xAI",
        "Moonshot", "Z.ai", "MiniMax", "Xiaomi", "Amazon", "Inception", "Cohere",
    }  # fmt: skip


@pytest.mark.parametrize("known", models(), ids=lambda known: known.name)
def test_every_row_names_its_source_its_date_and_an_encoding_that_is_shipped(known: Model) -> None:
    assert known.source
    assert datetime.date.fromisoformat(known.date) <= datetime.date.today()
    assert known.encoding in encoding_names()
    assert known.max_output is None or known.max_output > 0


def test_names_are_listed_once() -> None:
    names = [known.name.casefold() for known in models()]
    assert len(set(names)) == len(names)


def test_an_encoding_is_a_models_own_exactly_where_tiktokens_table_says_so() -> None:
    from tiktoken.model import encoding_name_for_model

    # The release that the table was written from.
    older = Version(version("tiktoken")) < Version("0.14")
    for known in models():
        try:
            expected = (known.encoding, known.encoding_is_own)
            assert (encoding_name_for_model(known.name), True) == expected
        except KeyError:
            of_family = family_encoding(known.name)[1]
            assert older or known.encoding_is_own == of_family, known.name


def test_a_known_framing_is_the_one_that_framing_gives() -> None:
    """The table says that OpenAI's rules are known; which of its families' is decided by the name."""
    from budgetkit.requests import FRAMINGS, framing_for

    framed = [known for known in models() if known.framing]
    assert {known.provider for known in framed} == {"OpenAI"}
    own = {framing.source for name, framing in FRAMINGS.items() if name.startswith("openai")}
    assert {framing_for(known.name).source.partition(":")[2] for known in framed} == {
        source.partition(":")[2] for source in own
    }


def test_current_claude_models_are_counted_with_a_stand_in() -> None:
    assert not any(known.encoding_is_own for known in models() if known.provider == "Anthropic")


def test_the_exact_name_comes_first() -> None:
    assert model("gpt-4o").provenance == "exact name gpt-4o"


@pytest.mark.parametrize("name", ["GPT-4o", " gpt-4o\n"])
def test_the_case_and_blanks_around_do_not_matter(name: str) -> None:
    assert model(name) == model("gpt-4o")


@pytest.mark.parametrize("name", ["openai/gpt-4o", "openrouter/openai/gpt-4o"])
def test_a_path_changes_nothing_but_the_name_which_says_who_passes_requests_on(name: str) -> None:
    assert model(name) == replace(model("gpt-4o"), name=name)


@pytest.mark.parametrize(
    ("name", "encoding", "is_own"),
    [
        ("chatgpt-4o-latest", "o200k_base", True),
        ("gpt-4.5-preview", "o200k_base", True),
        ("gpt-audio", "o200k_base", True),
        ("gpt-3.5-0301", "cl100k_base", True),
        ("gpt-6-omega", "o200k_base", True),
    ],
)
def test_an_unlisted_model_has_its_familys_encoding(name: str, encoding: str, is_own: bool) -> None:
    """A plan counted these with cl100k_base, the bill of the same request with o200k_base."""
    known = resolve(name)
    assert (known.encoding, known.encoding_is_own) == (encoding, is_own)


def test_the_notice_of_an_unknown_model_names_the_encoding_that_stands_in() -> None:
    assert "8,192 tokens and o200k_base are assumed" in resolve("gpt-9").notice
    assert "8,192 tokens and cl100k_base are assumed" in resolve("nobody-knows").notice


@pytest.mark.parametrize(
    ("name", "prefix", "window"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o", 128_000),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini", 128_000),
        ("gpt-5.4-mini-2026-03-17", "gpt-5.4-mini", 272_000),
        ("claude-opus-4-5-20251101", "claude-opus-4-5", 200_000),
        ("anthropic/claude-opus-4-6-20260205", "claude-opus-4-6", 1_000_000),
    ],
)
def test_then_the_longest_prefix_that_ends_at_a_hyphen(name: str, prefix: str, window: int) -> None:
    found = model(name, unknown="raise")
    assert found.name == name
    assert found.window == window
    assert found.provenance.startswith(f"prefix {prefix} of ")


@pytest.mark.parametrize(
    ("name", "window", "shorter"),
    [
        ("o1-preview", 128_000, "o1"),
        ("o1-preview-2024-09-12", 128_000, "o1"),
        ("gpt-4o-realtime-preview", 32_000, "gpt-4o"),
        ("gpt-4o-mini-realtime-preview-2024-12-17", 16_000, "gpt-4o-mini"),
        ("gpt-4o-transcribe", 16_000, "gpt-4o"),
        ("gpt-4-vision-preview", 128_000, "gpt-4"),
        ("gpt-5-chat", 128_000, "gpt-5"),
        ("gpt-5.1-chat", 111_616, "gpt-5.1"),
        ("gemini-2.5-flash-preview-tts", 8_192, "gemini-2.5-flash"),
        ("gemini-2.5-flash-image", 65_536, "gemini-2.5-flash"),
    ],
)
def test_a_variant_with_another_window_has_a_row(name: str, window: int, shorter: str) -> None:
    """As a prefix its family's name would pass on a window that it does not have."""
    assert model(name, unknown="raise").window == window != model(shorter).window


def test_what_genai_prices_alone_knows_is_the_number_that_it_gives() -> None:
    """Rows taken from there carry its version, and agree with it as long as that version is installed."""

    from genai_prices.data_snapshot import get_snapshot

    taken = [known for known in models() if known.source.startswith("genai-prices")]
    assert {"gpt-4-vision-preview", "gpt-4o-realtime-preview"} < {known.name for known in taken}
    for known in taken:
        release, _, place = known.source.removeprefix("genai-prices ").partition(", ")
        if release == version("genai-prices"):
            _, entry = get_snapshot().find_provider_model(
                known.name, None, place.partition("/")[0], None
            )
            assert (entry.id, entry.context_window) == (place.partition("/")[2], known.window)


def test_a_prefix_ends_at_a_hyphen_and_nowhere_else() -> None:
    with pytest.warns(UnknownModelWarning):
        assert model("gpt-4oracle").window == 8_192


def test_then_genai_prices_whose_version_is_named() -> None:
    found = model("grok-2-1212", unknown="raise")
    assert (found.window, found.kind, found.encoding_is_own) == (32_768, "shared", False)
    assert found.provenance.startswith("genai-prices 0.")
    assert found.provenance.endswith("x-ai/grok-2-1212")


def test_then_a_default_that_warns_and_says_what_it_fell_back_to() -> None:
    warning = "Unknown model 'nobody-knows': .*8,192 tokens and cl100k_base are assumed"
    with pytest.warns(UnknownModelWarning, match=warning):
        found = model("nobody-knows")
    assert (found.window, found.encoding, found.encoding_is_own) == (8_192, "cl100k_base", False)
    assert found.provenance == "default: a window of 8,192 tokens and cl100k_base are assumed"


def test_or_an_error_that_says_what_to_do() -> None:
    refusal = r"Unknown model 'nobody-knows'. Choose one of the models in .*, or describe yours"
    with pytest.raises(ValueError, match=refusal):
        model("nobody-knows", unknown="raise")


def test_what_is_known_better_overrides_and_provenance_says_so() -> None:
    found = model("gpt-4o", window=64_000)
    assert (found.window, found.max_output) == (64_000, 16_384)
    assert found.provenance == "exact name gpt-4o; window overridden"


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        ({"window": 0}, ValueError, "Invalid window of .*: 0. Use 1 or more"),
        ({"window": -1}, ValueError, "Invalid window.*: -1. Use 1 or more"),
        ({"window": 8192.5}, TypeError, "Invalid window.*: 8192.5. Expected a whole number"),
        ({"window": 4_096}, ValueError, "max_output of .* .16,384. exceeds its window .4,096.. Lower max_output"),
        ({"kind": "usable"}, ValueError, "Invalid kind of .*: 'usable'. Choose one of: 'shared', 'input"),
        (
            {"windows": 4_096},
            TypeError,
            "Unknown model field 'windows'. Did you mean 'window'. Choose one of: 'name', 'window'",
        ),
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_is_an_error_in_three_parts(
    overrides: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        model("gpt-4o", **overrides)


@pytest.mark.parametrize("name", ["", "  ", None])
def test_no_name_is_no_unknown_model(name: Any) -> None:
    with pytest.raises(ValueError, match="Invalid model: .* Expected a name, such as 'gpt-5.4'"):
        model(name)


def test_unknown_takes_two_values() -> None:
    refusal = "Invalid unknown: 'guess'. Choose one of: 'default', 'raise"
    with pytest.raises(ValueError, match=refusal):
        model("gpt-4o", unknown="guess")  # type: ignore[arg-type]


@given(st.sampled_from(models()), st.from_regex(r"[a-z][a-z0-9]{1,8}", fullmatch=True))
def test_an_unknown_suffix_is_not_taken_for_the_shorter_name(known: Model, suffix: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = model(f"{known.name}-{suffix}")
    said = [str(warning.message) for warning in caught]
    if found.provenance.startswith("default"):
        assert any("assumed" in sentence for sentence in said)
        assert not any("those it had" in sentence for sentence in said)
    else:
        assert found.provenance.startswith(("exact name", "genai-prices", "prefix"))


def test_a_neighbour_of_a_listed_name_is_unknown_or_says_whose_numbers_it_has() -> None:
    """gpt-5.6-sol-pro took the window of a router and the encoding of gpt-5.6-sol without a word of the second."""
    names = [
        f"{name}-{suffix}"
        for name in (
            "gpt-5.6-sol", "gpt-6-astra", "claude-opus-4-7", "gemini-3.5-flash", "kimi-k2.6",
        )
        for suffix in ("pro", "ultra", "next", "quantum", "mini", "max", "lite")
    ]  # fmt: skip
    names += [
        "gpt-5.9",
        "gpt-6.2-sol",
        "claude-opus-4-9",
        "claude-sonnet-5.6",
        "gemini-3.9-flash",
        "kimi-k2.8",
        "glm-5.4",
    ]
    for name in names:
        facts, prices = resolve(name), bk.cost.prices(name)
        if facts.is_known:
            assert "exact name" in facts.provenance or facts.source in facts.provenance
        if name.startswith(("gpt-5.6-", "gpt-6-")):
            assert not facts.encoding_is_own
            assert (
                f"{facts.encoding} as for" in facts.provenance or "are assumed" in facts.provenance
            )
        if not facts.is_known:
            assert f"Unknown model '{name}'" in facts.notice
            assert prices.input is None or f"'{name}' has no price of its own" in prices.source
        assert ":" not in facts.name
    assert resolve("gpt-5.6-sol-pro").provenance.endswith("; o200k_base as for gpt-5.6-sol")
    assert resolve("gpt-6-astra-pro").name == "gpt-6-astra-pro"  # not the batch that a router sells


def test_a_session_of_a_neighbour_says_that_its_price_is_anothers() -> None:
    def unpriced(model: str) -> str:
        request = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
        answer = {"content": [{"type": "text", "text": "ok"}], "role": "assistant"}
        answer["usage"] = {"input_tokens": 9, "output_tokens": 1}  # type: ignore[assignment]
        return bk.Session(bk.load_trace({"request": request, "response": answer})).unpriced

    assert unpriced("claude-opus-4-7-lite") == (
        "Not in the cost: the price of 'claude-opus-4-7-lite' itself."
    )
    for name in ("claude-opus-4-7", "us.anthropic.claude-haiku-4-5-20251001-v1%3A0", "gpt-4o"):
        assert unpriced(name) == ""


SPELLINGS = {
    "claude-opus-4-8": """
        claude-opus-4-8[1m] anthropic/claude-opus-4.8 anthropic/claude-4.8-opus-20260528 claude-4.8-opus-high-thinking
        claude-opus-4-8@20260528 vertex_ai/claude-opus-4-8@default anthropic.claude-opus-4-8-v1:0
        us.anthropic.claude-opus-4-8-20260528-v1:0 global.anthropic.claude-opus-4-8-v1 databricks-claude-opus-4-8
        arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-8-v1:0
        openrouter/anthropic/claude-opus-4.8:thinking claude-opus-4-8-latest anthropic--claude-4.8-opus
        publishers/anthropic/models/claude-opus-4-8 claude-opus-4-8-fast anthropic/claude-opus-4.8-fast""",
    "claude-opus-5": "anthropic/claude-opus-5-fast",
    "claude-opus-4": """
        claude-opus-4@20250514 claude-opus-4-20250514 anthropic.claude-opus-4-20250514-v1:0 claude-4-opus""",
    "claude-3-7-sonnet": """
        claude-3-7-sonnet-20250219 claude-3-7-sonnet-latest claude-3-7-sonnet@20250219
        anthropic/claude-3.7-sonnet:thinking us.anthropic.claude-3-7-sonnet-20250219-v1:0 claude-sonnet-3.7""",
    "gpt-3.5-turbo": "azure/gpt-35-turbo-0125 gpt-35-turbo-0125",
    "gpt-4.1-mini": "azure/gpt-4.1-mini-2025-04-14 gpt-4-1-mini openai/gpt-4.1-mini:online gpt_4.1_mini",
    "gpt-5.1-codex": "openai/gpt-5.1-codex gpt-5.1-codex-high gpt-5.1-codex-xhigh",
    "gpt-6-sol": "us.openai.gpt-6-sol databricks-gpt-6-sol azure/gpt-6-sol-2026-09-22 gpt-6-sol-low",
    "gpt-oss-120b": """
        openai/gpt-oss-120b:free groq/openai/gpt-oss-120b accounts/fireworks/models/gpt-oss-120b gpt-oss:120b
        openai/gpt-oss-120b:cerebras @cf/openai/gpt-oss-120b openai.gpt-oss-120b-1:0""",
    "gemini-2.5-flash": """
        gemini-2.5-flash-preview-09-2025 gemini-2.5-flash-preview-05-20 google/gemini-2.5-flash:nitro
        publishers/google/models/gemini-2.5-flash gemini-2.5-flash-001 models/gemini-2.5-flash""",
    "gemini-3.1-pro-preview": "gemini-3.1-pro google/gemini-3.1-pro-preview gemini-3.1-pro-preview-02-2026",
    "DeepSeek-V3.1": "accounts/fireworks/models/deepseek-v3p1 deepseek-ai/DeepSeek-V3.1 deepseek/deepseek-v3.1:free",
    "kimi-k2.6": "accounts/fireworks/models/kimi-k2p6 moonshotai/Kimi-K2.6 moonshotai/kimi-k2.6:exacto kimi-k2.6:cloud",
    "glm-4.6": "accounts/fireworks/models/glm-4p6 z-ai/glm-4.6:free zai-org/GLM-4.6-FP8",
    "Llama-3.3-70B-Instruct": """
        meta-llama/llama-3.3-70b-instruct:free accounts/fireworks/models/llama-v3p3-70b-instruct llama3.3:70b
        groq/llama-3.3-70b-versatile us.meta.llama3-3-70b-instruct-v1:0""",
    "grok-4.5": "xai/grok-4.5-latest x-ai/grok-4.5 x-ai/grok-4.5:free",
    "mistral-large-latest": "mistral/mistral-large mistral-large",
    "MiniMax-M2.5": "minimax/MiniMax-M2.5",
}


@pytest.mark.filterwarnings("ignore::budgetkit.models.RetiredModelWarning")
@pytest.mark.parametrize(
    ("name", "listed"),
    [(name, listed) for listed, names in SPELLINGS.items() for name in names.split()],
)
def test_any_clouds_or_routers_spelling_is_the_same_model(name: str, listed: str) -> None:
    """A suffix went by genai-prices, which knows no longest answer, or was a model of 8,192 tokens."""
    told: dict[str, Any] = {"name": "", "provenance": ""}
    assert replace(bk.model(name, unknown="raise"), **told) == replace(bk.model(listed), **told)
    same = ("tokenizer", "openai_family", "cache")
    one, other = resolve(name), resolve(listed)
    assert [getattr(one, field) for field in same] == [getattr(other, field) for field in same]
    assert image_price(name, 4_000, 2_500) == image_price(listed, 4_000, 2_500)


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("gpt-5.9", 8_192),
        ("claude-opus-4-9", 8_192),
        ("deepseek-v5", 8_192),
        ("gpt-4.7-preview", 8_192),
        ("gpt-4-omega", 8_192),
        ("gpt-6-sol-quantum", 922_000),
        ("meta-llama/Llama-3.3-70B-Instruct-Turbo", 128_000),
    ],
)
def test_a_name_that_may_mean_another_model_is_said_to_be_unknown(name: str, window: int) -> None:
    """gpt-4.5-preview had gpt-4's 8,192, "its numbers are those it had", and gpt-5.1-codex-max gpt-5.1's in silence."""
    with pytest.warns(UnknownModelWarning, match="assumed") as caught:
        found = bk.model(name)
    assert len(caught) == 1
    assert found.window == window and not found.ends
    with pytest.raises(ValueError, match="Unknown model"):
        bk.model(name, unknown="raise")


@pytest.mark.filterwarnings("ignore::budgetkit.models.RetiredModelWarning")
@pytest.mark.parametrize(
    ("name", "window", "kind", "max_output", "ends"),
    [
        ("gpt-4.5-preview", 128_000, "shared", 16_384, "2025-07-14"),
        ("gemini-2.5-pro", 1_048_576, "input", 65_536, "2026-12-01"),
        ("gemini-2.5-flash", 1_048_576, "input", 65_536, "2026-12-01"),
        ("gpt-4o", 128_000, "shared", 16_384, "2027-01-14"),
        ("gpt-4o-mini", 128_000, "shared", 16_384, "2027-01-14"),
        ("gpt-4.1", 1_047_576, "shared", 32_768, "2027-01-14"),
        ("gpt-4.1-mini", 1_047_576, "shared", 32_768, "2027-01-14"),
        ("mistral-large-2512", 262_144, "shared", 262_144, "2027-04-30"),
        ("mistral-medium-3-5", 262_144, "shared", 262_144, "2027-04-30"),
        ("gpt-5.6-cyber", 272_000, "input", 128_000, ""),
        ("gpt-6-cyber", 922_000, "input", 128_000, ""),
        ("gpt-6-rosalind", 922_000, "input", 128_000, ""),
        ("gpt-6-astra-law", 922_000, "input", 128_000, ""),
        ("gemini-4-argon", 1_048_576, "shared", 65_536, ""),
        ("gemini-4-hydrogen", 1_048_576, "shared", 1_048_576, ""),
        ("gpt-5.1-codex-max", 400_000, "shared", 128_000, "2026-07-23"),
        ("gpt-5.1-codex", 400_000, "shared", 128_000, "2026-07-23"),
        ("glm-5.3-flash", 1_048_576, "shared", 128_000, ""),
        ("kimi-k3.1-pro", 1_048_576, "shared", 1_048_576, ""),
        ("claude-fable-5-2", 1_000_000, "shared", None, ""),
        ("qwen-max", 30_720, "input", 8_192, ""),
        # litellm 1.110.2 gives a million tokens to some of these.
        ("MiniMax-M2", 204_800, "shared", 131_072, ""),
        ("MiniMax-M2.1", 204_800, "shared", 131_072, ""),
        ("MiniMax-M2.1-lightning", 204_800, "shared", 8_192, ""),
        ("MiniMax-M2.5", 204_800, "shared", 131_072, ""),
        ("MiniMax-M2.5-lightning", 204_800, "shared", 8_192, ""),
    ],
)
def test_the_table_has_what_the_market_had_in_november_2026(
    name: str, window: int, kind: str, max_output: int | None, ends: str
) -> None:
    found = bk.model(name, unknown="raise")
    expected = (window, kind, max_output, ends)
    assert (found.window, found.kind, found.max_output, found.ends) == expected
    assert found.provenance == f"exact name {name}"


@pytest.mark.filterwarnings("ignore::budgetkit.models.RetiredModelWarning")
def test_a_model_that_is_served_by_another_says_when_it_ended() -> None:
    assert bk.model("deepseek-v4-flash").ended and not bk.model("deepseek-flash").ended


def test_a_model_past_its_end_warns_and_comes_last() -> None:
    """gpt-4 ended on 2026-10-23, as litellm says; gpt-4o goes on."""
    warning = (
        r"'gpt-4' was retired on 2026-10-23 \(litellm [\d.]+, gpt-4\)\. .* choose a current model"
    )
    with pytest.warns(RetiredModelWarning, match=warning):
        assert model("gpt-4").ended
    assert not model("gpt-4o").ended
    ended = [known.ended for known in models()]
    assert ended == sorted(ended)
    assert ended[-1]
    assert model("gpt-4", ends="").ends == "", "whoever knows better says so"


@pytest.mark.parametrize(
    "name",
    [
        *("kimi-k3", "glm-5.2", "MiniMax-M3", "mimo-v2.5-pro", "amazon.nova-pro-v1:0"),
        *("mercury-2", "chat-latest"),
    ]
    + [
        *("gemini-pro-latest", "gemini-3-pro-preview", "qwen3-235b-a22b"),
        *("deepseek-v3.1", "command-a-03-2025"),
    ],
)
def test_the_families_of_today_are_known(name: str) -> None:
    assert model(name, unknown="raise").window > 8_192
    assert model(name).provenance.startswith("exact name")


@pytest.mark.parametrize("unit", ["0", ".", "-v1", "gpt-4o-", "a-", ":free"])
def test_a_name_of_a_hundred_thousand_characters_is_unknown_at_once(unit: str) -> None:
    """Looking for it took eight seconds, in which an explorer answered nobody."""
    name = "0." + unit * (100_000 // len(unit))
    start = time.process_time()
    with pytest.raises(ValueError, match=r"Unknown model '0\..*\.\.\..*Choose one of"):
        model(name, unknown="raise")
    assert resolve(name).window == 8_192
    assert set(nearest_names(name, ["gpt-4o", "claude-haiku-4-5"])) <= {
        "gpt-4o",
        "claude-haiku-4-5",
    }
    assert time.process_time() - start < 0.5


def test_the_day_on_which_models_end_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notebooks and pages that name gpt-4o would say in January that it ended, and no output would be as stored."""
    known = bk.model("gpt-4o", ends="2027-01-14")
    assert not known.ended, "tests live on the day on which the table was read"
    monkeypatch.setenv("BUDGETKIT_TODAY", "2027-01-14")
    assert known.ended


@pytest.mark.parametrize("name", MAKERS[1:])
def test_the_models_that_stand_side_by_side_have_no_end(name: str) -> None:
    assert bk.model(name, unknown="raise").ends == ""
