"""What budgetkit costs in time, measured side by side in one run; see `python -m benchmarks --help`."""
