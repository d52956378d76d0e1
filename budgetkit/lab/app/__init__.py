"""App: the faces put together: the design card, and all explorers over one conversation and one budget.

Each is imported from its own module, so that the card does not wait for the explorers that it does not show.
"""

from budgetkit.files import extra

with extra("lab", "the app"):
    import anywidget  # noqa: F401
