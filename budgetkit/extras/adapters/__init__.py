"""Adapters that keep conversations of agent frameworks within a budget.

There is one module per framework, which imports it on first use.
"""
