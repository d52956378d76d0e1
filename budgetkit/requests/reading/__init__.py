"""Reading of requests and messages in any format, and writing in a provider's format."""
