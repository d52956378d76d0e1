"""Counting of requests as billed: each provider's rules yield charges that add up to the bill."""
