"""Token counts of requests under each provider's billing rules."""
