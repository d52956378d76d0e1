"""``budgetkit check``: the gate, with exit code 1 where it is closed."""

from __future__ import annotations

import warnings
from datetime import date
from pathlib import Path
from typing import Any

import click

from budgetkit.budget.quoting import brief
from budgetkit.extras.shell.gate import Checked, check
from budgetkit.extras.shell.inputs import tools_of, traces_of
from budgetkit.extras.shell.options import with_budget
from budgetkit.extras.shell.printed import show_json, show_lines, show_table
from budgetkit.extras.shell.reports import as_data, github, grown, growth, junit, save
from budgetkit.pruning.policies.systems import policy_of


@click.command("check")
@click.argument("conversations", nargs=-1)
@with_budget
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="SECTION=FILE",
    help="A prompt's text, and its section.",
)
@click.option(
    "--tools", multiple=True, metavar="FILE", help="Tool schemas, or an MCP server's tools/list."
)
@click.option(
    "--most-cut",
    type=float,
    help="The greatest share of conversations that may lose something, as 0.1; any when left out.",
)
@click.option(
    "--floor",
    type=int,
    help="Least that is left for the history, in tokens; else the budget's floor.",
)
@click.option("-p", "--policy", help="What prunes the history, for the findings.")
@click.option(
    "--thinking", type=int, default=0, help="The most that the model may think, in tokens."
)
@click.option("--baseline", metavar="FILE", help="Say what has grown since this was saved.")
@click.option(
    "--save-baseline", "saved_as", metavar="FILE", help="Save what each section asks for."
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "junit", "github"]), default="table"
)
@click.option("--strict", is_flag=True, help="Fail on findings too.")
def command(
    conversations: tuple[str, ...],
    prompts: tuple[str, ...],
    tools: tuple[str, ...],
    model: str | None,
    policy: Any,
    baseline: str | None,
    saved_as: str | None,
    form: str,
    as_json: bool,
    strict: bool,
    count: Any,
    named_options: Any,
    **limits: Any,
) -> int:
    """Fail where prompts, tools or recorded conversations outgrow a budget.

    Exit code 0: the gate is open; 1: it is closed; 2: what was given is wrong. Findings are about the budget itself,
    and close it with --strict. That conversations lose something closes the gate with --most-cut only.
    """
    if not (conversations or prompts or tools or model or strict):
        raise ValueError(
            "nothing to check; a gate looks at conversations, --prompt, --tools or --model, and with --strict at the "
            "budget alone; give one of these"
        )
    checked = check(
        prompts=_prompts(prompts) or None,
        tools=[tool for file in tools for tool in tools_of(file)] or None,
        traces=[trace for file in conversations for trace in traces_of(file)] or None,
        counter=count,
        model=model,
        policy=None if policy is None else policy_of(policy),
        today=date.today(),
        strict=strict,
        **limits,
    )
    if checked.cut and limits["most_cut"] is None:
        warnings.warn(
            f"{checked.losing}, and nothing was asked about that; --most-cut 0.1 would allow one in ten",
            stacklevel=1,
        )
    changes, since = (growth(baseline, checked), Path(baseline).stem) if baseline else ({}, "")
    if saved_as:
        save(saved_as, checked)
    _show(checked, changes, since, "json" if as_json else form)
    return 0 if checked.passed else 1


def _prompts(options: tuple[str, ...]) -> dict[str, Path]:
    """Return the file of each section, of every SECTION=FILE."""
    files: dict[str, Path] = {}
    for option in options:
        section, _, file = option.partition("=")
        if not section or not file:
            raise ValueError(
                f"a prompt {brief(option)}; a prompt is given as SECTION=FILE, such as system=prompt.txt"
            )
        if section in files:
            raise ValueError(
                f"two prompts of {brief(section)}; a section has one text; put both into one file"
            )
        files[section] = Path(file)
    return files


def _show(checked: Checked, changes: dict[str, int], since: str, form: str) -> None:
    if form == "json":
        return show_json(as_data(checked, changes, since))
    if form in ("junit", "github"):
        return click.echo((junit if form == "junit" else github)(checked, changes, since))
    if checked.sections:
        show_table(
            "Most that each section asks for, in tokens",
            ["section", "tokens"],
            checked.sections.items(),
        )
    show_lines([f"Finding, {finding}" for finding in checked.findings] + grown(changes, since))
    show_lines(checked.explanations)
    show_lines([checked.headline])
