"""Read requests and messages in any format; write them in a provider's."""
