"""Conversion of user input: one function for each kind, shared by all public functions.

    budget         a Budget, a preset or its name, a saved state, a path       budgets.budget_of
    policy         a Policy or its name                       budgetkit.pruning.policies.systems.policy_of
    counter        a counter, a function, a model, a name                      budgetkit.counters.count_of
    conversation   a Trace, a shipped trace's name, a path, messages, a frame  conversations.trace_of, traces_of
    passages       texts, dictionaries, LangChain's Documents, Items           conversations.piece_of
    texts          a Corpus, texts, a frame, a folder, a name                  budgetkit.lab.accuracy.corpora.corpus_of
    tools          OpenAI's, Anthropic's, Gemini's, an MCP server's      budgetkit.requests.reading.tools.read_tools

A string means one thing for each parameter, whatever lies on the disk; only a `pathlib.Path`, `load_trace` and what is
called a path open files. Unknown input is refused in a sentence.
"""

from __future__ import annotations

from budgetkit.inputs.budgets import (
    DEFAULT_COUNTER,
    AnyBudget,
    AnyCounter,
    AnyModel,
    Setup,
    budget_of,
    filled_in,
    preset_of,
    read_budget,
    setup_of,
)
from budgetkit.inputs.conversations import AnyTrace, trace_of, traces_of
from budgetkit.pruning.policies.systems import general_policy_of, policies_of, policy_of

__all__ = ["DEFAULT_COUNTER", "AnyBudget", "AnyCounter", "AnyModel", "AnyTrace", "Setup"]
__all__ += ["budget_of", "filled_in", "general_policy_of", "policies_of", "policy_of", "preset_of"]
__all__ += ["read_budget", "setup_of", "trace_of", "traces_of"]
