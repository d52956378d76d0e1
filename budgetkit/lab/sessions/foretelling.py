"""What a provider's cache will read of each request, foretold from what happened before it.

    read = what the request before read and wrote      (of its whole prompt, where writes are not told)

unless something breaks the prefix: a compaction, another model, a pause that is longer than what was written lives, or
a user's message, where this session's last ones broke it, as where the thinking of earlier turns is left out. Then only
the head is read, the instructions and tools that many sessions share. Where writes are not told and the session's last
long answers were read again with the prompt before them, the next one is, too. Nothing is taken from the request that
is foretold but its time, its model and its messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from budgetkit.lab.replay.requests import block_positions
from budgetkit.plan.items import Flags, Floats, Ints
from budgetkit.trace import Trace

#: A difference below it is no miss: what ends a prompt is often not written at once.
LEAST_MISS: Final = 1_024
#: How long a provider keeps what it does not say, in seconds.
UNTOLD_LIFE: Final = 3_600.0
_FIVE_MINUTES = 300.0
_HOUR = 3_600.0
_LAST_ANSWERS = 3  # long answers that show whether an answer is read again
_LAST_TURNS = 3  # beginnings of turns that show whether a user's message breaks the prefix


def events(trace: Trace, usage: pd.DataFrame) -> pd.DataFrame:
    """List what happened before each request that can break its prefix.

    Parameters
    ----------
    trace : Trace
        The session.
    usage : DataFrame
        Its requests, of :func:`budgetkit.trace.usage_frame`.

    Returns
    -------
    DataFrame
        One row a request: pause (seconds since the request before began), life (of what was last written, in seconds),
        compacted, new_model, new_turn, new_setting (of the
        thinking), left (another branch goes on here; all bool), blocks (positions of the cache's look-back since).
    """
    places = usage["message_index"].ffill().fillna(-1).to_numpy(dtype=np.int64)
    before = np.concatenate(([-1], places[:-1]))
    compactions = trace.fields.get("compactions") or ()
    summaries = sorted(
        compaction["at"] for compaction in compactions if isinstance(compaction.get("at"), int)
    )
    users = [place for place, message in enumerate(trace.messages) if message.role == "user"]
    settings = trace.fields.get("settings") or ()
    models = usage["model"].to_numpy(dtype=object)
    left = usage["left"].to_numpy(dtype=np.bool_)
    started = usage["started"].where(usage["started"].notna(), usage["time"])
    positions = block_positions(trace.messages)
    pause = started.diff().dt.total_seconds().to_numpy()
    return pd.DataFrame(
        {
            "pause": np.nan_to_num(np.maximum(pause, 0)),
            "life": _lives(usage),
            "compacted": _between(summaries, before, places + 1),
            "new_model": np.array(
                [False, *(models[1:] != models[:-1])][: len(usage)], dtype=np.bool_
            ),
            "new_turn": _between(users, before, places),
            "new_setting": _between([change["at"] for change in settings], before, places + 1),
            "left": left != np.concatenate((left[:1], left[:-1])),
            "blocks": np.maximum(positions[places + 1] - positions[before + 1], 0),
        }
    )


def foretold(usage: pd.DataFrame, happened: pd.DataFrame) -> Ints:
    """Foretell what each request reads from the cache, in tokens; the first one reads what nobody can know.

    Parameters
    ----------
    usage, happened : DataFrame
        Of :func:`budgetkit.trace.usage_frame` and :func:`events`.

    Returns
    -------
    int64 array, shape (requests,)
        In tokens; for the first request what it read.
    """
    read = usage["cache_read_tokens"].to_numpy(dtype=np.int64)
    prompt = usage["context_tokens"].to_numpy(dtype=np.int64)
    whole = expected(usage)
    tells_writes = bool(usage["cache_write_tokens"].sum())
    head = int(read[0]) if len(read) else 0
    answer = whole.copy()
    answer[:1] = read[:1]
    new_prefix = _flags(happened, "new_model") | _flags(happened, "new_setting")
    expires = (happened["pause"] > happened["life"]).to_numpy(dtype=np.bool_)
    only_head = _flags(happened, "compacted") | expires
    new_turn = _flags(happened, "new_turn")
    turn_began = 0
    broke: list[bool] = []  # at the last beginnings of turns
    output = usage["output_tokens"].to_numpy(dtype=np.int64)
    reads_answers: list[bool] = []  # after the last long answers
    for now in range(1, len(answer)):
        if new_prefix[now]:
            answer[now] = 0
        elif only_head[now]:
            answer[now] = min(whole[now], head) if tells_writes or head else whole[now]
        elif new_turn[now]:
            lately = broke[-_LAST_TURNS:]
            if lately and 2 * sum(lately) >= len(lately):
                rest = head if tells_writes else prompt[turn_began]
                answer[now] = min(whole[now], rest)
            broke.append(bool(whole[now] - read[now] > LEAST_MISS))
        if not tells_writes and answer[now] == whole[now]:
            votes = reads_answers[-_LAST_ANSWERS:]
            if len(votes) > 1 and 2 * sum(votes) >= len(votes):
                answer[now] = min(prompt[now], whole[now] + output[now - 1])
            if output[now - 1] > LEAST_MISS and whole[now] - read[now] <= LEAST_MISS:
                reads_answers.append(bool(read[now] - whole[now] > LEAST_MISS // 2))
        if new_turn[now]:
            turn_began = now
    return answer


def expected(usage: pd.DataFrame) -> Ints:
    """Return what each request would read if nothing broke its prefix: what the one before read and wrote."""
    read = usage["cache_read_tokens"].to_numpy(dtype=np.int64)
    written = usage["cache_write_tokens"].to_numpy(dtype=np.int64)
    prompt = usage["context_tokens"].to_numpy(dtype=np.int64)
    left_behind = read + written if written.any() else prompt
    return np.concatenate((read[:1], left_behind[:-1]))


def _lives(usage: pd.DataFrame) -> Floats:
    """Return for each request how long lives what was last written before it, from the writes themselves."""
    written = usage["cache_write_tokens"].to_numpy(dtype=np.int64)
    for_an_hour = usage["cache_write_1h_tokens"].fillna(0).to_numpy(dtype=np.int64)
    life = _FIVE_MINUTES if written.any() else UNTOLD_LIFE
    lives = []
    for now in range(len(usage)):
        lives.append(life)
        if written[now]:
            life = _HOUR if for_an_hour[now] else _FIVE_MINUTES
    return np.array(lives, dtype=np.float64)


def _flags(frame: pd.DataFrame, name: str) -> Flags:
    return frame[name].to_numpy(dtype=np.bool_)


def _between(places: Sequence[int], after: Ints, before: Ints) -> Flags:
    """Say for each pair of places whether one of some others lies between them."""
    ordered = np.array(sorted(places), dtype=np.int64)
    return np.asarray(
        np.searchsorted(ordered, before, "left") > np.searchsorted(ordered, after, "right")
    )
