"""Token counts of requests, by each provider's billing rules."""
