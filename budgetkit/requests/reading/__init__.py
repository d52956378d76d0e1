"""Reading of requests and messages in any format, and writing for providers.

- `formats.py` has the table of formats and the language of its paths and conditions.
- `parts.py` sorts one content part, `records.py` converts whole records, and `pairing.py` pairs calls with results.
- `request.py` reads a request body, `tools.py` its tool schemas, and `usage.py` a provider's usage.
- `forms.py` recognises the form of a message, and `writing.py` writes messages in it.
"""
