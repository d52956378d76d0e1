"""README's first lines run, and give the numbers that stand beside them."""

import ast
import re
from pathlib import Path

import pytest

import budgetkit as bk

CHECKOUT = Path(__file__).parents[2]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")


def python_block() -> str:
    blocks: list[str] = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 1
    return blocks[0]


def test_the_first_lines_give_the_numbers_beside_them() -> None:
    """Each line is run; where a comment stands beside it, that is what it gives."""
    names: dict[str, object] = {}
    compared = 0
    for line in python_block().splitlines():
        code, _, said = line.partition("  # ")
        if said:
            assert eval(code, names) == ast.literal_eval(said), line
            compared += 1
        else:
            exec(code, names)
    assert compared == 3


def test_the_first_lines_are_ten() -> None:
    lines = [line for line in python_block().splitlines() if line]
    assert len(lines) <= 10


@pytest.mark.parametrize("line", re.findall(r"`(bk\.\w+\(.*?\))`", README))
def test_a_line_in_the_table_makes_what_it_names(line: str) -> None:
    name = line.removeprefix("bk.").partition("(")[0]
    assert type(eval(line, {"bk": bk})).__name__ == name


def test_every_explorer_is_named() -> None:
    explorers = [name for name in bk.__all__ if name.endswith("Explorer")]
    assert len(explorers) == 3
    assert [name for name in explorers if f"bk.{name}(" not in README] == []


@pytest.mark.parametrize("command", ["lab", "test"])
def test_the_commands_are_targets_of_the_makefile(command: str) -> None:
    assert f"\n    make {command} " in README
    assert re.search(
        rf"^{command}:", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )


def test_make_help_lists_every_target_with_a_line() -> None:
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert targets is not None
    told = re.findall(r"^([a-z]+):.*## \w.+$", makefile, re.MULTILINE)
    assert sorted(told) == sorted(targets[1].split())
