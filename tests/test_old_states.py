"""Files that budgetkit 0.1.0 wrote load for ever; they are never written again.

``tests/states/0.1.0`` holds the presets at a window of 128,000 tokens, a budget with no field at its default, plans of
two shipped conversations with their texts, one of any plain payloads, and the twelve ways to divide a window of 400.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from budgetkit import state

FILES = sorted((Path(__file__).parent / "states" / "0.1.0").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_0_1_0_loads_with_all_that_it_holds(path: Path) -> None:
    """The same from JSON and from YAML, and nothing is lost when it is saved again."""
    written = path.read_bytes().decode()
    loaded = state.from_json(written)
    assert loaded == state.from_yaml(path.with_suffix(".yaml").read_bytes().decode())
    assert state.to_dict(loaded, texts=True) == json.loads(written)


def test_there_are_as_many_as_were_written() -> None:
    assert len(FILES) == 24
