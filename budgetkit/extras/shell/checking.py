"""``budgetkit check``, and the baselines that it saves and compares with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from budgetkit.budget import brief, one_line, warn_caller
from budgetkit.budget.amounts import whole_number
from budgetkit.extras.shell.gate import CheckResult, check, refusing_unreadable_files
from budgetkit.extras.shell.inputs import BudgetCase, json_at, load_all, tools_of, with_budget
from budgetkit.extras.shell.terminal import Names, show_json, show_lines, show_table
from budgetkit.files import write_whole
from budgetkit.models import today
from budgetkit.trace import Trace

#: The version of baseline files.
VERSION = 1


def check_command(conversations: Names, **options: Any) -> int:
    """Check prompts, tools and recorded conversations against a budget.

    Exit code 0: the check passed; 1: it failed; 2: the input is invalid. Findings about the budget itself fail the
    check only with --strict, and conversations that lose messages fail it only with --most-cut.
    """
    with refusing_unreadable_files():
        return _check_traces(traces=[*load_all(conversations)], **options)  # type: ignore[no-any-return]


@with_budget
def _check_traces(
    case: BudgetCase,
    traces: list[Trace],
    prompts: Names,
    tools: Names,
    policy: str | None,
    baseline: str | None,
    saved_as: str | None,
    as_json: bool,
    strict: bool,
    **limits: Any,
) -> int:
    """Check loaded conversations, prompts and tools against a budget."""
    files: dict[str, Path] = {}
    for option in prompts:
        section, _, file = option.partition("=")
        if not section or not file:
            raise ValueError(
                f"Invalid --prompt {brief(option)}: use SECTION=FILE, for example system=prompt.txt."
            )
        if section in files:
            raise ValueError(f"Two prompts for section {brief(section)}. Put both into one file.")
        files[section] = Path(file)
    checked = check(
        case.budget,
        prompts=files or None,
        tools=[tool for file in tools for tool in tools_of(file)] or None,
        traces=traces or None,
        counter=case.counter,
        model=case.model,
        window=case.window,
        policy=policy or case.policy,
        today=today(),
        strict=strict,
        **limits,
    )
    if checked.cut and limits["most_cut"] is None:
        warn_caller(f"{checked.losing}, and no limit is set. Set one, such as --most-cut 0.1.")
    changes = {} if baseline is None else growth(baseline, checked)
    since = "" if baseline is None else Path(baseline).stem
    if saved_as is not None:
        save_baseline(saved_as, checked)
    if as_json:
        show_json(as_data(checked, changes, since))
        return int(not checked.passed)
    if checked.sections:
        title = "Largest demand by section, in tokens"
        show_table(title, ["section", "tokens"], checked.sections.items())
    show_lines(
        *(f"Finding {finding}" for finding in checked.findings),
        *growth_sentences(changes, since),
        *"\n".join(checked.explanations).split("\n"),
        checked.headline,
    )
    return int(not checked.passed)


def save_baseline(path: str, checked: CheckResult) -> None:
    """Save each section's largest demand as a baseline."""
    data = {"budgetkit": VERSION, "sections": dict(sorted(checked.sections.items()))}
    write_whole(path, (json.dumps(data, indent=2) + "\n").encode())


def growth(path: str, checked: CheckResult) -> dict[str, int]:
    """Return the change in each section's largest demand since a baseline.

    The changes are in tokens. Unchanged sections are left out.
    """
    data = json_at(path, f"baseline {one_line(path)}", "Save it again with --save-baseline.")
    is_baseline = isinstance(data, Mapping) and data.get("budgetkit") == VERSION
    sections = data.get("sections") if is_baseline else None
    if not isinstance(sections, Mapping) or None in map(whole_number, sections.values()):
        raise ValueError(
            f"{one_line(path)} does not contain a baseline. Save it again with --save-baseline."
        )
    names = dict.fromkeys([*sections, *checked.sections])
    changes = {name: checked.sections.get(name, 0) - int(sections.get(name, 0)) for name in names}
    return {name: tokens for name, tokens in changes.items() if tokens}


def growth_sentences(changes: Mapping[str, int], since: str) -> list[str]:
    """Return the changes since a baseline, one line each.

    >>> growth_sentences({"tools": 1_240, "system": -3}, "main")
    ['tools +1,240 tokens since main', 'system -3 tokens since main']
    """
    return [
        f"{one_line(name)} {tokens:+,} tokens since {one_line(since)}"
        for name, tokens in changes.items()
    ]


def as_data(checked: CheckResult, changes: Mapping[str, int], since: str) -> dict[str, Any]:
    """Return the result of a check, with the growth, as plain data."""
    failures = [{**asdict(failure), "detail": failure.detail} for failure in checked.failures]
    return {
        "passed": checked.passed,
        "headline": checked.headline,
        **asdict(checked),
        "failures": failures,
        "growth": dict(changes),
        "since": since,
    }
