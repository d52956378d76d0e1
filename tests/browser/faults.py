"""Scripts that fail on a page, and whose they are.

What no script caught is known by its stack, in which the explorers' own script has a name (see
``budgetkit.lab.explorers.view``). What ipywidgets and anywidget caught is a line on the page's console.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from playwright.sync_api import ConsoleMessage, Error, Page

from budgetkit.lab.explorers.view import SCRIPT

PLACE = re.compile(r"(?P<script>https?://[^\s()]+):(?P<line>\d+):(?P<column>\d+)\)?$")
# ipywidgets, packages/base/src/widget.ts, WidgetModel.set_state: of what fails in a control the message alone is left.
IN_A_CONTROL = "Error setting state: "


@dataclass(frozen=True, slots=True)
class Fault:
    """What a script that failed said, and the stack it left."""

    message: str
    stack: str

    @property
    def is_ours(self) -> bool:
        """Whether the explorers' script was at work."""
        return SCRIPT in self.stack

    def is_the_splash(self, source: Callable[[str], str]) -> bool:
        """Whether JupyterLab's splash was removed twice.

        Shown, disposed, shown and disposed again before its 200 ms of fading are over, it is removed by both timers:
        jupyterlab, packages/apputils-extension/src/index.ts, plugin "@jupyterlab/apputils-extension:splash".
        So the only place in the stack is a call of removeChild there, right behind the class that makes it fade.
        """
        calls = [line for line in self.stack.splitlines() if line.lstrip().startswith("at ")]
        place = PLACE.search(calls[0]) if len(calls) == 1 else None
        if place is None or "'removeChild' on 'Node'" not in self.message:
            return False
        line, column = (
            source(place["script"]).splitlines()[int(place["line"]) - 1],
            int(place["column"]) - 1,
        )
        return (
            line.startswith("removeChild(", column)
            and "splash-fade" in line[max(0, column - 200) : column]
        )


def watch(page: Page) -> list[Fault]:
    """Return a list that grows with every script that fails on the page."""
    faults: list[Fault] = []

    def thrown(error: Error) -> None:
        faults.append(Fault(error.message, error.stack or ""))

    def written(said: ConsoleMessage) -> None:
        if said.type == "error" and (SCRIPT in said.text or said.text.startswith(IN_A_CONTROL)):
            faults.append(Fault(said.text.splitlines()[0], said.text))

    page.on("pageerror", thrown)
    page.on("console", written)
    return faults


def complaint(faults: Iterable[Fault], source: Callable[[str], str]) -> str:
    """Say what failed, and whose it is; nothing where only the host's splash did."""
    told = [fault for fault in faults if not fault.is_the_splash(source)]
    names = [
        "budgetkit's script" if fault.is_ours else "a script that is not budgetkit's"
        for fault in told
    ]
    return "\n".join(
        f"{name} failed: {fault.message}\n{fault.stack}"
        for name, fault in zip(names, told, strict=True)
    )
