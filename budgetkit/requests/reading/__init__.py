"""Reading of requests and messages in any format, and writing for providers."""
