"""A request read: its shape, its messages, calls and tools, and the same written in a provider's form."""
