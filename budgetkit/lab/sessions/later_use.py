"""What a session itself used later: the ids, paths and names that its calls copy from earlier messages."""

from __future__ import annotations

import json
import re
from typing import Final

import pandas as pd

from budgetkit.trace import Trace

#: The least number that may be an id; a term, too, has at least five characters.
_LEAST_ID: Final = 10_000
# A path, an id or a name as programs write it: at least five characters, with a digit, a slash or an underscore within.
_TERM: Final = re.compile(
    r"(?=[A-Za-z0-9_./-]{5})[A-Za-z0-9](?=[A-Za-z.-]*[0-9_/])[A-Za-z0-9_./-]*[A-Za-z0-9]"
)


def used_later(trace: Trace) -> pd.DataFrame:
    """List which call needs which earlier message: one that was the first to hold an id, path or name that it copies.

    Parameters
    ----------
    trace : Trace
        The conversation.

    Returns
    -------
    DataFrame
        One row a pair: message (with the call), needs (the earlier message), term.

    Examples
    --------
    >>> from budgetkit.message import Message
    >>> call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"path": "src/a_1.py"}'}}
    >>> said = [{"role": "user", "content": "Look at src/a_1.py."}, {"role": "assistant", "tool_calls": [call]}]
    >>> used_later(Trace("toy", tuple(map(Message, said)))).values.tolist()
    [[1, 0, 'src/a_1.py']]
    """
    first: dict[str, int] = {}
    pairs: dict[tuple[int, int], str] = {}
    for place, message in enumerate(trace.messages):
        for call in message.tool_calls:
            for term in _TERM.findall(_values(call.arguments)):
                needed = first.get(term, place)
                if needed < place:
                    pairs.setdefault((place, needed), term)
                first.setdefault(term, place)
        for term in _TERM.findall(message.text):
            first.setdefault(term, place)
    rows = [(message, needs, term) for (message, needs), term in pairs.items()]
    frame = pd.DataFrame(rows, columns=["message", "needs", "term"])
    return frame.astype({"message": "int64", "needs": "int64"})


def _values(arguments: str) -> str:
    r"""Return what a call passes, without the names of its parameters, which say nothing about what was said before.

    A number of five digits or more may be an id; a smaller one is a count or a place.

    >>> _values('{"file_path": "src/a_1.py", "lines": [1, 2], "id": 12345}'), _values("ls src/a_1.py")
    ('src/a_1.py\n12345', 'ls src/a_1.py')
    """
    try:
        waiting = [json.loads(arguments)]
    except (ValueError, RecursionError):
        return arguments
    texts: list[str] = []
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
