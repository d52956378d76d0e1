"""What a check found, for people, programs and pipelines; and the baseline that makes growth visible.

>>> from budgetkit.extras.shell.gate import Checked
>>> print(github(Checked((), (), {"tools": 2_240}), {"tools": 1_240}, "main"))
::notice title=budgetkit growth::tools +1,240 tokens since main
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from budgetkit.budget.amounts import whole_number
from budgetkit.budget.quoting import brief, one_line
from budgetkit.extras.shell.gate import Checked, Failure
from budgetkit.extras.shell.terminal import printable
from budgetkit.files import write_whole

VERSION = 1


def save(path: str, checked: Checked) -> None:
    """Write what each section asks for, to be compared with later."""
    data = {"budgetkit": VERSION, "sections": dict(sorted(checked.sections.items()))}
    write_whole(path, (json.dumps(data, indent=2) + "\n").encode())


def growth(path: str, checked: Checked) -> dict[str, int]:
    """Read a baseline; return by how many tokens each section has changed since."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"baseline {one_line(path)} is no JSON ({error}); save it again") from None
    if isinstance(data, Mapping) and data.get("budgetkit") == VERSION:
        sections = data.get("sections")
    else:
        sections = None
    if not isinstance(sections, Mapping) or any(
        whole_number(tokens) is None for tokens in sections.values()
    ):
        raise ValueError(
            f"baseline {one_line(path)} holds {brief(data)}; save it again with --save-baseline"
        )
    names = dict.fromkeys([*sections, *checked.sections])
    changes = {name: checked.sections.get(name, 0) - int(sections.get(name, 0)) for name in names}
    return {name: tokens for name, tokens in changes.items() if tokens}


def grown(changes: Mapping[str, int], since: str) -> list[str]:
    """Say what has changed since a baseline.

    >>> grown({"tools": 1_240, "system": -3}, "main")
    ['tools +1,240 tokens since main', 'system -3 tokens since main']
    """
    return [
        f"{one_line(name)} {tokens:+,} tokens since {one_line(since)}"
        for name, tokens in changes.items()
    ]


def as_data(checked: Checked, changes: Mapping[str, int], since: str) -> dict[str, Any]:
    """Return all of it as plain data."""
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


def github(checked: Checked, changes: Mapping[str, int], since: str) -> str:
    """Write workflow commands, from which GitHub makes annotations."""
    lines = []
    for failure in checked.failures:
        lines.append(
            ("error", failure.code, f"{failure.where}: {failure.sentence}\n{failure.detail}")
        )
    kind_of_finding = "error" if checked.strict else "warning"
    for finding in checked.findings:
        lines.append((kind_of_finding, finding.code, f"{finding.sentence}; {finding.mend}"))
    lines += [("notice", "growth", sentence) for sentence in grown(changes, since)]
    return "\n".join(
        f"::{kind} title=budgetkit {code}::{_escaped(printable(text))}"
        for kind, code, text in lines
    )


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def junit(checked: Checked, changes: Mapping[str, int], since: str) -> str:
    """Write a JUnit report: a case for each failure, or one that passed; findings and growth as its output."""
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
