"""JSON and YAML read strictly: as data only, and no key twice, of which both languages keep the last in silence."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from typing import Any

import yaml


def from_json_text(text: str) -> object:
    """Return what a JSON text holds.

    Examples
    --------
    >>> from_json_text('{"window": 8192}')
    {'window': 8192}
    """
    return _parsed("JSON", lambda: json.loads(text, object_pairs_hook=_once), (ValueError, RecursionError))


def from_yaml_text(text: str) -> object:
    r"""Return what a YAML text holds; no tag makes an object.

    Examples
    --------
    >>> from_yaml_text("window: 8192\nname: mine")
    {'window': 8192, 'name': 'mine'}
    """
    errors = (yaml.YAMLError, ValueError, RecursionError)
    return _parsed("YAML", lambda: yaml.load(text, Loader=_Loader), errors)


class _TwiceError(ValueError):
    """A key stands twice."""


class _Loader(yaml.SafeLoader):
    """YAML's own loader of plain data, which keeps the last of two keys without a word."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        if isinstance(node, yaml.MappingNode):
            names = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            _refuse_twice([value for _, value in names], len(set(names)) < len(names))
        return super().construct_mapping(node, deep)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    _refuse_twice([key for key, _ in pairs], len(found) < len(pairs))
    return found


def _refuse_twice(names: list[str], is_twice: bool) -> None:
    if is_twice:
        name = next(name for i, name in enumerate(names) if name in names[:i])
        raise _TwiceError(f"saved state has {name!r} twice in one mapping; each key is known once; remove one of them")


def _parsed(what: str, parse: Callable[[], object], errors: tuple[type[Exception], ...]) -> object:
    try:
        return parse()
    except _TwiceError:
        raise
    except errors as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"saved state is no {what} ({first}); it starts with 'budgetkit'; copy the whole text"
        ) from None
