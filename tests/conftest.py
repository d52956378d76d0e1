"""What all tests share: reproducible Hypothesis, a network that can be shut, a line on what was skipped."""

from __future__ import annotations  # pytest names its reporter only from 8.4 on

import gc
import os
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from typing import NoReturn

import pytest
from hypothesis import settings

collect_ignore = ["fuzz.py"]  # run by hand, with a fuzzer that make test does not install

#: How much of what is random is tried beside the ordinary run: 0.1 in make check, 100 before a release (CONTRIBUTING).
#: Up to the ordinary run it is the same each time.
EFFORT = float(os.environ.get("BUDGETKIT_EFFORT", "1"))


def examples(number: int) -> int:
    """Return how many examples of something random are tried, where an ordinary run tries so many."""
    return max(1, round(number * EFFORT))


settings.register_profile(
    "budgetkit",
    max_examples=examples(100),
    derandomize=EFFORT <= 1,
    deadline=None,
    database=None,
    print_blob=True,
)
settings.load_profile("budgetkit")


@pytest.fixture(scope="module", autouse=True)
def close_widgets() -> Iterator[None]:
    """Close a module's widgets, which ipywidgets keeps, and exempt the rest from garbage collection."""
    yield
    if "ipywidgets" in sys.modules:
        sys.modules["ipywidgets"].Widget.close_all()
    gc.collect()
    gc.freeze()


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shut the network: whoever looks up a host or connects to one fails the test."""

    def refuse(*address: object, **options: object) -> NoReturn:
        raise AssertionError(f"the network is shut in this test, and something asked for {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once for each reason how many tests were skipped; pytest would say it for every test."""
    reasons = (report.longrepr for report in terminalreporter.getreports("skipped"))
    for reason, count in Counter(
        reason[2] for reason in reasons if isinstance(reason, tuple)
    ).items():
        terminalreporter.write_line(f"{count} skipped: {reason.removeprefix('Skipped: ')}")
