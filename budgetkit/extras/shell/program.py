"""The program: its commands by name, each loaded when it is run, and how errors and warnings are told."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from budgetkit.budget.quoting import brief
from budgetkit.extras.shell.terminal import printable

#: What each command does; the list of commands loads none of them.
COMMANDS: Final = {
    "sessions": "Your agents' sessions: what filled them, what misses cost.",
    "count": "Count the tokens of texts, files, conversations or a request.",
    "fit": "Fit one request of a conversation into a budget.",
    "replay": "Send a conversation through a budget and a pruning policy.",
    "compare": "Put pruning policies side by side on one conversation.",
    "check": "Fail where prompts, tools or conversations outgrow a budget.",
    "report": "Write a report of a conversation: one file of HTML to share.",
    "models": "List models, and where registries contradict each other.",
    "redact": "Print conversations with filler for their words.",
    "explore": "Open the app on a file, in the browser.",
}
#: What is wrong with what was given; anything else is a defect, and keeps its traceback.
WRONG: Final = (ValueError, TypeError, LookupError, OSError, ImportError)


#: What click raises from 8.2 on where a group is called without a command; before, it printed the help itself.
_NO_ARGUMENTS: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())


class Commands(click.Group):
    """The commands of the program, by the table above."""

    def list_commands(self, context: click.Context) -> list[str]:
        """List the names of the commands in the order in which one uses them."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import a command's module, and return the command."""
        return (
            import_module(f"budgetkit.extras.shell.{name}_command").command
            if name in COMMANDS
            else None
        )

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands for ``--help``, without importing their modules."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name without loading any."""
        names = [name for name in COMMANDS if name.startswith(incomplete)]
        return [CompletionItem(name, help=COMMANDS[name]) for name in names]


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="budgetkit")
def program() -> None:
    """Count, split and check a context window. To begin: budgetkit sessions.

    A conversation is a file in any format that budgetkit reads, the name of a shipped one, or "-" for standard
    input. To complete commands in the shell: eval "$(_BUDGETKIT_COMPLETE=bash_source budgetkit)", or zsh_source.
    """


def run(arguments: Sequence[str]) -> int:
    """Run the program; return its exit code."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = _note
        try:
            code = program.main(list(arguments), prog_name="budgetkit", standalone_mode=False)
        except click.exceptions.Exit as left:
            return left.exit_code
        except click.Abort:
            return 130
        except _NO_ARGUMENTS as bare:  # the bare program: its help is the answer
            click.echo(bare.format_message())
            return 0
        except click.ClickException as wrong:
            if (context := getattr(wrong, "ctx", None)) is not None:
                click.echo(
                    f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n",
                    err=True,
                )
            click.echo(f"Error: {printable(wrong.format_message())}", err=True)
            return wrong.exit_code
        except BrokenPipeError:  # whoever read the output has left
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except WRONG as wrong:
            if isinstance(wrong, LookupError) and wrong.args:
                message = wrong.args[0]
            elif isinstance(wrong, OSError) and wrong.filename and wrong.strerror:
                message = _about_file(wrong)
            else:
                message = wrong
            click.echo(f"Error: {printable(str(message))}", err=True)
            return 2
    return code if isinstance(code, int) else 0


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    click.echo(f"Note: {printable(str(message))}", err=True)


def _about_file(wrong: OSError) -> str:
    """Say what is wrong with a file that was named, without the system's number for it."""
    name = brief(str(wrong.filename))
    folder = Path(str(wrong.filename)).expanduser().parent
    if isinstance(wrong, FileNotFoundError) and folder.is_dir():
        return f"there is no file {name}; give the path of one that is there"
    if isinstance(wrong, FileNotFoundError):
        return f"there is no folder for {name}; make it, or give another path"
    return f"{name} cannot be read or written ({wrong.strerror}); give a file that can"
