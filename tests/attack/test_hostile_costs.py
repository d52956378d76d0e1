"""What a hostile text may cost, in time and memory, beside a plain one of the same size: ratios, on whatever machine.

Bounds are some three times what was measured on 2026-11-22, on a loaded machine; what takes quadratic time is far over.
"""

import base64
import io
import json
import random
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import budgetkit as bk
from budgetkit import accuracy, corpora
from budgetkit.counters import counter, exact
from budgetkit.counters.exact import memory
from budgetkit.lab.app.card import DesignCard

SIZE, MEGABYTE = 200_000, 1_000_000
HOSTILE: dict[str, str] = {
    "flags": "🇩🇰",
    "combining marks": "e" + "\u0301" * 40,
    "one long word": "a",
    "base64": base64.b64encode(random.Random(1).randbytes(75_000)).decode(),
    "carriage returns": "\r",
    "line ends": "\n",
    "zeros": "\x00",
    "tabs": "\t",
    "deep JSON": '[{"a":',
    "halves of characters": "\ud83d",
    "escape codes": "\x1b[31m",
    "joined emoji": "👩‍👩‍👧‍👦",
}


def hostile(name: str, size: int) -> str:
    unit = HOSTILE[name]
    return (unit * (size // len(unit) + 1))[:size]


def plain(size: int) -> str:
    """Make text of made-up words that do not come again and again."""
    chance = random.Random(20261122)
    words = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(1, 9)))
        for _ in range(9_000)
    ]
    return " ".join(chance.choices(words, k=size // 4))[:size]


def stored(text: str) -> io.BytesIO:
    said = [("system", "Be brief."), ("user", text), ("assistant", "So."), ("user", "Why?")]
    return io.BytesIO(
        json.dumps({"messages": [{"role": role, "content": each} for role, each in said]}).encode()
    )


def counted(text: str) -> object:
    memory("o200k_base").forget()
    return counter("o200k_base")(text)


def truncated(text: str) -> object:
    memory("o200k_base").forget()
    return bk.truncation.truncate(text, 20_000, counter("o200k_base"), "middle")


def imported(text: str) -> object:
    return bk.load_traces(stored(text)), refused(
        lambda: bk.load_traces(io.BytesIO(text.encode("utf-8", "replace")))
    )


def refused(load: Callable[[], object]) -> object:
    """Load what is no conversation, or hardly one."""
    try:
        return load()
    except ValueError as refusal:
        return len(str(refusal))


def compared(text: str) -> object:
    memory("o200k_base").forget()
    texts = corpora.Corpus((corpora.Document(text, "prose", "en", "a", "a"),))
    return accuracy.compare(["chars/4", "bytes/4", "estimate:o200k_base"], texts, "o200k_base")


#: What is done with a text: how many times the time of a plain one it may take, and of its memory.
WORK: dict[str, tuple[Callable[[str], object], float, float]] = {
    "counting": (counted, 10, 6),
    "truncating": (truncated, 400, 30),
    "importing": (imported, 30, 15),
    "comparing": (compared, 10, 10),
}


def seconds(work: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    work(text)
    return time.process_time() - start


def is_within(bound: float, work: Callable[[str], object], text: str) -> bool:
    """Tell whether it takes no longer, at the second or third time where something else was in the way."""
    return any(seconds(work, text) < bound for _ in range(3))


def peak(work: Callable[[str], object], text: str) -> int:
    tracemalloc.start()
    work(text)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


@pytest.mark.parametrize("name", WORK)
@pytest.mark.filterwarnings("ignore:.*No text in the:UserWarning")
def test_hostile_text_takes_some_times_the_time_and_the_memory_of_plain_text(name: str) -> None:
    work, slower, larger = WORK[name]
    # Tables that are made once.
    (work(hostile("flags", 90_000)), work(hostile("combining marks", 90_000)))
    usual, fills = min(seconds(work, plain(SIZE)) for _ in range(3)), peak(work, plain(SIZE))
    for each in HOSTILE:
        assert is_within(slower * usual + 0.1, work, hostile(each, SIZE)), each
    for each in ("flags", "halves of characters", "joined emoji"):  # the dearest of them
        assert peak(work, hostile(each, SIZE)) < larger * fills + 1_000_000, each


def opened(explorer: Any) -> object:
    """Open every figure and every fold of it."""
    explorer.view.opened = [*explorer.view.figures, *explorer.kind.folds]
    return explorer


def of_documents(text: str) -> object:
    texts = [
        corpora.Document(each, kind, "en", "a", kind)
        for each, kind in ((text, "prose"), ("some words", "chat"))
    ]
    return opened(bk.AccuracyExplorer(corpus=corpora.Corpus(tuple(texts))))


EXPLORERS: dict[str, Callable[[str], object]] = {
    "budget": lambda text: opened(bk.BudgetExplorer("chat", bk.load_traces(stored(text)))),
    "card": lambda text: opened(DesignCard("chat", bk.load_traces(stored(text)))),
    "conversation": lambda text: opened(bk.ConversationExplorer(bk.load_traces(stored(text)))),
    "accuracy": of_documents,
}


@pytest.mark.parametrize("name", EXPLORERS)
def test_every_explorer_opens_any_megabyte_in_some_times_the_time_of_plain_text(name: str) -> None:
    """0.1.0 took a minute for 20,000 flags. No text took a second where this was measured."""
    show = EXPLORERS[name]

    def fresh(text: str) -> object:
        memory("o200k_base").forget()
        return show(text)

    fresh(hostile("flags", 90_000)), fresh(hostile("combining marks", 90_000))
    usual = seconds(fresh, plain(MEGABYTE))
    for each in ("flags", "combining marks", "escape codes"):
        assert is_within(10 * usual + 0.5, fresh, hostile(each, MEGABYTE)), each


def test_the_texts_of_many_small_conversations_are_counted_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file of 50,000 of them took longer to count one by one than to read."""
    traces = bk.load_traces(
        [
            {"messages": [{"role": "user", "content": f"What is {number}?"}]}
            for number in range(2_500)
        ]
    )
    memory("o200k_base").forget()
    calls: list[int] = []
    count_texts = exact.count_texts

    def count(encoding: str, texts: list[str], *options: Any) -> list[int]:
        calls.append(len(texts))
        return count_texts(encoding, texts, *options)

    monkeypatch.setattr(exact, "count_texts", count)
    explorer = bk.BudgetExplorer("chat", traces, model="gpt-5.4")
    assert explorer.stage.requests is not None
    explorer.stage.requests.all_turns()
    assert sum(calls) >= 2_500
    assert len(calls) < 100
