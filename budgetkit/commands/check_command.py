"""``budgetkit check``: the gate, with exit code 1 where it is closed."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import click

from budgetkit.commands.gate import Checked, check
from budgetkit.commands.inputs import (
    budget_of,
    counter_of,
    model_of,
    policy_of,
    tools_of,
    traces_of,
)
from budgetkit.commands.options import budget_options
from budgetkit.commands.printed import show_json, show_lines, show_table
from budgetkit.commands.reports import as_data, github, grown, growth, junit, save_baseline


@click.command("check")
@click.argument("conversations", nargs=-1)
@budget_options
@click.option("--prompt", "prompts", multiple=True, metavar="SECTION=FILE", help="A prompt's text, and its section.")
@click.option("--tools", "tool_files", multiple=True, metavar="FILE", help="Tool schemas, or an MCP tools/list.")
@click.option("--most-cut", type=float, help="The greatest share of conversations that may lose something, as 0.1.")
@click.option("--floor", type=int, help="Least that is left for the history, in tokens; else the budget's floor.")
@click.option("-p", "--policy", help="What prunes the history, for the findings.")
@click.option("--thinking", type=int, default=0, help="The most that the model may think, in tokens.")
@click.option("--baseline", metavar="FILE", help="Say what has grown since this was saved.")
@click.option("--save-baseline", "save_baseline_as", metavar="FILE", help="Save what each section asks for.")
@click.option("--format", "form", type=click.Choice(["table", "json", "junit", "github"]), default="table")
@click.option("--strict", is_flag=True, help="Fail on findings too.")
def command(
    conversations: tuple[str, ...],
    budget: str,
    window: int | None,
    model_name: str | None,
    counter_name: str | None,
    as_json: bool,
    prompts: tuple[str, ...],
    tool_files: tuple[str, ...],
    most_cut: float | None,
    floor: int | None,
    policy: str | None,
    thinking: int,
    baseline: str | None,
    save_baseline_as: str | None,
    form: str,
    strict: bool,
) -> int:
    """Fail where prompts, tools or recorded conversations outgrow a budget.

    Exit code 0: nothing does; 1: something does; 2: what was given is wrong. Findings are about the budget itself,
    and fail with --strict.
    """
    checked = check(
        budget_of(budget, window, model_name),
        prompts=dict(map(_prompt, prompts)),
        tools=[tool for file in tool_files for tool in tools_of(file)],
        traces=(trace for file in conversations for trace in traces_of(file)),
        count=counter_of(counter_name, model_name),
        model=model_of(model_name),
        policy=None if policy is None else policy_of(policy),
        most_cut=most_cut,
        floor=floor,
        thinking=thinking,
        today=date.today(),
    )
    changes, since = (growth(baseline, checked), Path(baseline).stem) if baseline else ({}, "")
    if save_baseline_as:
        save_baseline(save_baseline_as, checked)
    _show(checked, changes, since, "json" if as_json else form)
    return 0 if checked.passed and not (strict and checked.findings) else 1


def _prompt(given: str) -> tuple[str, str]:
    """Read SECTION=FILE."""
    section, sign, file = given.partition("=")
    if not sign or not section:
        raise ValueError(f"a prompt {given!r:.100}; a prompt is given as SECTION=FILE, such as system=prompt.txt")
    return section, Path(file).expanduser().read_text(encoding="utf-8")


def _show(checked: Checked, changes: dict[str, int], since: str, form: str) -> None:
    if form == "json":
        return show_json(as_data(checked, changes, since))
    if form in ("junit", "github"):
        return click.echo((junit if form == "junit" else github)(checked, changes, since))
    show_table("Most that each section asks for, in tokens", ["section", "tokens"], checked.sections.items())
    show_lines([f"Finding, {finding}" for finding in checked.findings])
    show_lines(grown(changes, since))
    show_lines(str(failure) for failure in checked.failures)
    if checked.conversations:
        show_lines([f"{checked.cut:,} of {checked.conversations:,} conversations lose something."])
    show_lines(["The gate is open." if checked.passed else "The gate is closed."])
