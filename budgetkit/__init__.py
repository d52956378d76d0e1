"""Split a context window: budgets, counts and plans; each name is imported when it is first used.

The stub beside this file, `__init__.pyi`, says which name lives where, to a type checker and to `import` alike
(PEP 562), so that `import budgetkit` loads nothing else.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as typing's, which takes longer to import than all of this file
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def homes(package: ModuleType) -> dict[str, str]:
    """Read from a package's stub the module that each of its names lives in."""
    with open(f"{str(package.__file__).rpartition('.')[0]}.pyi", encoding="utf-8") as stub:
        lines = [line[5:].split(" import ") for line in stub if line.startswith("from budgetkit")]
    return {each.split()[0]: home for home, names in lines for each in names.split(",")}


def lazily(package: ModuleType, known: dict[str, str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a package whose names are imported when they are first used."""

    def get(name: str) -> Any:
        from importlib import import_module

        if name not in known:
            asked = f"{package.__name__} has no {name!r}; it has {', '.join(sorted(known))}; take one of these"
            raise AttributeError(asked, name=name, obj=package)
        home = known[name]
        value = None if home == package.__name__ else getattr(import_module(home), name, None)
        value = import_module(f"{home}.{name}") if value is None else value
        setattr(package, name, value)
        return value

    return get


class _Package(type(sys)):
    """A package whose function is not hidden by the module of the same name (replay, in replay/).

    Importing a module binds its name in the package, which would make `budgetkit.replay` a function or a
    module depending on who imported what first.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (_HOMES.get(name, __name__) != __name__ and isinstance(value, type(sys)) and _is_own(value, name)):
            super().__setattr__(name, value)


def _is_own(module: ModuleType, name: str) -> bool:
    return module.__name__ == f"{__name__}.{name}"


_this = sys.modules[__name__]
_HOMES = homes(_this)
__all__ = sorted(_HOMES)
_this.__class__ = _Package
_named = lazily(_this, _HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    return _named(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
