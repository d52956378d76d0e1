"""Write ``data/models.csv`` from litellm's registry and the installed genai-prices.

    python scripts/build_models.py REGISTRY VERSION DATE

REGISTRY is ``model_prices_and_context_window_backup.json`` of a litellm wheel, VERSION that wheel's version,
DATE the day of reading (ISO). Which models come first, what their window means and which encoding counts them
is decided here; window, maximum output and end are read, but for what a person found elsewhere (`CORRECTED`). What
the registries give differently is printed by ``scripts/compare_models.py``.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from genai_prices.data_snapshot import get_snapshot
from tiktoken.model import encoding_name_for_model

from budgetkit.files import read_table
from budgetkit.models.names import family_encoding, without_suffixes

CSV = Path(__file__).resolve().parent.parent / "data" / "models.csv"
COLUMNS = (
    "name", "provider", "window", "kind", "max_output", "encoding", "encoding_is_own", "framing", "source",
    "date", "ends",
)  # fmt: skip

#: The encoding that stands in for a maker's own, where it is not o200k_base.
STAND_INS = {"Anthropic": "cl100k_base"}

#: (provider, kind, encoding that stands in, prefix of the registry's keys) -> models in the registry's
#: spelling. A model stands here too when a shorter name would otherwise pass its wrong window on to it.
LISTED: dict[tuple[str, str, str, str], str] = {
    ("OpenAI", "shared", "o200k_base", ""): """
        gpt-4o gpt-4o-mini gpt-4o-2024-05-13 gpt-4-turbo gpt-4 gpt-4-1106-preview gpt-3.5-turbo
        gpt-3.5-turbo-16k gpt-4.1 gpt-4.1-mini gpt-4.1-nano o1 o3 o3-mini o3-pro o4-mini
        gpt-5-chat-latest gpt-5.1-chat-latest gpt-5.2-chat-latest gpt-5.3-chat-latest gpt-5-pro
        gpt-5.4 gpt-5.4-pro gpt-5.5 gpt-5.5-pro gpt-5.1-codex-max gpt-5.1-codex
        gpt-5.1-codex-mini
        gpt-5-chat gpt-4o-transcribe gpt-4o-mini-transcribe chat-latest""",
    ("OpenAI", "shared", "o200k_base", "azure/us/"): "o1-preview",
    ("OpenAI", "input", "o200k_base", "azure/"): "gpt-5.1-chat gpt-5.2-chat",
    ("OpenAI", "shared", "o200k_base", "azure/"): "gpt-4-32k gpt-4-0125-preview o1-mini",
    ("OpenAI", "shared", "o200k_base", "azure_ai/"): "gpt-oss-120b",
    ("OpenAI", "shared", "o200k_base", "together_ai/openai/"): "gpt-oss-20b",
    ("OpenAI", "input", "o200k_base", ""): """
        gpt-5 gpt-5-mini gpt-5-nano gpt-5.1 gpt-5.2 gpt-5.2-pro gpt-5.3-codex gpt-5.4-mini gpt-5.4-nano
        gpt-5-codex gpt-5.2-codex gpt-5.6-cyber gpt-6-cyber gpt-6-rosalind
        gpt-6-astra-law gpt-5.6 gpt-5.6-sol gpt-5.6-terra gpt-5.6-luna gpt-6-astra gpt-6-sol gpt-6-luna gpt-6.1-sol
        gpt-6.1-terra""",
    ("Anthropic", "shared", "cl100k_base", ""): """
        claude-haiku-4-5 claude-sonnet-4-5 claude-opus-4-5 claude-opus-4-6 claude-opus-4-7 claude-opus-4-8
        claude-sonnet-4-6 claude-sonnet-5 claude-sonnet-5-5 claude-opus-5 claude-opus-5-5 claude-haiku-5-5
        claude-fable-5 claude-fable-5-1 claude-mythos-5 claude-mythos-5-1
        claude-opus-4-1=anthropic.claude-opus-4-1-20250805-v1:0
        claude-opus-4=anthropic.claude-opus-4-20250514-v1:0
        claude-sonnet-4=anthropic.claude-sonnet-4-20250514-v1:0
        claude-3-5-sonnet=anthropic.claude-3-5-sonnet-20241022-v2:0
        claude-3-5-haiku=anthropic.claude-3-5-haiku-20241022-v1:0
        claude-3-opus=anthropic.claude-3-opus-20240229-v1:0""",
    ("Google", "input", "o200k_base", "gemini/"): """
        gemini-2.5-pro gemini-2.5-flash gemini-2.5-flash-lite gemini-3-flash-preview gemini-3.1-pro-preview
        gemini-3.1-flash-lite gemini-3.5-flash gemini-3.5-flash-lite gemini-3.6-flash gemini-3.7-flash
        gemini-3.8-flash gemini-2.5-flash-image gemini-3.1-flash-lite-image gemini-2.5-flash-preview-tts
        gemini-2.5-pro-preview-tts gemini-3.8-flash-tts gemini-3.8-flash-lite-tts
        gemini-2.5-flash-native-audio-latest gemini-2.5-flash-native-audio-preview-12-2025 gemini-pro-latest""",
    (
        "Google",
        "shared",
        "o200k_base",
        "gemini/",
    ): "gemini-4-argon gemini-4-hydrogen gemma-4-31b-it",
    ("DeepSeek", "shared", "o200k_base", "deepseek/"): """
        deepseek-chat deepseek-reasoner deepseek-flash deepseek-v4-flash deepseek-v4-pro""",
    ("DeepSeek", "shared", "o200k_base", "azure_ai/"): "deepseek-v3.2",
    ("Mistral", "shared", "o200k_base", "mistral/"): """
        mistral-large-4 mistral-large-latest mistral-large-3 mistral-large-2512 mistral-medium-latest mistral-medium-3-5
        mistral-small-latest mistral-small-2603 ministral-3b-2512 ministral-8b-2512 ministral-14b-2512
        magistral-medium-latest magistral-small-latest codestral-2508 codestral-latest devstral-latest
        open-mistral-nemo""",
    (
        "Meta",
        "shared",
        "o200k_base",
        "meta/",
    ): "muse-spark-1.1 muse-spark-1.2 muse-spark-1.3 muse-wonder-1.0",
    ("Meta", "shared", "o200k_base", "meta_llama/"): """
        Llama-3.3-70B-Instruct Llama-3.3-8B-Instruct Llama-4-Maverick-17B-128E-Instruct-FP8
        Llama-4-Scout-17B-16E-Instruct-FP8""",
    ("Meta", "shared", "o200k_base", "vercel_ai_gateway/meta/"): "llama-4-maverick llama-4-scout",
    ("Qwen", "input", "o200k_base", "dashscope/"): """
        qwen3-max qwen3-coder-plus qwen3-coder-flash qwen-flash qwen-plus-latest qwen3.5-plus qwen3.7-max
        qwen3.7-plus qwen3.8-max qwen3.8-flash""",
    ("Qwen", "shared", "o200k_base", "dashscope/"): """
        qwen3-next-80b-a3b-instruct qwen3-next-80b-a3b-thinking qwen3-vl-235b-a22b-instruct""",
    ("xAI", "shared", "o200k_base", "xai/"): """
        grok-4.20 grok-4.3 grok-4.5 grok-4.6 grok-4.7 grok-build-0.1 grok-code-fast-1""",
    ("Moonshot", "shared", "o200k_base", "moonshot/"): """
        kimi-k2.5 kimi-k2.6 kimi-k2.7-code kimi-k3 kimi-k3.1-pro""",
    (
        "Z.ai",
        "shared",
        "o200k_base",
        "zai/",
    ): "glm-4.5 glm-4.6 glm-4.7 glm-5 glm-5.1 glm-5.2 glm-5.3 glm-5.3-flash",
    (
        "MiniMax",
        "shared",
        "o200k_base",
        "minimax/",
    ): "MiniMax-M2 MiniMax-M2.1 MiniMax-M2.5 MiniMax-M3",
    (
        "Xiaomi",
        "shared",
        "o200k_base",
        "novita/xiaomimimo/",
    ): "mimo-v2-flash mimo-v2.5 mimo-v2.5-pro",
    ("Xiaomi", "shared", "o200k_base", "xiaomi_mimo/"): "mimo-v2.6-pro mimo-v2.6-flash",
    ("Amazon", "shared", "o200k_base", ""): """
        amazon.nova-micro-v1:0 amazon.nova-lite-v1:0 amazon.nova-pro-v1:0 amazon.nova-premier-v1:0
        amazon.nova-2-lite-v1:0 amazon.nova-2-pro-preview-20251202-v1:0""",
    ("Inception", "shared", "o200k_base", "inception/"): "mercury-2 mercury-2.5",
    ("Google", "input", "o200k_base", "vertex_ai/"): "gemini-3-pro-preview",
    ("Qwen", "shared", "o200k_base", "deepinfra/Qwen/"): "Qwen3-235B-A22B",
    ("DeepSeek", "shared", "o200k_base", "deepinfra/deepseek-ai/"): "DeepSeek-V3.1",
    ("Cohere", "shared", "o200k_base", ""): "command-a-03-2025 command-a-plus-05-2026",
}

#: (provider, provider in genai-prices) -> models that only genai-prices knows, and that a shorter name would
#: otherwise pass a wrong window on to. It says nothing of answers.
PRICED: dict[tuple[str, str], str] = {
    (
        "OpenAI",
        "openai",
    ): "gpt-4-vision-preview gpt-4o-realtime-preview gpt-4o-mini-realtime-preview",
    (
        "Google",
        "google",
    ): "gemini-2.5-flash-tts gemini-2.5-pro-tts gemini-2.5-flash-lite-preview-tts gemini-2.0-flash",
    ("Anthropic", "anthropic"): "claude-fable-5-2 claude-mythos-5-2",
    ("xAI", "x-ai"): "grok-4-0709 grok-4-fast-reasoning grok-4-1-fast-reasoning grok-3 grok-3-mini",
    ("Moonshot", "moonshotai"): "kimi-k2-0905-preview kimi-k2-thinking",
}

#: Registries' providers of which all other models are listed too, and the maker that the table names.
WHOLE = {
    "openai": "OpenAI",
    "anthropic": "Anthropic",
    "gemini": "Google",
    "deepseek": "DeepSeek",
    "xai": "xAI",
    "mistral": "Mistral",
    "moonshot": "Moonshot",
    "zai": "Z.ai",
    "minimax": "MiniMax",
    "dashscope": "Qwen",
    "cohere_chat": "Cohere",
    "meta": "Meta",
}
#: Other makers' models among them, music, and what is no model's name.
LEFT_OUT = re.compile(
    r"^ft:|daybreak|lyria|learnlm|gemini-exp|gemini-gemma|-glm-|mistral/(glm|deepseek)|dashscope/(deepseek|glm|kimi)|"
    r"vibe-cli|deep-research.*preview|streaming|grok-4.20-(beta|experimental|0309-)|gv2|customtools|contributor"
)
_MINIMAX = "Vercel's list of models, as genai-prices 0.2.3, minimax/MiniMax-M2; litellm 1.110.2 has another window"
_HIGHSPEED = "MiniMax's list of models, as genai-prices 0.2.3, minimax/MiniMax-{}-highspeed; litellm has another window"
_AZURE = "litellm 1.110.2, {}; azure/{} accepts at most 922,000 of input"
#: What is known better than by a registry, and where that was read.
CORRECTED: dict[str, dict[str, object]] = {
    "gpt-5.4": {"source": _AZURE.format("gpt-5.4", "gpt-5.4")},
    "gpt-5.4-pro": {"source": _AZURE.format("gpt-5.4-pro", "gpt-5.4-pro")},
    "gpt-5.5": {"source": _AZURE.format("gpt-5.5", "gpt-5.5")},
    "gpt-5.5-pro": {"source": _AZURE.format("gpt-5.5-pro", "gpt-5.5")},
    "gemini-2.5-pro": {"ends": "2026-12-01"},
    "gemini-2.5-flash": {"ends": "2026-12-01"},
    "gpt-4o": {"ends": "2027-01-14"},
    "gpt-4o-mini": {"ends": "2027-01-14"},
    "gpt-4.1": {"ends": "2027-01-14"},
    "gpt-4.1-mini": {"ends": "2027-01-14"},
    "gemini-4-argon": {
        "max_output": 65536,
        "source": "Google, Gemini 4 Argon guide (more only by long decoding with continuation tokens); window: litellm "
        "1.110.2, gemini/gemini-4-argon",
    },
    "deepseek-v4-flash": {
        "ends": "2026-10-17",
        "source": "DeepSeek, Models and pricing: served by DeepSeek-V4.1-Flash-1017, name deepseek-flash; numbers: "
        "litellm 1.110.2, deepseek/deepseek-v4-flash",
    },
    "MiniMax-M2": {"window": 204800, "max_output": 131072, "source": _MINIMAX},
    "MiniMax-M2.1": {"window": 204800, "max_output": 131072, "source": _MINIMAX},
    "MiniMax-M2.1-lightning": {"window": 204800, "source": _HIGHSPEED.format("M2.1")},
    "MiniMax-M2.5": {
        "window": 204800,
        "max_output": 131072,
        "source": "Novita's list of models, as genai-prices 0.2.3, novita/minimax/minimax-m2.5; litellm 1.110.2, "
        "minimax/MiniMax-M2.5, has another window",
    },
    "MiniMax-M2.5-lightning": {"window": 204800, "source": _HIGHSPEED.format("M2.5")},
    "codestral-latest": {
        "window": 256000,
        "source": "Mistral, Models, as genai-prices 0.2.3, mistral/codestral; litellm 1.110.2 has 128,000",
    },
    "codestral-2508": {
        "window": 256000,
        "source": "Mistral, Models, as genai-prices 0.2.3, mistral/codestral-2508; litellm 1.110.2 has 128,000",
    },
}
#: A row that neither registry has.
GIVEN: list[dict[str, object]] = [
    {
        "name": "gpt-4.5-preview",
        "provider": "OpenAI",
        "window": 128000,
        "kind": "shared",
        "max_output": 16384,
        "encoding": "o200k_base",
        "encoding_is_own": "yes",
        "framing": "openai",
        "source": "OpenAI, GPT-4.5 Preview; the encoding: github.com/openai/tiktoken/issues/569",
        "ends": "2025-07-14",
    },
    {
        "name": "claude-3-7-sonnet",
        "provider": "Anthropic",
        "window": 200000,
        "kind": "shared",
        "max_output": 64000,
        "encoding": "cl100k_base",
        "encoding_is_own": "no",
        "framing": "",
        "source": "Anthropic, Models overview; litellm 1.110.2, anthropic.claude-3-7-sonnet-20250219-v1:0, has "
        "8,192 of output",
        "ends": "",
    },
]


def rows(
    registry: dict[str, dict[str, Any]], release: str, date: str
) -> Iterator[dict[str, object]]:
    """Yield one row a listed model, in the order of the list."""
    previous = {row["name"]: row for row in read_table("models.csv")}
    for (provider, kind, stand_in, prefix), names in LISTED.items():
        for name in names.split():
            name, _, key = name.partition("=")
            key = key or prefix + name
            if key not in registry:  # a registry forgets models that have ended
                yield dict(previous[name])
                continue
            source = f"litellm {release}, {key}"
            yield row(name, provider, kind, stand_in, registry[key], source, date)


def row(
    name: str,
    provider: str,
    kind: str,
    stand_in: str,
    entry: dict[str, Any],
    source: str,
    date: str,
) -> dict[str, object]:
    """Write one row from a registry's entry."""
    encoding, own = counted_with(name, stand_in)
    return {
        "name": name,
        "provider": provider,
        "window": entry["max_input_tokens"],
        "kind": kind,
        "max_output": entry["max_output_tokens"],
        "encoding": encoding,
        "encoding_is_own": "yes" if own else "no",
        "framing": framing(name),
        "source": source,
        "date": date,
        "ends": entry.get("deprecation_date", ""),
    }


def whole(
    registry: dict[str, dict[str, Any]], release: str, date: str, known: list[dict[str, object]]
) -> Iterator[dict[str, object]]:
    """Yield the other models of the makers that are listed whole, but for mere spellings of a row."""
    numbers = {str(row["name"]).casefold(): (row["window"], row["max_output"]) for row in known}
    letters = {re.sub(r"[-_.:]", "", name) for name in numbers}
    entries = [
        (key.rpartition("/")[2], key, entry)
        for key, entry in registry.items()
        if entry.get("litellm_provider") in WHOLE
        and entry.get("mode") in ("chat", "responses")
        and entry.get("max_input_tokens")
        and not LEFT_OUT.search(key)
    ]
    for name, key, entry in sorted(entries, key=lambda entry: len(entry[0])):
        provider = WHOLE[entry["litellm_provider"]]
        size = (entry["max_input_tokens"], entry.get("max_output_tokens") or "")
        spellings = list(without_suffixes(name.casefold()))
        if re.sub(r"[-_.:]", "", spellings[0]) in letters or any(
            numbers.get(text) == size for text in spellings
        ):
            continue
        numbers[spellings[0]] = size
        letters.add(re.sub(r"[-_.:]", "", spellings[0]))
        window, longest = (int(number or 0) for number in size)
        separate = provider == "Google" or longest > window or window in (272000, 922000)
        odd = provider == "Qwen" and window & (window - 1) and window % 1024 == 0
        stand_in = STAND_INS.get(provider, "o200k_base")
        yield row(
            name,
            provider,
            "input" if separate or odd else "shared",
            stand_in,
            {**entry, "max_output_tokens": size[1]},
            f"litellm {release}, {key}",
            date,
        )


def priced(date: str) -> Iterator[dict[str, object]]:
    """Yield one row a model that only genai-prices knows."""
    for (provider, maker), names in PRICED.items():
        for name in names.split():
            found, entry = get_snapshot().find_provider_model(name, None, maker, None)
            encoding, own = counted_with(name, STAND_INS.get(provider, "o200k_base"))
            yield {
                "name": name,
                "provider": provider,
                "window": entry.context_window,
                "kind": "input" if provider == "Google" else "shared",
                "max_output": "",
                "encoding": encoding,
                "encoding_is_own": "yes" if own else "no",
                "framing": framing(name),
                "source": f"genai-prices {version('genai-prices')}, {found.id}/{entry.id}",
                "date": date,
                "ends": "",
            }


def counted_with(name: str, stand_in: str) -> tuple[str, bool]:
    """Return the encoding by tiktoken's table or OpenAI's families, else the stand-in, and whether it is own."""
    try:
        return encoding_name_for_model(name), True
    except KeyError:
        encoding, is_own = family_encoding(name)
        return encoding or stand_in, is_own


def framing(name: str) -> str:
    """Return the name of the framing that is known for a model, as in `budgetkit.requests.FRAMINGS`."""
    if name.startswith(("gpt-5", "gpt-6", "o1", "o3", "o4")):
        return "openai-reasoning"
    return "openai" if name.startswith(("gpt-3.5", "gpt-4")) else ""


def main(registry: str, release: str, date: str) -> None:
    """Write the table."""
    entries = json.loads(Path(registry).read_text("utf-8"))
    table = [
        *rows(entries, release, date),
        *priced(date),
        *({**row, "date": date} for row in GIVEN),
    ]
    table += whole(entries, release, date, table)
    for row in table:
        if re.match(r"gpt-6", str(row["name"])):
            row["source"] = f"{row['source']}; encoding: ttok 1.0"
        row |= CORRECTED.get(str(row["name"]), {})
    with CSV.open("w", encoding="utf-8", newline="") as out:
        out.write(
            f"# Windows and maximum outputs from litellm {release} and genai-prices {version('genai-prices')}, as each "
            f"row says, encodings from tiktoken's model table; read {date} by scripts/build_models.py; "
            "columns in data/README.md\n"
        )
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    main(*sys.argv[1:])
