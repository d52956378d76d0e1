"""Counts of requests as billed, from charges by each provider's rules."""
