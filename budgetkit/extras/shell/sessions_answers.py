"""Screens of ``budgetkit sessions``: answers, other settings, and prompt contents."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import budgetkit.frames as pd
from budgetkit.budget import many
from budgetkit.budget.errors import unknown_name
from budgetkit.extras.shell.sessions import dollars_text
from budgetkit.extras.shell.terminal import show_json, show_lines, show_table
from budgetkit.lab.sessions.comparing import compare
from budgetkit.lab.sessions.holding import By, agents, deferral, holding, server_of
from budgetkit.lab.sessions.sentences import (
    action_text,
    cost_text,
    in_short,
    notices,
    replay_check,
    sentences_of,
    value_text,
)
from budgetkit.lab.sessions.session import RESULTS_ROW, Session
from budgetkit.lab.sessions.settings import usual_values, what_if
from budgetkit.models import resolve
from budgetkit.models.limits import catalogue_of, product_window

_COMPACTIONS = 3  # listed one by one
KINDS = 8  # kinds of content listed for a prompt


def answer_questions(session: Session, window: int | None, with_text: bool, as_json: bool) -> None:
    """Print a session's bill, its cache misses and its largest prompt."""
    totals = session.totals()
    missed = session.misses()
    filled = filled_by(session, with_text)
    table = compare(session, window=window)
    compactions = session.compactions()
    if as_json:
        tables = {"misses": missed, "filled": filled, "compactions": compactions, "rules": table}
        return show_json({"totals": totals, **tables})
    title = f"{session.trace.title}: " if with_text else ""
    cost = dollars_text(totals["cost"], session.at_least)
    billed = f", {cost}" if cost else ""
    named = session.model or "an unnamed model"
    requests = many(totals["requests"], "request")
    show_lines(f"{title}{requests} to {named}{billed}", *in_short(session, table))

    if session.agents:
        agent_requests = sum(len(agent.cost) for agent in session.agents)
        agents = many(len(session.agents), "sub-agent")
        made = (
            f"{agents} made {many(agent_requests, 'more request')} for {_cost_of(session.agents)}"
        )
        show_lines(f"Its {made}, which the list of sessions includes; --tools lists them.")
    if session.unpriced:
        show_lines(session.unpriced)
    largest = largest_of(filled)
    prompt = int(filled["tokens"].sum())
    _show_frame(
        f"What filled the largest prompt? {prompt:,} tokens by the provider's count, which is exact",
        largest.assign(share=largest["share"].map("{:.0%}".format)),
        {},
    )
    show_lines(*filter(None, [session.gap_sentence, *session.trace.warnings]))

    by_cause = missed.groupby("cause").agg(
        misses=("missed", "size"),
        tokens=("paid", "sum"),
        cost=("cost", lambda costs: costs.sum(skipna=False)),  # an unknown price is not 0
    )
    if len(by_cause):
        headings = {"tokens": "tokens paid again"}
        _show_frame("Why did the cache miss?", by_cause.reset_index(), headings)
    if totals["steps"]:
        number = many(totals["steps"], "request")
        more = f"which cost ${totals['steps_cost']:,.2f} more"
        show_lines(f"Above a price step: {number}, {more}.")
    if with_text:
        show_lines(
            *(f"request {row['request']}: {row['detail']}" for row in missed.to_dict("records"))
        )
    for row in compactions.head(_COMPACTIONS).to_dict("records"):
        words = f"the next request had {row['next_paid']:,} tokens that were not in the cache"
        cost = dollars_text(row["miss_cost"] or None)
        if cost:
            words = f"{words}: a miss that cost {cost}"
        show_lines(f"A compaction from {row['before']:,} to {row['after']:,} tokens; {words}.")

    if len(compactions) > _COMPACTIONS:
        rest = many(len(compactions) - _COMPACTIONS, "more compaction")
        show_lines(f"{rest}; --json lists them all.")
    if type(shown := session.trace.fields.get("window")) is int:
        codex = product_window("codex", catalogue_of("codex", shown))
        size = f"Codex shows {codex.shown:,} of the window's {codex.window:,} tokens and compacts at {codex.acts_at:,}."
        show_lines(size)
    show_table(
        "Which rule would have been cheaper?",
        _RULES,
        [_rule(row) for row in table.to_dict("records")],
    )
    more = "Add --what-if threshold to find the best size for compaction."
    show_lines(*replay_check(table), *notices(table), more)
    return None


def readable(paths: list[Path]) -> list[Session]:
    """Read sessions, skipping unreadable files and those without usage."""
    sessions = []
    for path in paths:
        with suppress(ValueError, OSError, TypeError):
            sessions.append(Session(path))
    return sessions


_SETTINGS = ("threshold", "keep", "cache_life")


def settings(
    source: Session | list[Session], setting: str, window: int | None, as_json: bool
) -> None:
    """Print the cost of sessions with other values of a setting."""
    name = "model"
    values: Any = [setting]
    sessions = [source] if isinstance(source, Session) else source
    if setting in _SETTINGS:
        name = setting
        values = usual_values(sessions, setting)
    elif not resolve(setting).is_known:
        raise LookupError(
            f"{unknown_name('setting', setting, _SETTINGS)} You can also name a model."
        )
    table = what_if(source, window=window, **{name: values})
    if as_json:
        show_json(table)
        return
    costs = [*map(cost_text, table["low"], table["high"])]
    shown = table[["value", "compactions", "used_later", "overflows"]]
    shown = shown.assign(value=table["value"].map(value_text))
    shown.insert(1, "dollars", costs)
    headings = {
        "value": name.replace("_", " "),
        "used_later": "dropped, used later",
        "overflows": "over window",
    }
    _show_frame("What would another setting have cost?", shown, headings)
    show_lines(*sentences_of(table))
    if agents := [agent for session in sessions for agent in session.agents]:
        number = many(len(agents), "sub-agent")
        show_lines(f"These costs do not include {number} ({_cost_of(agents)}).")


def _cost_of(agents: Collection[Session]) -> str:
    cost = sum(float(agent.cost.sum()) for agent in agents)
    # The sign is added if one of the agents has it.
    return dollars_text(cost, max(agent.at_least for agent in agents)) or "an unknown price"


def _show_frame(title: str, frame: pd.DataFrame, headings: dict[str, str]) -> None:
    """Print a frame, with its floats as costs in US dollars."""
    shown = frame.astype(object)
    for name in frame.select_dtypes("float"):
        shown[name] = frame[name].map(dollars_text)
    columns = [headings.get(name, name) for name in map(str, frame)]
    show_table(title, columns, shown.values.tolist())


def show_holding(session: Session, with_text: bool, as_json: bool) -> None:
    """Print the sub-agents, tools, MCP servers and repeated files in the prompts."""
    lines = agents(session)
    missing = [note for agent in (session, *session.agents) for note in agent.missing]
    on_demand = deferral(session)
    groupings: tuple[By, ...] = ("tool", "server", "file")
    tables: dict[str, pd.DataFrame] = {by: holding(session, by) for by in groupings}
    if not with_text:
        # A path may reveal private names; the file's own name identifies it.
        tables["file"]["file"] = [
            name.replace("\\", "/").rpartition("/")[2] for name in tables["file"]["file"]
        ]
    if as_json:
        return show_json({"lines": lines, **tables, "on_demand": on_demand})
    if len(lines) > 1:
        numbered = ["main line", *(f"sub-agent {number}" for number in range(1, len(lines)))]
        _show_frame(
            "The main line and each sub-agent, separately",
            lines[["line", "requests", "prompt", "cost"]].assign(line=numbered),
            {"prompt": "prompt tokens"},
        )
    titles = {
        "tool": "Which tool results filled the prompts?",
        "server": "Which MCP servers filled the prompts?",
        "file": "Which files were read again?",
    }
    if tables["tool"].empty:
        return show_lines("No tool results in this session.", *missing)
    for by, table in tables.items():
        if table.empty:
            continue
        headings = {"token_requests": "tokens times requests", "saved": "saved if left out"}
        columns = [by, "calls", "tokens", *headings]
        _show_frame(titles[by], table[columns].head(KINDS), headings)
    paid = "A result is paid for when it arrives and again, at a lower price, with each request that contains it."
    lacking = "Tool definitions missing from the log are not counted"
    sentences = [f"{paid} {lacking}, nor are changes in the agent's behaviour."]
    if on_demand["tools"]:
        sentences.append(
            f"Loading the definitions of its {on_demand['tools']:,} tools ({on_demand['tokens']:,} tokens) on demand "
            f"would have saved {dollars_text(on_demand['saved'])}, less {dollars_text(on_demand['search_cost'])} for "
            f"the search tool and its {on_demand['searches']:,} calls."
        )
    return show_lines(*sentences, *missing)


_RULES = ["rule", "dollars", "compactions", "removed or cut", "dropped, used later"]


def filled_by(session: Session, with_text: bool) -> pd.DataFrame:
    """Return the contents of the largest prompt, by kind.

    Tools and MCP servers are numbered unless texts are requested.
    """
    filled = session.filled_by()
    if with_text:
        return filled
    servers: dict[str, int] = {}
    tools: dict[str | None, int] = {}
    rows = []
    for row in filled["what"]:
        if row.startswith(RESULTS_ROW):
            server = server_of(row.removeprefix(RESULTS_ROW))
            tools[server] = tools.get(server, 0) + 1
            place = f"server {servers.setdefault(server, len(servers) + 1)} " if server else ""
            row = f"{RESULTS_ROW}{place}tool {tools[server]}"
        rows.append(row)
    return filled.assign(what=rows)


def largest_of(filled: pd.DataFrame) -> pd.DataFrame:
    """Return the largest kinds of content, and a row for the others.

    The last row is still the difference from the provider's count, so that all rows add up to the prompt.
    """
    rest = filled.iloc[KINDS:-1]
    if rest.empty:
        return filled
    other = rest.iloc[:1].assign(
        what=many(len(rest), "other kind"), tokens=rest["tokens"].sum(), share=rest["share"].sum()
    )
    return pd.concat([filled.iloc[:KINDS], other, filled.iloc[-1:]])


def _rule(row: dict[Any, Any]) -> list[Any]:
    label = row["label"]
    action = action_text(row)
    if action and not row["compactions"] and not row["left"]:
        label = f"{label} ({action})"
    touched = row["left"] + row["capped"]
    cost = cost_text(row["least"], row["most"])
    return [label, cost, row["compactions"], touched, row["used_later"]]
