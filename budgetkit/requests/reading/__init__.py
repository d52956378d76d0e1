"""Reading requests and messages in any format, and writing messages for providers.

- `formats.py` reads the table of formats and interprets its paths and conditions.
- `parts.py` classifies one content part, `records.py` converts whole records, and `pairing.py` pairs calls with
  results.
- `request.py` reads a request body, `tools.py` its tool schemas, and `usage.py` a provider's usage.
- `forms.py` recognises the provider's format of a message, and `writing.py` writes messages in such a format.
"""
