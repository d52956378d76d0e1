"""The model table, and the four routes from a name to a model."""

import datetime
import subprocess
import sys
import time
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from budgetkit.counters import encoding_names
from budgetkit.models import Model, RetiredModelWarning, UnknownModelWarning, model, models
from budgetkit.models.names import nearest_names
from budgetkit.models.resolved import resolve

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
        "shared",
        128_000,
        16_384,
        128_000,
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
            assert (encoding_name_for_model(known.name), True) == (
                known.encoding,
                known.encoding_is_own,
            )
        except KeyError:
            assert older or not known.encoding_is_own, known.name


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
        ("gpt-6-cyber", "o200k_base", False),
    ],
)
def test_a_model_that_is_not_listed_has_its_familys_encoding(
    name: str, encoding: str, is_own: bool
) -> None:
    """A plan counted these with cl100k_base, the bill of the same request with o200k_base."""
    known = resolve(name).facts
    assert (known.encoding, known.encoding_is_own) == (encoding, is_own)


def test_the_notice_of_an_unknown_model_names_the_encoding_that_stands_in() -> None:
    assert "8,192 tokens and o200k_base stand in" in resolve("gpt-9").notice
    assert "8,192 tokens and cl100k_base stand in" in resolve("nobody-knows").notice


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
def test_a_variant_with_another_window_has_a_row_of_its_own(
    name: str, window: int, shorter: str
) -> None:
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
    found = model("claude-3-7-sonnet-latest", unknown="raise")
    assert (found.window, found.kind, found.encoding_is_own) == (200_000, "shared", False)
    assert found.provenance.startswith("genai-prices 0.")
    assert found.provenance.endswith("anthropic/claude-3-7-sonnet-latest")


def test_then_a_default_that_warns_and_says_what_it_fell_back_to() -> None:
    with pytest.warns(
        UnknownModelWarning, match="no model 'nobody-knows'.*8,192 tokens and cl100k_base stand in"
    ):
        found = model("nobody-knows")
    assert (found.window, found.encoding, found.encoding_is_own) == (8_192, "cl100k_base", False)
    assert found.provenance == "default: a window of 8,192 tokens and cl100k_base stand in"


def test_or_an_error_that_says_what_to_do() -> None:
    with pytest.raises(
        ValueError, match=r"no model 'nobody-knows'; \d+ are in .*; use one of .* or describe it"
    ):
        model("nobody-knows", unknown="raise")


def test_what_is_known_better_overrides_and_provenance_says_so() -> None:
    found = model("gpt-4o", window=64_000)
    assert (found.window, found.max_output) == (64_000, 16_384)
    assert found.provenance == "exact name gpt-4o; window overridden"


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        ({"window": 0}, ValueError, "a window of 0 tokens; .*; give its size"),
        ({"window": -1}, ValueError, "window is -1; tokens are whole numbers"),
        ({"window": 8192.5}, TypeError, "window is 8192.5; tokens are whole numbers"),
        (
            {"window": 4_096},
            ValueError,
            "answers of up to 16,384 tokens in a window of 4,096 .*; lower max_output",
        ),
        ({"kind": "usable"}, ValueError, "window kind 'usable'; known are shared, input; use"),
        (
            {"windows": 4_096},
            TypeError,
            "no field 'windows' in a model; there are name, window, .*; use one",
        ),
    ],
)
def test_a_model_that_cannot_be_is_an_error_in_three_parts(
    overrides: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        model("gpt-4o", **overrides)


@pytest.mark.parametrize("name", ["", "  ", None])
def test_no_name_is_no_unknown_model(name: Any) -> None:
    with pytest.raises(
        ValueError,
        match="a model named .* was asked for; names are texts such as 'gpt-4o'; give one",
    ):
        model(name)


def test_unknown_takes_two_values() -> None:
    with pytest.raises(ValueError, match="unknown='guess'; known are default, raise; use one"):
        model("gpt-4o", unknown="guess")  # type: ignore[arg-type]


@given(st.sampled_from(models()), st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True))
def test_a_suffix_after_a_hyphen_never_finds_a_shorter_name_than_the_whole(
    known: Model, suffix: str
) -> None:
    found = model(f"{known.name}-{suffix}", unknown="raise")
    assert len(found.provenance.split()[1]) >= len(known.name) or "exact" in found.provenance


def test_nothing_is_read_and_no_price_list_imported_until_a_model_is_asked_for() -> None:
    check = (
        "import sys, budgetkit.models as models;"
        "assert models.models.cache_info().currsize == 0;"
        "assert models.model('gpt-4o').window == 128_000;"
        "assert not {'genai_prices', 'tiktoken', 'numpy', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_a_model_past_its_end_warns_and_comes_last() -> None:
    """gpt-4 ended on 2026-10-23, as litellm 1.109.1 says; gpt-4o goes on."""
    with pytest.warns(
        RetiredModelWarning,
        match=r"'gpt-4' ended on 2026-10-23 \(litellm 1.109.1, gpt-4\); .* take another",
    ):
        assert model("gpt-4").ended
    assert not model("gpt-4o").ended
    ended = [known.ended for known in models()]
    assert ended == sorted(ended)
    assert ended[-1]
    assert model("gpt-4", ends="").ends == "", "whoever knows better says so"


@pytest.mark.parametrize(
    "name",
    [
        "kimi-k3",
        "glm-5.2",
        "MiniMax-M3",
        "mimo-v2.5-pro",
        "amazon.nova-pro-v1:0",
        "mercury-2",
        "chat-latest",
    ]
    + [
        "gemini-pro-latest",
        "gemini-3-pro-preview",
        "qwen3-235b-a22b",
        "deepseek-v3.1",
        "command-a-03-2025",
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
    with pytest.raises(ValueError, match=r"no model '0\..*\.\.\..*use one of"):
        model(name, unknown="raise")
    assert set(nearest_names(name, ["gpt-4o", "claude-haiku-4-5"])) <= {
        "gpt-4o",
        "claude-haiku-4-5",
    }
    assert time.process_time() - start < 0.5
