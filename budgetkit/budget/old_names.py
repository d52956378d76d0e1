"""Old names of parameters: what was renamed is still taken by its old name, with a warning that says the new one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from budgetkit.budget.notices import warn_caller

P = ParamSpec("P")
R = TypeVar("R")


def renamed(**new_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take parameters by their old names, too.

    Parameters
    ----------
    **new_names : str
        The new name of each parameter, by its old one.

    Returns
    -------
    callable
        A decorator. The warning names the line that calls the function.

    Examples
    --------
    >>> import warnings
    >>> @renamed(count="counter")
    ... def measure(text, counter): return counter(text)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     measure("Hello", count=len)
    5
    >>> str(caught[0].message)
    'measure(count=...) is called counter= now; count= goes in version 0.5; write counter='
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        called = function.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]

        @wraps(function)
        def with_new_names(*arguments: P.args, **options: P.kwargs) -> R:
            for old in new_names.keys() & options.keys() if options else ():
                new = new_names[old]
                if new in options:
                    raise TypeError(
                        f"{called}({old}=..., {new}=...): both are the same parameter; give {new}= alone"
                    )
                notice = f"{called}({old}=...) is called {new}= now; {old}= goes in version 0.5; write {new}="
                warn_caller(notice, DeprecationWarning)
                options[new] = options.pop(old)
            return function(*arguments, **options)

        return with_new_names

    return decorate
