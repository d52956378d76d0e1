"""JSON and YAML read strictly: as data only, and no key twice, of which both languages keep the last in silence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable
from typing import Any, ClassVar

import yaml

from budgetkit.budget.quoting import brief, one_line


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


class _RefusedError(ValueError):
    """What both languages allow, and a saved state does not."""


class _Loader(yaml.SafeLoader):
    """YAML's own loader of plain data, which keeps the last of two keys without a word, and repeats what is named.

    Its numbers are decimal here: to YAML 1.1, ``010`` is 8, ``1:30`` is 90, and so are a million digits of either.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}  # type: ignore[misc]

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):  # a few of them in a row name gigabytes
            raise _RefusedError(
                f"saved state is YAML with the alias *{one_line(str(event.anchor))}; known are values written out; "
                "write what it stands for in its place"
            )
        if event.tag is not None:
            raise _RefusedError(
                f"saved state is YAML with the tag {one_line(str(event.tag))}; known are plain values; remove the tag"
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        if isinstance(node, yaml.MappingNode):
            names = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            _refuse_twice([value for _, value in names], len(set(names)) < len(names))
        return super().construct_mapping(node, deep)


_KEYWORDS = {
    "null": r"~|null|Null|NULL|",
    "bool": r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
}
_NUMBERS = {
    "int": r"[-+]?(0|[1-9][0-9_]{0,4000})",
    "float": r"[-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?|[-+]?\.(inf|Inf|INF)"
    r"|\.(nan|NaN|NAN)",
}
for _kind, _pattern in (_KEYWORDS | _NUMBERS).items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"^(?:{_pattern})$"), None)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    _refuse_twice([key for key, _ in pairs], len(found) < len(pairs))
    return found


def _refuse_twice(names: list[str], is_twice: bool) -> None:
    if is_twice:
        name = next(name for i, name in enumerate(names) if name in names[:i])
        raise _RefusedError(
            f"saved state has {brief(name)} twice in one mapping; each key is known once; remove one of them"
        )


def _parsed(what: str, parse: Callable[[], object], errors: tuple[type[Exception], ...]) -> object:
    try:
        return parse()
    except _RefusedError:
        raise
    except errors as error:
        first = one_line(str(error).splitlines()[0]) if str(error) else type(error).__name__
        raise ValueError(
            f"saved state is no {what} ({first}); it starts with 'budgetkit'; copy the whole text"
        ) from None
