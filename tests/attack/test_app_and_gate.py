"""What attacks on the served app, the gate and the counts found: each case was accepted in silence before."""

from __future__ import annotations

import struct
from typing import Any

import pytest

import budgetkit as bk


def websocket_message(offsets: list[int], size: int) -> bytes:
    """Write a message of the kernels' protocol with the given offsets, filled up with blanks."""
    return struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets).ljust(size)


@pytest.mark.parametrize(
    ("offsets", "is_read"),
    [
        ([100, 105, 110], True),
        ([100, 100, 200], True),
        ([100, 105, *[1, 20_000] * 1_000], False),
        ([100, 105, 1], False),
    ],
)
def test_a_message_whose_parts_overlap_is_not_read(
    offsets: list[int], is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page's message of 200 kB took 2.5 GB of the server for all pages."""
    pytest.importorskip("voila")
    from budgetkit.lab.app.serving import Channels, VoilaKernelWebsocketHandler

    events: list[Any] = []
    monkeypatch.setattr(
        VoilaKernelWebsocketHandler, "on_message", lambda page, message: events.append("read")
    )
    page = Channels.__new__(Channels)
    monkeypatch.setattr(page, "close", lambda code, reason: events.append(code), raising=False)
    page.on_message(websocket_message(offsets, 20_000))
    assert events == (["read"] if is_read else [1007])


def test_what_google_genai_sends_is_counted() -> None:
    """Tools under "config", and a cache in snake case, counted nothing."""
    body = {"model": "gemini-2.5-flash", "contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    tools = [{"function_declarations": [{"name": "ping", "description": "Look. " * 500}]}]
    inside = bk.count_request({**body, "config": {"tools": tools}})
    assert inside.tokens == bk.count_request({**body, "tools": tools}).tokens > 500
    for state in ({"cached_content": "c"}, {"config": {"cached_content": "c"}}):
        assert bk.count_request({**body, **state}).uncounted == ("server state (cachedContent)",)
