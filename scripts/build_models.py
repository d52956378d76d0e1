"""Write ``data/models.csv`` from litellm's registry and the installed genai-prices.

    python scripts/build_models.py REGISTRY VERSION DATE

REGISTRY is ``model_prices_and_context_window_backup.json`` of a litellm wheel, VERSION that wheel's version,
DATE the day of reading (ISO). Which models are listed, what their window means and which encoding counts them
is decided here; window and maximum output are read. A window that genai-prices gives differently is printed,
so that a person looks at it.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from genai_prices.data_snapshot import get_snapshot
from tiktoken.model import encoding_name_for_model

CSV = Path(__file__).resolve().parent.parent / "data" / "models.csv"
COLUMNS = (
    "name", "provider", "window", "kind", "max_output", "encoding", "encoding_is_own", "framing", "source",
    "date", "ends",
)  # fmt: skip

#: (provider, kind, encoding that stands in, prefix of the registry's keys) -> models in the registry's
#: spelling. A model stands here too when a shorter name would otherwise pass its wrong window on to it.
LISTED: dict[tuple[str, str, str, str], str] = {
    ("OpenAI", "shared", "o200k_base", ""): """
        gpt-4o gpt-4o-mini gpt-4o-2024-05-13 gpt-4-turbo gpt-4 gpt-4-1106-preview gpt-3.5-turbo
        gpt-3.5-turbo-16k gpt-4.1 gpt-4.1-mini gpt-4.1-nano o1 o3 o3-mini o3-pro o4-mini
        gpt-5-chat-latest gpt-5.1-chat-latest gpt-5.2-chat-latest gpt-5.3-chat-latest gpt-5-pro
        gpt-5.4 gpt-5.4-pro gpt-5.5 gpt-5.5-pro gpt-5.6-cyber
        gpt-5-chat gpt-4o-transcribe gpt-4o-mini-transcribe chat-latest""",
    ("OpenAI", "shared", "o200k_base", "azure/us/"): "o1-preview",
    ("OpenAI", "input", "o200k_base", "azure/"): "gpt-5.1-chat gpt-5.2-chat",
    ("OpenAI", "shared", "o200k_base", "azure/"): "gpt-4-32k gpt-4-0125-preview o1-mini",
    ("OpenAI", "shared", "o200k_base", "azure_ai/"): "gpt-oss-120b",
    ("OpenAI", "shared", "o200k_base", "together_ai/openai/"): "gpt-oss-20b",
    ("OpenAI", "input", "o200k_base", ""): """
        gpt-5 gpt-5-mini gpt-5-nano gpt-5.1 gpt-5.2 gpt-5.2-pro gpt-5.3-codex gpt-5.4-mini gpt-5.4-nano
        gpt-5.6 gpt-5.6-sol gpt-5.6-terra gpt-5.6-luna gpt-6-astra gpt-6-sol gpt-6-luna gpt-6.1-sol
        gpt-6.1-terra""",
    ("Anthropic", "shared", "cl100k_base", ""): """
        claude-haiku-4-5 claude-sonnet-4-5 claude-opus-4-5 claude-opus-4-6 claude-opus-4-7 claude-opus-4-8
        claude-sonnet-4-6 claude-sonnet-5 claude-sonnet-5-5 claude-opus-5 claude-opus-5-5 claude-haiku-5-5
        claude-fable-5 claude-fable-5-1 claude-mythos-5 claude-mythos-5-1""",
    ("Google", "input", "o200k_base", "gemini/"): """
        gemini-2.5-pro gemini-2.5-flash gemini-2.5-flash-lite gemini-3-flash-preview gemini-3.1-pro-preview
        gemini-3.1-flash-lite gemini-3.5-flash gemini-3.5-flash-lite gemini-3.6-flash gemini-3.7-flash
        gemini-3.8-flash gemini-2.5-flash-image gemini-3.1-flash-lite-image gemini-2.5-flash-preview-tts
        gemini-2.5-pro-preview-tts gemini-3.8-flash-tts gemini-3.8-flash-lite-tts
        gemini-2.5-flash-native-audio-latest gemini-2.5-flash-native-audio-preview-12-2025 gemini-pro-latest""",
    ("Google", "shared", "o200k_base", "gemini/"): "gemini-4-argon gemma-4-31b-it",
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
    ("Moonshot", "shared", "o200k_base", "moonshot/"): "kimi-k2.5 kimi-k2.6 kimi-k2.7-code kimi-k3",
    (
        "Z.ai",
        "shared",
        "o200k_base",
        "zai/",
    ): "glm-4.5 glm-4.6 glm-4.7 glm-5 glm-5.1 glm-5.2 glm-5.3",
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
    ): "gemini-2.5-flash-tts gemini-2.5-pro-tts gemini-2.5-flash-lite-preview-tts",
}


def rows(
    registry: dict[str, dict[str, Any]], release: str, date: str
) -> Iterator[dict[str, object]]:
    """Yield one row a listed model, in the order of the list."""
    for (provider, kind, stand_in, prefix), names in LISTED.items():
        for name in names.split():
            key = prefix + name
            entry = registry[key]
            encoding, own = counted_with(name, stand_in)
            yield {
                "name": name,
                "provider": provider,
                "window": entry["max_input_tokens"],
                "kind": kind,
                "max_output": entry["max_output_tokens"],
                "encoding": encoding,
                "encoding_is_own": "yes" if own else "no",
                "framing": framing(name),
                "source": f"litellm {release}, {key}",
                "date": date,
                "ends": entry.get("deprecation_date", ""),
            }


def priced(date: str) -> Iterator[dict[str, object]]:
    """Yield one row a model that only genai-prices knows."""
    for (provider, maker), names in PRICED.items():
        for name in names.split():
            found, entry = get_snapshot().find_provider_model(name, None, maker, None)
            encoding, own = counted_with(name, "o200k_base")
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
    """Return the encoding that tiktoken's model table gives, else the stand-in, and whether it is own."""
    try:
        return encoding_name_for_model(name), True
    except KeyError:
        return stand_in, False


def framing(name: str) -> str:
    """Return the name of the framing that is known for a model, as in `budgetkit.requests.FRAMINGS`."""
    if name.startswith(("gpt-5", "o1", "o3", "o4")):
        return "openai-reasoning"
    return "openai" if name.startswith(("gpt-3.5", "gpt-4")) else ""


def conflict(row: dict[str, object]) -> str:
    """Describe a window that genai-prices gives differently; "" where both agree.

    A registry may mean the prompt alone or prompt and answer together, so either agrees with the row.
    """
    name = str(row["name"])
    window = int(str(row["window"]))
    longest_answer = int(str(row["max_output"] or 0)) if row["kind"] == "input" else 0
    try:
        provider, entry = get_snapshot().find_provider_model(name, None, None, None)
    except LookupError:
        return ""
    # An entry may stand for a whole family, whose other members have other windows.
    if entry.id != name or entry.context_window in (None, 0, window, window + longest_answer):
        return ""
    return (
        f"{name}: {window:,} tokens ({row['source']}), but {entry.context_window:,} in genai-prices, "
        f"{provider.id}/{entry.id}."
    )


def main(registry: str, release: str, date: str) -> None:
    """Write the table and print where the two sources disagree."""
    table = [*rows(json.loads(Path(registry).read_text("utf-8")), release, date), *priced(date)]
    with CSV.open("w", encoding="utf-8", newline="") as out:
        out.write(
            f"# Windows and maximum outputs from litellm {release} and genai-prices {version('genai-prices')}, as each "
            f"row says, encodings from tiktoken's model table; read {date} by scripts/build_models.py; "
            "columns in data/README.md\n"
        )
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    for row in table:
        if sentence := conflict(row):
            print(sentence)


if __name__ == "__main__":
    main(*sys.argv[1:])
