"""Command line, checks, provider endpoints, framework adapters and redaction."""
