"""Recorded agent sessions: contents, cost of misses, and other rules' cost."""

from budgetkit.lab.sessions.comparing import compare
from budgetkit.lab.sessions.listing import sessions
from budgetkit.lab.sessions.session import Session
from budgetkit.lab.sessions.settings import what_if

__all__ = ["Session", "compare", "sessions", "what_if"]
