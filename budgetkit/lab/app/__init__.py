"""The app: the design card and all explorers for one conversation.

The card and the explorers are imported from their own modules, so that the card does not load the explorers.
"""

from budgetkit.files import extra

with extra("lab", "the app"):
    import anywidget  # noqa: F401
