"""App: the design card and all explorers as tabs, for one conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from budgetkit.budget import Budget
from budgetkit.lab.accuracy.corpora.opening import OWN_TEXTS
from budgetkit.lab.app.card import DesignCard
from budgetkit.lab.app.headline import kind_documents
from budgetkit.lab.explorers.accuracy.explorer import AccuracyExplorer
from budgetkit.lab.explorers.accuracy.results import AccuracySettings
from budgetkit.lab.explorers.base import Explorer
from budgetkit.lab.explorers.budget.explorer import BudgetExplorer
from budgetkit.lab.explorers.budget.settings import BudgetSettings
from budgetkit.lab.explorers.conversation import ConversationExplorer
from budgetkit.lab.explorers.conversation.settings import ConversationSettings
from budgetkit.lab.explorers.reach import Reach
from budgetkit.lab.explorers.shelves import Library
from budgetkit.lab.explorers.view import Shown, Tabs
from budgetkit.trace import Trace

STAND_IN = "coding-agent"  # the conversation to replay if sizes are entered


@dataclass(frozen=True)
class Tab:
    """One explorer of the app."""

    title: str
    explorer: type[Explorer]
    #: The explorer's settings before it gets the shared settings.
    start: Any
    #: Return the explorer's settings with the budget and the conversation of another tab.
    settings: Callable[[Any, BudgetSettings, Library], Any] = lambda settings, shared, _: (
        settings.with_budget(shared)
    )


class App(Shown):
    """An app with tabs for one conversation and one budget.

    The tabs show design, turns, accuracy, pruning and cost, and share their settings. A tab is built when it is first
    opened.

    Parameters
    ----------
    trace : str, path, Trace or sequence of Trace, default "support-chat"
        The conversations: the name of a shipped conversation, a path, or loaded traces.
    budget : str or Budget, default "chat"
        A preset's name, or the initial budget.
    model : str, optional
        The model, whose window is used for a preset. Default: the conversation's own model, or `DEFAULT_MODEL`.
    counter : str, optional
        Name of the counter; default: the model's own counter.
    window : int, optional
        Context window, in tokens, in place of the window of the budget or the model.
    files : str or path, optional
        File or folder that the "File" box may open; "" if it may open no file. By default, the box may open any file.

    Attributes
    ----------
    tabs : tuple of Explorer or None
        The explorers, in order; None for unopened tabs.
    view : Tabs
        The widget of the page.

    Raises
    ------
    ValueError, LookupError, OSError
        If an argument is unknown or cannot be read.

    Examples
    --------
    >>> app = App("support-chat", window=8_192)
    >>> app.card.move("conversation", 3_000)
    >>> app.open(1)
    >>> app.tabs[1].budget.cap("conversation")
    3000
    >>> app
    App(chat, gpt-5.4, window=8,192, support-chat)
    """

    def __init__(
        self,
        trace: str | Path | Trace | Sequence[Trace] = "support-chat",
        budget: str | Budget = "chat",
        *,
        model: str | None = None,
        counter: str | None = None,
        window: int | None = None,
        files: str | Path | None = None,
    ) -> None:
        self._reach = None if files is None else Reach(Path(files) if str(files) else None)
        self.card = DesignCard(budget, trace, model=model, counter=counter, window=window)
        self._library = self.card.library
        self._limit(self._library)
        if files is not None:
            self.card.reach = self._reach
            # Draw the card again, because the box for paths is hidden if nothing may be opened.
            self.card.take(self.card.settings, afresh=True)
        self.tabs: tuple[Explorer | None, ...] = (self.card, *[None] * (len(TABS) - 1))
        self._shown = 0
        self._shared = self.card.settings
        self.view = Tabs(titles=[tab.title for tab in TABS])
        self.view.hold(0, self.card.view)
        self.view.observe(lambda change: self._turn_to(change["new"]), "shown")
        self.view.on_msg(self._show_example)

    def open(self, number: int) -> None:
        """Open a tab.

        Parameters
        ----------
        number : int
            Tab number, counting from 0. A number out of range opens the nearest tab.
        """
        self.view.shown = number

    def _show_example(self, _view: Tabs, values: dict[str, Any], _buffers: list[Any]) -> None:
        """Show the budget and the conversation of a selected example."""
        self.open(0)
        self.card.set(**values)

    def _turn_to(self, number: int) -> None:
        """Open a tab with the budget and conversation of the previous tab."""
        number = min(max(0, number), len(TABS) - 1)  # a page may send any number
        before = self.tabs[self._shown]
        assert before is not None, "the shown tab exists"
        shared = BudgetSettings().with_budget(before.settings)
        is_stand_in = isinstance(before, ConversationExplorer) and shared.trace == STAND_IN
        if is_stand_in and self._shared.trace is None:
            shared = replace(shared, trace=None)
        self._shared = shared
        self._shown = number
        tab = TABS[number]
        explorer = self.tabs[number]
        if explorer is not None:
            explorer.take(tab.settings(explorer.settings, shared, self._library))
            return

        # The tab starts with the shared settings, so that nothing is computed twice.
        settings = tab.settings(tab.start, shared, self._library)
        try:
            explorer = self._made(number, settings)
        except Exception:
            explorer = self._made(number, tab.start)  # with the usual budget
            explorer.take(settings, afresh=True)  # which shows the problem on the page
        self.tabs = (*self.tabs[:number], explorer, *self.tabs[number + 1 :])
        # The page builds a view from its first state, so the view is drawn before.
        self.view.hold(number, explorer.view)

    def _made(self, number: int, settings: Any) -> Explorer:
        """Make the explorer of a tab, with these settings.

        The constructor of its own class is not called, because it would read the settings from a user's arguments.
        """
        explorer = object.__new__(TABS[number].explorer)
        view = explorer.kind.view()
        library = Library(view.report)
        library.join(self._library)
        self._limit(library)
        # All tabs share one picture, which shows the last changed tab.
        Explorer.__init__(explorer, settings, library, view, self._reach, self.card.still)
        return explorer

    def _limit(self, library: Library) -> None:
        """Read a path without the files beside it, if only one file may be opened."""
        root = self._reach.root if self._reach else None
        library.conversations.reads_alone = root is not None and root.is_file()

    def _display_(self) -> Tabs:
        """Show the tabs in marimo."""
        # marimo finds only views that a cell has made
        for number in (*range(1, len(TABS)), self._shown):
            self.open(number)
        return self.view

    def show_still(self) -> None:
        """Show the static picture of the open tab."""
        (self.tabs[self._shown] or self.card).show_still()

    def __repr__(self) -> str:
        card = repr(self.card).removeprefix("DesignCard(").removesuffix(")")
        return f"App({card}, {self.card.config['trace']})"


def _with_texts(settings: Any, shared: BudgetSettings, library: Library) -> Any:
    """Return settings with the shared budget and a new conversation's texts.

    If the conversation is the same or has no texts, the explorer's texts stay.
    """
    is_same = (settings.trace, settings.conversation) == (shared.trace, shared.conversation)
    settings = settings.with_budget(shared)
    if is_same or shared.trace is None:
        return settings
    texts = kind_documents(library.conversations(shared.trace)[shared.conversation])
    return settings.showing(library.texts.add(OWN_TEXTS, texts)) if len(texts) else settings


def _with_conversation(settings: Any, shared: BudgetSettings, _library: Library) -> Any:
    """Return settings that replay the shared conversation.

    If no conversation is shared, the explorer's current conversation is replayed.
    """
    if shared.trace is None:
        shared = replace(shared, trace=settings.trace, conversation=settings.conversation)
    return settings.with_budget(shared)


TABS = (
    Tab("Design", DesignCard, BudgetSettings()),
    Tab("Turn by turn", BudgetExplorer, BudgetSettings()),
    Tab("Accuracy", AccuracyExplorer, AccuracySettings(), _with_texts),
    Tab(
        "Pruning and cost",
        ConversationExplorer,
        ConversationSettings(trace=STAND_IN),
        _with_conversation,
    ),
)
