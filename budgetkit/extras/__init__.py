"""Extras for pipelines: the command line, the gate, endpoints, framework adapters and redaction."""
