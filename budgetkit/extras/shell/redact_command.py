"""``budgetkit redact``: conversations that can be shown to others, as lines of JSON."""

from __future__ import annotations

import click

from budgetkit.counters import counter
from budgetkit.extras.redaction import redact
from budgetkit.extras.shell.inputs import traces_of
from budgetkit.trace import to_line


@click.command("redact")
@click.argument("file")
@click.option(
    "-c",
    "--counter",
    "name",
    default="o200k_base",
    show_default=True,
    help="Whose figures stay the same.",
)
def command(file: str, name: str) -> None:
    """Print the conversations of a file with filler in place of all words, a line of JSON each.

    Texts keep their size under the counter, names and ids become others, and what no figure is made of is left out.
    """
    count = counter(name)
    for trace in traces_of(file):
        click.echo(to_line(redact(trace, count)))
