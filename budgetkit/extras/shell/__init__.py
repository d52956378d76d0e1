"""The command line: ``budgetkit sessions`` and the other commands that :mod:`budgetkit.extras.shell.program` lists.

Nothing is imported before a command needs it. Invalid input ends in one sentence and exit code 2; a check that fails
ends in 1.
"""

import sys
from importlib import import_module


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(import_module("budgetkit.extras.shell.program").run(sys.argv[1:]))
