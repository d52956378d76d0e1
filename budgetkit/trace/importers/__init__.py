"""Conversations in the formats of providers and programs, read into OpenAI's chat format.

Formats that are another spelling of role, text and calls are rows of one table
(:mod:`budgetkit.requests.reading.formats`); what a session of a coding agent writes line by line has a module of its
own. Each is recognised by its content, never by the name of the file, and nothing is lost in silence: a message
carries what it was made of under ``native``, a conversation its other fields, and what was left out is said under
``warnings``.
"""
