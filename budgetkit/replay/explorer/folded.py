"""What the conversation explorer's folds look at: the request and the policy that are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from budgetkit.explorer import billed, checked
from budgetkit.message import Message
from budgetkit.pruning.history import NEVER
from budgetkit.replay.explorer.results import Results


class BilledFold(billed.BilledFold):
    """The ledger of the request that is read, after pruning."""

    stage = "what the policy has kept"

    def sent(self, found: Results) -> tuple[str, Sequence[Message], list[str]]:
        """Return the model, the messages that stay as they were said, and what else the request holds."""
        kept, request = found.shown.outcome.kept, found.request
        there = found.shown.outcome.present(request)
        whole = [slot for slot in there if not NEVER < kept.shrunk[slot] < request]
        placeholders = len(there) - len(whole)
        left = [f"{placeholders:,} placeholders"] if placeholders else []
        left += ["summaries"] if any(at < request for at, *_ in kept.written) else []
        left += ["the passages"] if found.trace.contexts else []
        return found.bare.model.name, [found.trace.messages[slot] for slot in whole], left


class CheckFold(checked.CheckFold):
    """What is wrong with the budget and the policy, on the conversation that is shown."""

    def case(self, found: Results) -> dict[str, Any]:
        """Return what the checks look at beside the budget."""
        run = found.run
        return {
            "model": found.bare.model,
            "policy": found.policies[found.main],
            "demand": run.trace.demand(run.count, run.roles, run.framing),
            "lost": found.shown.outcome.kept.dropped_messages,
            "tools": checked.schemas(run.trace, run.count, found.bare.model),
        }
