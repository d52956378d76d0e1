"""Faults from outside: a full disk, a death in a save, folders nobody may write to, clocks that go back, eight threads.

Faults of workers are in ``test_streaming``, of the file of a provider's counts in ``test_endpoints``.
"""

import asyncio
import errno
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import budgetkit as bk
from budgetkit import figures, policies
from budgetkit.counters import CalibratedCounter, counter, speed
from budgetkit.counters.exact import memory
from budgetkit.extras.shell.program import run
from budgetkit.lab.replay.prompt_cache import CACHES
from budgetkit.plan.batch import batch_of
from tests.hostile import SHORT, long_text

posix = pytest.mark.skipif(os.name != "posix", reason="signals and limits of files are POSIX")
forks = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

# What is saved to a file


SAVES: dict[str, Callable[[Path], object]] = {
    "left.svg": lambda path: figures.waterfall.save(path, bk.presets.chat(8_192)),
    "report.html": lambda path: bk.BudgetExplorer("chat", "support-chat").save(path),
    "baseline.json": lambda path: run(
        ["check", "support-chat", "-w", "100000", "--save-baseline", str(path)]
    ),
}
COMMANDS = {
    "report.html": lambda path: run(["report", "support-chat", "-o", str(path)]),
    "baseline.json": SAVES["baseline.json"],
}


def after_a_fork(work: Callable[[], object]) -> int:
    """Do something in a process of its own; return how it ended: its exit code, or the signal that killed it, below 0.

    Its files may have nine bytes each: whoever writes more is told so, as on a full disk, or dies of it.
    """
    import resource

    if (child := os.fork()) == 0:
        code = 99
        try:
            signal.alarm(60)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9))
            found = work()
            code = found if isinstance(found, int) else 0
        except OSError as error:
            code = error.errno or 98
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@posix
@forks
@pytest.mark.parametrize("name", SAVES)
def test_a_process_that_dies_saving_leaves_the_old_file(name: str, tmp_path: Path) -> None:
    """It dies at the ninth byte; 0.1.0 wrote baselines over the old ones, which then were nine bytes long."""
    path = tmp_path / name
    SAVES[name](path)
    saved = path.read_bytes()
    assert len(saved) > 9

    def die() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        SAVES[name](path)

    assert after_a_fork(die) == -signal.SIGXFSZ
    assert path.read_bytes() == saved


@posix
@forks
@pytest.mark.parametrize("name", SAVES)
def test_a_full_disk_leaves_the_old_file_alone(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    SAVES[name](path)
    saved = path.read_bytes()
    assert after_a_fork(lambda: SAVES[name](path)) == (
        2 if name == "baseline.json" else errno.EFBIG
    )
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert path.read_bytes() == saved


@posix
def test_a_link_to_itself_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "baseline.json"
    path.symlink_to(path)
    assert SAVES["baseline.json"](path) == 2
    assert "symbolic links" in capsys.readouterr().err
    assert path.is_symlink()


@contextmanager
def nobody_may_write(folder: Path) -> Iterator[None]:
    """Shut a folder, also to root, who becomes nobody for a while."""
    folder.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)


@posix
@pytest.mark.parametrize("name", SAVES)
def test_a_folder_that_may_not_be_written_to_is_said_with_the_name_that_was_given(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not with that of the file that is written beside it."""
    path = tmp_path / name
    SAVES[name](path)
    # What is imported at first use may not be readable for nobody.
    COMMANDS.get(name, SAVES[name])(path)
    capsys.readouterr()
    for folder in (tmp_path, tmp_path / "none"):
        goal = folder / name
        with nobody_may_write(tmp_path):
            if name == "left.svg":
                with pytest.raises(OSError, match="Permission denied|No such file") as refusal:
                    SAVES[name](goal)
                assert refusal.value.filename == str(goal)
                continue
            assert COMMANDS[name](goal) == 2
        said = capsys.readouterr().err
        # whether a folder is there cannot be seen where the one above it is shut
        shut = (
            f"Error: Cannot read or write '{goal}': Permission denied. "
            "Check the path and its permissions.\n"
        )
        nowhere = f"Error: Folder not found: '{folder}'. Create it, or give another path.\n"
        assert said == shut or (folder != tmp_path and said == nowhere)


@posix
@forks
def test_a_full_disk_changes_no_count_of_the_fast_extra() -> None:
    """Its vocabulary is handed over as a file; where none can be written, tiktoken counts."""
    pytest.importorskip("gigatoken", reason="the fast extra is not installed")
    texts = [long_text(200_000, seed) for seed in range(4)]
    expected = counter("cl100k_base").many(texts)

    def count() -> None:
        memory("cl100k_base").forget()
        speed._characters.clear()
        speed._tokenizers.clear()
        speed._is_usable = (
            True  # a forked child loads nothing; this one stands for a process of its own
        )
        warning = "raised OSError: .* File too large.*Using tiktoken instead"
        with pytest.warns(RuntimeWarning, match=warning):
            assert speed.accelerated("cl100k_base") is None
        assert counter("cl100k_base").many(texts) == expected

    assert after_a_fork(count) == 0


# Clocks that go back


def test_a_clock_that_was_set_back_makes_no_prompt_cache_younger() -> None:
    """An hour that comes again is no pause of less than nothing, which kept for an hour what is kept for minutes."""
    times = ["11:00", "11:01", "10:00", "10:10", "10:11"]
    raw = [
        {
            "role": "assistant" if i % 2 else "user",
            "content": "x" * 2_000,
            "timestamp": f"2026-11-21T{times[i // 2]}:00Z",
        }
        for i in range(10)
    ]
    trace = bk.Trace("set back", tuple(map(bk.Message, raw)))
    budget = bk.Budget(100_000, (), [bk.Allocation("history"), bk.Allocation("current")])
    replayed = bk.replay(
        trace, budget, policies.OldestFirst(), counter=len, cache=CACHES["anthropic"]
    )
    cached = replayed.frame()["cached"].tolist()
    assert [tokens > 0 for tokens in cached] == [False, True, True, False, True]


def test_the_time_of_day_plays_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits or measures asks a clock that cannot be set."""
    now = iter(range(10**9, 0, -3_600))
    explorer = bk.BudgetExplorer("chat", "support-chat")
    before = [counter("o200k_base")("set back"), explorer.texts]
    monkeypatch.setattr(time, "time", lambda: float(next(now)))
    for tokens in (900, 1_000, 1_100):
        explorer._receive(
            explorer.view, {"kind": "size", "line": "retrieval", "size": tokens, "gesture": "a"}, []
        )
    explorer._receive(explorer.view, {"kind": "undo"}, [])
    memory("o200k_base").forget()
    assert [counter("o200k_base")("set back"), explorer.texts] == before


# Many at once


TEXTS = [
    *SHORT,
    *(f"{word} {number} times" for number in range(120) for word in ("said", "сказал", "说了")),
]
COUNTERS: dict[str, Callable[[], Any]] = {
    **{
        name: partial(counter, name)
        for name in ("o200k_base", "cl100k_base", "estimate:o200k_base", "utf16/4")
    },
    "calibrated": lambda: CalibratedCounter(
        "mine", counter("o200k_base"), 1.25, "measured 2026-11-22", mark=0.5
    ),
}


def shuffled(number: int) -> list[int]:
    """Give all places in an order of its own for each number."""
    return sorted(range(len(TEXTS)), key=lambda place: (place * 7919 + number * 104_729) % 10_007)


@pytest.mark.parametrize("make", COUNTERS.values(), ids=COUNTERS)
def test_eight_threads_and_tasks_count_what_one_counts(make: Callable[[], Any]) -> None:
    """One counter for all, each in an order of its own, one by one and many at once, while its memory is emptied."""
    count = make()
    alone = [count(text) for text in TEXTS]

    def work(number: int) -> list[int]:
        order = shuffled(number)
        if number % 3 == 0:
            memory("o200k_base").forget()
        found = (
            count.many([TEXTS[at] for at in order])
            if number % 2
            else [count(TEXTS[at]) for at in order]
        )
        return [tokens for _, tokens in sorted(zip(order, found, strict=True))]

    async def together() -> list[list[int]]:
        return await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(8)))

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(work, range(16))] == [alone] * 16
    assert asyncio.run(together()) == [alone] * 8


def test_eight_threads_share_a_trace_a_batch_and_the_tables() -> None:
    """Demand by turn, plans of many requests and models are remembered; all are asked for at once, from nothing."""
    count, budgets = (
        counter("chars/4"),
        [bk.presets.chat(size) for size in (2_000, 4_000, 8_000, 16_000)],
    )
    demands = bk.load_trace("support-chat").demand(count)

    def work(trace: bk.Trace, batch: Any, number: int) -> tuple[Any, ...]:
        budget = budgets[number % 4]
        found = {name: each["granted"].tolist() for name, each in batch.columns(budget).items()}
        frame = bk.replay(trace, budget, policies.OldestFirst(), counter=count).frame()
        return found, frame.to_csv(), trace.demand(count).to_csv(), bk.model("gpt-4o").window

    fresh = (
        bk.load_trace("support-chat"),
        batch_of(pd.DataFrame({"conversation": demands.sum(axis=1)})),
    )
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda number: work(*fresh, number), range(32))]
    for number, each in enumerate(found):
        assert each == found[number % 4]
    alone = (
        bk.load_trace("support-chat"),
        batch_of(pd.DataFrame({"conversation": demands.sum(axis=1)})),
    )
    assert found[:4] == [work(*alone, number) for number in range(4)]
