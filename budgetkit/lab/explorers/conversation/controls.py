"""Controls: the widgets beside the view. They show the settings and turn a hand's change into a command."""

from __future__ import annotations

import ipywidgets as widgets

from budgetkit.lab.explorers.boxes import (
    AUTO,
    RATIOS,
    Do,
    NumberBox,
    TraceControls,
    bound,
    fill,
    group,
    labelled,
    options,
    planning_counter,
    row,
    show,
)
from budgetkit.lab.explorers.budget.charts import lines_of
from budgetkit.lab.explorers.budget.controls import Row
from budgetkit.lab.explorers.conversation.results import ConversationResults
from budgetkit.lab.explorers.conversation.settings import (
    CHOICES,
    LIFETIMES,
    LONGEST,
    SAYS,
    ConversationSettings,
    Numbers,
)
from budgetkit.lab.explorers.conversation.settings import OWN as GIVEN
from budgetkit.lab.explorers.shelves import Library
from budgetkit.lab.replay.cost import PRICED
from budgetkit.lab.replay.prompt_cache import CACHES, PromptCache

BY = (("a turn", "turn"), ("an answer", "request"))
CONFLICTS = (("exceed the limit", "exceed"), ("shrink the others", "shrink"), ("refuse", "raise"))


class ConversationControls(TraceControls):
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

    def __init__(self, do: Do, library: Library, start: ConversationSettings) -> None:
        super().__init__(do, "request")
        self._library = library
        self.lines: dict[str, Row] = {}
        self._shape: object = None
        self.request = self._place
        self.request_box = self._place_box
        self.by = labelled(widgets.Dropdown, "A request for", options=BY)
        tip = "Whether the calls and results of the turn that is being answered can be pruned"
        self.within = widgets.Checkbox(
            description="prune within a turn", indent=False, tooltip=tip, **AUTO
        )
        self._pick(do, (*CHOICES, *start.given))
        self._cache(do, start)
        self.numbers = Numbers(do)
        self._build()
        self._listen()

    def _pick(self, do: Do, names: tuple[str, ...]) -> None:
        """Make the widgets that choose policies and their floor."""
        self.policies = {
            name: widgets.Checkbox(
                description=name, tooltip=SAYS.get(name, name), indent=False, **AUTO
            )
            for name in names
        }
        self.main = labelled(widgets.Dropdown, "In detail", options=[])
        self.floor = NumberBox(
            do, description="Keep at least", min=1, tooltip="What stays whatever happens", **AUTO
        )
        self.unit = widgets.Dropdown(
            options=("messages", "turns", "tokens"), tooltip="Unit of the floor", **AUTO
        )
        self.conflict = labelled(widgets.Dropdown, "If it won't fit", options=CONFLICTS)

    def _cache(self, do: Do, start: ConversationSettings) -> None:
        """Make the widgets of the prompt cache, of prices, and of the look ahead."""
        own_rules = ((GIVEN, GIVEN),) if isinstance(start.rules, PromptCache) else ()
        names = [("as the model's provider", ""), *((name, name) for name in CACHES), *own_rules]
        self.rules = labelled(widgets.Dropdown, "Rules", options=names)
        lifetimes = [("as the rules say", ""), *((name, name) for name in LIFETIMES)]
        self.lifetime = labelled(widgets.Dropdown, "Lifetime", options=lifetimes)
        self.day = labelled(widgets.Text, "Prices of", placeholder="today")
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
        self.horizon = labelled(widgets.IntSlider, "Turns ahead", min=10, max=1_000, step=10)
        self.horizon_box = NumberBox(do, min=1, max=10_000, tooltip="Turns to look ahead", **AUTO)
        self.money = NumberBox(
            do,
            description="May cost, $",
            max=1e9,
            is_whole=False,
            tooltip="What may be spent, in dollars",
            **AUTO,
        )

    def _build(self) -> None:
        for widget in (self.within, self.money):
            widget.add_class("bk-wide")
        for box in (self.floor, self.money):
            box.add_class("bk-number")
        wanted = [self.trace, self.path, self.by, self.within]
        source = group("Conversation", *wanted, folded=True)
        self._budget = group("Budget")
        ticks = widgets.Box(list(self.policies.values())).add_class("bk-ticks")
        floor = widgets.Box([self.floor, self.unit]).add_class("bk-pair")
        policies = group("Policies", self._place_row, ticks, self.main, self.numbers.widget)
        least = group("What always stays", floor, self.conflict, folded=True)
        prices = widgets.Box(list(self.prices.values())).add_class("bk-prices")
        cache = group(
            "Prompt cache and prices", self.rules, self.lifetime, self.day, prices, folded=True
        )
        ahead = group("Forecast", row(self.horizon, self.horizon_box), self.money, folded=True)
        groups = [self.which, policies, self._budget, source, least, cache, ahead]
        self.widget = widgets.VBox(groups).add_class("bk-controls")

    def _listen(self) -> None:
        on = self._on
        on(self.by, "by", "by")
        on(self.within, "within", "on")
        for name, box in self.policies.items():
            on(box, "policy", "on", policy=name)
        on(self.main, "main", "name")
        for name, widget in {
            "least": self.floor,
            "unit": self.unit,
            "conflict": self.conflict,
        }.items():
            on(widget, "floor", name)
        on(self.rules, "rules", "name")
        on(self.lifetime, "lifetime", "name")
        on(self.day, "day", "text")
        for name, text in self.prices.items():
            on(text, "price", "price", of=name)
        on(self.horizon, "horizon", "turns", "slider horizon")
        on(self.horizon_box, "horizon", "turns")
        on(self.money, "money", "money")

    def project(self, settings: ConversationSettings, results: ConversationResults) -> None:
        """Show the settings as they are now."""
        self._project_conversation(settings, results)
        self._project_budget(settings, results)
        self._project_policies(settings)
        self._project_cache(settings, results)

    def _project_conversation(
        self, settings: ConversationSettings, results: ConversationResults
    ) -> None:
        base = settings.budget_settings
        conversations = self._library.conversations
        options(self.trace, tuple((name, name) for name in conversations.names), base.trace)
        self._project_place(
            conversations(str(base.trace)), base.conversation, results.requests, results.request
        )
        self.by.value = results.run.by
        self.within.value = settings.within
        if results.run.by == "turn":
            self.request.description = "Turn"
        else:
            self.request.description = "Request"
        self.request_box.tooltip = f"{self.request.description}, by its number"

    def _project_budget(self, settings: ConversationSettings, results: ConversationResults) -> None:
        base = settings.budget_settings
        budget = results.budget_results.plan.budget
        self._project_model(base, results.budget_results.model, budget)
        self.counter.options = (results.budget_results.model.encoding, *RATIOS)
        self.counter.value = planning_counter(base, results.budget_results.model)
        self._project_lines(settings, results)

    def _project_lines(self, settings: ConversationSettings, results: ConversationResults) -> None:
        lines = lines_of(settings.budget_settings, results.budget_results)
        wanted = [line for line in lines if line[0] in ("output", results.section)]
        shape = [(name, name == "output" or is_share) for name, _, _, is_share in wanted]
        budget = results.budget_results.plan.budget
        if shape != self._shape:
            gone = self.lines.values()
            self._shape = shape
            self.lines = {name: Row(name, is_share, self._do) for name, is_share in shape}
            rows = [line_row.widget for line_row in self.lines.values()]
            fill(self._budget, self.model, self.preset, self._window_row, *rows, self.counter)
            for line_row in self.lines.values():
                show(line_row.lock, False)  # there is nothing here that moves another line
            for line_row in gone:
                line_row.close()
        for name, _, amount, _ in wanted:
            tokens = {**budget.sizes, **budget.caps}.get(name, 0)
            self.lines[name].project(
                amount,
                tokens,
                budget.window,
                budget.floors.get(name, 0),
                False,
                name in budget.caps,
            )

    def _project_policies(self, settings: ConversationSettings) -> None:
        for name, box in self.policies.items():
            box.value = name in settings.chosen
        options(self.main, tuple((name, name) for name in settings.chosen), settings.main)
        self.numbers.project(settings)
        self.floor.value = settings.floor.least
        self.unit.value = settings.floor.unit
        self.conflict.value = settings.floor.conflict

    def _project_cache(self, settings: ConversationSettings, results: ConversationResults) -> None:
        if isinstance(settings.rules, PromptCache):
            self.rules.value = GIVEN
        else:
            self.rules.value = settings.rules or ""
        self.lifetime.value = settings.lifetime or ""
        if settings.on is None:
            self.day.value = ""
        else:
            self.day.value = settings.on.isoformat()
        for name, text in self.prices.items():
            price = getattr(results.run.prices, name)
            text.value = None if price is None else price.base
        bound(self.horizon, 10, LONGEST, round(results.horizon, -1))
        self.horizon_box.value = results.horizon
        self.money.value = settings.money
