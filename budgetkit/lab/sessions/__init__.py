"""Recorded agent sessions: their contents, and the cost of misses, other rules and other settings.

Nothing is imported here, so that sessions are listed quickly.
"""
