"""Replayed: one replay with all that is shown of it, each worked out when it is first asked for.

Going from request to request asks for nothing new: tables and figures stay with their replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from budgetkit.lab import figures
from budgetkit.lab.replay import Replay, rank_policies
from budgetkit.lab.replay.losses import needed_there
from budgetkit.pruning.history import NEVER

Spec = dict[str, Any]
Drawn = tuple[pd.DataFrame, Spec]


class Replayed:
    """One replay, and what is shown of it."""

    def __init__(self, outcome: Replay, pairs: pd.DataFrame) -> None:
        self.outcome = outcome
        self.pairs = pairs
        self._drawn: dict[str, Drawn] = {}

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row a request."""
        return self.outcome.frame()

    @cached_property
    def totals(self) -> dict[str, float]:
        """Sums over all requests."""
        return self.outcome.totals()

    @cached_property
    def evidence(self) -> tuple[int, int]:
        """How many messages are needed by later ones, and how many of these were there; each pair once."""
        _, needs, there = needed_there(self.outcome, self.pairs)
        return len(needs), int(there.sum())

    @cached_property
    def first_loss(self) -> int | None:
        """The first request from which something has left the history, from 1."""
        retention = self.outcome.kept
        left = [at + 1 for at in (*retention.gone, *retention.shrunk) if at != NEVER]
        cut = self.outcome.sections().query("cut > 0")["request"].tolist()
        return min((*left, *cut), default=None)

    @cached_property
    def fates(self) -> list[str]:
        """What became of each message in the end."""
        return [str(fate) for fate in self.messages["fate"]]

    @cached_property
    def messages(self) -> pd.DataFrame:
        """One row a message."""
        return self.outcome.messages()

    @cached_property
    def over(self) -> tuple[int, int]:
        """At how many requests the history is over its limit because of its floor, and by how much at most."""
        return int(np.count_nonzero(self.outcome.over)), int(self.outcome.over.max(initial=0))

    @cached_property
    def too_large(self) -> tuple[int, int]:
        """How many requests are larger than the usable window, and by how much at most."""
        excess = self.outcome.sent - self.outcome.budget.usable
        return int(np.count_nonzero(excess > 0)), int(excess.max(initial=0))

    def drawn(self, name: str) -> Drawn:
        """Return a figure of this replay, by name."""
        if name not in self._drawn:
            self._drawn[name] = _drawn(name, self.outcome)
        return self._drawn[name]


class Compared:
    """Several replays side by side."""

    def __init__(self, replays: Mapping[str, Replayed]) -> None:
        self._replays = replays
        self._outcomes = {name: replayed.outcome for name, replayed in replays.items()}

    @cached_property
    def ranking(self) -> pd.DataFrame:
        """One row a policy, the cheapest first, with the share of the evidence that was there."""
        table = rank_policies(self._outcomes)
        shares = {
            name: np.divide(*replayed.evidence[::-1]) if replayed.evidence[0] else np.nan
            for name, replayed in self._replays.items()
        }
        table["evidence"] = table["policy"].map(shares).astype("float64")
        return table

    @cached_property
    def spending(self) -> Drawn:
        """What has been spent: table and figure."""
        return _drawn("spending", self._outcomes)

    @cached_property
    def ranked(self) -> Drawn:
        """The ranking: table and figure."""
        columns = [
            "policy",
            "relative_cost",
            "cached_share",
            "sent",
            "dropped",
            "summary_calls",
            "over",
            "cost",
        ]
        table = self.ranking[[*columns, "evidence"]]
        return table, figures.ranking.draw(table)


def _drawn(name: str, replays: Any) -> Drawn:
    table = getattr(figures, name).table(replays)
    return table, getattr(figures, name).draw(table)
