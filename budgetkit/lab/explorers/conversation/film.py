"""Film: what a page needs to play a replay by itself: which message is in which requests, and what the cache holds.

It is sent once, as columns of numbers. A track is one policy: its blocks stand in the order of the prompt, and their
sizes sum to what is sent, request by request.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Final

import numpy as np

from budgetkit.budget.colours import GREEN, GREY, PALE, PURPLE, colour
from budgetkit.lab.replay import Replay
from budgetkit.lab.replay.requests import pauses
from budgetkit.message import RESULT_ROLES
from budgetkit.plan.items import Floats, Ints
from budgetkit.pruning.history import NEVER

Data = dict[str, Any]
#: Who speaks, with the shade of the history's colour that is theirs.
SPEAKERS: Final[Mapping[str, str]] = {"user": PURPLE, "assistant": "#E5BFD2", "tool": "#96517A"}
_MOST: Final = 20_000  # messages that are shown one by one; of more, the history is one block
WARM, BY_TIME, BY_CHANGE = range(3)


def film(replays: Mapping[str, Replay]) -> Data:
    """Return what a page plays: the messages, and a track for each policy."""
    first = next(iter(replays.values()))
    placed = first.placed
    is_shown = len(first.trace.messages) <= _MOST
    kinds = _kinds(replays)
    places = {name: place for place, (name, _) in enumerate(kinds)}
    return {
        "by": "turn" if len(placed.requests) == len(first.trace.turns) else "request",
        "turns": [request.number for request in placed.requests],
        "room": first.budget.usable,
        "room_text": f"usable {first.budget.usable:,}",
        "kinds": kinds,
        **_messages(first, places, is_shown),
        "tracks": [track(name, outcome, places, is_shown) for name, outcome in replays.items()],
    }


def _kinds(replays: Mapping[str, Replay]) -> list[tuple[str, str]]:
    """List what a block can be, with its colour: who speaks, what stands in for messages, another section."""
    kinds = [*SPEAKERS.items(), ("placeholders", GREY), ("summary", GREEN), ("other history", PALE)]
    sections = dict.fromkeys(
        name for outcome in replays.values() for name in outcome.granted if name != outcome.section
    )
    return kinds + [(name, colour(name)) for name in sections]


def _messages(outcome: Replay, places: Mapping[str, int], is_shown: bool) -> Data:
    """Return for each message its size, its kind, and the first request that holds it; 0 for none."""
    if not is_shown:
        return {"tokens": [], "kind": [], "first": []}
    placed = outcome.placed
    speakers = (
        "tool" if message.role in RESULT_ROLES else message.role
        for message in outcome.trace.messages
    )
    entry = np.where(placed.entry < len(placed.requests), placed.entry + 1, 0)
    kind = [places.get(speaker, places["other history"]) for speaker in speakers]
    return {"tokens": placed.tokens.tolist(), "kind": kind, "first": entry.tolist()}


def track(name: str, outcome: Replay, places: Mapping[str, int], is_shown: bool) -> Data:
    """Return one policy's part: when messages leave, what stands beside them, and what is read and paid."""
    sections = list(outcome.granted)
    head = sections.index(outcome.section)
    others = [
        (places[section], sizes.tolist())
        for section, sizes in outcome.granted.items()
        if section != outcome.section
    ]
    if is_shown:
        whole = _whole(outcome)
    else:
        whole = np.zeros_like(outcome.sent)
    rest = outcome.granted[outcome.section] - whole
    left = outcome.kept
    sent = outcome.sent
    has_shrunk = any(at != NEVER for at in left.shrunk)
    others.insert(
        head,
        (places["placeholders" if has_shrunk else "other history"], np.maximum(rest, 0).tolist()),
    )
    cost = outcome.cost
    return {
        "name": name,
        "before": others[:head],
        "after": others[head:],
        "gone": [at + 1 for at in left.gone] if is_shown else [],
        "shrunk": [at + 1 for at in left.shrunk] if is_shown and has_shrunk else [],
        "summaries": [list(section) for section in summaries(outcome)] if is_shown else [],
        "kind_of_summary": places["summary"],
        "back": {str(at + 1): list(slots) for at, slots in enumerate(outcome.returned) if slots}
        if is_shown
        else {},
        "sent": sent.tolist(),
        "cached": outcome.cached.tolist(),
        "written": outcome.written.tolist(),
        "cold": cold(outcome, pauses(outcome.trace.messages, outcome.placed.requests)),
        "cost": None if np.isnan(cost).any() else np.cumsum(cost).round(6).tolist(),
    }


def summaries(outcome: Replay) -> list[tuple[int, int, int, int]]:
    """List the summaries: place, first request, the first without it (0 for none), and tokens."""
    rows: list[tuple[int, int, int, int]] = []
    standing: dict[int, int] = {}  # the row of the summary that stands in a slot

    def end(slot: int, at: int) -> None:
        """Note that the summary of a slot, if there is one, is in no request from this one on."""
        number = standing.pop(slot, None)
        if number is not None:
            place, begins, _, size = rows[number]
            rows[number] = (place, begins, at + 1, size)

    # In one request summaries are written first; what is still too large is dropped last.
    written = [
        (at, 0, slot, tokens, replaced) for at, slot, tokens, replaced in outcome.kept.written
    ]
    dropped: list[tuple[int, int, int, int, tuple[int, ...]]] = [
        (at, 1, slot, 0, (slot,)) for at, slot in outcome.kept.dropped_summaries
    ]
    for at, is_dropped, slot, tokens, replaced in sorted(written + dropped, key=itemgetter(0, 1)):
        for message in replaced:
            end(message, at)
        if not is_dropped:
            standing[slot] = len(rows)
            rows.append((slot, at + 1, 0, tokens))
    return rows


def cold(outcome: Replay, waited: Floats) -> list[int]:
    """Say at which requests nothing is left of what the cache held, and why: by a pause, or by a changed beginning."""
    lifetime = outcome.cache.lifetime
    late = np.nan_to_num(waited) > (np.inf if lifetime is None else lifetime)
    had_cache = np.concatenate(([0], (outcome.cached + outcome.written)[:-1])) > 0
    results: list[int] = np.where(
        had_cache & (outcome.cached == 0), np.where(late, BY_TIME, BY_CHANGE), WARM
    ).tolist()
    return results


def _whole(outcome: Replay) -> Ints:
    """Sum up what is shown block by block of the history: whole messages, summaries, and what came back."""
    tokens = outcome.placed.tokens.tolist()
    requests = len(outcome.over)
    change = np.zeros(requests + 1, dtype=np.int64)
    for slot, begins in enumerate(outcome.placed.entry.tolist()):
        ends = [at for at in (outcome.kept.gone[slot], outcome.kept.shrunk[slot]) if at != NEVER]
        if begins < (end := min([*ends, requests])):
            change[begins] += tokens[slot]
            change[end] -= tokens[slot]
    for _, begins, end, size in summaries(outcome):
        change[begins - 1] += size
        change[end - 1 if end else requests] -= size
    back = [sum(tokens[slot] for slot in slots) for slots in outcome.returned]
    return np.cumsum(change)[:-1] + np.array(back or [0] * requests, dtype=np.int64)
