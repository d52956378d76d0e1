"""``budgetkit explore``: the app on a file, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import click


@click.command("explore", context_settings={"ignore_unknown_options": True})
@click.argument("file", default="support-chat")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def command(file: str, options: tuple[str, ...]) -> int:
    """Open the app on a file, in the browser; further options, such as --no-browser, are those of Voilà."""
    if file == "-":
        raise ValueError(
            "the app reads a file, not standard input; save the conversation, and give the file"
        )
    done = subprocess.run([sys.executable, "-m", "budgetkit.lab.app", file, *options])
    return done.returncode
