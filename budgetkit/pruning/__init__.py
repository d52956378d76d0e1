"""What leaves a history that has grown too large: policies, the history they prune, and what they keep of it."""
