"""Causes of cache misses: why a request read less than was cached.

The cause of a miss is the first one that applies. If no cause applies, the miss is unexplained. Causes follow from the
recorded events and from the position at which the read stopped: at the end of an earlier prompt, or after
instructions and tools.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import budgetkit.frames as pd
from budgetkit.lab.replay.prefix import block_positions
from budgetkit.plan import Flags, Floats, Ints
from budgetkit.requests.reading.request import parsed
from budgetkit.trace import Trace, Usage

#: Minimum tokens of a miss, since the end of a prompt is often not cached at once.
LEAST_MISS = 1_024
#: Default cache lifetime of a provider, in seconds.
UNTOLD_LIFE = 3_600.0
_FIVE_MINUTES = 300.0
_HOUR = 3_600.0
_LAST_ANSWERS = 3  # last long answers, to predict whether an answer is read from the cache
_LAST_TURNS = 3  # last turns, to predict whether a user's message breaks the prefix


def events(trace: Trace, usage: Usage) -> Usage:
    """List the events that can break the prefix of each request.

    Parameters
    ----------
    trace : Trace
        The recorded session.
    usage : dict of arrays
        Requests of the session, from :func:`budgetkit.trace.usage_columns`.

    Returns
    -------
    dict of arrays
        One array per event, with one value per request:

        - pause: seconds since the previous request
        - life: lifetime of the last cache write, in seconds
        - compacted, new_model, new_turn: True after a compaction, a change of model or a user message
        - new_setting: True after a change of the thinking settings
        - left: True if the session continues on another branch
        - blocks: number of blocks added since the previous request, for the cache's lookback
    """
    # A request whose answer is not among the messages has the position of the previous request.
    is_placed = usage["message_index"] >= 0
    latest = np.maximum.accumulate(np.where(is_placed, np.arange(len(is_placed)), -1))
    places = np.where(latest >= 0, usage["message_index"][latest], -1)
    before = np.concatenate(([-1], places[:-1]))
    summaries = [entry["at"] for entry in trace.compactions if isinstance(entry.get("at"), int)]
    users = [place for place, message in enumerate(trace.messages) if message.role == "user"]
    settings = trace.fields.get("settings") or ()
    models = usage["model"]
    left = usage["left"]
    started = np.where(np.isnan(usage["started"]), usage["time"], usage["started"])
    positions = block_positions(trace.messages)

    # The lifetime of the last cache write before each request; its position is counted from 1, 0 means none.
    written = usage["cache_write_tokens"] != 0
    lives = np.where(usage["cache_write_1h_tokens"] > 0, _HOUR, _FIVE_MINUTES)
    untold = _FIVE_MINUTES if written.any() else UNTOLD_LIFE
    last = np.maximum.accumulate(np.where(written, np.arange(len(written)) + 1, 0))
    pause = np.diff(started, prepend=started[:1])
    return {
        "pause": np.nan_to_num(np.maximum(pause, 0)),
        "life": np.append(untold, lives)[np.append(0, last[:-1])],
        "compacted": _between(summaries, before, places + 1),
        "new_model": np.append(False, models[1:] != models[:-1])[: len(models)].astype(bool),
        "new_turn": _between(users, before, places),
        "new_setting": _between([change["at"] for change in settings], before, places + 1),
        "left": left != np.concatenate((left[:1], left[:-1])),
        "blocks": np.maximum(positions[places + 1] - positions[before + 1], 0),
    }


def foretold(usage: Usage, happened: Usage) -> Ints:
    """Predict each request's cache read, in tokens.

    Parameters
    ----------
    usage, happened : dict of arrays
        The results of :func:`budgetkit.trace.usage_columns` and :func:`events`.

    Returns
    -------
    int64 array, shape (requests,)
        Predicted tokens. The value of the first request is the recorded read.
    """
    read = usage["cache_read_tokens"]
    prompt = usage["context_tokens"]
    whole = expected(usage)
    tells_writes = bool(usage["cache_write_tokens"].sum())
    head = int(read[0]) if len(read) else 0
    answer = whole.copy()
    answer[:1] = read[:1]
    new_prefix = happened["new_model"] | happened["new_setting"]
    expires = happened["pause"] > happened["life"]
    only_head = happened["compacted"] | expires
    new_turn = happened["new_turn"]
    turn_began = 0
    broke: list[bool] = []  # at the start of the last turns
    output = usage["output_tokens"]
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


def expected(usage: Usage) -> Ints:
    """Return the cache read of each request if nothing was missed.

    This is everything that the previous request read and wrote or, if no writes are recorded, the previous request's
    prompt. The first request's value is the recorded read.
    """
    read = usage["cache_read_tokens"]
    written = usage["cache_write_tokens"]
    prompt = usage["context_tokens"]
    left_behind = read + written if written.any() else prompt
    return np.concatenate((read[:1], left_behind[:-1]))


def _between(places: Sequence[int], after: Ints, before: Ints) -> Flags:
    """Return True for each pair of bounds with a position between them."""
    ordered = np.array(sorted(places), "int64")
    return np.searchsorted(ordered, before, "left") > np.searchsorted(ordered, after, "right")


#: The smallest number that may be an id; a term also has at least five characters.
_LEAST_ID = 10_000
# A path, an id or a name as programs write it: at least five characters, with a digit, a slash or an underscore within.
_TERM = re.compile(
    r"(?<![A-Za-z0-9_./-])[_./-]*+(?=[A-Za-z0-9_./-]{5})"
    r"([A-Za-z0-9](?=[A-Za-z.-]*+[0-9_/])[A-Za-z0-9_./-]*[A-Za-z0-9])"
)


def used_later(trace: Trace) -> pd.DataFrame:
    """List the calls that copy a term from an earlier message.

    A term is an id, a path or a name. The earlier message is the first one that contains the term.

    Parameters
    ----------
    trace : Trace
        The conversation.

    Returns
    -------
    DataFrame
        One row per pair of messages, with the columns message (index of the message with the call), needs (index of the
        earlier message) and term.

    Examples
    --------
    >>> from budgetkit.message import Message
    >>> call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"path": "src/a_1.py"}'}}
    >>> dialogue = [{"role": "user", "content": "Look at src/a_1.py."}, {"role": "assistant", "tool_calls": [call]}]
    >>> used_later(Trace("toy", tuple(map(Message, dialogue)))).values.tolist()
    [[1, 0, 'src/a_1.py']]
    """
    first: dict[str, int] = {}
    pairs: dict[tuple[int, int], str] = {}
    for place, message in enumerate(trace.messages):
        for call in message.tool_calls:
            for term in _terms(_values(call.arguments)):
                needed = first.setdefault(term, place)
                if needed < place:
                    pairs.setdefault((place, needed), term)
        for term in _terms(message.text):
            first.setdefault(term, place)
    rows = [(message, needs, term) for (message, needs), term in pairs.items()]
    frame = pd.DataFrame(rows, columns=["message", "needs", "term"])
    return frame.astype({"message": "int64", "needs": "int64"})


def _terms(text: str) -> list[str]:
    """List the terms of a text."""
    words = dict.fromkeys(text.split())
    return _TERM.findall("\n".join(words))


def _values(arguments: str) -> str:
    r"""Return the values that a call passes, without its parameter names.

    A number with five digits or more may be an id. A number with fewer digits is a count or a position, and is left
    out.

    >>> _values('{"file_path": "src/a_1.py", "lines": [1, 2], "id": 12345}'), _values("ls src/a_1.py")
    ('src/a_1.py\n12345', 'ls src/a_1.py')
    """
    waiting = [parsed(arguments)]
    texts = []
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _LEAST_ID:
            texts.append(str(value))
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return "\n".join(texts)


COMPACTION = "compaction"
MODEL = "another model"
LIFE = "expired during a pause"
BRANCH = "another branch"
TURN = "thinking removed"
EARLIER = "older cache entry read"
SETTING = "thinking settings changed"
HEAD = "prompt start changed"
BELOW = "below the minimum"
BLOCKS = "beyond the lookback"
UNEXPLAINED = "unexplained"
#: The meaning of each cause, in a phrase.
SENTENCES = {
    COMPACTION: "a summary replaced the beginning of the prompt",
    MODEL: "another model has a cache of its own",
    LIFE: "the pause was longer than the lifetime of the cache",
    BRANCH: "the session continued from an earlier message",
    TURN: "at a user message, the previous turn's thinking is removed, which changes the prompt",
    EARLIER: "the read stops at the end of an earlier prompt: newer blocks were not cached yet, or on another machine",
    SETTING: "the thinking settings changed, and with them the prompt before the messages",
    HEAD: "only the start of the prompt was read at a user message, without a long pause, as elsewhere in this session",
    BELOW: "the prompt was shorter than the provider's minimum",
    BLOCKS: "more blocks were added than the cache's lookback covers",
    UNEXPLAINED: "nothing in the session explains it",
}
_MINIMUM = 1_024
_LOOKBACK = 20
_NEAR = 512  # maximum tokens between a read and the end of an earlier prompt, for caches that read in steps
_HABIT = 3  # number of misses of one kind that are not chance
# Models whose prompts keep the thinking of all turns.
_KEEPS_THINKING = re.compile(r"opus-(4-[5-9]|[5-9])|sonnet-(4-[6-9]|[5-9])|fable|mythos")


class Miss(NamedTuple):
    """A request that read less from the cache than was cached.

    A miss is a row of :meth:`Session.misses`.
    """

    request: int
    missed: int
    cause: str
    detail: str
    cost: float
    paid: int


def misses(trace: Trace, usage: Usage, happened: Usage, extra_price: Floats) -> list[Miss]:
    """List requests that read over 1,024 tokens less than was cached.

    Parameters
    ----------
    trace : Trace
        The recorded session.
    usage, happened : dict of arrays
        The results of :func:`budgetkit.trace.usage_columns` and :func:`events`.
    extra_price : float64 array, shape (requests,)
        Extra price of an uncached token over a cached token, in US dollars.

    Returns
    -------
    list of Miss
        The misses, in the order of the requests.
    """
    whole = expected(usage)
    read = usage["cache_read_tokens"]
    prompt = usage["context_tokens"]
    written = usage["cache_write_tokens"]
    ends = np.where(written.any(), read + written, prompt)
    head = int(read[0]) + LEAST_MISS if len(read) else 0
    at_heads = (whole - read > LEAST_MISS) & (read <= head) & happened["new_turn"]
    at_heads &= (happened["pause"] <= happened["life"]) & ~happened["compacted"]
    is_habit = int(at_heads.sum()) >= _HABIT
    models = [str(name) for name in usage["model"]]
    # If writes are recorded, reads end exactly at a written position, and a near position means nothing.
    near = 0 if written.any() else _NEAR
    rows = []
    for now in np.flatnonzero(whole - read > LEAST_MISS).tolist():
        short = ends[: max(0, now - 1)] - read[now]
        earlier = np.flatnonzero((short >= 0) & (short <= near))
        before = {name: values[now] for name, values in happened.items()}
        pause = before["pause"]
        life = before["life"]
        # The cause is the first that applies.
        causes = {
            COMPACTION: before["compacted"],
            MODEL: before["new_model"],
            LIFE: pause > life,
            BRANCH: before["left"],
            SETTING: before["new_setting"],
            BELOW: prompt[now] < _MINIMUM,
            EARLIER: len(earlier) and read[now],
            TURN: before["new_turn"] and _thought(trace, usage, now),
            HEAD: is_habit and at_heads[now],
            BLOCKS: before["blocks"] > _LOOKBACK,
        }
        cause = next((name for name, holds in causes.items() if holds), UNEXPLAINED)
        detail = SENTENCES[cause]
        if cause == LIFE:
            detail = f"a pause of {_duration(pause)}, and a cache lifetime of {_duration(life)}"
        elif cause == MODEL:
            detail = f"{models[now]} after {models[now - 1]}: {detail}"
        elif cause == EARLIER:
            detail = f"{detail} (request {int(earlier[-1]) + 1:,})"
        missed = int(whole[now] - read[now])
        # Tokens removed by a compaction are not paid for.
        paid = min(missed, int(prompt[now] - read[now]))
        cost = float(paid * extra_price[now])
        rows.append(Miss(now + 1, missed, cause, detail, cost, paid))
    return rows


def _thought(trace: Trace, usage: Usage, now: int) -> bool:
    """Return True if a request's prompt omits thinking of the previous turn."""
    place = int(usage["message_index"][now - 1])
    if _KEEPS_THINKING.search(str(usage["model"][now])):
        return False
    for message in reversed(trace.messages[: place + 1]):
        if message.raw.get("reasoning_content"):
            return True
        if message.role == "user":
            return False
    return False


def _duration(seconds: float) -> str:
    """Describe a duration in words.

    >>> _duration(300), _duration(7_500), _duration(42)
    ('5 minutes', '2.1 hours', '42 seconds')
    """
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3_600:.1f} hours"
