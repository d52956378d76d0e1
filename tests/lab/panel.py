"""What tests of every explorer do with its controls: read what one shows, and type into it as a page does."""

from collections.abc import Callable
from typing import Any

from budgetkit import Budget

Change = dict[str, Any] | Callable[[Any], None]


def shown(explorer: Any, key: str) -> Any:
    """Return what a control shows: a number, a text, or the value that is chosen; None for an empty box of a number."""
    control = explorer.panel.controls[key]
    if control["is"] == "line" and "of" not in control["slide"]:
        return control["slide"]["value"]
    if control["is"] == "line" or control.get("digits"):
        text = str(control.get("text", control.get("value"))).replace(",", "")
        return float(text) if text else None
    return control["value"]


def slide(explorer: Any, key: str) -> dict[str, Any]:
    """Return the slider of a control: where it stands, and between what."""
    drawn: dict[str, Any] = explorer.panel.controls[key]["slide"]
    return drawn


def percent(explorer: Any, line: str) -> Any:
    """Return where the slider of a line stands, in percent of the window."""
    return slide(explorer, f"line_{line}")["value"]


def lines(explorer: Any) -> list[str]:
    """Return the lines of the budget that have a slider."""
    controls = explorer.panel.controls
    return [key.removeprefix("line_") for key in controls if key.startswith("line_")]


def labels(explorer: Any, key: str) -> list[str]:
    """Return the choices of a control as the page lists them."""
    control = explorer.panel.controls[key]
    choices = explorer.view.choices[control.get("among") or control["slide"]["among"]]
    return [choice if isinstance(choice, str) else choice[1] for choice in choices]


def level(explorer: Any) -> str:
    """Return the level of the status, such as error."""
    return str(explorer.view.state["status"]["level"])


def kpi(explorer: Any, key: str) -> str:
    """Return the value of a key figure."""
    return str(next(k["value"] for k in explorer.view.state["kpis"] if k["key"] == key))


def made_by(program: str) -> Budget:
    """Run the code that an explorer copies; return its budget."""
    names: dict[str, Any] = {}
    exec(program, names)
    budget: Budget = names["budget"]
    return budget


def hear(explorer: Any, content: dict[str, Any], *buffers: bytes) -> None:
    """Send what a page would send."""
    explorer._receive(explorer.view, content, list(buffers))


def put(explorer: Any, key: str, value: Any, gesture: str = "") -> None:
    """Put a value into a control, as a page does."""
    hear(explorer, {"kind": "set", "key": key, "value": value, "gesture": gesture})


def typed(explorer: Any, key: str, text: str) -> str:
    """Type into a box as a page does; return what stands there afterwards."""
    put(explorer, key, text)
    control = explorer.panel.controls[key]
    return str(control.get("text", control.get("value")))


def refused(explorer: Any, change: Change, told: str) -> None:
    """Check that a message, values of controls, or a call are refused in one sentence and change nothing."""
    before = explorer.config, explorer.budget, explorer.panel.values
    if callable(change):
        change(explorer)
    elif "kind" in change:
        hear(explorer, {"id": "1", **change})
    else:
        explorer.set(**change)
    status = explorer.view.state["status"]
    assert status["level"] == "error", told
    assert told in status["text"]
    assert "\n" not in status["text"]
    assert (explorer.config, explorer.budget, explorer.panel.values) == before, told
