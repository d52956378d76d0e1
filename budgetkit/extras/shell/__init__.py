"""The command line: ``budgetkit sessions`` and the commands that `program` lists.

Nothing is imported before a command needs it. Whatever is wrong with what was given ends in one sentence and exit
code 2; a gate that fails ends in 1.
"""

import sys
from importlib import import_module

from budgetkit.files import extra


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        with extra("cli", "the command line"):
            program = import_module("budgetkit.extras.shell.program")
    except ImportError as missing:
        print(f"Error: {missing}", file=sys.stderr)
        sys.exit(2)
    sys.exit(program.run(sys.argv[1:]))
