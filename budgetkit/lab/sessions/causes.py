"""Why a request read less from the cache than the one before had left there: each miss has a cause, or none is known.

The first that holds is the cause. What is compared is what happened, and where the read stopped: exactly at the end of
an earlier request's prompt, or behind the instructions and tools.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pandas as pd

from budgetkit.lab.sessions.foretelling import LEAST_MISS, expected
from budgetkit.plan.items import Flags
from budgetkit.trace import Trace

COMPACTION: Final = "compaction"
MODEL: Final = "another model"
LIFE: Final = "expired in a pause"
BRANCH: Final = "another branch"
TURN: Final = "thinking left out"
EARLIER: Final = "older copy read"
SETTING: Final = "thinking set otherwise"
HEAD: Final = "head changed with a user's message"
BELOW: Final = "below the minimum"
BLOCKS: Final = "out of reach"
UNEXPLAINED: Final = "unexplained"
#: What each cause means, in a sentence.
SENTENCES: Final = {
    COMPACTION: "a summary took the place of what the prompt began with",
    MODEL: "another model has a cache of its own",
    LIFE: "the pause was longer than what was written lives",
    BRANCH: "the session went on from an earlier message",
    TURN: "at a user's message the thinking of the turn before is left out, and the prompt changes there",
    EARLIER: "the read stops where an earlier prompt ended: newer blocks were not there yet, or not on that machine",
    SETTING: "the thinking was set otherwise, which changes the prompt before the messages",
    HEAD: "only the head was read, at a user's message and with no long pause, as at others of this session",
    BELOW: "the prompt was shorter than what the provider keeps",
    BLOCKS: "more blocks were added than the cache looks back",
    UNEXPLAINED: "nothing in the session says why",
}
_MINIMUM = 1_024
_LOOKBACK = 20
_NEAR = 512  # tokens by which a cache that measures in steps stops short of where an earlier prompt ended
_HABIT = 3  # misses of one shape in a session that are no accident
# Of all turns.
_KEEPS_THINKING = re.compile(r"opus-(4-[5-9]|[5-9])|sonnet-(4-[6-9]|[5-9])|fable|mythos")


def misses(trace: Trace, usage: pd.DataFrame, happened: pd.DataFrame) -> pd.DataFrame:
    """List the requests that read more than 1,024 tokens less than the one before had left in the cache.

    Parameters
    ----------
    trace : Trace
        The session.
    usage, happened : DataFrame
        Of :func:`budgetkit.trace.usage_frame` and :func:`budgetkit.lab.sessions.foretelling.events`.

    Returns
    -------
    DataFrame
        One row a miss: request (from 1), missed (in tokens), cause, detail (a sentence).
    """
    whole = expected(usage)
    read = usage["cache_read_tokens"].to_numpy(dtype=np.int64)
    prompt = usage["context_tokens"].to_numpy(dtype=np.int64)
    written = usage["cache_write_tokens"].to_numpy(dtype=np.int64)
    ends = np.where(written.any(), read + written, prompt)
    head = int(read[0]) + LEAST_MISS if len(read) else 0
    at_heads = (whole - read > LEAST_MISS) & (read <= head) & _flags(happened, "new_turn")
    at_heads &= (happened["pause"] <= happened["life"]).to_numpy(dtype=np.bool_) & ~_flags(
        happened, "compacted"
    )
    is_habit = int(at_heads.sum()) >= _HABIT
    compacted, new_model, left = (
        _flags(happened, name) for name in ("compacted", "new_model", "left")
    )
    new_setting = _flags(happened, "new_setting")
    new_turn = _flags(happened, "new_turn")
    pause, life = (happened[name].to_numpy(dtype=np.float64) for name in ("pause", "life"))
    blocks = happened["blocks"].to_numpy(dtype=np.int64)
    models = [str(name) for name in usage["model"]]
    # Who tells what was written reads back exactly that; within 512 tokens is then no more than chance has it.
    near = 0 if written.any() else _NEAR
    rows = []
    for now in np.flatnonzero(whole - read > LEAST_MISS).tolist():
        short = ends[: max(0, now - 1)] - read[now]
        earlier = np.flatnonzero((short >= 0) & (short <= near))
        cause = UNEXPLAINED
        if compacted[now]:
            cause = COMPACTION
        elif new_model[now]:
            cause = MODEL
        elif pause[now] > life[now]:
            cause = LIFE
        elif left[now]:
            cause = BRANCH
        elif new_setting[now]:
            cause = SETTING
        elif prompt[now] < _MINIMUM:
            cause = BELOW
        elif len(earlier) and read[now]:
            cause = EARLIER
        elif new_turn[now] and _thought(trace, usage, now):
            cause = TURN
        elif is_habit and at_heads[now]:
            cause = HEAD
        elif blocks[now] > _LOOKBACK:
            cause = BLOCKS

        detail = SENTENCES[cause]
        if cause == LIFE:
            detail = f"a pause of {_duration(pause[now])}, and what was written lives {_duration(life[now])}"
        elif cause == MODEL:
            detail = f"{models[now]} after {models[now - 1]}: {detail}"
        elif cause == EARLIER:
            detail = f"{detail} (request {int(earlier[-1]) + 1:,})"
        rows.append((now + 1, int(whole[now] - read[now]), cause, detail))
    frame = pd.DataFrame(rows, columns=["request", "missed", "cause", "detail"])
    return frame.astype({"request": "int64", "missed": "int64"})


def _flags(frame: pd.DataFrame, name: str) -> Flags:
    return frame[name].to_numpy(dtype=np.bool_)


def _thought(trace: Trace, usage: pd.DataFrame, now: int) -> bool:
    """Say whether the turn before a request holds thinking, which is left out of the prompt at the next message."""
    place = int(usage["message_index"].fillna(-1).to_numpy(dtype=np.int64)[now - 1])
    if place < 0 or _KEEPS_THINKING.search(str(usage["model"].iloc[now])):
        return False
    for index in range(place, -1, -1):
        message = trace.messages[index]
        if message.raw.get("reasoning_content"):
            return True
        if message.role == "user":
            return False
    return False


def _duration(seconds: float) -> str:
    """Write a duration as people say it.

    >>> _duration(300), _duration(7_500), _duration(42)
    ('5 minutes', '2.1 hours', '42 seconds')
    """
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3_600:.1f} hours"
