"""The command line, whose commands are listed in :mod:`budgetkit.extras.shell.program`.

Modules are imported only when a command needs them. Invalid input gives one sentence and exit code 2. A failed check
gives exit code 1.
"""

import os
import sys
from importlib import import_module


def main() -> None:
    """Run the command line and exit with its code."""
    # A shell that closes the streams (`>&-`) leaves None.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - for the whole run
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    sys.exit(import_module("budgetkit.extras.shell.program").run(sys.argv[1:]))
