"""Compare every row of ``data/models.csv`` with the installed genai-prices and litellm, and print what differs.

    python scripts/compare_models.py [NAME ...]

A registry may mean the prompt alone or prompt and answer together; both are one fact::

    agree  <=>  the other's window is ours, or ours with the longest answer on top

An entry stands for a row if its name is the row's, behind its maker's path; what only a cloud says of a model is left
out. Each line names both sources with their version, and the day on which ours was read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files, version
from typing import Any

from budgetkit.models import Model, models
from budgetkit.models.names import bare

#: The makers' own paths in litellm's list, before a model's name.
MAKERS = (
    "gemini/", "deepseek/", "mistral/", "xai/", "moonshot/", "zai/", "minimax/", "dashscope/", "meta/",
    "meta_llama/", "inception/", "xiaomi_mimo/", "",
)  # fmt: skip
LITELLM_FILE = "model_prices_and_context_window_backup.json"


@dataclass(frozen=True)
class Difference:
    """One field in which a registry differs from a row."""

    row: Model
    field: str
    ours: object
    theirs: object
    registry: str

    def __str__(self) -> str:
        return (
            f"{self.row.name}: {self.field} {_written(self.ours)} ({self.row.source}, read {self.row.date}), "
            f"{_written(self.theirs)} in {self.registry}"
        )


def differences(names: frozenset[str] = frozenset()) -> Iterator[Difference]:
    """Yield where the installed registries differ from the table, for all models or those named."""
    rows = [row for row in models() if not names or row.name.casefold() in names]
    for row in rows:
        yield from _with_genai_prices(row)
    registry = litellm_list()
    for row in rows:
        yield from _with_litellm(row, registry)


def litellm_list() -> dict[str, dict[str, Any]]:
    """Read the list that litellm ships, without importing it; an empty one where it is not installed."""
    try:
        shipped = files("litellm") or ()
    except PackageNotFoundError:
        return {}
    path = next(file for file in shipped if file.name == LITELLM_FILE)
    entries: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return entries


def _with_genai_prices(row: Model) -> Iterator[Difference]:
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ModuleNotFoundError:
        return
    try:
        provider, entry = get_snapshot().find_provider_model(row.name, None, None, None)
    except LookupError:
        return
    # An entry may stand for a whole family, whose other members have other windows.
    window = entry.context_window
    if entry.id.casefold() == row.name.casefold() and window not in (None, row.window, row.total):
        registry = f"genai-prices {version('genai-prices')}, {provider.id}/{entry.id}"
        yield Difference(row, "window", row.window, window, registry)


def _with_litellm(row: Model, registry: dict[str, dict[str, Any]]) -> Iterator[Difference]:
    keys = [path + row.name for path in MAKERS if path + row.name in registry]
    if not keys:
        return
    entry = registry[keys[0]]
    listed = {
        "window": (row.window, entry.get("max_input_tokens")),
        "max_output": (row.max_output, entry.get("max_output_tokens")),
        "ends": (row.ends, entry.get("deprecation_date")),
    }
    for field, (ours, theirs) in listed.items():
        same = theirs in (None, ours) or (field == "window" and theirs == row.total)
        if not same:
            name = f"litellm {version('litellm')}, {keys[0]}"
            yield Difference(row, field, ours, theirs, name)


def _written(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value or "none")


if __name__ == "__main__":
    for difference in differences(frozenset(map(bare, sys.argv[1:]))):
        print(difference)
