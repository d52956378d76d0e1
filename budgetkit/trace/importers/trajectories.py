"""Trajectories of agents: SWE-agent's ``.traj``, tau-bench's runs, the web sessions of Claude Code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budgetkit.trace.importers import sessions

Raw = Mapping[str, Any]


def matches(value: Raw) -> bool:
    """Say whether a value is a trajectory."""
    return "messages" not in value and any(isinstance(value.get(name), list) for name in _FIELDS)


def conversation(value: Raw) -> dict[str, Any]:
    """Read a trajectory.

    Examples
    --------
    >>> steps = [{"action": "ls", "observation": "a.txt", "response": "Let us see. ls"}]
    >>> [message["role"] for message in conversation({"trajectory": steps})["messages"]]
    ['assistant', 'user']
    """
    field = next(name for name in _FIELDS if isinstance(value.get(name), list))
    rest = {name: other for name, other in value.items() if name != field}
    return {**rest, **_FIELDS[field](value[field])}


def _history(history: list[Any]) -> dict[str, Any]:
    """Read what SWE-agent sent: chat messages, the results with a list of the calls they answer."""
    return {"messages": [_answering(entry) for entry in history], "format": "swe-agent"}


def _answering(entry: Any) -> Any:
    if not isinstance(entry, Mapping) or entry.get("role") != "tool" or "tool_call_id" in entry:
        return entry
    ids = entry.get("tool_call_ids")
    return {**entry, "tool_call_id": ids[0]} if isinstance(ids, list) and ids else entry


def _trajectory(steps: list[Any]) -> dict[str, Any]:
    """Read what SWE-agent did, where the file does not hold what it sent."""
    messages: list[dict[str, Any]] = []
    for step in steps:
        raw = step if isinstance(step, Mapping) else {}
        messages.append(
            {"role": "assistant", "content": str(raw.get("response") or raw.get("action") or ""), "native": step}
        )
        messages.append({"role": "user", "content": str(raw.get("observation") or "")})
    return {"messages": messages, "format": "swe-agent"}


def _run(messages: list[Any]) -> dict[str, Any]:
    return {"messages": messages, "format": "tau-bench"}


def _web_session(lines: list[Any]) -> dict[str, Any]:
    found = dict(next(sessions.conversations(enumerate(lines, start=1)), (0, {"messages": []}))[1])
    return {**found, "messages": [placed.value for placed in found["messages"]]}


_FIELDS = {"history": _history, "trajectory": _trajectory, "traj": _run, "loglines": _web_session}
