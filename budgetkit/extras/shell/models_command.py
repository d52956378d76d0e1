"""``budgetkit models``: which models are known, what is known of each, and where two registries differ."""

from __future__ import annotations

from typing import Any

import click

from budgetkit.budget.quoting import quoted
from budgetkit.extras.shell.printed import show_json, show_lines, show_table
from budgetkit.models import Model, models, price_list
from budgetkit.models.conflicts import conflicts
from budgetkit.models.names import bare
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
@click.option(
    "--conflicts", "only_conflicts", is_flag=True, help="Where our table and genai-prices differ."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(names: tuple[str, ...], only_conflicts: bool, as_json: bool) -> None:
    """List models: window, longest answer, vocabulary, source, and the day on which each ends.

    A name that is not in the table is looked up as everywhere else; what stands in for it is said.
    """
    if only_conflicts:
        return _show_conflicts(names, as_json)
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


def _show_conflicts(names: tuple[str, ...], as_json: bool) -> None:
    """Print the models whose windows the two registries do not agree on, with both sources."""
    if price_list() is None:
        raise ImportError(
            'conflicts are those with genai-prices, which is not installed; pip install "budgetkit[lab]" brings it'
        )
    wanted = {bare(name) for name in names}
    shown = [conflict for conflict in conflicts() if not names or bare(conflict.model) in wanted]
    if as_json:
        return show_json(
            [
                {field: getattr(conflict, field) for field in conflict.__slots__}
                for conflict in shown
            ]
        )
    if not shown and names:
        return show_lines([f"No two registries are known to differ on {quoted(names)}."])
    if not shown:
        return show_lines(["The registries agree on every window that both of them have."])
    return show_lines([f"{conflict}." for conflict in shown])
