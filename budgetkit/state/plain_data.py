"""Read JSON and YAML strictly into dataclasses.

Both languages silently keep the last of two equal keys. YAML 1.1 has more surprises: an alias repeats its target (a few
nested aliases expand to gigabytes), a tag creates an object, ``010`` is 8, and ``1:30`` is 90. This module rejects such
input or reads it as plain text.

A mapping is read according to the fields of a dataclass. pydantic checks the types of the fields and locates errors.
The dataclass itself checks whether the values are consistent, and its errors are shown with their location.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from decimal import Decimal
from functools import cache, partial
from typing import Annotated, Any, NotRequired, get_type_hints

import numpy as np
import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    FailFast,
    Tag,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict

from budgetkit.budget import Share, brief, one_line, quoted
from budgetkit.budget.amounts import Amount
from budgetkit.budget.errors import unknown_name, wrong_choice, wrong_kind, wrong_type
from budgetkit.message import Data, Raw

DEEPEST = 100  # nested lists and mappings that are saved; PyYAML reads about 300
_LARGEST = 10**4_000  # Python reads numbers of up to 4,300 digits
_HALF = re.compile("[\ud800-\udfff]")
# YAML writes only these exact types; a member of an enumeration may be of a subclass.
_EXACTLY: dict[type, Callable[..., Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
}


def as_plain_data(value: object, where: str, depth: int = 0) -> Any:
    """Convert a value to plain data, or raise an error.

    `where` names the value in error messages.

    >>> as_plain_data({"group": ("call", np.int64(3))}, "item 1")
    {'group': ['call', 3]}
    """
    value = value.item() if isinstance(value, np.generic) else value
    if depth > DEEPEST:
        raise ValueError(
            f"{where} is nested deeper than {DEEPEST} levels. Save a smaller part of it."
        )
    if isinstance(value, str) and not value.isascii() and _HALF.search(value):
        raise ValueError(f"{where} contains half of a surrogate pair. Remove that half.")
    if isinstance(value, list | tuple):
        return [as_plain_data(entry, where, depth + 1) for entry in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        # Three names are enough to find the value.
        inside = {key: f"{one_line(key)} of {where}" if depth < 3 else where for key in value}
        return {
            as_plain_data(key, where): as_plain_data(entry, inside[key], depth + 1)
            for key, entry in value.items()
        }
    if value is None or isinstance(value, bool):
        return value
    for kind, exactly in _EXACTLY.items():
        if isinstance(value, kind) and not (isinstance(value, int) and abs(value) > _LARGEST):
            return exactly(value)
    raise ValueError(
        f"Cannot save {where}: it contains a value of type {type(value).__name__}. "
        "Use strings, numbers, lists and mappings with string keys, and write very large numbers as strings."
    )


SAVED_STATE = "saved state"


def json_data(text: str, what: str = SAVED_STATE) -> object:
    """Parse a JSON text, rejecting repeated keys.

    `what` names the text in error messages.

    >>> json_data('{"window": 8192}')
    {'window': 8192}
    """
    return _parse(
        "JSON",
        what,
        text,
        lambda: json.loads(text, object_pairs_hook=unique_keys, parse_int=_whole_number),
    )


def yaml_data(text: str, what: str = SAVED_STATE) -> object:
    r"""Parse a YAML text, rejecting aliases, tags and repeated keys.

    `what` names the text in error messages.

    >>> yaml_data("window: 8192\nname: 0x10")
    {'window': 8192, 'name': '0x10'}
    """
    return _parse("YAML", what, text, lambda: yaml.load(text, Loader=_Reader))


class _RefusedError(ValueError):
    """An error for valid JSON or YAML that this module rejects."""


def _whole_number(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # Python reads some thousand digits
        raise _RefusedError(f"A number has {len(digits):,} digits. Shorten it.") from None


class _Reader(yaml.SafeLoader):
    """A YAML reader limited to plain data."""

    yaml_implicit_resolvers = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _RefusedError(
                f"Alias *{one_line(str(event.anchor))} is not allowed. Write the value in its place."
            )
        if event.tag is not None:
            raise _RefusedError(f"Tag {one_line(event.tag)} is not allowed. Remove it.")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        if len(pairs := node.value) > len(mapping := super().construct_mapping(node, deep=deep)):
            unique_keys([(self.construct_object(key, deep=True), value) for key, value in pairs])
        return mapping


# Fewer texts than in YAML 1.1 are read as a number, a boolean or null; unquoted output of its writer is read unchanged.
for _kind, _pattern in {
    "null": r"~|null|Null|NULL|",
    "bool": r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
    "int": r"[-+]?(0|[1-9][0-9_]{0,4000})",
    "float": r"[-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}.items():
    _Reader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(f"^(?:{_pattern})$"), None
    )


def unique_keys(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Build a mapping, rejecting repeated keys."""
    mapping: dict[Any, Any] = {}
    for name, value in pairs:
        if name in mapping:
            raise _RefusedError(f"Duplicate key {brief(name)}. Remove one of them.")
        mapping[name] = value
    return mapping


def _parse(language: str, what: str, text: object, parse: Callable[[], object]) -> object:
    if not isinstance(text, str | bytes):
        raise TypeError(wrong_kind(what, text, f"{language} as a string"))
    try:
        return parse()
    except _RefusedError as error:
        raise ValueError(f"Invalid {what}. {error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if what == SAVED_STATE:
            advice = "Copy the whole text; it starts with 'budgetkit'."
        else:
            advice = "Correct that line; a configuration has keys such as 'model' and 'budget', each with a value."
        raise ValueError(f"Invalid {language} in {what}: {_problem(error)}. {advice}") from None


def _problem(error: Exception) -> str:
    """Describe a parser's error, with its line.

    A JSON error already states its line.
    """
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        last = error.problem_mark.line + 1
        first = last if error.context_mark is None else error.context_mark.line + 1
        lines = f"line {last:,}" if first == last else f"lines {first:,} to {last:,}"
        return one_line(f"{lines}: {error.problem}")
    if str(error):
        return one_line(str(error).splitlines()[0])
    return type(error).__name__


def changed_fields(value: Any) -> Any:
    """Return a dataclass's fields that differ from their defaults, without payloads.

    A tuple becomes a list, and a value that is not a dataclass is unchanged.

    >>> from budgetkit import Budget, Reserve
    >>> changed_fields(Budget(8192, [Reserve("output", Share(0.15))]))
    {'window': 8192, 'reserves': [{'name': 'output', 'size': {'ratio': '0.15'}}]}
    """
    if isinstance(value, tuple):
        return [changed_fields(entry) for entry in value]
    if isinstance(value, type) or not is_dataclass(value):
        return value
    kind: Any = type(value)
    now = ((name, getattr(value, name), usual) for name, usual in saved_fields(kind))
    fields_set = {name: changed_fields(field) for name, field, usual in now if field != usual}
    return fields_set | (
        {"ratio": str(Decimal(str(value.ratio)))} if isinstance(value, Share) else {}
    )


@cache
def saved_fields(kind: Any) -> list[tuple[str, object]]:
    """Return the saved fields with their defaults, without payloads and caches."""
    saved = [f for f in fields(kind) if f.init and f.name != "payload" and (f.repr or f.compare)]
    return [
        (f.name, f.default if f.default_factory is MISSING else f.default_factory()) for f in saved
    ]


TOKENS: Any = Annotated[int, WithJsonSchema({"type": "integer", "minimum": 0})]
TEXT: Any = Annotated[str, WithJsonSchema({"type": "string", "minLength": 1})]


@cache
def _types() -> dict[Any, Any]:
    """Return the pydantic type for each field type."""
    simple = {int: TOKENS, int | None: TOKENS | None, str: TEXT, str | None: TEXT | None}
    ratio = Annotated[Any, WithJsonSchema({"type": ["string", "number"]})]
    limits = {"at_least": TOKENS, "at_most": TOKENS | None}
    share = shape("share", {"ratio": ratio, **limits}, Share, limits)
    amount: Any = Annotated[
        Annotated[TOKENS, Tag("(tokens)")] | Annotated[share, Tag("(share)")],
        Discriminator(lambda value: "(share)" if isinstance(value, Mapping) else "(tokens)"),
    ]
    return simple | {
        Amount: amount,
        Amount | None: amount | None,
        Mapping[str, str]: dict[str, TEXT],
    }


def shape_of(kind: type, make: Callable[..., Any] | None = None, **overrides: Any) -> Any:
    """Return the pydantic type that reads a mapping into a dataclass.

    `overrides` replaces the types of fields, by name. A field whose override is None is not read.
    """
    hints = get_type_hints(kind)
    types = _types()
    init = [f for f in fields(kind) if f.init and overrides.get(f.name, f) is not None]
    keys = {f.name: overrides.get(f.name, types.get(hints[f.name], hints[f.name])) for f in init}
    optional = {
        f.name for f in init if f.default is not MISSING or f.default_factory is not MISSING
    }
    return shape(kind.__name__.lower(), keys, make or kind, optional)


def shape(name: str, keys: Raw, make: Callable[..., Any], optional: Collection[str] = ()) -> Any:
    """Return the pydantic type of a mapping that `make` converts.

    >>> from pydantic import TypeAdapter
    >>> TypeAdapter(shape("window", {"tokens": int}, lambda tokens: tokens)).validate_python({"tokens": 8192})
    8192
    """
    read = {key: NotRequired[of] if key in optional else of for key, of in keys.items()}
    make_type: Any = TypedDict  # a type checker knows no keys that are made here
    typed = make_type(name, read)
    typed.__pydantic_config__ = ConfigDict(strict=True, extra="forbid")
    needed = sorted(keys.keys() - set(optional))
    return Annotated[
        typed,
        BeforeValidator(partial(_check_keys, name, sorted(keys), needed)),
        AfterValidator(partial(_make_checked, make)),
    ]


def list_of(entry_shape: Any) -> Any:
    """Return a type of lists that reports only the first invalid element."""
    return Annotated[list[entry_shape], FailFast()]


def _check_keys(name: str, names: list[str], needed: list[str], data: object) -> Data:
    if not isinstance(data, Mapping):
        raise ValueError(wrong_kind(name, data, f"a mapping with keys {quoted(names)}"))
    if unknown := sorted(str(key) for key in data if key not in names):
        raise ValueError(unknown_name(f"key in {name}:", unknown[0], names))
    if lacking := [key for key in needed if key not in data]:
        raise ValueError(
            f"Missing in {name}: {quoted(lacking)}. It needs {quoted(needed)}; save it again."
        )
    return dict(data)


def _make_checked(make: Callable[..., Any], fields: Data) -> Any:
    try:
        return make(**fields)
    except (TypeError, AttributeError, ArithmeticError) as error:
        raise ValueError(str(error)) from None


_KINDS = {
    "int": "a whole number",
    "string": "a string",
    "bool": "true or false",
    "list": "a list",
    "dict": "a mapping",
}


def schema_of(reader: TypeAdapter[Any]) -> Data:
    """Return a reader's JSON Schema without field titles."""
    return {"$schema": GenerateJsonSchema.schema_dialect} | reader.json_schema(
        schema_generator=_Untitled
    )


class _Untitled(GenerateJsonSchema):
    def field_title_should_be_set(self, _schema: Any) -> bool:
        return False


def validate_data(reader: TypeAdapter[Any], data: object) -> Any:
    """Validate plain data, or raise a readable ValueError if it is invalid."""
    try:
        return reader.validate_python(data)
    except ValidationError as problem:
        raise ValueError(_error_text(problem)) from None
    except RecursionError:
        raise ValueError("The saved state is nested too deeply. Save it again.") from None


def _error_text(problem: ValidationError) -> str:
    """Describe the first error: its location, the accepted values, and the fix."""
    first = problem.errors(include_url=False)[0]
    where = ""
    for part in first["loc"]:
        if isinstance(part, int):
            where += f"[{part}]"
        elif not part.startswith("("):  # the tag of one of several kinds
            where += f".{one_line(part)}"
    where = where.lstrip(".")
    context = first.get("ctx", {})
    if "error" in context:
        if len(first["loc"]) > 1:
            return f"{where}: {context['error']}"
        return str(context["error"])
    if first["type"] == "literal_error":
        return wrong_choice(where, first["input"], re.findall("'(.*?)'", context["expected"]))
    sentence = _KINDS.get(first["type"].removesuffix("_type"), first["msg"])
    return wrong_type(where, first["input"], sentence)
