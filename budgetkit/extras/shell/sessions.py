"""``budgetkit sessions``: the contents, misses and cheaper rules of recorded sessions."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import click
import pandas as pd

from budgetkit.budget import many
from budgetkit.extras.shell.terminal import show_json, show_lines, show_table
from budgetkit.lab.sessions import Session, compare, sessions
from budgetkit.lab.sessions.bills import BILLED, Bills, cache_folder
from budgetkit.lab.sessions.comparing import AS_IT_WAS, RECORDED
from budgetkit.lab.sessions.holding import By, agents, holding, server_of
from budgetkit.lab.sessions.sentences import finding, in_short, notices, replay_check, with_held
from budgetkit.lab.sessions.session import RESULTS_ROW
from budgetkit.lab.sessions.settings import sentences_of, usual_values, what_if
from budgetkit.models.limits import catalogue_of, product_window

#: The session that is offered where there is none.
SHIPPED = "made-up-session"
_COMPACTIONS = 3  # that are told one by one
KINDS = 8  # rows of what filled a prompt
_SUMS = ["requests", "cost", "from cache", "misses", "misses cost", "compactions"]
_ALL = 100_000  # sessions that are listed at most


@click.command("sessions")
@click.argument("which", required=False)
@click.option(
    "--folder",
    type=click.Path(file_okay=False),
    help="Where sessions are, if not in their usual places.",
)
@click.option("-n", "--newest", default=20, show_default=True, help="How many are listed.")
@click.option(
    "--price", help="The model whose prices hold, where those of the session's own are not known."
)
@click.option(
    "--window",
    type=click.IntRange(min=1),
    help="The window of the rules, in tokens, if not the session's.",
)
@click.option(
    "--tools",
    "with_tools",
    is_flag=True,
    help="Show by name what tools, files and MCP servers held, and sub-agents.",
)
@click.option(
    "--text",
    "with_text",
    is_flag=True,
    help="Show titles, texts and names of tools too; without it only numbers.",
)
@click.option(
    "--report", help="Write the page of one session to this file of HTML, which only you can read."
)
@click.option(
    "--lab", "in_lab", is_flag=True, help="Open the explorer on one session, in the browser."
)
@click.option(
    "--what-if",
    "setting",
    help="Replay one session with other values of a setting: threshold, keep, cache_life, or a model's name.",
)
@click.option(
    "--by",
    type=click.Choice(["day", "project", "model", "agent"]),
    help="Show the sums of all sessions instead of a list.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sessions_command(
    which: str | None,
    folder: str | None,
    newest: int,
    price: str | None,
    window: int | None,
    with_tools: bool,
    with_text: bool,
    report: str | None,
    in_lab: bool,
    setting: str | None,
    by: str | None,
    as_json: bool,
) -> int | None:
    """List your recorded sessions of coding agents; with a number, a file or a name, answer for one.

    Claude Code, Codex, Gemini CLI and pi are looked for in their usual places. Files are only read. Their bills, which
    are numbers without texts, are kept in your cache folder; set BUDGETKIT_CACHE to an empty text to keep none. What
    filled a session? What did the misses of the cache cost? Which rule would have been cheaper?
    """
    if which is None:
        example = list_sessions(folder, newest, as_json, by)
        if not as_json:
            show_lines(
                [f"What filled a session, and what its misses cost: budgetkit sessions {example}"]
            )
        return None
    path = _path(which, folder)
    if in_lab:
        return int(import_module("budgetkit.extras.shell.opening").explore(path))
    session = Session(path, prices=price)
    if setting is not None:
        _settings(session, setting, window, as_json)
    elif with_tools:
        _held(session, with_text, as_json)
    elif report is not None:
        # The page needs the explorers, which take a second to import.
        page = import_module("budgetkit.extras.shell.sessions_page")
        page.save(session, window, report, with_text)
    else:
        _answer(session, window, with_text, as_json)
    return None


def list_sessions(
    folder: str | None, newest: int, as_json: bool = False, by: str | None = None
) -> str:
    """List the newest sessions with their bills, or the sums of all by day, project, model or agent.

    Return one session to look at next.
    """
    table = sessions(folder, newest=_ALL)
    folders = table.attrs["folders"]
    if table.empty:
        usual = "the usual places of Claude Code, Codex, Gemini CLI and pi"
        looked = f"in {', '.join(folders) or usual}"
        if as_json:
            show_json([])
        else:
            show_lines([f"No sessions found {looked}; name another folder with --folder."])
        return SHIPPED
    table = table.join(pd.DataFrame(_bills(table["path"]), columns=list(BILLED)))
    table["day"] = table["changed"].dt.strftime("%Y-%m-%d")
    table["agent"] = table["program"]
    columns = ["number", "program", "changed", "project", "model"]
    shown = table.head(newest)
    if by is not None:
        shown = _sums(table, by).reset_index()
        columns = [by, "sessions"]
    if as_json:
        names = [*(columns if by else table.columns.drop(["day", "agent", *BILLED])), *BILLED]
        rows = shown[[name for name in names if name in shown]].astype(object)
        if "changed" in rows:
            rows["changed"] = rows["changed"].astype(str)
        show_json(rows.where(rows.notna(), None).to_dict("records"))
        return "1"
    where = ", ".join(folders)
    title = (
        f"Your sessions by {by}, in {where}" if by else f"The newest of your sessions, in {where}"
    )
    total = _sums(table.assign(all="all"), "all").to_dict("records")[0]
    first = ["in all", f"{total['sessions']:,}"] + [""] * (len(columns) - 2)
    cells = [[*_heads(row, columns), *_sums_shown(row)] for row in shown.to_dict("records")]
    show_table(title, [*columns, *_SUMS], [*cells, [*first, *_sums_shown(total)]])
    if by is None and len(table) > newest:
        show_lines(
            [f"{len(table) - newest:,} older sessions are not listed; -n {len(table)} lists them."]
        )
    return "1"


def _bills(paths: Iterable[str]) -> list[dict[str, Any]]:
    """Read the bills of sessions that have changed since the last run, and keep them; show how far it is."""
    bills = Bills(cache_folder())
    listed = [*paths]
    unread = sum(not bills.is_kept(path) for path in listed)
    walked: Iterable[str] = listed
    if unread > 5 and sys.stderr.isatty():
        console = import_module("rich.console").Console(stderr=True)
        track = import_module("rich.progress").track
        walked = track(listed, f"Reading {unread} sessions", console=console, transient=True)
    try:
        return [bills.of(path) for path in walked]
    finally:
        bills.save()


def _sums(table: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return the sums of sessions by a column; a cost is not known where none of its sessions has one."""
    numbers = [name for name in BILLED if name != "model"]
    known = table.assign(**{name: pd.to_numeric(table[name]) for name in numbers})
    known[by] = known[by].fillna("").replace("", "unknown")
    groups = known.groupby(by, sort=False)
    return groups[numbers].sum(min_count=1).assign(sessions=groups.size())


def _heads(row: dict[Any, Any], columns: list[str]) -> list[Any]:
    shown = dict(row)
    if "changed" in columns:
        shown["changed"] = f"{row['changed']:%Y-%m-%d %H:%M}"
    if shown.get("model"):
        # Of a snapshot's name the day is left out; --json and the session itself show it.
        shown["model"] = re.sub(r"-\d{8}$", "", shown["model"])
    return ["" if shown[name] is None else shown[name] for name in columns]


def _sums_shown(row: dict[Any, Any]) -> list[Any]:
    share = f"{(row['read'] or 0) / row['prompt']:.0%}" if row["prompt"] else ""
    requests, misses, compactions = (
        "" if pd.isna(row[name]) else int(row[name])
        for name in ("requests", "misses", "compactions")
    )

    cost, missed_cost = map(dollars, (row["cost"], row["missed_cost"]))
    return [requests, cost, share, misses, missed_cost, compactions]


def _path(which: str, folder: str | None) -> str:
    """Return the file of a session, by its number in the list, or as it was given."""
    if not which.isdecimal():
        return which
    table = sessions(folder, newest=int(which))
    if not 1 <= int(which) <= len(table):
        advice = f"there is none; {SHIPPED} is a made-up one"
        if len(table):
            advice = f"there are {len(table):,}"
        raise ValueError(f"session {which} was asked for; {advice}; budgetkit sessions lists them")
    return str(table["path"].iloc[int(which) - 1])


def _answer(session: Session, window: int | None, with_text: bool, as_json: bool) -> None:
    """Answer the three questions for one session, on one screen."""
    totals = session.totals()
    missed = session.misses()
    filled = filled_by(session, with_text)
    table = compare(session, window=window, prices=session.prices)
    if as_json:
        rows = {
            "misses": missed,
            "filled": filled,
            "compactions": session.compactions(),
            "rules": table,
        }
        return show_json(
            {"totals": totals, **{name: frame.to_dict("records") for name, frame in rows.items()}}
        )
    title = f"{session.trace.title}: " if with_text else ""
    cost = dollars(totals["cost"])
    billed = f", {cost}" if cost else ""
    named = session.model or "a model that is not named"
    requests = many(totals["requests"], "request")
    show_lines([f"{title}{requests} to {named}{billed}", *in_short(session, table)])

    if session.agents:
        agent_requests = sum(len(agent.usage) for agent in session.agents)
        cost = dollars(sum(float(agent.cost.sum()) for agent in session.agents))
        agents_billed = f" for {cost}" if cost else ""
        made = (
            f"{many(len(session.agents), 'sub-agent')} made {many(agent_requests, 'more request')}"
        )
        show_lines([f"Its {made}{agents_billed}; --tools lists them."])
    if session.unpriced:
        show_lines([session.unpriced])
    largest = largest_of(filled).values.tolist()
    prompt = int(filled["tokens"].sum())
    question = (
        f"What filled the largest prompt? {prompt:,} tokens by the provider's count, which is exact"
    )
    show_table(
        question,
        ["what", "tokens", "share", "mark"],
        [(name, int(size), f"{share:.0%}", mark) for name, size, share, mark in largest],
    )
    if session.gap_sentence:
        show_lines([session.gap_sentence])

    by_cause = missed.groupby("cause").agg(
        misses=("missed", "size"), tokens=("paid", "sum"), cost=("cost", "sum")
    )
    if len(by_cause):
        cells = [
            [row["cause"], int(row["misses"]), int(row["tokens"]), dollars(row["cost"])]
            for row in by_cause.reset_index().to_dict("records")
        ]
        show_table(
            "Why did the cache miss?", ["cause", "misses", "tokens paid anew", "cost"], cells
        )
    if totals["steps"]:
        number = many(totals["steps"], "request")
        more = f"which cost ${totals['steps_cost']:,.2f} more"
        show_lines([f"{number} stood above a step of the price, {more}."])
    if with_text:
        show_lines(
            f"request {row['request']}: {row['detail']}" for row in missed.to_dict("records")
        )
    compactions = session.compactions()
    for row in compactions.head(_COMPACTIONS).to_dict("records"):
        words = f"the next request had {row['next_paid']:,} tokens that were not in the cache"
        cost = dollars(row["miss_cost"] or None)
        if cost:
            words = f"{words}: a miss that cost {cost}"
        show_lines([f"A compaction from {row['before']:,} to {row['after']:,} tokens; {words}."])

    if len(compactions) > _COMPACTIONS:
        rest = many(len(compactions) - _COMPACTIONS, "more compaction")
        show_lines([f"{rest}; --json lists them all."])
    if type(shown := session.trace.fields.get("window")) is int:
        codex = product_window("codex", catalogue_of("codex", shown))
        size = (
            f"The program shows {codex.shown:,} of a window of {codex.window:,} tokens, and "
            f"acts at {codex.acts_at:,}."
        )
        show_lines([size])
    show_table(
        "Which rule would have been cheaper?",
        _RULES,
        [_rule(row) for row in with_held(table).to_dict("records")],
    )
    recorded = float(totals["cost"])
    told = [finding(table, recorded), *replay_check(table, recorded), *notices(table)]
    show_lines([*told, "--what-if threshold replays it compacted at other sizes."])
    return None


def _settings(session: Session, setting: str, window: int | None, as_json: bool) -> None:
    """Show what one session would have cost with other values of a setting."""
    name = "model"
    values: Any = [setting]
    if setting in ("threshold", "keep", "cache_life"):
        name = setting
        values = usual_values(session, setting)
    table = what_if(session, window=window, **{name: values})
    if as_json:
        return show_json(table.to_dict("records"))
    shown = [
        [
            f"{row['value']:,}" if isinstance(row["value"], int) else row["value"],
            _cost(row["low"], row["high"]),
            row["compactions"],
            row["used_later"],
            row["overflows"],
        ]
        for row in table.to_dict("records")
    ]
    columns = [
        name.replace("_", " "),
        "dollars",
        "compactions",
        "dropped, used later",
        "over window",
    ]
    show_table("What would another setting have cost?", columns, shown)
    show_lines(sentences_of(table))
    return None


def _held(session: Session, with_text: bool, as_json: bool) -> None:
    """Show the sub-agents, tools, MCP servers and repeated files in the prompts."""
    lines = agents(session)
    groupings: tuple[By, ...] = ("tool", "server", "file")
    held: dict[str, pd.DataFrame] = {by: holding(session, by) for by in groupings}
    if not with_text:
        # A path may say more than its owner wants to show; its last name is enough to know it by.
        held["file"]["file"] = [
            name.replace("\\", "/").rpartition("/")[2] for name in held["file"]["file"]
        ]
    if as_json:
        held_by = {"lines": lines} | {str(name): table for name, table in held.items()}
        return show_json({name: table.to_dict("records") for name, table in held_by.items()})
    if len(lines) > 1:
        shown = [
            [
                f"sub-agent {number}" if number else "main line",
                row["requests"],
                row["prompt"],
                dollars(row["cost"]),
            ]
            for number, row in enumerate(lines.to_dict("records"))
        ]
        show_table(
            "The main line, and sub-agents apart",
            ["line", "requests", "prompt tokens", "cost"],
            shown,
        )
    titles = {
        "tool": "Which results held the prompts?",
        "server": "Which MCP servers?",
        "file": "Read again",
    }
    if held["tool"].empty:
        return show_lines(["No tool results in this session."])
    for by, table in held.items():
        if table.empty:
            continue
        cells = [
            [row[by], row["calls"], row["tokens"], row["token_requests"], dollars(row["saved"])]
            for row in table.head(KINDS).to_dict("records")
        ]
        show_table(
            titles[by], [by, "calls", "tokens", "tokens times requests", "leaving out saves"], cells
        )
    paid = "A result is paid when it comes and again, cheaper, at each request that holds it."
    lacking = "Definitions of tools that the log does not hold are not in it"
    return show_lines([f"{paid} {lacking}; nor is that the agent would have acted otherwise."])


_RULES = ["rule", "dollars", "compactions", "left or cut", "gone, used later"]


def filled_by(session: Session, with_text: bool) -> pd.DataFrame:
    """Return the contents of the largest prompt, by kind.

    Tools and MCP servers are numbered unless texts are wanted.
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
    """Return the largest kinds, one row for all others, and the difference.

    Together they are the whole prompt.
    """
    difference = filled.iloc[-1:]
    rows = filled.iloc[:-1]
    rest = rows.iloc[KINDS:]
    if rest.empty:
        return filled
    other = rest.iloc[:1].assign(
        what=f"{many(len(rest), 'other kind')}",
        tokens=rest["tokens"].sum(),
        share=rest["share"].sum(),
    )
    return pd.concat([rows.iloc[:KINDS], other, difference])


def _rule(row: dict[Any, Any]) -> list[Any]:
    touched = row["left"] + row["capped"]
    acts = row["compactions"] or touched or row["system"] in (AS_IT_WAS, RECORDED)
    cost = _cost(row["least"], row["most"])
    label = row["label"]
    if not acts:
        label = f"{label} (does not act)"
    elif row["capped"] == touched and not row["compactions"] and touched:
        label = f"{label} (only cuts results)"
    return [label, cost, row["compactions"], touched, row["used_later"]]


def _cost(least: float, most: float) -> str:
    if round(most, 2) > round(least, 2):
        return f"{dollars(least)} to {dollars(most)}"
    return dollars(least)


def dollars(cost: Any) -> str:
    """Write dollars; "" where nobody knows.

    >>> dollars(1234.5), dollars(None)
    ('$1,234.50', '')
    """
    if cost is None or cost != cost:
        return ""
    return f"${cost:,.2f}"
