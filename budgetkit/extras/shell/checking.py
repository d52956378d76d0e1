"""``budgetkit check``: the gate as a command, its reports, and the baseline.

>>> print(github(CheckResult((), (), {"tools": 2_240}), {"tools": 1_240}, "main"))
::notice title=budgetkit growth::tools +1,240 tokens since main
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click

from budgetkit.budget import brief, one_line, printable, warn_caller
from budgetkit.budget.amounts import whole_number
from budgetkit.extras.shell.gate import CheckResult, Failure, check
from budgetkit.extras.shell.inputs import load_all, tools_of, with_budget
from budgetkit.extras.shell.terminal import show_json, show_lines, show_table
from budgetkit.files import write_whole
from budgetkit.models import today
from budgetkit.plan.advice import two_sentences
from budgetkit.pruning import policy_of

#: The version of baseline files.
VERSION = 1
_ESCAPES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})


@click.command("check")
@click.argument("conversations", nargs=-1)
@with_budget
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="SECTION=FILE",
    help="A file with the prompt of a section.",
)
@click.option(
    "--tools",
    multiple=True,
    metavar="FILE",
    help="A file with tool schemas, or with an MCP server's tools/list.",
)
@click.option(
    "--most-cut",
    type=float,
    help="Maximum share of conversations that may lose messages, such as 0.1; no limit by default.",
)
@click.option(
    "--floor",
    type=int,
    help="Minimum tokens left for the history; by default the budget's floor.",
)
@click.option("-p", "--policy", help="Pruning policy to check.")
@click.option(
    "--thinking", type=int, default=0, help="Maximum tokens that the model may use for thinking."
)
@click.option(
    "--baseline", metavar="FILE", help="Report how sections have grown since this file was saved."
)
@click.option(
    "--save-baseline",
    "saved_as",
    metavar="FILE",
    help="Save the demand of each section to this file.",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "junit", "github"]), default="table"
)
@click.option("--strict", is_flag=True, help="Fail if there are findings, too.")
def check_command(
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
    """Check prompts, tools and recorded conversations against a budget.

    Exit code 0: the check passed; 1: it failed; 2: the input is invalid. Findings about the budget itself fail the
    check only with --strict, conversations that lose messages only with --most-cut.
    """
    if not (conversations or prompts or tools or model or strict):
        raise ValueError(
            "Nothing to check. Pass conversations, --prompt, --tools or --model, or use --strict to check the "
            "budget alone."
        )
    checked = check(
        prompts=_prompts(prompts) or None,
        tools=[tool for file in tools for tool in tools_of(file)] or None,
        traces=[trace for file in conversations for trace in load_all(file)] or None,
        counter=count,
        model=model,
        policy=None if policy is None else policy_of(policy),
        today=today(),
        strict=strict,
        **limits,
    )
    if checked.cut and limits["most_cut"] is None:
        warn_caller(f"{checked.losing}, and no limit is set. Set one, such as --most-cut 0.1.")
    changes, since = (
        ({}, "") if baseline is None else (growth(baseline, checked), Path(baseline).stem)
    )
    if saved_as is not None:
        save_baseline(saved_as, checked)
    _show(checked, changes, since, "json" if as_json else form)
    return 0 if checked.passed else 1


def _prompts(options: tuple[str, ...]) -> dict[str, Path]:
    """Return the file of each section from the SECTION=FILE options."""
    files: dict[str, Path] = {}
    for option in options:
        section, _, file = option.partition("=")
        if not section or not file:
            raise ValueError(
                f"Invalid --prompt {brief(option)}: use SECTION=FILE, for example system=prompt.txt."
            )
        if section in files:
            raise ValueError(f"Two prompts for section {brief(section)}. Put both into one file.")
        files[section] = Path(file)
    return files


def _show(checked: CheckResult, changes: dict[str, int], since: str, form: str) -> None:
    if form == "json":
        return show_json(as_data(checked, changes, since))
    if form in ("junit", "github"):
        return click.echo((junit if form == "junit" else github)(checked, changes, since))
    if checked.sections:
        show_table(
            "Largest demand by section, in tokens",
            ["section", "tokens"],
            checked.sections.items(),
        )
    show_lines([f"Finding, {finding}" for finding in checked.findings] + grown(changes, since))
    show_lines("\n".join(checked.explanations).split("\n"))
    show_lines([checked.headline])


def save_baseline(path: str, checked: CheckResult) -> None:
    """Save each section's largest demand as a baseline."""
    data = {"budgetkit": VERSION, "sections": dict(sorted(checked.sections.items()))}
    write_whole(path, (json.dumps(data, indent=2) + "\n").encode())


def growth(path: str, checked: CheckResult) -> dict[str, int]:
    """Return the change in each section since a baseline, in tokens."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"Invalid JSON in baseline {one_line(path)} ({error}). Save it again with --save-baseline."
        ) from None
    if isinstance(data, Mapping) and data.get("budgetkit") == VERSION:
        sections = data.get("sections")
    else:
        sections = None
    if not isinstance(sections, Mapping) or any(
        whole_number(tokens) is None for tokens in sections.values()
    ):
        raise ValueError(
            f"Invalid baseline {one_line(path)}: {brief(data)}. Save it again with --save-baseline."
        )
    names = dict.fromkeys([*sections, *checked.sections])
    changes = {name: checked.sections.get(name, 0) - int(sections.get(name, 0)) for name in names}
    return {name: tokens for name, tokens in changes.items() if tokens}


def grown(changes: Mapping[str, int], since: str) -> list[str]:
    """Return the changes since a baseline, one line each.

    >>> grown({"tools": 1_240, "system": -3}, "main")
    ['tools +1,240 tokens since main', 'system -3 tokens since main']
    """
    return [
        f"{one_line(name)} {tokens:+,} tokens since {one_line(since)}"
        for name, tokens in changes.items()
    ]


def as_data(checked: CheckResult, changes: Mapping[str, int], since: str) -> dict[str, Any]:
    """Return the result of a check, with the growth, as plain data."""
    fields = asdict(checked)
    for entry, failure in zip(fields["failures"], checked.failures, strict=True):
        entry["detail"] = failure.detail
    return {
        "passed": checked.passed,
        "headline": checked.headline,
        **fields,
        "growth": dict(changes),
        "since": since,
    }


def github(checked: CheckResult, changes: Mapping[str, int], since: str) -> str:
    """Return workflow commands that GitHub shows as annotations."""
    lines = [
        ("error", failure.code, f"{failure.where}: {failure.sentence}\n{failure.detail}")
        for failure in checked.failures
    ]
    kind_of_finding = "error" if checked.strict else "warning"
    lines += [
        (kind_of_finding, finding.code, two_sentences(finding.sentence, finding.mend))
        for finding in checked.findings
    ]
    lines += [("notice", "growth", sentence) for sentence in grown(changes, since)]
    return "\n".join(
        f"::{kind} title=budgetkit {code}::{printable(text).translate(_ESCAPES)}"
        for kind, code, text in lines
    )


def junit(checked: CheckResult, changes: Mapping[str, int], since: str) -> str:
    """Return a JUnit report with one case for each failure."""
    failures = [*checked.failures]
    if checked.strict:
        failures += [
            Failure(finding.code, "budget", finding.sentence, finding.mend)
            for finding in checked.findings
        ]
    failed = len(failures)
    suite = ElementTree.Element(
        "testsuite", name="budgetkit", tests=str(max(1, failed)), failures=str(failed)
    )
    for failure in failures:
        named = printable(f"{failure.code}: {failure.where}")
        case = ElementTree.SubElement(suite, "testcase", classname="budgetkit", name=named)
        ElementTree.SubElement(
            case, "failure", message=printable(failure.sentence)
        ).text = printable(failure.detail)
    if not failed:
        ElementTree.SubElement(suite, "testcase", classname="budgetkit", name="check")
    lines = [*map(str, checked.findings), *grown(changes, since)]
    ElementTree.SubElement(suite, "system-out").text = printable("\n".join(lines))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)
