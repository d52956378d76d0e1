"""Where people are: conversations of agent frameworks kept within a budget, one thin file a framework.

Nothing here is imported before it is used, and no framework is needed but the one whose file is.
"""
