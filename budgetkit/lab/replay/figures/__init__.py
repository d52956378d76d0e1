"""Figures of a conversation over its turns: what was kept, what it cost, how it may go on."""
