"""``budgetkit models``: list the known models with their facts."""

from __future__ import annotations

from typing import Any

import click

from budgetkit.extras.shell.printed import show_json, show_lines, show_table
from budgetkit.models import Model, models
from budgetkit.models.resolved import resolve

_FIELDS = (
    "name",
    "window",
    "kind",
    "max_output",
    "encoding",
    "encoding_is_own",
    "provider",
    "source",
    "date",
    "ends",
)


@click.command("models")
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List models: window, longest answer, vocabulary, source, and the day on which each ends.

    A name that is not in the table is looked up as everywhere else; what stands in for it is said.
    """
    resolved = [resolve(name) for name in names]
    if names:
        rows = [model.facts for model in resolved]
    else:
        rows = [*models()]
    if as_json:
        return show_json([{field: getattr(model, field) for field in _FIELDS} for model in rows])
    columns = [
        "model",
        "window",
        "of",
        "longest answer",
        "vocabulary",
        "own",
        "maker",
        "read",
        "ends",
    ]
    show_table("Models, in tokens", columns, map(_row, rows))
    return show_lines([f"{model.notice}." for model in resolved if model.notice])


def _row(model: Model) -> tuple[Any, ...]:
    return (
        model.name,
        model.window,
        "prompt and answer" if model.kind == "shared" else "the prompt",
        model.max_output,
        model.encoding,
        "yes" if model.encoding_is_own else "stands in",
        model.provider,
        model.date,
        model.ends,
    )
