"""What the conversation explorer's folds look at: the request and the policy that are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from budgetkit.counters import estimated_by
from budgetkit.lab.explorers import billed, checked
from budgetkit.lab.explorers.conversation.results import ConversationResults
from budgetkit.message import Message
from budgetkit.pruning.history import NEVER


class BilledFold(billed.BilledFold):
    """The ledger of the request that is read, after pruning."""

    stage = "what the policy has kept"

    def sent(self, results: ConversationResults) -> tuple[str, Sequence[Message], list[str]]:
        """Return the model, the messages that stay as they were said, and what else the request holds."""
        retention = results.shown.outcome.kept
        request = results.request
        there = results.shown.outcome.present(request)
        whole = [slot for slot in there if not NEVER < retention.shrunk[slot] < request]
        placeholders = len(there) - len(whole)
        if placeholders:
            left = [f"{placeholders:,} placeholders"]
        else:
            left = []
        left += ["summaries"] if any(at < request for at, *_ in retention.written) else []
        left += ["the passages"] if results.trace.contexts else []
        return (
            results.budget_results.model.name,
            [results.trace.messages[slot] for slot in whole],
            left,
        )


class CheckFold(checked.CheckFold):
    """What is wrong with the budget and the policy, on the conversation that is shown."""

    def case(self, results: ConversationResults) -> dict[str, Any]:
        """Return what the checks look at beside the budget."""
        run = results.run
        return {
            "model": results.budget_results.model,
            "policy": results.policies[results.main],
            "demand": run.trace.demand(run.counter, run.roles, run.framing),
            "lost": results.shown.outcome.kept.dropped_messages,
            "tools": checked.schemas(run.trace, run.counter, results.budget_results.model),
            "estimated_by": estimated_by(run.counter, results.budget_results.model),
        }
