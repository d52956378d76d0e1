"""Conversion of user input: one function for each kind of input.

    budget         a Budget, a preset or its name, a saved state, a path       budgets.budget_of
    policy         a Policy or its name                       budgetkit.pruning.policies.systems.policy_of
    counter        a counter, a function, a model, a name                      budgetkit.counters.count_of
    conversation   a Trace, a shipped trace's name, a path, messages, a frame  conversations.trace_of, traces_of
    passages       texts, dictionaries, LangChain's Documents, Items           conversations.piece_of
    texts          a Corpus, texts, a frame, a folder, a name                  budgetkit.lab.accuracy.corpora.corpus_of
    tools          OpenAI's, Anthropic's, Gemini's, an MCP server's      budgetkit.requests.reading.tools.read_tools

The meaning of a string depends only on the parameter, never on the files on disk. Files are opened only for a
`pathlib.Path`, in `load_trace`, and for parameters that always take a path. Unknown input raises an error.
"""
