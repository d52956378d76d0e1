"""What an attack from outside reached: long names, repeated keys, and values of a wrong type that were accepted."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import budgetkit as bk
from budgetkit import state
from budgetkit.extras.shell.gate import check
from budgetkit.lab.deciding.report import _as_text, _cell
from budgetkit.lab.replay.cost import Price, Prices

TIMES, MOST = 4, 9.0
HELLO = [{"role": "user", "content": "Hello"}]


def keys(count: int) -> str:
    """Write many keys of which only the last two are alike."""
    names = [*range(count), count - 1]
    return json.dumps(dict.fromkeys(map(str, names[:-1]), 1))[:-1] + f', "{names[-1]}": 1}}'


SMALL: dict[str, tuple[int, Callable[[int], Any]]] = {
    "a counter": (1_000, lambda size: bk.counter("claude-" * size)),
    "a counter, path": (1_000, lambda size: bk.counter("a/" * size + "claude-" * size)),
    "a request": (
        3_000,
        lambda size: bk.count_request({"model": "claude-" * size, "messages": HELLO}),
    ),
    "a plan of many sections": (
        100,
        lambda size: bk.allocate(
            bk.Budget(
                10**6, allocations=[bk.Allocation(f"part {i}", weight=1 + i) for i in range(size)]
            ),
            {f"part {i}": 5 for i in range(size)},
        ),
    ),
    "JSON": (3_000, lambda size: state.from_json(keys(size))),
}


def seconds(read: Callable[[int], Any], size: int) -> float:
    start = time.process_time()
    with suppress(ValueError):
        read(size)
    return time.process_time() - start


@pytest.mark.parametrize("name", SMALL)
def test_a_long_name_and_a_repeated_key_take_linear_time(name: str) -> None:
    """A model's name of 200 KB in a request took six minutes, a repeated key in a state of 1 MB over one."""
    size, read = SMALL[name]
    seconds(read, 1)
    assert any(seconds(read, TIMES * size) < MOST * seconds(read, size) + 0.02 for _ in range(5))


def test_a_long_name_with_a_path_is_still_known_by_its_end() -> None:
    path = "folder/" * 50
    assert bk.counter(f"{path}claude-sonnet-4-5")("Hello") == bk.counter("claude-sonnet-4-5")(
        "Hello"
    )


def test_a_number_of_too_many_digits_is_refused_in_a_sentence() -> None:
    text = '{"budgetkit": 1, "budget": {"window": %s}}' % ("9" * 5_000)
    with pytest.raises(ValueError, match="^Invalid saved state. A number has 5,000 digits. Short"):
        state.from_json(text)


@pytest.mark.parametrize(
    ("text", "kind"), [("null", "NoneType"), ("[]", "list"), ("5", "int"), ('"x"', "str")]
)
def test_a_saved_conversation_that_is_no_object_is_refused(text: str, kind: str) -> None:
    sentence = f"^Not a saved conversation: Invalid saved text: a value of type {kind}. Expected an"
    with pytest.raises(ValueError, match=sentence):
        bk.Conversation.from_json(text)


@pytest.mark.parametrize("today", [0, False, "2026-01-01"])
def test_a_day_that_is_no_date_is_refused_in_a_sentence(today: Any) -> None:
    with pytest.raises(TypeError, match="^Invalid today: .*Expected a date, such as date"):
        check(bk.presets.chat(8_192), model="gpt-5.4", today=today)


@pytest.mark.parametrize("kind", ["input", "output", "cache_read", "cache_write"])
@pytest.mark.parametrize("price", [-1, 2.0, True, float("nan"), "1"])
def test_a_price_is_a_price(kind: str, price: Any) -> None:
    with pytest.raises(TypeError, match="^Invalid price: .*Expected a Price, such as Price"):
        Prices("mine", **{kind: price})


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf"), True])
def test_the_price_of_searches_is_from_0_on(price: Any) -> None:
    with pytest.raises(ValueError, match="^Invalid price: .*0 or more"):
        Prices("mine", Price(1.0), searches=price)


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("[x](http://a.example)", r"\[x\](http://a.example)"),
        ("<img src=x>", r"\<img src=x>"),
        ("a|b", r"a\|b"),
        (r"\[x](y)", r"\\\[x\](y)"),
        ("`*x*`", r"\`\*x\*\`"),
        ("working_memory", "working_memory"),
    ],
)
def test_a_section_in_a_tuning_report_is_text(name: str, cell: str) -> None:
    assert _cell(name) == _as_text(name) == cell


@pytest.mark.skipif(os.name == "nt", reason="its shell closes no stream")
def test_a_closed_output_is_no_error() -> None:
    """In 0.3.0 `budgetkit sessions >&-` ended in a traceback."""
    code = "import sys; sys.argv[1:] = ['models']; import budgetkit.extras.shell as s; s.main()"
    done = subprocess.run(f'"{sys.executable}" -c "{code}" >&-', shell=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
