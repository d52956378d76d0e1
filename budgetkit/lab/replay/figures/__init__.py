"""Figures of a conversation over its turns: kept messages, cost and forecast."""
