"""Magic: ``%%budget``, which watches the clients of a notebook while a cell runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from budgetkit.budget.quoting import one_line
from budgetkit.extras.endpoints.watching import METHODS, Watched, method_at, watch


def load_ipython_extension(shell: Any) -> None:
    """Give notebooks the cell magic ``%%budget``: ``%load_ext budgetkit``, once.

    The cell runs while its clients are watched: those that are named behind the magic, or all that the notebook has.
    What was recorded is shown under the cell, and stands in the variable ``watched``.

    Parameters
    ----------
    shell : InteractiveShell
        IPython's, which calls this.

    Examples
    --------
    >>> class Shell:
    ...     def register_magic_function(self, magic, kind, name):
    ...         print(kind, name)
    >>> load_ipython_extension(Shell())
    cell budget
    """

    def budget(line: str, cell: str) -> Watched:
        names = line.split()
        if unknown := [name for name in names if name not in shell.user_ns]:
            raise ValueError(
                f"no {one_line(unknown[0])} in this notebook; name a client made before this cell"
            )
        if shell.should_run_async(cell, transformed_cell=shell.transform_cell(cell)):
            raise ValueError(
                "%%budget was put over a cell that awaits; write `with bk.watch(client):` inside the cell"
            )
        clients = [shell.user_ns[name] for name in names] or clients_in(shell.user_ns)
        with watch(*clients) as watched:
            shell.user_ns["watched"] = watched
            shell.run_cell(cell)
        return watched

    shell.register_magic_function(budget, "cell", "budget")


def clients_in(names: Mapping[str, Any]) -> list[Any]:
    """Return what can be watched of a notebook's variables, each once, and litellm where it is imported."""
    values = [value for name, value in names.items() if not name.startswith("_")]
    libraries = {type(value).__module__.partition(".")[0] for value in values}
    client_values = [
        value
        for value in values
        if type(value).__module__.partition(".")[0] in libraries & {"openai", "anthropic"}
    ]
    clients = [value for value in client_values if any(method_at(value, path) for path in METHODS)]
    clients += [sys.modules["litellm"]] if "litellm" in sys.modules else []
    if not clients:
        raise ValueError(
            "no client of openai, anthropic or litellm in this notebook; make one before this cell"
        )
    return list({id(client): client for client in clients}.values())
