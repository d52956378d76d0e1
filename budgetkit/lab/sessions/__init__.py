"""Recorded agent sessions: their contents, and the cost of misses, other rules and other settings.

This module imports nothing, so that sessions can be listed quickly.
"""
