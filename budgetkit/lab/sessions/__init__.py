"""Recorded agent sessions: contents, cost of misses, and other rules' and settings' cost.

Nothing is imported here, so that a list of sessions is shown in the blink of an eye.
"""
