"""Budgets in any form, and configuration files.

A configuration file defines a complete budget that can be loaded, checked and used without code::

    model: gpt-5.4-mini                sets window, counter and framing; may be left out
    window: 16384                      in tokens; replaces the model's window
    counter: o200k_base                replaces the model's counter
    policy: oldest first               or {class: SlidingWindow, turns: 6}
    budget: chat                       a preset's name, or the fields that `to_yaml` writes under "budget"

``context_budget`` in the format of Plan #195 (document 003) may replace ``budget``. The budget then has only the
sections that ``context_budget`` defines, and a section for the current message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any, Final, NamedTuple

from budgetkit.budget import Budget
from budgetkit.budget.amounts import check_tokens
from budgetkit.budget.errors import missing_file, unknown_name, wrong_kind, wrong_type
from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.counters import count_of
from budgetkit.models import Model, resolve
from budgetkit.models import model as look_up
from budgetkit.plan import Plan
from budgetkit.presets import PRESETS
from budgetkit.presets.application import window_of
from budgetkit.presets.token_budget import agent_prompt
from budgetkit.pruning import policies
from budgetkit.pruning.policies import Policy, System
from budgetkit.pruning.policies.systems import policy_of
from budgetkit.requests import Framing, framing_of
from budgetkit.state import VERSION, check_version, from_dict
from budgetkit.state.plain_data import json_data, yaml_data

SETTINGS: Final = ("model", "window", "counter", "policy")
_BUDGETS: Final = ("budget", "context_budget")
_KEYS_OF_A_FILE: Final = (*SETTINGS, *_BUDGETS, "budgetkit")
#: The keys of a file that contains only a saved budget or plan.
_SAVED: Final = {"budgetkit", "budget", "plan"}


@dataclass(frozen=True, slots=True)
class Configuration:
    """The fields of a configuration file, before they are combined.

    The caller may override the model, the counter and the policy.

    Parameters
    ----------
    budget : str or Mapping
        A preset's name, or the fields of a budget or ``context_budget``.
    is_plan_195 : bool
        If true, `budget` is a ``context_budget``.
    model, counter : str, optional
        Names of the model and the counter.
    policy : Policy, optional
        The pruning policy.
    window : int, optional
        Context window, in tokens.
    """

    budget: str | Mapping[str, Any]
    is_plan_195: bool = False
    model: str | None = None
    counter: str | None = None
    policy: Policy | None = None
    window: int | None = None


class CallSettings(NamedTuple):
    """The model, counter and policy of a call, completed from a configuration."""

    model: Any
    counter: Any
    policy: Any


def filled_in(
    budget: Any, model: Any = None, counter: Any = None, policy: Any = None
) -> CallSettings:
    """Fill in a call's missing model, counter and policy from a configuration.

    Examples
    --------
    >>> settings = Configuration("chat", model="gpt-5.4", counter="chars/4")
    >>> filled_in(settings, model="gpt-5")
    CallSettings(model='gpt-5', counter='chars/4', policy=None)
    """
    if not isinstance(budget, Configuration):
        return CallSettings(model, counter, policy)
    return CallSettings(
        model=budget.model if model is None else model,
        counter=budget.counter if counter is None else counter,
        policy=budget.policy if policy is None else policy,
    )


def is_configuration(data: object) -> bool:
    """Return True if data is a configuration and not a saved state.

    Examples
    --------
    >>> is_configuration({"budget": "chat"}), is_configuration({"budgetkit": 1, "budget": {"window": 8_192}})
    (True, False)
    """
    if not isinstance(data, Mapping):
        return False
    has_more = bool(data.keys() & {*_KEYS_OF_A_FILE, "agent"} - _SAVED)
    return has_more or isinstance(data.get("budget"), str)


def configuration_of(data: Mapping[str, Any]) -> Configuration:
    """Read and check the fields of a configuration.

    Raises
    ------
    ValueError
        If a key is unknown, a value is invalid, or the configuration does not have exactly one budget.

    Examples
    --------
    >>> sliding = {"class": "SlidingWindow", "turns": 6}
    >>> settings = configuration_of({"model": "gpt-5.4", "policy": sliding, "budget": "rag"})
    >>> settings.budget, settings.model, settings.policy
    ('rag', 'gpt-5.4', SlidingWindow(6))
    """
    fields = dict(data)
    agent = fields.get("agent")
    if isinstance(agent, Mapping) and "context_budget" in agent and "context_budget" not in fields:
        del fields["agent"]
        fields["context_budget"] = agent["context_budget"]
    unknown = [name for name in fields if name not in _KEYS_OF_A_FILE]
    if unknown:
        raise ValueError(
            f"Invalid configuration. {unknown_name('key', unknown[0], _KEYS_OF_A_FILE)}"
        )
    if "budgetkit" in fields:
        check_version(fields["budgetkit"], "a configuration")
    named = [name for name in _BUDGETS if fields.get(name) is not None]
    if len(named) != 1:
        raise ValueError(
            f"The configuration has {' and '.join(named) or 'no budget'}. Use exactly one of: {', '.join(_BUDGETS)}."
        )
    budget = fields[named[0]]
    is_plan_195 = named[0] == "context_budget"
    if not isinstance(budget, Mapping if is_plan_195 else str | Mapping):
        raise ValueError(
            wrong_kind(
                f"{named[0]} of the configuration",
                budget,
                "the fields of a budget or a preset's name",
            )
        )
    return Configuration(
        budget=budget,
        is_plan_195=is_plan_195,
        model=_checked_name("model", fields.get("model")),
        counter=_checked_name("counter", fields.get("counter")),
        policy=_policy(fields.get("policy")),
        window=None if fields.get("window") is None else check_tokens("window", fields["window"]),
    )


def _checked_name(what: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(wrong_type(f"{what} of the configuration", value, "a name"))
    return value or None


def _policy(value: object) -> Policy | None:
    """Return a policy from its name, or from its class and fields."""
    if value is None:
        return None
    if isinstance(value, str):
        return policy_of(value)
    settings = dict(value) if isinstance(value, Mapping) else {}
    name = settings.pop("class", None)
    is_plain = all(
        isinstance(entry, int | float | str | bool | None) for entry in settings.values()
    )
    if not isinstance(name, str) or not is_plain:
        raise ValueError(
            wrong_kind(
                "policy in the configuration",
                value,
                "a name, such as 'oldest first', or a class with its parameters, such as "
                "{class: SlidingWindow, turns: 6}",
            )
        )
    classes = {
        name: kind
        for name in policies.__all__
        if isinstance(kind := getattr(policies, name), type)
        and issubclass(kind, Policy)
        and kind not in (Policy, System)
    }
    if name not in classes:
        raise ValueError(unknown_name("policy class", name, classes))
    kind = classes[name]
    field_names = list(signature(kind).parameters)
    unknown = [field for field in settings if field not in field_names]
    if unknown:
        raise ValueError(unknown_name(f"{name} field", unknown[0], field_names))
    try:
        return kind(**settings)
    except (TypeError, ValueError) as problem:
        raise ValueError(f"Invalid policy {name} in the configuration. {problem}") from None


Count = Callable[[str], int]
AnyModel = str | Model
AnyBudget = Budget | Plan | Configuration | str | Path | Mapping[str, Any] | Callable[..., Budget]
AnyCounter = str | Model | Count
DEFAULT_COUNTER = "o200k_base"


@dataclass(frozen=True, slots=True)
class Setup:
    """A budget with its counter, framing, model and policy.

    Parameters
    ----------
    budget : Budget
        The budget, with its window.
    counter : callable
        Function that counts the tokens in a text.
    framing : Framing
        The token costs of a message and a request beyond their text.
    model : Model, optional
        The model that answers, if it is known.
    policy : Policy, optional
        The configuration's pruning policy, if any.
    """

    budget: Budget
    counter: Count = field(repr=False)
    framing: Framing
    model: Model | None = None
    policy: Policy | None = None


def setup_of(
    budget: AnyBudget,
    counter: AnyCounter | None = None,
    framing: Framing | None = None,
    model: AnyModel | None = None,
    window: int | None = None,
) -> Setup:
    """Combine a budget with a counter and framing, by default the model's.

    Parameters
    ----------
    budget : Budget, str, Path, Mapping or callable
        A budget in any form that :func:`budget_of` accepts.
    counter : str, Model or callable, optional
        The counter. Default: the configuration's counter, the model's own counter or, if there is neither, o200k_base.
    framing : Framing, optional
        The token costs of a message and a request beyond their text. Default: the framing of the model or, if there is
        no model, of the counter.
    model : str or Model, optional
        The model that answers. Default: the configuration's model, if there is one.
    window : int, optional
        The window, in tokens. It overrides the window of the budget or the model.

    Returns
    -------
    Setup
        The budget, counter, framing, model and policy.

    Warns
    -----
    UnknownModelWarning
        If the model is unknown.
    RetiredModelWarning
        If the provider has retired the model.

    Examples
    --------
    >>> setup = setup_of("chat", model="claude-haiku-4-5")
    >>> setup.budget.window, setup.framing.priming
    (200000, 6)
    """
    budget = read_budget(budget)
    model, counter, policy = filled_in(budget, model, counter)

    resolved = None if model is None else resolve(model)
    sized = budget_of(budget, model, window)
    if isinstance(model, str):
        look_up(model, window=sized.window, max_output=None)  # warns
    if counter is None:
        counter = DEFAULT_COUNTER if resolved is None else resolved
    count = count_of(counter)
    if framing is None:
        framing = framing_of(resolved or (count if isinstance(counter, str) else counter))
    elif not isinstance(framing, Framing):
        raise TypeError(wrong_type("framing", framing, "a Framing"))
    return Setup(
        budget=sized,
        counter=count,
        framing=framing,
        model=resolved,
        policy=policy,
    )


def budget_of(
    budget: AnyBudget, model: AnyModel | None = None, window: int | None = None
) -> Budget:
    """Convert a budget in any form to a `Budget`.

    Parameters
    ----------
    budget : Budget, str, Path, Mapping or callable
        A budget, a preset or its name, or a saved state or configuration (:mod:`budgetkit.inputs.budgets`). The last
        two are given as text (JSON or YAML), as plain data, or as the path of a file. A name always means a preset,
        even if a file has the same name.
    model : str or Model, optional
        The model whose window a preset divides.
    window : int, optional
        Context window, in tokens. It overrides the window of the budget or the model.

    Returns
    -------
    Budget
        The budget.

    Raises
    ------
    LookupError
        If no preset has that name.
    ValueError
        If a preset gets neither a window nor a model with a known window, or a saved state cannot be read.
    TypeError
        If the value is not a budget in any of these forms.

    Examples
    --------
    >>> budget_of("chat", window=8_192).cap("conversation")
    1638
    >>> budget_of("chat")
    Traceback (most recent call last):
    ...
    ValueError: Preset 'chat' needs a window. Add window= in tokens or a model, for example model='gpt-5.4'.
    """
    budget = read_budget(budget)
    if isinstance(budget, Plan):
        budget = budget.budget
    if isinstance(budget, Budget):
        return budget if window is None else budget.assign(window=window)

    # a given model and window override the configuration's
    if isinstance(budget, Configuration):
        model = budget.model if model is None else model
        window = budget.window if window is None else window
        lines: Any = budget.budget
        if not isinstance(lines, str):
            size: Any = window
            if budget.is_plan_195:  # its total_tokens, or else the model's window
                if window is None and lines.get("total_tokens") is None:
                    if model is None:
                        raise ValueError(
                            "context_budget has no total_tokens. Add total_tokens or window in tokens, or a model."
                        )
                    size = resolve(model, must_know=True)
                return agent_prompt(size, lines, alone=True)
            if "window" not in lines and (model is not None or window is not None):
                size = window if model is None else resolve(model, window, must_know=True)
                known = {
                    name: value for name, value in window_of(size).items() if value is not None
                }
                lines = known | lines
            return budget_of(from_dict({"budgetkit": VERSION, "budget": dict(lines)}), None, window)
        budget = lines

    make = preset_of(budget)  # type: ignore[arg-type]  # other types are rejected there
    if model is not None:
        return make(resolve(model, window, must_know=True))
    if window is None:
        name = getattr(budget, "name", getattr(budget, "__name__", "of yours"))
        raise ValueError(
            f"Preset {brief(budget if isinstance(budget, str) else name)} needs a window. "
            "Add window= in tokens or a model, for example model='gpt-5.4'."
        )
    return make(window)


def read_budget(budget: AnyBudget) -> AnyBudget:
    """Read a budget or configuration from a file, text or data.

    Any other value, such as a preset's name, is returned unchanged.

    Examples
    --------
    >>> read_budget({"budget": "chat", "model": "gpt-5.4"}).model
    'gpt-5.4'
    """
    if isinstance(budget, Path):
        return budget_in(_text_at(budget), one_line(str(budget)))
    # a saved state is a JSON object or has several lines; a name is neither
    if isinstance(budget, str) and (budget.lstrip().startswith("{") or "\n" in budget.strip()):
        budget = _data_in(budget, "a configuration or saved state")
    if not isinstance(budget, Mapping):
        return budget
    if is_configuration(budget):
        return configuration_of(budget)
    return from_dict(dict(budget))


def budget_in(text: str, name: str) -> AnyBudget:
    """Read a budget from the text of a file or pipe.

    `name` names the file or pipe in error messages.
    """
    data = _data_in(text, name)
    if not isinstance(data, Mapping):
        raise ValueError(f"{name} does not contain a budget. {_KEYS}")
    try:
        return read_budget(data)
    except LookupError as error:
        raise LookupError(f"{name}: {error.args[0]}") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: {error}") from None


def preset_of(preset: str | Callable[..., Budget]) -> Callable[..., Budget]:
    """Return the preset with a given name, or a function unchanged.

    Examples
    --------
    >>> preset_of("rag")(8_192).name
    'rag'
    """
    if callable(preset):
        return preset
    if not isinstance(preset, str):
        raise TypeError(wrong_type("budget", preset, _KNOWN))
    if preset not in PRESETS:
        raise LookupError(f"{unknown_name('preset', preset, PRESETS)} You can also pass {_KNOWN}.")
    return PRESETS[preset]


_KEYS = "Use a configuration with keys such as model and budget, or a saved budget with the keys budgetkit and budget."
_KNOWN = (
    "a Budget, a preset or its name, a saved state or configuration as text or data, "
    "or the pathlib.Path of its file"
)


def _data_in(text: str, what: str) -> Any:
    if text.lstrip().startswith("{"):
        return json_data(text, what)
    return yaml_data(text, what)


def _text_at(path: Path) -> str:
    path = path.expanduser()
    purpose = one_line(str(path))
    try:
        # a folder, or a pipe that might block forever
        if "\0" in str(path) or (path.exists() and not path.is_file()):
            raise ValueError(
                f"Not a file: {purpose}. Pass the path of a budget or configuration file."
            )
        raw = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{missing_file(path)} You can also choose a preset: {quoted(PRESETS)}."
        ) from None
    except OSError as error:
        raise OSError(
            f"Cannot read {purpose}: {error.strerror}. Check the file's permissions."
        ) from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{error.reason} at byte {error.start:,}"
        raise ValueError(f"{purpose} is not UTF-8 text ({where}). Save it as UTF-8.") from None
