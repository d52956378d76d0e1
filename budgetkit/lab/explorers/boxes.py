"""Boxes: what the controls of every explorer are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache, partial
from operator import is_
from types import MappingProxyType
from typing import Any, Final

import ipywidgets as widgets
import traitlets as t

from budgetkit.budget import Budget
from budgetkit.budget.html import Markup, element
from budgetkit.budget.quoting import brief
from budgetkit.counters.encodings import replace_surrogates
from budgetkit.files import read_toml
from budgetkit.lab.explorers.budget.settings import (
    OWN,
    BudgetSettings,
    known_presets,
    longest_window,
    window_stops,
)
from budgetkit.models import Model, models
from budgetkit.trace import Trace


@cache
def meaning(word: str) -> str:
    """Return what a word on the screen means; nothing for one that explains itself.

    Examples
    --------
    >>> meaning("usable"), meaning("kind")
    ('The window less its reserves.', '')
    """
    words: dict[str, str] = read_toml("glossary.toml")["words"]
    return words.get(word, "")


def explained(tip: str, word: str) -> str:
    """Return a tip with what its word means.

    Examples
    --------
    >>> explained("usable: 6,964 tokens", "usable")
    'usable: 6,964 tokens. The window less its reserves.'
    """
    if not meaning(word):
        return tip
    return f"{tip.rstrip('.')}. {meaning(word)}"


TIPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Model": "Which model it is for: its window, its tokenizer and its prices. Type a part of its name",
        "Preset": "A budget to start from; it sets all lines below",
        "Window": "How many tokens the model takes in at once",
        "Counter": "What counts the tokens; empty for the model's own tokenizer",
        "From": "Where the messages come from: a shipped conversation, or one that was opened",
        "File": "The path of a conversation on this machine, read when you press Enter",
        "Find": "A part of a title; Enter leaves the conversations that have it in the list, and shows the first",
        "Which": "Which conversation of the file",
        "Turn": "The turn that is planned; each begins with what the user says",
        "A request for": "Whether the model is asked once a turn, or once for each of its answers and tool calls",
        "In detail": "The policy that the figures show",
        "If it won't fit": "What happens when what must stay is larger than its room",
        "Rules": "How the provider's prompt cache works: what is cached, from which size, at what price",
        "Lifetime": "How long the cache is kept after its last use",
        "Prices of": "The day whose prices are taken, as YYYY-MM-DD; empty for today",
        "Turns ahead": "How many turns the forecast looks ahead",
        "Cheap counter": "The quick count whose error is measured",
        "Exact encoding": "The tokenizer that is right; empty for the model's own",
        "Texts": "The texts on which both are compared",
        "Path": "A folder, a file or a pattern such as **/*.md on this machine",
        "Kind of text": "The kind of the texts at hand: what is looked at, and what the buffer is for",
        "Classes": "Kinds of text that are looked at; several with Ctrl",
        "Cut to": "Whether documents are compared whole, or in pieces of about that length",
        "Length": "The shortest and the longest documents that are looked at, in characters",
        "Risk, %": "How many windows of a hundred may overflow",
        "A window has": "Whether one window mixes all kinds of text, or holds one kind",
        "Document": "The text that is shown below, token by token",
    }
)


_DIGITS: Final = r"(?:\d{1,3}(?:[, \u00a0\u202f]\d{3})+|\d+(?:_\d+)*)"
_NUMBER: Final = re.compile(
    rf"(?P<sign>[-+\u2212]?)\s*+(?P<digits>{_DIGITS})?(?P<fraction>\.\d+)?(?P<power>e[-+]?\d{{1,2}})?\s*(?P<unit>[km%]?)",
    re.IGNORECASE | re.ASCII,
)
_UNITS: Final = {"": 1, "k": 1_000, "m": 1_000_000}
WAYS: Final = "type digits, such as 12,000, 1e5, 100k or 1.05M"


def decimal(text: str) -> tuple[Decimal, bool]:
    """Return a typed number, and whether it is in percent.

    Examples
    --------
    >>> [float(decimal(text)[0]) for text in ("0.5", "12,000", "1.05M", "1e5", "1e-6")], decimal("50%")
    ([0.5, 12000.0, 1050000.0, 100000.0, 1e-06], (Decimal('50'), True))
    """
    results = _NUMBER.fullmatch(text.strip())
    if results is None or not (results["digits"] or results["fraction"]):
        raise ValueError(f"{brief(text.strip())} is no number")
    digits = re.sub(r"\D", "", results["digits"] or "0")
    number = Decimal(f"{digits}{results['fraction'] or ''}") * Decimal(10) ** int(
        (results["power"] or "e0")[1:]
    )
    is_percent = results["unit"] == "%"
    unit = results["unit"].lower().replace("%", "")
    size = number * _UNITS[unit]
    return (-size if results["sign"] in ("-", "\u2212") else size), is_percent


def whole_number(text: str, whole: int | None = None) -> int:
    """Return a typed number without a fraction; percent is of the whole, rounded down.

    Examples
    --------
    >>> [whole_number(text) for text in ("8_192", "12,000", "1e5", "100k", "1.05M")], whole_number("50%", 8_192)
    ([8192, 12000, 100000, 100000, 1050000], 4096)
    """
    number, is_percent = decimal(text)
    if is_percent:
        if whole is None:
            raise ValueError(
                f"{brief(text.strip())} is a share, and there is nothing here to take it of"
            )
        return int(number * whole // 100)
    if number != int(number) or (number == int(number) and _is_ambiguous(text)):
        raise ValueError(f"{brief(text.strip())} is not a whole number")
    return int(number)


def _is_ambiguous(text: str) -> bool:
    """Tell whether a point could stand for thousands, as in 12.000."""
    return "." in text and not re.search(r"[kme]", text, re.IGNORECASE)


Data = dict[str, Any]
Do = Callable[..., None]


class _Shared(Mapping[str, Any]):
    """The option `layout`, one for all widgets: each layout more is one more message to the page."""

    _layout: Any = None

    def __getitem__(self, name: str) -> Any:
        if name != "layout":
            raise KeyError(name)
        if self._layout is None or self._layout.comm is None:  # none yet, or closed
            self._layout = widgets.Layout(width="auto", min_width="0")
        return self._layout

    def __iter__(self) -> Iterator[str]:
        return iter(("layout",))

    def __len__(self) -> int:
        return 1


AUTO = _Shared()


class NumberBox(widgets.Text):  # type: ignore[misc]
    """A box for numbers as people type them; anything else is refused in words, and the old number stays.

    Its value is a number here and its text in the page. An empty box is None where one may be empty.
    """

    value = t.Union([t.Int(), t.Float()], allow_none=True, default_value=0).tag(
        sync=True,
        to_json=lambda value, box: box.written(value),
        from_json=lambda text, box: box.read(text),
    )
    min = t.Any(0)
    max = t.Any(100_000_000)
    #: What 100 % is, in tokens; None where percent means nothing.
    whole: Any = t.Int(None, allow_none=True)
    is_whole = t.Bool(True)
    may_be_empty = t.Bool(False)

    def __init__(self, do: Do, **options: Any) -> None:
        self._do = do
        super().__init__(**{"continuous_update": False, **options})

    def written(self, value: Any) -> str:
        """Write a number as the page shows it."""
        if value is None:
            return ""
        if isinstance(value, int):
            return f"{value:,}"
        return f"{value:,.10g}"

    def read(self, text: Any) -> Any:
        """Read what was typed; the value stays if that is no number that is allowed."""
        if not isinstance(text, str):
            return text
        if not text.strip() and self.may_be_empty:
            return None
        try:
            return self._reached(self._number(text))
        except ValueError as problem:
            self._do("refused", text=f"{problem}.", beside=self.tooltip)
            return self.value

    def _number(self, text: str) -> Any:
        try:
            if not text.strip():
                raise ValueError("Nothing was typed")
            if self.is_whole:
                return whole_number(text, self.whole)
            return float(decimal(text.strip().removeprefix("$"))[0])  # a sum of money
        except ValueError as problem:
            raise ValueError(f"{problem}; {self._stays()}; {WAYS}") from None

    def _reached(self, number: Any) -> Any:
        """Return a number that can be here; one that is too small or too large is refused, never another taken."""
        if self.min <= number <= self.max:
            return number
        limit, end = (self.max, "most") if number > self.max else (self.min, "least")
        if self.may_be_empty and number > self.max:
            empty = ", and an empty box is no cap"
        else:
            empty = ""
        reach = f"{self.written(limit)} is the {end} that can be here{empty}"
        raise ValueError(f"{self.written(number)} was typed; {reach}; {self._stays()}")

    def _stays(self) -> str:
        if self.value is None:
            return "it stays empty"
        return f"{self.written(self.value)} stays"

    def set_state(self, sync_data: Any) -> None:
        """Take what the page sends, and send back how it is written here."""
        super().set_state(sync_data)
        if "value" in sync_data and sync_data["value"] != self.written(self.value):
            self.send_state("value")


def sends(do: Do, widget: Any, kind: str, name: str, merge: str = "", **more: Any) -> None:
    """Send a command whenever a widget has a new value."""
    widget.observe(lambda change: do(kind, merge=merge, **{name: change["new"]}, **more), "value")


def options(widget: Any, choices: tuple[Any, ...], value: object) -> None:
    """Set a list's choices, and the one that is chosen."""
    shown = tuple(
        (replace_surrogates(choice[0]), choice[1]) if isinstance(choice, tuple) else choice
        for choice in choices
    )
    if tuple(widget.options) != shown:
        widget.options = shown
    widget.value = value


def bound(widget: Any, low: int, high: int, value: int | None) -> None:
    """Set a bounded widget's limits and value in an order that no check refuses."""
    if isinstance(widget, NumberBox):
        widget.min = low
        widget.max = high
        widget.value = value
        return
    assert value is not None, "only a box can be empty"
    low = min(low, value)
    high = max(high, value)
    widget.min, widget.max = min(widget.min, low), max(widget.max, high)
    widget.value = value
    widget.min = low
    widget.max = high


def breakable(name: str) -> str:
    """Return a name that a narrow label can break after an underscore.

    Examples
    --------
    >>> len(breakable("working_memory")) - len("working_memory")
    1
    """
    return name.replace("_", "_\u200b")


def row(slider: Any, box: Any) -> Any:
    """Return a slider with its number box."""
    return widgets.Box([slider, box.add_class("bk-number")]).add_class("bk-row")


def group(heading: str, *children: Any, folded: bool | None = None) -> Any:
    """Return widgets under a heading; one that can be folded has a button in it."""
    inside: str | Markup = heading
    if folded is not None:
        inside = element("button", heading, type="button", aria_expanded=str(not folded).lower())
    title = widgets.HTML(element("h3", inside)).add_class("bk-heading")
    box = widgets.VBox([title, *children]).add_class("bk-group")
    if not folded:
        return box
    return box.add_class("bk-folded")


def fill(box: Any, *children: Any) -> None:
    """Replace the widgets that stand under a group's heading."""
    box.children = (box.children[0], *children)


def show(widget: Any, visible: bool) -> None:
    """Show a widget or hide it."""
    if visible:
        widget.remove_class("bk-hidden")
    else:
        widget.add_class("bk-hidden")


FEW = 5  # conversations that are found at a glance
RATIOS = ("chars/4", "chars/3.5", "bytes/4", "utf16/4")


def labelled(kind: Any, label: str, **options: Any) -> Any:
    """Return a widget with its label and tip; a text that is typed is taken when the box is left."""
    if issubclass(kind, widgets.Text | widgets.Combobox):
        typed = {"continuous_update": False}
    else:
        typed = {}
    if issubclass(kind, widgets.IntSlider | widgets.SelectionSlider):
        slid = {"readout": False}
    else:
        slid = {}
    control = kind(
        **{"description": label, "tooltip": TIPS[label], **typed, **slid, **options, **AUTO}
    )
    return control if slid else control.add_class("bk-wide")  # a slider shares its row with a box


class ModelControls:
    """The controls of model, preset and window."""

    def __init__(self, do: Do) -> None:
        self._do, self._on = do, partial(sends, do)
        self.model = labelled(widgets.Combobox, "Model", placeholder="type to search")
        self.model.options = tuple(each_model.name for each_model in models())
        self.preset = labelled(widgets.Dropdown, "Preset", options=known_presets())
        # It is heard when it is let go: while its stops change, the page moves it, and would say so as if a hand had.
        stops = [(f"{stop:,}", stop) for stop in window_stops(None)]
        self.window = labelled(
            widgets.SelectionSlider, "Window", options=stops, continuous_update=False
        )
        self.window_box = NumberBox(do, min=1, tooltip="Window, in tokens", **AUTO)
        self._window_row = row(self.window, self.window_box)
        self._on(self.model, "model", "name")
        self._on(self.preset, "preset", "name")
        self._on(self.window, "line", "tokens", "slider window", line="window")
        self._on(self.window_box, "line", "tokens", line="window")

    def _project_model(self, settings: BudgetSettings, model: Model, budget: Budget) -> None:
        self.model.value = settings.model
        own_option = ((budget.name or "my own budget", OWN),) if settings.own is not None else ()
        options(self.preset, (*known_presets(), *own_option), settings.preset)
        # A window that was typed has a stop of its own, beyond the model's too.
        stops = sorted({*window_stops(longest_window(model, budget.kind)), budget.window})
        options(self.window, tuple((f"{stop:,}", stop) for stop in stops), budget.window)
        self.window_box.value = budget.window

    def _listen_to_path(self, path: Any) -> None:
        path.observe(
            lambda change: change["new"].strip() and self._do("path", path=change["new"]), "value"
        )


class TraceControls(ModelControls):
    """The file, the conversation in it, the counter, and a slider that goes through it."""

    def __init__(self, do: Do, place: str) -> None:
        super().__init__(do)
        self.trace = labelled(widgets.Dropdown, "From", options=[])
        self.path = labelled(widgets.Text, "File", placeholder="path of a session")
        self.conversation = labelled(widgets.Dropdown, "Which", options=[("1", 0)])
        self.find = labelled(widgets.Text, "Find", placeholder="a part of its title")
        self.which = widgets.VBox([self.find, self.conversation])
        self._traces: tuple[Trace, ...] = ()
        self._titles: tuple[str, ...] = ()
        self._listed: tuple[int, str] | None = None
        self.find.observe(self._sought, "value")
        self.counter = labelled(widgets.Combobox, "Counter")
        self._place = labelled(widgets.IntSlider, "Turn", min=1, max=1)
        self._place_box = NumberBox(do, min=1, max=1, tooltip="Turn, by its number", **AUTO)
        self._place_row = row(self._place, self._place_box)
        self._on(self.trace, "trace", "name")
        self._on(self.conversation, "conversation", "number")
        self._on(self.counter, "counter", "name")
        self._on(self._place, place, place, f"slider {place}")
        self._on(self._place_box, place, place)
        self._listen_to_path(self.path)

    def _project_place(
        self, traces: Sequence[Trace], conversation: int, last: int, now: int
    ) -> None:
        show(self.which, len(traces) > 1)
        show(self.find, len(traces) > FEW)
        # Every move of a slider comes here, and an export may have thousands of titles.
        if len(traces) != len(self._traces) or not all(map(is_, traces, self._traces)):
            self._traces = (*traces,)
            self._listed = None
            titles = tuple(trace.title for trace in traces)
            if titles != self._titles:
                self._titles = titles
                self.find.value = ""
        if self._listed != (conversation, self.find.value):
            self._listed = conversation, self.find.value
            shown = sorted({conversation, *self._having(self.find.value)})
            options(
                self.conversation,
                tuple((f"{i + 1}: {self._titles[i]}", i) for i in shown),
                conversation,
            )
        self.conversation.value = conversation
        bound(self._place, 1, last, now)
        bound(self._place_box, 1, last, now)

    def _having(self, part: str) -> list[int]:
        """Return the conversations whose title holds a text, in whatever case."""
        return [
            i for i, title in enumerate(self._titles) if part.strip().casefold() in title.casefold()
        ]

    def _sought(self, change: dict[str, Any]) -> None:
        """Leave the conversations of such titles in the list, and show the first of them unless one is shown."""
        results = self._having(change["new"])
        shown = self.conversation.value
        if results:
            self._do("conversation", number=shown if shown in results else results[0])
            return
        none = f"no title of the {len(self._titles):,} holds {brief(change['new'])}; type another part of it"
        self._do("refused", text=f"{none}, or empty the box for all.", beside=self.find.tooltip)
