"""The cost of tools, files, servers and sub-agents in prompts.

    cost of a message = sum of its costs in the requests that contain it
    cost in a request = cached tokens * price of a cached token + other tokens * price of an uncached token

A result is paid for when it arrives and again, at a lower price, in each request that contains it. Omitting a message
would have saved its cost, if the agent had acted in the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import check_choice
from budgetkit.lab.sessions.session import Session
from budgetkit.message import replace_surrogates
from budgetkit.plan import Flags, Floats, Ints
from budgetkit.requests import Framing
from budgetkit.requests.billing.charges import Count
from budgetkit.requests.billing.framing import AnyMessage
from budgetkit.requests.reading.formats import format_table, unpacked
from budgetkit.requests.reading.request import as_object
from budgetkit.trace import Trace, in_line, unpaired


@dataclass(frozen=True)
class MeasuredFraming(Framing):
    """A framing with the billed sizes of a conversation's messages.

    Examples
    --------
    >>> from budgetkit.message import Message
    >>> framing = MeasuredFraming(measured=(70, 30))
    >>> dialogue = [Message({"role": "user", "content": "Go."}), Message({"role": "assistant", "content": "I do."})]
    >>> framing.messages(dialogue, len), framing.message(dialogue[0], len)
    ([70, 30], 3)
    """

    measured: tuple[int, ...] = ()

    def messages(
        self, messages: Iterable[AnyMessage], counter: Count, form: str = "chat"
    ) -> list[int]:
        """Return the conversation's billed sizes, or count the tokens of other messages.

        A list with as many messages as the conversation is taken to be the conversation. Other lists, such as the
        summaries written by a rule, are counted.
        """
        listed = [*messages]
        if len(listed) == len(self.measured):
            return [*self.measured]
        return Framing.messages(self, listed, counter, form)


@dataclass(frozen=True)
class Measured:
    """The tokens in a session's messages and in its unlogged content.

    `rows` are the indices, in the session's usage, of the requests that continue the conversation.
    """

    unlogged: int
    sizes: Ints
    rows: Ints


def summaries_of(trace: Trace) -> Flags:
    """Flag the summaries written by the session's own compactions.

    Examples
    --------
    >>> messages = [{"role": "user", "content": "Go."}, {"role": "user", "content": "Summary of the work."}]
    >>> summaries_of(Trace("toy", messages, fields={"compactions": [{"at": 1, "first_kept": 1}]})).tolist()
    [False, True]
    """
    is_summary = np.zeros(len(trace.messages), "bool")
    for compaction in trace.compactions:
        at = int(compaction["at"])
        is_summary[at : at + int(compaction.get("messages", 1))] = True
    return is_summary


def measure(session: Session) -> Measured:
    """Distribute each prompt's growth over the preceding messages.

    Examples
    --------
    >>> import budgetkit as bk
    >>> measured = measure(bk.Session(bk.load_trace("made-up-session")))
    >>> measured.unlogged, measured.sizes[:3].tolist(), len(measured.rows)
    (74000, [29, 112, 1030], 139)
    """
    trace = session.trace
    usage = session.columns
    rows = in_line(usage)
    places = usage["message_index"][rows]
    prompts = usage["context_tokens"][rows]
    expected = session.sizes.copy()
    expected[unpaired(trace)] = 0
    is_summary = summaries_of(trace)
    gone = trace.gone
    sizes = np.zeros(len(expected))
    unlogged = 0
    begin = 0
    for end, prompt in zip(places.tolist(), prompts.tolist(), strict=True):
        group = np.arange(begin, end)
        there = np.flatnonzero(gone[:begin] >= end)
        compacted = group[is_summary[group]]
        if begin == 0:
            unlogged = max(0, int(prompt - round(expected[group].sum())))
        growth = float(prompt - unlogged - sizes[there].sum())
        if len(compacted):
            # The summary gets the tokens that remain after the new messages.
            sizes[group] = _shared(expected[group], min(growth, float(expected[group].sum())))
            sizes[compacted] += max(0.0, growth - float(sizes[group].sum()))
        elif growth >= 0 and len(group):
            sizes[group] = _shared(expected[group], growth)
        else:
            sizes[group] = expected[group]
        lacking = unlogged + sizes[there].sum() + sizes[group].sum() - prompt
        if lacking > 0:
            # Reduce the newest messages first.
            newest = there[::-1]
            given = np.cumsum(sizes[newest]) - sizes[newest]
            sizes[newest] -= np.clip(lacking - given, 0, sizes[newest])
        begin = end
    sizes[begin:] = expected[begin:]
    return Measured(unlogged=unlogged, sizes=_whole(sizes), rows=rows)


def _shared(expected: Floats, tokens: float) -> Floats:
    """Divide tokens in proportion to the expected sizes.

    If all expected sizes are 0, the first message gets all tokens.
    """
    tokens = max(0.0, tokens)
    total = float(expected.sum())
    if total <= 0:
        return np.where(np.arange(len(expected)) == 0, tokens, 0.0)
    return expected * (tokens / total)


def _whole(sizes: Floats) -> Ints:
    """Round sizes so that running sums stay correctly rounded.

    >>> _whole(np.array([0.4, 0.4, 0.4])).tolist()
    [0, 1, 0]
    """
    return np.diff(np.round(np.cumsum(sizes)), prepend=0.0).astype("int64")


By = Literal["tool", "file", "server"]
_SERVER = re.compile(r"mcp__(.+?)__")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# Tokens of a search tool's definition, according to Anthropic's engineers in November 2025.
_SEARCH_TOOL = 500


def requests_holding(session: Session) -> pd.DataFrame:
    """Return each message's cost and the number of requests with the message.

    Parameters
    ----------
    session : Session
        The recorded session to examine.

    Returns
    -------
    DataFrame
        One row per message, with the columns message (its index), tokens (scaled to the session's growth), requests
        (the number of requests that contained the message), token_requests (the product of tokens and requests) and
        cost (in US dollars; NaN if a price is unknown).
    """
    trace = session.trace
    sizes = np.round(session.sizes).astype("int64")
    usage = session.columns
    rows = np.flatnonzero((usage["message_index"] >= 0) & ~usage["is_summary"])
    places = usage["message_index"][rows]
    prompt = usage["context_tokens"][rows]
    read = usage["cache_read_tokens"][rows]
    read_price, rest_price = (prices[rows] for prices in session.input_prices)
    requests = np.zeros(len(sizes), "int64")
    cost = np.zeros(len(sizes))
    for at, place in enumerate(places.tolist()):
        there = np.flatnonzero(trace.gone[:place] >= place)
        ends = max(0, session.unlogged) + np.cumsum(sizes[there])
        # If more is counted than was billed, scale down all messages of the request.
        shrink = np.minimum(1.0, prompt[at] / np.maximum(ends[-1:], 1))
        size = sizes[there] * shrink
        cheap = np.clip(read[at] - (ends * shrink - size), 0, size)
        cost[there] += cheap * read_price[at] + (size - cheap) * rest_price[at]
        requests[there] += 1
    frame = {
        "message": np.arange(len(sizes)),
        "tokens": sizes,
        "requests": requests,
        "token_requests": sizes * requests,
        "cost": cost,
    }
    return pd.DataFrame(frame)


def holding(session: Session, by: By = "tool") -> pd.DataFrame:
    """List tools, files or MCP servers in prompts, with possible savings.

    A saving is the cost avoided by omitting a tool, file or server.

    Parameters
    ----------
    session : Session
        The recorded session to examine.
    by : {"tool", "file", "server"}
        ``"tool"`` groups results by tool, ``"server"`` by MCP server, and ``"file"`` by path. Only files that were read
        more than once are listed; each part, such as a range of pages, is compared separately.

    Returns
    -------
    DataFrame
        One row per tool, file or server, most expensive first, with these columns:

        - tool, file or server: its name
        - calls: number of calls
        - tokens: tokens of the results
        - token_requests: tokens times the number of requests that contained them
        - saved: saving from omitting the tool or server, or all reads of a file but the first, in US dollars; NaN if no
          price is known
        - definitions: tokens of the definitions of a tool or server; missing if not in the log; not for files
        - deferred: saving from loading these definitions only at the first call, in US dollars; not for files

    Examples
    --------
    >>> import budgetkit as bk
    >>> table = holding(bk.Session(bk.load_trace("made-up-session")))
    >>> table["tool"].tolist(), bool((table["saved"] > 0).all())
    (['Read', 'Bash'], True)
    """
    check_choice("by", by, get_args(By))
    calls = _calls(session.trace, by)
    sums = requests_holding(session)
    messages = session.trace.messages
    sums["id"] = [
        replace_surrogates(m.tool_call_id)
        if m.role == "tool" and m.tool_call_id is not None
        else None
        for m in messages
    ]
    called = calls.drop_duplicates("id", keep="last").drop(columns="message")
    rows = sums[sums["id"].notna()].merge(called, on="id")
    rows["saved"] = rows["cost"]
    numbers = calls
    if by == "file":
        parts = ["name", "part"]
        rows["saved"] = rows["cost"].where(rows.duplicated(parts), 0.0)
        rows = numbers = rows[rows.duplicated(parts, keep=False)]
    frame = rows.groupby("name", sort=False).agg(
        tokens=("tokens", "sum"),
        token_requests=("token_requests", "sum"),
        saved=("saved", lambda s: s.sum(skipna=False)),
    )
    frame.insert(0, "calls", numbers["name"].value_counts())
    if by != "file":
        sizes = _definitions(session, by)
        frame["definitions"] = pd.Series(sizes, dtype="Int64")
        frame["deferred"] = pd.Series(_deferred(session, sizes, calls), dtype="float64")
    order = ["saved", "token_requests"] if frame["saved"].notna().any() else ["token_requests"]
    return frame.sort_values(order, ascending=False, kind="stable").rename_axis(by).reset_index()


def agents(session: Session) -> pd.DataFrame:
    """List the main agent of a session and its sub-agents.

    Parameters
    ----------
    session : Session
        A session that was read from its file, so that its sub-agents are known.

    Returns
    -------
    DataFrame
        One row per agent, the main agent first, with the columns line (the agent's name), side_chain (True for a
        sub-agent), requests (their number), prompt, read, written and answered (in tokens), and cost (in US dollars;
        NaN if no price is known).
    """
    columns = ["line", "side_chain", "requests", "prompt", "read", "written", "answered", "cost"]
    lines = {"main line": session} | {agent.trace.id: agent for agent in session.agents}
    rows = [
        {"line": line, "side_chain": agent is not session, **agent.totals()}
        for line, agent in lines.items()
    ]
    return pd.DataFrame(rows)[columns]


def _calls(trace: Trace, by: By) -> pd.DataFrame:
    """List calls with their tool, server or file, one row per call."""
    rows = [
        (
            place,
            replace_surrogates(call.id),
            replace_surrogates(name),
            _part(call.arguments) if by == "file" else "",
        )
        for place, message in enumerate(trace.messages)
        for call in message.tool_calls
        if (name := _name(call.name, call.arguments, by)) is not None
    ]
    return pd.DataFrame(rows, columns=["message", "id", "name", "part"])


def _name(tool: str, arguments: str, by: By) -> str | None:
    if by == "tool":
        return tool
    if by == "server":
        return server_of(tool)
    marks = format_table("marks")
    if not {word.lower() for word in _WORD.findall(tool)}.intersection(marks["reading"]):
        return None
    passed = as_object(unpacked(arguments.strip()))
    return next(
        (path for path in map(passed.get, marks["path"]) if isinstance(path, str) and path), None
    )


def _part(arguments: str) -> str:
    """Return a key for the requested part of a file.

    >>> _part('{"path": "a.py", "limit": 50, "offset": 100}') == _part('{"offset": 100, "limit": 50, "path": "a.py"}')
    True
    """
    passed = as_object(unpacked(arguments.strip()))
    names = format_table("marks")["part_of_file"]
    return json.dumps({key: passed[key] for key in names if passed.get(key) is not None})


def server_of(tool: str) -> str | None:
    """Return the MCP server of a tool, or None.

    The program's own tools have no server.

    >>> server_of("mcp__github__list_issues"), server_of("Read")
    ('github', None)
    """
    match = _SERVER.match(tool)
    return match[1] if match else None


def _definitions(session: Session, by: By) -> dict[str, int]:
    """Return the tokens of each tool's or server's logged definitions."""
    sizes: dict[str, int] = {}
    count = session.count
    for schema in session.trace.tools or ():
        function = schema.get("function", schema) if isinstance(schema, dict) else {}
        name = _name(str(function.get("name", "")), "", by)
        if name:
            sizes[name] = sizes.get(name, 0) + round(count(json.dumps(schema)) * session.counted[1])
    return sizes


def _deferred(session: Session, sizes: dict[str, int], calls: pd.DataFrame) -> dict[str, float]:
    """Return the cost of each definition in prompts before its first call.

    The keys are the names of tools or servers. If there is no call, all prompts count.
    """
    places = session.columns["message_index"]
    read_price, _ = session.input_prices
    first = calls.groupby("name")["message"].min()
    end = len(session.trace.messages)
    return {
        name: float(np.sum(size * read_price[(places >= 0) & (places < first.get(name, end))]))
        for name, size in sizes.items()
    }


def deferral(session: Session) -> dict[str, float]:
    """Return the saving and the search cost of loading tools on demand.

    The search tool's definition is in every prompt. Each used tool is searched for once, by an extra request that reads
    the prompt from the cache. The cost of this request's answer is neglected.

    Returns
    -------
    dict
        The keys are tools (the number of tools with a definition in the log), tokens (of the definitions), searches
        (their number), saved and search_cost (in US dollars; NaN if no price is known).

    Examples
    --------
    >>> import budgetkit as bk
    >>> deferral(bk.Session(bk.load_trace("made-up-session")))["tools"]
    0
    """
    sizes = _definitions(session, "tool")
    read_price, _ = session.input_prices
    places = session.columns["message_index"]
    prompts = session.columns["context_tokens"]
    calls = _calls(session.trace, "tool")
    of_tools = calls[calls["name"].isin(sizes)].drop_duplicates("name")
    searches = np.isin(places, of_tools["message"])
    return {
        "tools": len(sizes),
        "tokens": sum(sizes.values()),
        "searches": int(searches.sum()),
        "saved": sum(_deferred(session, sizes, calls).values()),
        "search_cost": float(
            _SEARCH_TOOL * read_price.sum() + (prompts * read_price)[searches].sum()
        ),
    }
