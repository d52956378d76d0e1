"""What every test shares: reproducible Hypothesis, and a network that can be shut."""

import socket
from typing import NoReturn

import pytest
from hypothesis import settings

settings.register_profile("budgetkit", derandomize=True, deadline=None, database=None)
settings.load_profile("budgetkit")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shut the network: whoever looks up a host or connects to one fails the test."""

    def refuse(*address: object, **options: object) -> NoReturn:
        raise AssertionError(f"the network is shut in this test, and something asked for {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
