"""Token counts of requests as billed, by the rules of each provider."""
