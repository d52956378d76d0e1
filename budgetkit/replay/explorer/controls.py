"""Controls: the widgets beside the view. They show the settings and turn a hand's change into a command."""

from __future__ import annotations

from functools import partial

import ipywidgets as widgets

from budgetkit.explorer.boxes import AUTO, Do, NumberBox, bound, fill, group, options, row, sends, show
from budgetkit.explorer.budget.controls import RATIOS
from budgetkit.explorer.budget.rows import Row
from budgetkit.explorer.budget.settings import OWN, WINDOWS, known_presets
from budgetkit.explorer.budget.view_state import lines_of
from budgetkit.explorer.tips import TIPS
from budgetkit.models import models
from budgetkit.replay.cost import PRICED
from budgetkit.replay.explorer.choices import CHOICES, SAYS
from budgetkit.replay.explorer.library import Replays
from budgetkit.replay.explorer.numbers import Numbers
from budgetkit.replay.explorer.results import Results
from budgetkit.replay.explorer.rules import OWN as GIVEN
from budgetkit.replay.explorer.settings import LIFETIMES, LONGEST, Settings
from budgetkit.replay.prompt_cache import CACHES, PromptCache

BY = (("a turn", "turn"), ("an answer", "request"))
CONFLICTS = (("exceed the limit", "exceed"), ("shrink the others", "shrink"), ("refuse", "raise"))


class Controls:
    """The widgets beside the view.

    Attributes
    ----------
    trace, path, conversation, request, request_box, by, within, model, preset, window, window_box, counter
        Widgets; setting the value of one from code is the same as doing it by hand.
    policies : dict of str to Checkbox
        Which are side by side.
    main : Dropdown
        The one that is shown in detail.
    numbers : Numbers
        The numbers of that one: ``numbers.sliders`` and ``numbers.boxes`` by name.
    floor, unit, conflict, rules, lifetime, day, horizon, horizon_box, money
        Widgets.
    prices : dict of str to Text
        By "input", "output", "cache_read" and "cache_write".
    lines : dict of str to Row
        The output reserve, and the section that is pruned.
    """

    def __init__(self, do: Do, library: Replays, start: Settings) -> None:
        self._do, self._library = do, library
        self.lines: dict[str, Row] = {}
        self._shape: object = None
        self._start(do)
        self._pick(do, (*CHOICES, *start.given))
        self._cache(do, start)
        self.numbers = Numbers(do)
        self._build()
        self._listen()

    def _start(self, do: Do) -> None:
        """Make what says which conversation it is, and how large its window is."""
        self.trace = widgets.Dropdown(description="From", tooltip=TIPS["From"], options=[], **AUTO)
        self.path = widgets.Text(
            description="File", tooltip=TIPS["File"], placeholder="path of a session", continuous_update=False, **AUTO
        )
        self.conversation = widgets.Dropdown(description="Which", tooltip=TIPS["Which"], options=[("1", 0)], **AUTO)
        self.by = widgets.Dropdown(description="A request for", tooltip=TIPS["A request for"], options=BY, **AUTO)
        tip = "Whether the calls and results of the turn that is being answered can be pruned"
        self.within = widgets.Checkbox(description="prune within a turn", indent=False, tooltip=tip, **AUTO)
        self.request = widgets.IntSlider(description="Turn", tooltip=TIPS["Turn"], min=1, max=1, readout=False, **AUTO)
        self.request_box = NumberBox(do, min=1, max=1, tooltip="Turn, by its number", **AUTO)
        self.model = widgets.Combobox(
            description="Model", tooltip=TIPS["Model"], placeholder="type to search", continuous_update=False, **AUTO
        )
        self.model.options = tuple(known.name for known in models())
        self.preset = widgets.Dropdown(description="Preset", tooltip=TIPS["Preset"], options=known_presets(), **AUTO)
        sizes = [(f"{n:,}", n) for n in WINDOWS]
        self.window = widgets.SelectionSlider(
            description="Window", tooltip=TIPS["Window"], options=sizes, readout=False, **AUTO
        )
        self.window_box = NumberBox(do, min=1, tooltip="Window, in tokens", **AUTO)
        self.counter = widgets.Combobox(description="Counter", tooltip=TIPS["Counter"], continuous_update=False, **AUTO)

    def _pick(self, do: Do, names: tuple[str, ...]) -> None:
        """Make what says which policies are compared."""
        self.policies = {
            name: widgets.Checkbox(description=name, tooltip=SAYS.get(name, name), indent=False, **AUTO)
            for name in names
        }
        self.main = widgets.Dropdown(description="In detail", tooltip=TIPS["In detail"], options=[], **AUTO)
        self.floor = NumberBox(do, description="Keep at least", min=1, tooltip="What stays whatever happens", **AUTO)
        self.unit = widgets.Dropdown(options=("messages", "turns", "tokens"), tooltip="Unit of the floor", **AUTO)
        self.conflict = widgets.Dropdown(
            description="If it won't fit", tooltip=TIPS["If it won't fit"], options=CONFLICTS, **AUTO
        )

    def _cache(self, do: Do, start: Settings) -> None:
        """Make what says what is cached, what it costs, and how far to look ahead."""
        given = ((GIVEN, GIVEN),) if isinstance(start.rules, PromptCache) else ()
        names = [("as the model's provider", ""), *((name, name) for name in CACHES), *given]
        self.rules = widgets.Dropdown(description="Rules", tooltip=TIPS["Rules"], options=names, **AUTO)
        lifetimes = [("as the rules say", ""), *((name, name) for name in LIFETIMES)]
        self.lifetime = widgets.Dropdown(description="Lifetime", tooltip=TIPS["Lifetime"], options=lifetimes, **AUTO)
        self.day = widgets.Text(
            description="Prices of", tooltip=TIPS["Prices of"], placeholder="today", continuous_update=False, **AUTO
        )
        self.prices = {
            name: NumberBox(
                do,
                description=name.replace("_", " "),
                placeholder="not known",
                tooltip=f"Price for {name.replace('_', ' ')}, in dollars for a million tokens",
                **{"is_whole": False, "may_be_empty": True, "max": 1e9, "value": None, **AUTO},
            ).add_class("bk-number")
            for name in PRICED
        }
        self.horizon = widgets.IntSlider(
            description="Turns ahead", tooltip=TIPS["Turns ahead"], min=10, max=1_000, step=10, readout=False, **AUTO
        )
        self.horizon_box = NumberBox(do, min=1, max=10_000, tooltip="Turns to look ahead", **AUTO)
        self.money = NumberBox(
            do, description="May cost, $", max=1e9, is_whole=False, tooltip="What may be spent, in dollars", **AUTO
        )

    def _build(self) -> None:
        wide = [self.trace, self.path, self.conversation, self.by, self.within, self.model, self.preset, self.counter]
        wide += [self.main, self.conflict, self.rules, self.lifetime, self.day, self.money]
        for widget in wide:
            widget.add_class("bk-wide")
        for box in (self.floor, self.money):
            box.add_class("bk-number")
        self._request_row = row(self.request, self.request_box)
        wanted = [self.trace, self.path, self.conversation, self.by, self.within]
        source = group("Conversation", *wanted, folded=True)
        self._window_row = row(self.window, self.window_box)
        self._budget = group("Budget")
        ticks = widgets.Box(list(self.policies.values())).add_class("bk-ticks")
        floor = widgets.Box([self.floor, self.unit]).add_class("bk-pair")
        policies = group("Policies", self._request_row, ticks, self.main, self.numbers.widget)
        least = group("What always stays", floor, self.conflict, folded=True)
        prices = widgets.Box(list(self.prices.values())).add_class("bk-prices")
        cache = group("Prompt cache and prices", self.rules, self.lifetime, self.day, prices, folded=True)
        ahead = group("Forecast", row(self.horizon, self.horizon_box), self.money, folded=True)
        groups = [policies, self._budget, source, least, cache, ahead]
        self.widget = widgets.VBox(groups).add_class("bk-controls")

    def _listen(self) -> None:
        on = partial(sends, self._do)
        on(self.request, "request", "request", "slider request")
        on(self.request_box, "request", "request")
        on(self.trace, "trace", "name")
        on(self.conversation, "conversation", "number")
        on(self.by, "by", "by")
        on(self.within, "within", "on")
        on(self.model, "model", "name")
        on(self.preset, "preset", "name")
        on(self.window, "line", "tokens", "slider window", line="window")
        on(self.window_box, "line", "tokens", line="window")
        on(self.counter, "counter", "name")
        for name, box in self.policies.items():
            on(box, "policy", "on", policy=name)
        on(self.main, "main", "name")
        for name, widget in {"least": self.floor, "unit": self.unit, "conflict": self.conflict}.items():
            on(widget, "floor", name)
        on(self.rules, "rules", "name")
        on(self.lifetime, "lifetime", "name")
        on(self.day, "day", "text")
        for name, text in self.prices.items():
            on(text, "price", "price", of=name)
        on(self.horizon, "horizon", "turns", "slider horizon")
        on(self.horizon_box, "horizon", "turns")
        on(self.money, "money", "money")
        self.path.observe(lambda change: change["new"].strip() and self._do("path", path=change["new"]), "value")

    def project(self, settings: Settings, found: Results) -> None:
        """Show what holds."""
        self._project_conversation(settings, found)
        self._project_budget(settings, found)
        self._project_policies(settings)
        self._project_cache(settings, found)

    def _project_conversation(self, settings: Settings, found: Results) -> None:
        options(self.trace, tuple((name, name) for name in self._library.names), settings.base.trace)
        traces = self._library.conversations(str(settings.base.trace))
        show(self.conversation, len(traces) > 1)
        labels = tuple((f"{i + 1}: {trace.id}", i) for i, trace in enumerate(traces))
        options(self.conversation, labels, settings.base.conversation)
        self.by.value, self.within.value = found.run.by, settings.within
        self.request.description = "Turn" if found.run.by == "turn" else "Request"
        self.request_box.tooltip = f"{self.request.description}, by its number"
        bound(self.request, 1, found.requests, found.request)
        bound(self.request_box, 1, found.requests, found.request)

    def _project_budget(self, settings: Settings, found: Results) -> None:
        base, budget = settings.base, found.bare.plan.budget
        self.model.value = base.model
        own = ((budget.name or "my own budget", OWN),) if base.own is not None else ()
        options(self.preset, (*known_presets(), *own), base.preset)
        sizes = sorted({*WINDOWS, budget.window, found.bare.model.window})
        options(self.window, tuple((f"{n:,}", n) for n in sizes), budget.window)
        self.window_box.value = budget.window
        self.counter.options = (found.bare.model.encoding, *RATIOS)
        self.counter.value = base.counter or found.bare.model.encoding
        self._project_lines(settings, found)

    def _project_lines(self, settings: Settings, found: Results) -> None:
        wanted = [line for line in lines_of(settings.base, found.bare) if line[0] in ("output", found.section)]
        shape = [(name, name == "output" or is_share) for name, _, _, is_share in wanted]
        budget = found.bare.plan.budget
        if shape != self._shape:
            gone, self._shape = self.lines.values(), shape
            self.lines = {name: Row(name, is_share, self._do) for name, is_share in shape}
            rows = [each.widget for each in self.lines.values()]
            fill(self._budget, self.model, self.preset, self._window_row, *rows, self.counter)
            for each in self.lines.values():
                show(each.lock, False)  # there is nothing here that moves another line
            for each in gone:
                each.close()
        for name, _, amount, _ in wanted:
            tokens = {**budget.sizes, **budget.caps}.get(name, 0)
            self.lines[name].project(
                amount, tokens, budget.window, budget.floors.get(name, 0), False, name in budget.caps
            )

    def _project_policies(self, settings: Settings) -> None:
        for name, box in self.policies.items():
            box.value = name in settings.chosen
        options(self.main, tuple((name, name) for name in settings.chosen), settings.main)
        self.numbers.project(settings)
        self.floor.value, self.unit.value = settings.floor.least, settings.floor.unit
        self.conflict.value = settings.floor.conflict

    def _project_cache(self, settings: Settings, found: Results) -> None:
        self.rules.value = GIVEN if isinstance(settings.rules, PromptCache) else settings.rules or ""
        self.lifetime.value = settings.lifetime or ""
        self.day.value = "" if settings.on is None else settings.on.isoformat()
        for name, text in self.prices.items():
            price = getattr(found.run.prices, name)
            text.value = None if price is None else price.base
        bound(self.horizon, 10, LONGEST, round(found.horizon, -1))
        self.horizon_box.value = found.horizon
        self.money.value = settings.money
