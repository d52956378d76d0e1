"""A request counted as it is billed: each provider's rules end in charges, and the charges add up to the bill."""
