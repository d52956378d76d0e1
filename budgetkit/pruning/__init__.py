"""What leaves a long history.

- `policies/` say what is to go: `policies/pruners.py` has one small class for each.
- `dropping.py` carries that out: here a message is dropped, shrunk, or put into a summary.
- `history.py` knows what is still there.
"""
