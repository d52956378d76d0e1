"""Warnings name the line of the program that calls, by whichever public function they come."""

import asyncio
import warnings
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

import budgetkit as bk
from budgetkit import Allocation, Budget, policies

TINY = Budget(20, (), [Allocation("history"), Allocation("current")], deficit="signed")


def talk_over_its_window() -> bk.Conversation:
    talk = bk.Conversation(TINY, shorten=False)
    talk.add({"role": "user", "content": "A question far longer than its window. " * 10})
    return talk


def asks_too_much(folder: Path) -> None:
    talk_over_its_window().request()


def asks_too_much_in_a_task(folder: Path) -> None:
    async def ask() -> None:
        await talk_over_its_window().arequest()

    asyncio.run(ask())


def goes_on_with_another_policy(folder: Path) -> None:
    bk.Conversation.from_json(bk.Conversation(TINY).to_json(), policies.SlidingWindow(2))


def goes_on_with_another_budget(folder: Path) -> None:
    bk.Conversation.from_json(bk.Conversation(TINY).to_json(), window=40)


def asks_for_an_unknown_model(folder: Path) -> None:
    bk.model("no-such-model")


def loads_a_silent_trace(folder: Path) -> None:
    path = folder / "silent.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": ""}]}\n')
    bk.load_trace(path)


def loads_an_archive_with_other_files(folder: Path) -> None:
    path = folder / "mixed.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("talk.jsonl", '{"messages": [{"role": "user", "content": "Hello"}]}\n')
        archive.writestr("other.json", '{"weather": "sunny"}')
    bk.load_traces(path)


WAYS = (
    asks_too_much,
    asks_too_much_in_a_task,
    goes_on_with_another_policy,
    goes_on_with_another_budget,
    asks_for_an_unknown_model,
    loads_a_silent_trace,
    loads_an_archive_with_other_files,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_warning_names_the_line_that_calls(way: Callable[[Path], None], tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        way(tmp_path)
    assert caught
    assert {Path(warning.filename) for warning in caught} == {Path(__file__)}, caught[0]
