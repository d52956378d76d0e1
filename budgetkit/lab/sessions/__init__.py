"""Recorded agent sessions: their contents, and costs under other rules and settings.

This module imports nothing, so that sessions can be listed quickly.
"""
