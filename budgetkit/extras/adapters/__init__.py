"""Adapters that keep conversations of agent frameworks within a budget.

There is one module per framework, which imports the framework on first use.
"""
