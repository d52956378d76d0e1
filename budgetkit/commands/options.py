"""The options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Option = Callable[[Any], Any]


def budget_options(command: Any) -> Any:
    """Give a command the options that say which budget and which counter."""
    options: tuple[Option, ...] = (
        click.option("-b", "--budget", default="chat", show_default=True, help="A saved budget, or a preset's name."),
        click.option("-w", "--window", type=int, help="Window of a preset, in tokens; 8,192 without a model."),
        click.option("-m", "--model", "model_name", help="The model: its window for a preset, and its counter."),
        click.option("-c", "--counter", "counter_name", help="How to count, such as chars/4; else the model's."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    )
    for option in reversed(options):
        command = option(command)
    return command
