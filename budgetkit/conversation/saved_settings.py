"""Convert a conversation's settings to plain data and back.

The settings include the conversation's policy, its counter and the options of its requests.

    {"policy": {"class": "SlidingWindow", "turns": 2}, "counter": {"name": "gpt-5.4"}, "framing": {"name": "counter"},
     "roles": null, "section": null, "shorten": true, "tell": false, "overrun": "warn", "start_on": "user",
     "form": null}

Values are saved completely. A function, such as a counter, is saved by name only, so pass the function again when
loading the conversation. The new function's name is compared with the saved name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from typing import Any

from pydantic import StrictBool

from budgetkit.budget import Share, brief, one_line, warn_caller
from budgetkit.budget.errors import unknown_name, wrong_type
from budgetkit.conversation.rules import RequestRules
from budgetkit.counters import counter as counter_of
from budgetkit.counters.protocol import FunctionCounter
from budgetkit.message import Data, Raw
from budgetkit.pruning import Policy, policies
from budgetkit.pruning.policies import PruningContext
from budgetkit.requests import FRAMINGS, Framing, ToolConstants, framing_for, framing_of
from budgetkit.state.plain_data import saved_fields
from budgetkit.trace import Roles

#: The key for the name of code, which a file cannot store.
CODE = "code"
#: The name of the framing that goes with the counter.
BY_COUNTER = "counter"
#: The classes that are saved field by field.
_KINDS: Raw = {
    kind.__name__: kind
    for kind in [*vars(policies).values(), Framing, ToolConstants, Share]
    if isinstance(kind, type) and is_dataclass(kind)
}
#: Settings that the saved sizes depend on; changing one would mix two kinds of tokens.
_MEASURES = ("counter", "framing", "roles", "section")
#: Settings that are plain data already.
_PLAIN_FIELDS = ("shorten", "tell", "overrun", "start_on", "form")
_TRIAL_CONTEXT = PruningContext(
    tokens=100, limit=50, others=10, usable=60, window=80, turn=3, messages=4
)


@dataclass(frozen=True)
class SavedSettings:
    """The settings of a conversation as plain data."""

    policy: Data
    counter: Data
    framing: Data
    roles: Data | None
    section: str | None
    shorten: StrictBool
    tell: StrictBool
    overrun: str
    start_on: str
    form: str | None = None

    @classmethod
    def of(
        cls, rules: RequestRules, model: Any, roles: Roles | None, section: str | None
    ) -> SavedSettings:
        """Return the settings of a conversation as plain data."""
        return cls(
            policy=plain_value(rules.policy),
            counter=_plain_counter(rules.count),
            framing=_plain_framing(rules.framing, rules.count, model),
            roles=_plain_roles(roles),
            section=section,
            **{name: getattr(rules, name) for name in _PLAIN_FIELDS},
        )

    def keywords(self, overridden: Collection[str]) -> Data:
        """Return the saved arguments that are not overridden.

        A given model determines counter and framing, as for a new conversation.
        """
        names = [name for name in _READERS if name not in _decided(overridden)]
        for name in names:
            if code := _code_in(getattr(self, name)):
                raise ValueError(
                    f"The saved conversation used {brief(code)} as its {name}, and a file cannot store code. Pass "
                    f"the same {name}= again."
                )
        with refusing():
            return {name: _READERS[name](getattr(self, name)) for name in names}

    def compare(self, now: SavedSettings, overridden: Collection[str]) -> None:
        """Reject settings that change the counts, and warn about other changes."""
        overridden = _decided(overridden)
        pairs = ((f.name, getattr(self, f.name), getattr(now, f.name)) for f in fields(self))
        changes = [change for change in pairs if change[1] != change[2]]
        for name, before, after in changes:
            is_named = _code_in([before, after]) is None
            if name in overridden and name in _MEASURES and is_named:
                raise ValueError(
                    f"The sizes were saved with the {name} {_shown(before)}, not {_shown(after)}. Leave {name}= out, "
                    "or add the messages to a new Conversation."
                )
        warn_of_changes([(name, _shown(before), _shown(after)) for name, before, after in changes])


def _decided(overridden: Collection[str]) -> Collection[str]:
    """Return overridden settings, with counter and framing if the model is overridden."""
    if "model" not in overridden:
        return overridden
    return {*overridden, "counter", "framing"}


@contextmanager
def refusing() -> Iterator[None]:
    """Reraise errors in the block as a ValueError about the saved text."""
    try:
        yield
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__} "
        reason = one_line(f"{kind}{error}")
        raise ValueError(
            f"Not a saved conversation: {str(reason).removesuffix('.')}. Pass the whole text of to_json()."
        ) from error


def warn_of_changes(changes: list[tuple[str, str, str]]) -> None:
    """Warn about settings that differ from the saved settings."""
    for name, before, after in changes:
        warn_caller(
            f"The {name} of the saved conversation changes from {before} to {after}. Leave {name}= out to keep it."
        )


def plain_value(value: Any) -> Any:
    """Return a policy, or a part of one, as plain data.

    Examples
    --------
    >>> plain_value(policies.TriggerTarget(target=Share(0.5)))
    {'class': 'TriggerTarget', 'target': {'class': 'Share', 'ratio': '0.5'}}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [plain_value(entry) for entry in value]
    if isinstance(value, Mapping):
        return {name: plain_value(entry) for name, entry in value.items()}
    if not is_dataclass(value) or isinstance(value, type):
        return {CODE: code_name(value)}

    name = type(value).__name__
    kind = {"class": name} if _KINDS.get(name) is type(value) else {CODE: code_name(value)}
    now = ((field, getattr(value, field), usual) for field, usual in saved_fields(type(value)))
    fields_set = {field: plain_value(entry) for field, entry, usual in now if entry != usual}
    if isinstance(value, Share):
        fields_set["ratio"] = str(Decimal(str(value.ratio)))
    return kind | fields_set


def read_value(data: Any) -> Any:
    """Restore a value written by `plain_value`.

    Examples
    --------
    >>> read_value({"class": "SlidingWindow", "turns": 2})
    SlidingWindow(2)
    """
    if isinstance(data, list):
        return tuple(read_value(entry) for entry in data)
    if not isinstance(data, Mapping):
        return data
    values = {
        name: read_value(entry) for name, entry in data.items() if name not in ("class", CODE)
    }
    if "class" not in data:
        return values
    if data["class"] not in _KINDS:
        raise ValueError(unknown_name("class", data["class"], _KINDS))
    return _KINDS[data["class"]](**values)


def code_name(value: Any) -> str:
    """Return the name of a function or object, without its line number.

    The line number changes when a program is edited.
    """
    function = value.function if isinstance(value, FunctionCounter) else value
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _plain_roles(roles: Roles | None) -> Data | None:
    """Return the section of each role, or the name of a function."""
    if roles is None:
        return None
    if callable(roles):
        return {CODE: code_name(roles)}
    return {"table": dict(roles)}


def _plain_counter(counter: Any) -> Data:
    """Return a counter's name, or its function's name, as plain data."""
    name = getattr(counter, "name", None)
    if isinstance(name, str) and _opens_nothing(name):
        try:
            if counter_of(name) == counter:
                return {"name": name}
        except (LookupError, ValueError, TypeError):
            pass  # a user's own counter, which has no known name
    return {CODE: code_name(counter)}


def _opens_nothing(name: str) -> bool:
    """Return True if a counter's name does not open a local file."""
    return not (
        name.endswith(".json")
        or "tokenizer " in name
        or name.partition(":")[0] in ("mistral", "litellm")
    )


def _plain_framing(framing: Framing, counter: Any, model: Any) -> Data:
    """Return a framing as plain data.

    The data are its name, its model or its fields, or else the name of its rules' class.
    """
    if framing == framing_of(counter):
        return {"name": BY_COUNTER}
    for name, framing_of_name in FRAMINGS.items():
        if framing == framing_of_name:
            return {"name": name}
    if isinstance(model, str) and framing == framing_for(model):
        return {"model": model}
    if framing.rules is None:
        return dict(plain_value(framing))
    return {CODE: code_name(framing.rules)}


def _read_policy(data: Data) -> Policy:
    policy = read_value(data)
    if not isinstance(policy, Policy):
        raise ValueError(wrong_type("policy", policy, "the fields of a pruning policy"))
    # a field of a wrong type fails here, and not at some later request
    for stage in policy.stages:
        stage.cuts(_TRIAL_CONTEXT)
    policy.last_resort(_TRIAL_CONTEXT)
    policy.arriving(100, True)
    return policy


def _read_counter(data: Data) -> Any:
    name = data["name"]
    if not isinstance(name, str) or not _opens_nothing(name):
        raise ValueError(wrong_type("counter", name, "the name of a counter"))
    return counter_of(name)


def _read_framing(data: Data) -> Framing | None:
    if data.get("name") == BY_COUNTER:
        return None
    if "name" in data:
        return FRAMINGS[data["name"]]
    if "model" in data:
        return framing_for(data["model"])
    framing = read_value(data)
    if not isinstance(framing, Framing):
        raise ValueError(wrong_type("framing", framing, "the fields of a Framing"))
    framing.request([{"role": "user", "content": ""}], len)
    return framing


def _read_roles(data: Data | None) -> Data | None:
    if data is None:
        return None
    table: Data = data["table"]
    if not all(isinstance(section, str) for section in table.values()):
        raise ValueError(wrong_type("roles", table, "the name of a section for each role"))
    return table


def _code_in(data: Any) -> str | None:
    if isinstance(data, Mapping):
        if isinstance(data.get(CODE), str):
            return str(data[CODE])
        return _code_in(list(data.values()))
    if isinstance(data, list):
        return next((code for entry in data if (code := _code_in(entry))), None)
    return None


def _shown(data: Any) -> str:
    """Return a setting as readable text."""
    if not isinstance(data, Mapping):
        return brief(data)
    if "class" not in data:
        return brief(next(iter(data.values()), None))
    parts = [f"{name}={_shown(value)}" for name, value in data.items() if name != "class"]
    return one_line(f"{data['class']}({', '.join(parts)})")


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "policy": _read_policy,
    "counter": _read_counter,
    "framing": _read_framing,
    "roles": _read_roles,
    **dict.fromkeys(("section", *_PLAIN_FIELDS), lambda value: value),
}
