"""``budgetkit sessions``: what filled your recorded sessions, what the misses cost, which rule would be cheaper."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any, Final

import click
import pandas as pd

from budgetkit.budget import many
from budgetkit.extras.shell.terminal import show_json, show_lines, show_table
from budgetkit.lab.sessions import Session, compare, sessions
from budgetkit.lab.sessions.comparing import AS_IT_WAS, RECORDED
from budgetkit.lab.sessions.holding import By, agents, holding, server_of
from budgetkit.lab.sessions.listing import BILLED, billed_totals
from budgetkit.lab.sessions.sentences import finding, in_short, notices, replay_check, with_held
from budgetkit.lab.sessions.session import RESULTS_ROW
from budgetkit.models.resolved import catalogue_of, product_window

#: The session that is offered where there is none.
SHIPPED: Final = "made-up-session"
_SECONDS = 1.0  # of work in which the bills of the newest sessions are read
_COMPACTIONS = 3  # that are told one by one
KINDS = 8  # rows of what filled a prompt
_COLUMNS = [
    "number",
    "program",
    "changed",
    "project",
    "MB",
    "requests",
    "cost",
    "misses",
    "misses cost",
    "compactions",
]


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
    as_json: bool,
) -> int | None:
    """List your recorded sessions of coding agents; with a number, a file or a name, answer for one.

    Claude Code, Codex, Gemini CLI and pi are looked for in their usual places. Files are only read, and nothing is
    kept. What filled it? What did the misses of the cache cost? Which rule would have been cheaper?
    """
    if which is None:
        example = list_sessions(folder, newest, as_json)
        if not as_json:
            show_lines(
                [f"What filled a session, and what its misses cost: budgetkit sessions {example}"]
            )
        return None
    path = _path(which, folder)
    if in_lab:
        return int(import_module("budgetkit.extras.shell.opening").explore(path))
    session = Session(path, prices=price)
    if with_tools:
        _held(session, with_text)
    elif report is not None:
        # The page needs the explorers, which take a second to import.
        page = import_module("budgetkit.extras.shell.sessions_page")
        page.save(session, window, report, with_text)
    else:
        _answer(session, window, with_text, as_json)
    return None


def list_sessions(folder: str | None, newest: int, as_json: bool = False) -> str:
    """List the newest sessions, with the bills of as many as one second allows; return one to look at next."""
    table = sessions(folder, newest=newest)
    folders = table.attrs["folders"]
    if table.empty:
        if folders:
            looked = f"in {', '.join(folders)}"
        else:
            looked = "in the usual places of Claude Code, Codex, Gemini CLI and pi"
        if as_json:
            show_json([])
        else:
            show_lines([f"No sessions found {looked}; name another folder with --folder."])
        return SHIPPED
    begun = time.monotonic()
    rows = []
    read = 0
    for row in table.to_dict("records"):
        totals: dict[str, Any] = {}
        if time.monotonic() - begun < _SECONDS:
            read += 1
            totals = billed_totals(str(row["path"]))
        row = {str(name): value for name, value in row.items()}
        rows.append(row | {name: totals.get(name) for name in BILLED})
    if as_json:
        show_json([row | {"changed": str(row["changed"])} for row in rows])
        return "1"
    shown = [
        [
            row["number"],
            row["program"],
            f"{row['changed']:%Y-%m-%d %H:%M}",
            row["project"],
            f"{row['megabytes']:.1f}",
            row["requests"],
            dollars(row["cost"]),
            row["misses"],
            dollars(row["missed_cost"]),
            row["compactions"],
        ]
        for row in rows
    ]
    show_table(f"The newest of your sessions, in {', '.join(folders)}", _COLUMNS, shown)
    if read < len(rows):
        bills = "The bill of the first was" if read == 1 else f"The bills of the first {read} were"
        show_lines([f"{bills} read; name the number of another session to read its bill."])
    return "1"


def _path(which: str, folder: str | None) -> str:
    """Return the file of a session, by its number in the list, or as it was given."""
    if not which.isdecimal():
        return which
    table = sessions(folder, newest=int(which))
    if not 1 <= int(which) <= len(table):
        if len(table):
            advice = f"there are {len(table):,}"
        else:
            advice = f"there is none; {SHIPPED} is a made-up one"
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
    show_table(question, ["what", "tokens", "share", "mark"], [_filled(row) for row in largest])
    if session.gap_sentence:
        show_lines([session.gap_sentence])

    by_cause = missed.groupby("cause").agg(
        misses=("missed", "size"), tokens=("paid", "sum"), cost=("cost", "sum")
    )
    causes = [
        [cause, *row] for cause, row in zip(by_cause.index, by_cause.values.tolist(), strict=True)
    ]
    if causes:
        cells = [
            [cause, int(number), int(tokens), dollars(cost)]
            for cause, number, tokens, cost in causes
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
    show_lines(told)
    return None


def _held(session: Session, with_text: bool) -> None:
    """Show what held the prompts: sub-agents apart, then tools, MCP servers and files that were read again."""
    lines = agents(session)
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
    groupings: tuple[By, ...] = ("tool", "server", "file")
    for by in groupings:
        rows = holding(session, by).head(KINDS).to_dict("records")
        if not rows:
            continue
        # A path may say more than its owner wants to show; its last name is enough to know it by.
        cells = [
            [
                row[by]
                if with_text or by != "file"
                else row[by].replace("\\", "/").rpartition("/")[2],
                row["calls"],
                row["tokens"],
                row["token_requests"],
                dollars(row["saved"]),
            ]
            for row in rows
        ]
        show_table(
            titles[by], [by, "calls", "tokens", "tokens times requests", "leaving out saves"], cells
        )
    paid = "A result is paid when it comes and again, cheaper, at each request that holds it."
    lacking = "Definitions of tools that the log does not hold are not in it"
    show_lines([f"{paid} {lacking}; nor is that the agent would have acted otherwise."])


_RULES = ["rule", "dollars", "compactions", "left or cut", "gone, used later"]


def filled_by(session: Session, with_text: bool) -> pd.DataFrame:
    """Return what filled the largest prompt; tools and MCP servers are numbered unless texts are wanted."""
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
    """Return the largest rows of what filled a prompt, one row of all others, and the difference: the whole prompt."""
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


def _filled(row: list[Any]) -> list[Any]:
    return [row[0], int(row[1]), f"{row[2]:.0%}", row[3]]


def _rule(row: dict[Any, Any]) -> list[Any]:
    touched = row["left"] + row["capped"]
    acts = row["compactions"] or touched or row["system"] in (AS_IT_WAS, RECORDED)
    cost = dollars(row["least"])
    if cost and round(row["most"], 2) > round(row["least"], 2):
        cost = f"{cost} to {dollars(row['most'])}"
    label = row["label"]
    if not acts:
        label = f"{label} (does not act)"
    elif row["capped"] == touched and not row["compactions"] and touched:
        label = f"{label} (only cuts results)"
    return [label, cost, row["compactions"], touched, row["used_later"]]


def dollars(cost: Any) -> str:
    """Write dollars; "" where nobody knows.

    >>> dollars(1234.5), dollars(None)
    ('$1,234.50', '')
    """
    if cost is None or cost != cost:
        return ""
    return f"${cost:,.2f}"
