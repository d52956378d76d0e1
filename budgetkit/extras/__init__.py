"""Additions for pipelines: the shell, the gate, endpoints, framework adapters and redaction."""
