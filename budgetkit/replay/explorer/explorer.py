"""ConversationExplorer: a conversation over its turns, and what each pruning policy makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from budgetkit.budget import Budget
from budgetkit.counters import Count
from budgetkit.explorer.base import Explorer
from budgetkit.explorer.budget.commands import begun
from budgetkit.explorer.budget.settings import DEFAULT_MODEL
from budgetkit.explorer.folds import Fold
from budgetkit.explorer.view import view_of
from budgetkit.message import Message
from budgetkit.pruning.policies import Policy
from budgetkit.pruning.policies.systems import policy_of
from budgetkit.replay import Replay
from budgetkit.replay.cost import Prices
from budgetkit.replay.explorer.charts import charts
from budgetkit.replay.explorer.commands import COMMANDS
from budgetkit.replay.explorer.controls import Controls
from budgetkit.replay.explorer.library import Replays
from budgetkit.replay.explorer.notices import source, status
from budgetkit.replay.explorer.reader import reading
from budgetkit.replay.explorer.results import Results, results, telling_window
from budgetkit.replay.explorer.settings import AT_FIRST, Settings
from budgetkit.replay.explorer.texts import texts
from budgetkit.replay.explorer.view_state import FIGURES, scene
from budgetkit.replay.prompt_cache import PromptCache
from budgetkit.replay.requests import By
from budgetkit.state import to_dict
from budgetkit.trace import Trace

Data = dict[str, Any]


#: What can be opened beside the figures.
FOLDS = {
    "billed": Fold("What is billed?", "budgetkit.replay.explorer.folded:BilledFold"),
    "check": Fold("What does the check find?", "budgetkit.replay.explorer.folded:CheckFold"),
    "decide": Fold("Which setting is best?", "budgetkit.deciding.fold:DecideFold"),
}
OPENS: list[Data] = [
    {"purpose": "file", "label": "Open a conversation…", "accept": None},
    {"purpose": "setup", "label": "Load a budget…", "accept": ".yaml,.yml,.json"},
]
ConversationView = view_of("ConversationView", FIGURES, OPENS)


class ConversationExplorer(Explorer[Settings, Results, Replays]):
    """Explore by hand what a conversation keeps, what is read again from the prompt cache, and what it costs.

    Parameters
    ----------
    trace : str, path, Trace or sequence of Trace, default "coding-agent"
        The conversations: the name of a shipped one, a file, or loaded ones.
    budget : str or Budget, default "working_memory"
        A preset's name, or a budget to start from.
    policies : sequence of str, or mapping of str to Policy, optional
        Which are side by side at first, by name; or your own, by the name they are to have. The first is shown in
        detail.
    model : str, optional
        The model; its window holds for a preset, its provider's prompt cache and its prices for the cost. Left out,
        it is the one that the conversation was held with, where that says so, else "gpt-4o".
    window : int, optional
        Another window than the model's, in tokens. Where nobody names a model or a budget, and the model's would never
        be full, it is a smaller one in which the policies differ; the line over the key figures says so.
    counter : str, Counter or callable, optional
        What to count with, by name or as it is; the model's own where it is left out.
    by : {"turn", "request"}, optional
        One request a turn, or one for each answer of the model; the latter for a conversation that calls tools.
    cache : str or PromptCache, optional
        The prompt cache, by a name in :data:`budgetkit.replay.prompt_cache.CACHES`, or your own.
    prices : Prices, optional
        What tokens cost; looked up for the model when left out.

    Raises
    ------
    ValueError, LookupError, OSError
        If one of them is unknown or cannot be read.

    Examples
    --------
    >>> explorer = ConversationExplorer("support-chat", window=8_192, policies=["last turns", "oldest first"])
    >>> explorer
    ConversationExplorer(support-chat, gpt-4o, window=8,192, last turns, oldest first)
    >>> explorer.controls.numbers.boxes["turns"].value = 5
    >>> explorer.replay
    Replay(SlidingWindow(5) on 'support-chat', 75 requests)
    """

    commands = COMMANDS
    folds: ClassVar[Mapping[str, Fold]] = FOLDS

    def __init__(
        self,
        trace: str | Path | Trace | Sequence[Any] = "coding-agent",
        budget: str | Budget = "working_memory",
        policies: Sequence[str] | Mapping[str, Policy | str] | None = None,
        *,
        model: str | None = None,
        window: int | None = None,
        counter: str | Count | None = None,
        by: By | None = None,
        cache: str | PromptCache | None = None,
        prices: Prices | None = None,
    ) -> None:
        view = ConversationView()
        library = Replays(view.report)
        base = begun(library, trace, budget, model, counter, window)
        if model is None and window is None and isinstance(budget, str) and base.model == DEFAULT_MODEL:
            library.telling = telling_window(base, library)
            base = replace(base, window=library.telling)
        chosen = AT_FIRST if policies is None else tuple(policies)
        if not chosen:
            raise ValueError("no policy was given; a conversation is replayed under at least one; name one or more")
        given = {name: policy_of(each) for name, each in policies.items()} if isinstance(policies, Mapping) else {}
        settings = Settings(base, chosen, chosen[0], given=given, by=by, rules=cache, given_prices=prices)
        library.start = settings
        super().__init__(settings, library, view, Controls(self._do, library, settings))

    @property
    def budget(self) -> Budget:
        """The budget as it is set; with a signed deficit where it claims more than there is."""
        return self._found.budget

    @property
    def replay(self) -> Replay:
        """The replay that is shown in detail."""
        return self._found.shown.outcome

    @property
    def replays(self) -> dict[str, Replay]:
        """The replays of all chosen policies, by name."""
        return {name: each.outcome for name, each in self._found.replays.items()}

    @property
    def ranking(self) -> pd.DataFrame:
        """One row a policy, the cheapest first, as :func:`budgetkit.rank_policies` says, with its share of evidence."""
        return self._found.compared.ranking.copy()

    @property
    def forecast(self) -> pd.DataFrame:
        """At which turn drawn conversations pass each limit, as :func:`budgetkit.replay.forecast.first_over` says."""
        return self._found.ahead.copy()

    @property
    def config(self) -> dict[str, Any]:
        """All that is set, as plain data."""
        now, found = self._history.now, self._found
        return {
            "trace": now.base.trace,
            "conversation": now.base.conversation,
            "model": now.base.model,
            "preset": now.base.preset,
            "counter": found.run.count.name,
            "policies": {name: repr(policy) for name, policy in found.policies.items()},
            "main": found.main,
            "by": found.run.by,
            "request": found.request,
            "turn": found.turn_of(found.request),
            "cache": found.rules,
            "lifetime": found.run.cache.lifetime,
            "prices": {"source": found.run.prices.source, "date": found.run.prices.date},
            "horizon": found.horizon,
            "money": now.money,
            **to_dict(found.budget),
        }

    def _follow(self, settings: Settings) -> Results:
        return results(settings, self._library)

    def _scene(self, settings: Settings, found: Results) -> Data:
        return scene(found, source(settings.base, found))

    def _status(self, found: Results) -> Data:
        return status(found)

    def _charts(self, found: Results, opened: list[str]) -> dict[str, Data]:
        drawn = charts(found, opened)
        return drawn | {"play": found.film} if "play" in opened else drawn

    def _film(self, found: Results) -> tuple[Data, Sequence[Message]]:
        return found.film | {"request": found.request}, found.trace.messages

    def _heading(self) -> str:
        now = self._history.now
        whose = self.library.called(str(now.base.trace), self._found.trace)
        return f"{whose} in {self.budget.window:,} tokens of {now.base.model}: {', '.join(now.chosen)}"

    def _texts(self, found: Results) -> dict[str, str]:
        return texts(self._history.now, found)

    def _reader(self, found: Results) -> Data:
        return reading(found)

    def __repr__(self) -> str:
        now = self._history.now
        window = f"window={self.budget.window:,}"
        return f"ConversationExplorer({now.base.trace}, {now.base.model}, {window}, {', '.join(now.chosen)})"
