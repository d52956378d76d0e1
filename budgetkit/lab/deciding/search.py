"""Search: which settings are tried: all, or where they are too many, some.

Optuna (extra: search) proposes some in rounds, each from what the rounds before it brought, by its tree-structured
Parzen estimator (J. Bergstra and others, "Algorithms for Hyper-Parameter Optimization", 2011). Where it is not
installed they are drawn. Both go by the seed, so that the same seed tries the same settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from itertools import product
from math import prod
from random import Random
from typing import Any

import numpy as np

from budgetkit.lab.deciding.gain import Floats

Setting = dict[str, Any]
Values = Mapping[str, Mapping[Any, Any]]
Places = tuple[int, ...]  # of a setting, which value each line takes
Measure = Callable[[Sequence[Setting], int, int], Floats]  # settings, which round, of how many
ROUNDS = 20


def searched(
    values: Values, trials: int, seed: int, chosen_on: Sequence[int], objectives: int, measure: Measure
) -> tuple[list[Setting], Floats, str]:
    """Return the settings that were tried, the scores of the present one and of these, and how they were found."""
    sizes = [len(listed) for listed in values.values()]
    is_all = prod(sizes) <= trials
    if not is_all and find_spec("optuna") is not None:
        return *proposed(values, trials, seed, chosen_on, objectives, measure), "proposed by Optuna"
    places = product(*map(range, sizes)) if is_all else drawn(sizes, trials, seed)
    settings = [_setting(values, each) for each in places]
    return settings, measure([{}, *settings], 0, 1), "all" if is_all else "drawn by the seed"


def drawn(sizes: Sequence[int], trials: int, seed: int) -> list[Places]:
    """Draw so many settings, none twice; there are more than that.

    Examples
    --------
    >>> len(set(drawn([50, 50], trials=100, seed=0)))
    100
    """
    random, found = Random(seed), dict[Places, None]()
    while len(found) < trials:
        found[tuple(random.randrange(size) for size in sizes)] = None
    return [*found]


def proposed(
    values: Values, trials: int, seed: int, chosen_on: Sequence[int], objectives: int, measure: Measure
) -> tuple[list[Setting], Floats]:
    """Let Optuna propose settings round by round, from their means on the conversations that are chosen on."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(directions=["minimize"] * objectives, sampler=sampler)
    space: Any = {line: optuna.distributions.IntDistribution(0, len(each) - 1) for line, each in values.items()}
    if "policy" in values:
        space["policy"] = optuna.distributions.CategoricalDistribution(range(len(values["policy"])))
    tried: dict[Places, int] = {}
    rounds = min(ROUNDS, trials)
    scores = measure([{}], 0, rounds + 1)
    for number in range(1, rounds + 1):
        here = [study.ask(space) for _ in range(number - 1, trials, rounds)]  # in all rounds together, all trials
        asked = {trial: tuple(trial.params[line] for line in values) for trial in here}
        new = [each for each in dict.fromkeys(asked.values()) if each not in tried]
        tried |= {each: len(tried) + place for place, each in enumerate(new)}
        found = measure([_setting(values, each) for each in new], number, rounds + 1)  # of none, to say how far it is
        scores = np.concatenate([scores, found], axis=1)
        for trial, places in asked.items():
            means = scores[chosen_on, 1 + tried[places]].mean(axis=0)
            failed = np.isnan(means).any()  # what cannot be planned for every conversation
            study.tell(trial, *((None, optuna.trial.TrialState.FAIL) if failed else (means.tolist(),)))
    return [_setting(values, each) for each in tried], scores


def _setting(values: Values, places: Places) -> Setting:
    return {line: [*listed][at] for (line, listed), at in zip(values.items(), places, strict=True)}
