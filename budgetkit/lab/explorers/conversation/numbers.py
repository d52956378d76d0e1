"""Numbers: the sliders of the policy that is shown in detail."""

from __future__ import annotations

from functools import partial
from typing import Any

import ipywidgets as widgets

from budgetkit.lab.explorers.boxes import AUTO, Do, NumberBox, row, sends
from budgetkit.lab.explorers.conversation.choices import CHOICES
from budgetkit.lab.explorers.conversation.settings import ConversationSettings


class Numbers:
    """A slider and a box for each number of a policy.

    Attributes
    ----------
    sliders, boxes : dict of str to widget
        By the name of the number; those of the policy shown in detail.
    widget : VBox
        All of them.
    """

    def __init__(self, do: Do) -> None:
        self._do = do
        self._policy = ""
        self.sliders: dict[str, Any] = {}
        self.boxes: dict[str, Any] = {}
        self.widget = widgets.VBox([]).add_class("bk-group")

    def project(self, settings: ConversationSettings) -> None:
        """Show the settings as they are now."""
        if self._policy != settings.main:
            self._rebuild(settings.main)
        values = settings.parameters.get(settings.main, {})
        for name in self.sliders:
            parameter = CHOICES[settings.main].parameters[name]
            self.sliders[name].value = self.boxes[name].value = values.get(name, parameter.default)

    def _rebuild(self, policy: str) -> None:
        gone = [*self.widget.children, *self.sliders.values(), *self.boxes.values()]
        if policy in CHOICES:
            parameters = CHOICES[policy].parameters
        else:
            parameters = {}
        self._policy = policy
        self.sliders = {}
        self.boxes = {}
        on = partial(sends, self._do)
        for name, number in parameters.items():
            unit = "%" if number.unit == "percent" else number.unit
            limits = {"min": number.low, "max": number.high, "step": number.step}
            tip = f"{policy}: {number.label}, in {number.unit}"
            if number.label == unit:
                words = number.label
            else:
                words = f"{number.label}, {unit}"
            self.sliders[name] = widgets.IntSlider(
                description=words, readout=False, tooltip=tip, **limits, **AUTO
            )
            self.boxes[name] = NumberBox(
                self._do, tooltip=tip, min=number.low, max=number.high, **AUTO
            )
            on(
                self.sliders[name],
                "number",
                "value",
                f"slider {policy} {name}",
                policy=policy,
                number=name,
            )
            on(self.boxes[name], "number", "value", policy=policy, number=name)
        self.widget.children = [row(self.sliders[name], self.boxes[name]) for name in parameters]
        for widget in gone:
            widget.close()
