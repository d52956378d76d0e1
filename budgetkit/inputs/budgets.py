"""A budget as somebody passes it, and what counts in it: the same for every function that takes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from budgetkit.budget import Budget
from budgetkit.budget.quoting import brief, one_line, quoted
from budgetkit.counters import count_of
from budgetkit.models import Model
from budgetkit.models.resolved import ResolvedModel, resolve
from budgetkit.plan import Plan
from budgetkit.presets import PRESETS
from budgetkit.requests import Framing, framing_for, framing_of
from budgetkit.state import from_dict, from_json, from_yaml

Count = Callable[[str], int]
AnyModel = str | Model | ResolvedModel
AnyBudget = Budget | Plan | str | Path | Mapping[str, Any] | Callable[..., Budget]
AnyCounter = str | Model | ResolvedModel | Count
DEFAULT_COUNTER = "o200k_base"


@dataclass(frozen=True, slots=True)
class Setup:
    """Hold a budget and what counts in it.

    Parameters
    ----------
    budget : Budget
        The window and its lines.
    counter : callable
        From text to tokens.
    framing : Framing
        What a message costs beyond its text.
    model : ResolvedModel, optional
        The model, where one is named.
    """

    budget: Budget
    counter: Count
    framing: Framing
    model: ResolvedModel | None = None


def setup_of(
    budget: AnyBudget,
    counter: AnyCounter | None = None,
    framing: Framing | None = None,
    model: AnyModel | None = None,
    window: int | None = None,
) -> Setup:
    """Return a budget, a counter and a framing; a model decides what of these is left out.

    Parameters
    ----------
    budget : Budget, str, Path, Mapping or callable
        As :func:`budget_of` takes it.
    counter : str, Model or callable, optional
        What counts; the model's own, or o200k_base where none is named.
    framing : Framing, optional
        What a message costs beyond its text; the model's own, or that of the counter's model.
    model : str or Model, optional
        The model that answers.
    window : int, optional
        The window, in tokens, where it is not the model's.

    Returns
    -------
    Setup
        All of them resolved.

    Examples
    --------
    >>> setup = setup_of("chat", model="claude-sonnet-4-5")
    >>> setup.budget.window, setup.framing.priming
    (200000, 6)
    """
    known = None if model is None else resolve(model)
    if counter is None:
        counter = DEFAULT_COUNTER if known is None else known
    if framing is None:
        framing = framing_of(counter) if known is None else framing_for(known)
    return Setup(
        budget=budget_of(budget, model, window),
        counter=count_of(counter),
        framing=framing,
        model=known,
    )


def budget_of(budget: AnyBudget, model: AnyModel | None = None, window: int | None = None) -> Budget:
    """Return a budget, however it is given.

    Parameters
    ----------
    budget : Budget, str, Path, Mapping or callable
        A budget; a preset or its name; a saved state as text (JSON or YAML), as plain data, or as the path of its
        file. A name is always a preset's, also where a file is called so.
    model : str or Model, optional
        The model whose window a preset divides.
    window : int, optional
        Another window, in tokens; of a budget that is there already, too.

    Returns
    -------
    Budget
        The window and its lines.

    Raises
    ------
    LookupError
        If no preset has that name.
    ValueError
        If a preset is given neither a window nor a model whose window is known, or a saved state cannot be read.
    TypeError
        If it is none of these.

    Examples
    --------
    >>> budget_of("chat", window=8_192).cap("conversation")
    1638
    >>> budget_of("chat")
    Traceback (most recent call last):
    ...
    ValueError: preset 'chat' without a window; a preset divides one; give window= in tokens, or model='gpt-4o', say
    """
    if isinstance(budget, Budget):
        return budget if window is None else budget.assign(window=window)
    if isinstance(budget, Plan):
        return budget_of(budget.budget, model, window)
    if isinstance(budget, Path):
        return budget_of(_saved(_text_at(budget)), model, window)
    if isinstance(budget, Mapping):
        return budget_of(from_dict(dict(budget)), model, window)
    if isinstance(budget, str) and _is_saved_text(budget):
        return budget_of(_saved(budget), model, window)
    return _of_preset(budget, model, window)


def preset_of(preset: str | Callable[..., Budget]) -> Callable[..., Budget]:
    """Return what makes a budget of a model or a window: a preset, by its name or itself, or any function.

    Examples
    --------
    >>> preset_of("rag")(8_192).name
    'rag'
    """
    if callable(preset):
        return preset
    if not isinstance(preset, str):
        raise TypeError(f"a budget of type {type(preset).__name__}; known are {_KNOWN}; give one of these")
    if preset not in PRESETS:
        raise LookupError(f"no preset {brief(preset)}; known are {quoted(PRESETS)}; name one, or give {_KNOWN}")
    return PRESETS[preset]


_KNOWN = "a Budget, a preset or its name, a saved state as text or data, or the pathlib.Path of its file"


def _of_preset(preset: Any, model: AnyModel | None, window: int | None) -> Budget:
    """Make a preset's budget for a model, for a window, or for a model with another window."""
    make = preset_of(preset)
    if model is not None:
        return make(resolve(model, window, must_know=True).facts)
    if window is None:
        name = preset if isinstance(preset, str) else getattr(preset, "name", getattr(preset, "__name__", "of yours"))
        raise ValueError(
            f"preset {brief(name)} without a window; a preset divides one; give window= in tokens, or model='gpt-4o', "
            "say"
        )
    return make(window)


def _is_saved_text(text: str) -> bool:
    """Tell a saved state from a name: it is a JSON object, or has several lines."""
    return text.lstrip().startswith("{") or "\n" in text.strip()


def _saved(text: str) -> Budget:
    state = from_json(text) if text.lstrip().startswith("{") else from_yaml(text)
    return state.budget if isinstance(state, Plan) else state


def _text_at(path: Path) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        where = f"{error.reason} at byte {error.start:,}"
        raise ValueError(f"{one_line(str(path))} is no UTF-8 text ({where}); save it as UTF-8") from None
