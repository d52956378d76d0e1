"""App: the faces put together: the design card, and all explorers over one conversation and one budget."""

from budgetkit.extras import extra

with extra("lab", "the app"):
    from budgetkit.app.app import App
    from budgetkit.app.card import DesignCard

__all__ = ["App", "DesignCard"]
