"""The anywidget view, which draws the kernel's state in the page.

The page's code is the concatenated modules in ``view/``; nothing is built or fetched. A page requests plotly's
JavaScript separately and once, for any number of explorers.
"""

from __future__ import annotations

import gzip
import json
import math
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import traitlets as t

from budgetkit.budget import one_line
from budgetkit.files import extra
from budgetkit.message import Data, replace_surrogates

_FOLDER = Path(__file__).parent / "view"
#: The name of the view's script in the page's console and stack traces; it has no address of its own.
SCRIPT = "budgetkit/view.js"
LARGEST = 20 * 1024 * 1024  # bytes; the page refuses larger files before it sends them
MOST = 4  # uploads at once; a closed page never finishes its own


def page_code(*parts: str) -> str:
    """Return the code of the page in these files, such as "dom.js"."""
    return "\n".join((_FOLDER / part).read_text("utf-8") for part in parts)


@cache
def plotly_script() -> bytes:
    """Return plotly's JavaScript from the plotly package, gzip-compressed."""
    with extra("lab", "a figure"):
        import plotly

    script = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    return gzip.compress(script.read_bytes(), 6, mtime=0)


def sendable(value: Any) -> Any:
    r"""Return plain data that is valid JSON in valid Unicode.

    Lone surrogates are replaced, and numbers that are not finite become None.

    Examples
    --------
    >>> sendable({"said": ["cut \ud83d", 3, float("nan")]}) == {"said": ["cut \ufffd", 3, None]}
    True
    """
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return _mended(value)
    return value


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, Mapping):
        return {_mended(key): _mended(entry) for key, entry in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list | tuple):
        return [*map(_mended, value)]
    return value


class View(anywidget.AnyWidget):
    """The widget with the controls and the results.

    Its traits hold the content of the page, and the page sends user input as messages. `view_of` makes the view of an
    explorer.
    """

    _esm = page_code(
        "dom.js",
        "page.js",
        "plotly.js",
        "courier.js",
        "bar.js",
        "charts.js",
        "controls.js",
        "files.js",
        "status.js",
        "reader.js",
        "strip.js",
        "folds.js",
        "view.js",
    )
    _esm += f"\n//# sourceURL={SCRIPT}\n"
    _css = page_code("view.css", "controls.css")
    state = t.Dict().tag(sync=True)
    #: The lists for controls, separate from the state because they rarely change.
    choices = t.Dict().tag(sync=True)
    #: The serial number of the state after a move; when it changes in marimo, dependent cells run again.
    rested = t.Int().tag(sync=True)
    #: The form for opening a file, and facts about the shown one, separate from the state because no move changes them.
    entry = t.Dict().tag(sync=True)
    texts = t.Dict().tag(sync=True)
    reader = t.Dict().tag(sync=True)
    #: The open tables and panels.
    opened = t.List(t.Unicode()).tag(sync=True)
    folds: Any = t.List().tag(sync=True)
    #: The figures that can be drawn, in order.
    figures = t.List(t.Unicode()).tag(sync=True)
    #: The files that can be opened: purpose (the command for them), label and accepted types.
    opens: Any = t.List().tag(sync=True)

    @staticmethod
    def _trait_to_json(value: Any, _widget: Any) -> Any:
        # Half an emoji at the end of a shortened text would make the whole message invalid.
        return sendable(value)

    def send_plotly(self) -> None:
        """Send plotly's JavaScript to a page that requests it."""
        self.send({"kind": "plotly"}, buffers=[plotly_script()])

    def report(self, text: str, progress: float) -> None:
        """Send a sentence about a long task, and its progress."""
        self.send(
            {
                "kind": "status",
                "status": {"level": "busy", "text": replace_surrogates(text), "progress": progress},
            }
        )

    def draw(self, charts: Mapping[str, Data], serial: int) -> None:
        """Show figures, sending only changed figures."""
        for name in self.figures:
            drawn = getattr(self, f"figure_{name}")
            new = charts.get(name, {})
            if {**drawn, "serial": 0} != {**new, "serial": 0}:
                setattr(self, f"figure_{name}", {**new, "serial": serial})


class Uploads:
    """The files that the page is uploading."""

    def __init__(self, view: View, do: Callable[..., None]) -> None:
        self._view = view
        self._do = do
        self._parts: dict[str, bytearray] = {}

    def piece(self, content: Data, data: bytes) -> None:
        """Store a piece of an upload, and open the file once complete."""
        try:
            serial, name, purpose = (str(content[field]) for field in ("serial", "name", "purpose"))
            size, offset = (int(content[field]) for field in ("size", "offset"))
        except (LookupError, TypeError, ValueError):
            raise ValueError(
                "A part of the uploaded file lacks its serial number, name, purpose, size or offset. Open the file "
                "again."
            ) from None
        self._view.send({"kind": "file", "serial": serial})
        if offset and serial not in self._parts:
            return  # a late piece of a file that was rejected or replaced
        part = self._parts.setdefault(serial, bytearray())
        part += data
        if len(part) > LARGEST:
            del self._parts[serial]
            raise ValueError(f"{one_line(name)} is larger than 20 MB. Type its path instead.")
        if len(part) >= size:
            self._do(purpose, name=name, content=bytes(self._parts.pop(serial)))
        while len(self._parts) > MOST:
            del self._parts[next(iter(self._parts))]


class Shown:
    """An object with a view and a static picture.

    The picture is shown if there is no kernel.
    """

    view: anywidget.AnyWidget

    def show_still(self) -> None:
        """Show the static picture and store the settings in the notebook."""
        raise NotImplementedError

    def _ipython_display_(self) -> None:
        """Show the static picture, and the view over it."""
        from IPython.display import display

        self.show_still()
        data, metadata = self._repr_mimebundle_()
        display(data, metadata=metadata, raw=True)  # type: ignore[no-untyped-call]

    def _repr_mimebundle_(self, **options: Any) -> tuple[Data, Data]:
        bundle: Any = self.view._repr_mimebundle_(**options)
        data, metadata = bundle
        return {**data, "text/plain": repr(self)}, metadata  # Colab needs the metadata


def view_of(name: str, figures: Sequence[str]) -> type[View]:
    """Return the view of an explorer, with a trait for each figure."""
    traits: Data = {f"figure_{figure}": t.Dict().tag(sync=True) for figure in figures}
    traits["figures"] = t.List([*figures]).tag(sync=True)
    return types.new_class(name, (View,), exec_body=lambda body: body.update(traits))


class Tabs(anywidget.AnyWidget):
    """A widget of several views, one of which is open."""

    _esm = page_code("dom.js", "page.js", "tabs.js")
    _css = View._css
    titles = t.List(t.Unicode()).tag(sync=True)
    #: The position of the open tab.
    shown = t.Int().tag(sync=True)
    #: The references to the views; empty for unopened tabs.
    views = t.List(t.Unicode()).tag(sync=True)

    def hold(self, place: int, view: View) -> None:
        """Put a view into its tab."""
        views = [*self.views, *[""] * len(self.titles)][: len(self.titles)]
        self.views = [*views[:place], f"anywidget:{view.model_id}", *views[place + 1 :]]
