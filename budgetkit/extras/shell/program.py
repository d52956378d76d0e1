"""The program: its commands, and its display of errors and warnings."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from budgetkit.budget import brief, terminal_line
from budgetkit.budget.errors import unknown_name
from budgetkit.files import Table, read_toml
from budgetkit.message import Data

#: The commands by name; listing them imports none of their modules.
COMMANDS: Mapping[str, Data] = Table(lambda: read_toml("commands.toml")["command"])
_TYPES: Data = {
    "int": int,
    "float": float,
    "positive": click.IntRange(min=1),
    "folder": click.Path(file_okay=False),
}
#: The text that follows the list of sessions if no command is given.
NEXT_STEPS = """Next steps:
  budgetkit sessions {}: see what filled that session and what its cache misses cost
  budgetkit explore FILE: adjust a budget for your own conversation with sliders
  budgetkit notebook: learn budgeting step by step in Jupyter
All commands: budgetkit --help"""
#: Errors caused by the input; any other error is a defect and keeps its traceback.
WRONG = (ValueError, TypeError, LookupError, OSError, ImportError, RecursionError)


def parameters(rows: Iterable[Data]) -> Iterator[click.Parameter]:
    """Yield the arguments and options that rows of ``commands.toml`` describe."""
    for row in rows:
        if "shared" in row:
            yield from parameters(read_toml("commands.toml")["shared"][row["shared"]])
            continue
        fields = {name: value for name, value in row.items() if name not in ("flags", "choices")}
        if "choices" in row:
            fields["type"] = click.Choice(row["choices"])
        elif "type" in row:
            fields["type"] = _TYPES[row["type"]]
        is_option = row["flags"][0].startswith("-")
        yield (click.Option if is_option else click.Argument)(row["flags"], **fields)


class Commands(click.Group):
    """The commands of the program, from the table ``commands.toml``."""

    def list_commands(self, _: click.Context) -> list[str]:
        """List the commands in their usual order of use."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import a command's module and return the command.

        An unknown name is a usage error, except in shell completion.
        """
        if name not in COMMANDS:
            if context.resilient_parsing:  # for completion
                return None
            raise click.UsageError(unknown_name("command", name, COMMANDS), context)
        row = COMMANDS[name]
        module = import_module(f"budgetkit.extras.shell.{row['module']}")
        callback = getattr(module, f"{name}_command")
        params = [*parameters(row["parameters"])]
        return click.Command(name, params=params, callback=callback, help=getdoc(callback))

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands for ``--help``, without importing their modules."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, row["summary"]) for name, row in COMMANDS.items()])

    def shell_complete(self, _: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name without importing its module."""
        names = [name for name in COMMANDS if name.startswith(incomplete)]
        return [CompletionItem(name, help=COMMANDS[name]["summary"]) for name in names]


@click.command(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="budgetkit")
@click.pass_context
def program(context: click.Context) -> None:
    """Count, split and check a context window.

    Without a command, list sessions and next steps.

    A conversation is a file in any format that budgetkit reads, the name of a shipped conversation, or "-" for standard
    input. To enable shell completion: eval "$(_BUDGETKIT_COMPLETE=bash_source budgetkit)", or zsh_source.
    """
    if context.invoked_subcommand is None:
        sessions = import_module("budgetkit.extras.shell.sessions")
        click.echo(NEXT_STEPS.format(sessions.list_sessions(None, newest=5)))


def run(arguments: Sequence[str]) -> int:
    """Run the program and return its exit code."""
    notes: set[str] = set()

    def note(message: Warning | str, *_: Any, **__: Any) -> None:
        text = f"Note: {terminal_line(str(message))}"
        if text not in notes:  # each warning is shown once
            notes.add(text)
            click.echo(text, err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", DeprecationWarning)  # for programmers, not for users
        warnings.showwarning = note
        try:
            code = program.main(list(arguments), prog_name="budgetkit", standalone_mode=False)
        except click.exceptions.Exit as left:
            return left.exit_code
        except click.Abort:
            return 130
        except click.ClickException as wrong:
            if (context := getattr(wrong, "ctx", None)) is not None:
                click.echo(
                    f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n",
                    err=True,
                )
            click.echo(f"Error: {terminal_line(wrong.format_message())}", err=True)
            return wrong.exit_code
        except BrokenPipeError:  # the reader of the output has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except WRONG as wrong:
            if isinstance(wrong, LookupError) and wrong.args:
                message = wrong.args[0]
            elif isinstance(wrong, OSError) and wrong.filename and wrong.strerror:
                message = _about_file(wrong)
            elif isinstance(wrong, RecursionError):
                message = "The input is nested too deeply. Pass one with fewer levels."
            else:
                message = wrong
            click.echo(f"Error: {terminal_line(str(message))}", err=True)
            return 2
    return code if isinstance(code, int) else 0


def _about_file(wrong: OSError) -> str:
    """Describe an OSError without its error number."""
    name = brief(str(wrong.filename))
    folder = Path(str(wrong.filename)).expanduser().parent
    if isinstance(wrong, FileNotFoundError):
        if folder.is_dir():
            return f"File not found: {name}. Check the path."
        return f"Folder not found: {brief(str(folder))}. Create it, or give another path."
    return f"Cannot read or write {name}: {wrong.strerror}. Check the path and its permissions."
