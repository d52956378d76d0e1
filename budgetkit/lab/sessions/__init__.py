"""Recorded agent sessions: contents, cost of misses, and other rules' and settings' cost.

Nothing is imported here, so that sessions are listed quickly.
"""
