"""The anywidget view: what the kernel says of the budget, drawn in the page.

The page's code is plain modules in ``view/``, put one behind the other; nothing is built or fetched. plotly's own
JavaScript is not among them: a page asks for it once, whatever number of explorers it shows.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import anywidget
import traitlets as t

#: What may be drawn, in order; each has a trait of its own, so that only what changed is sent.
FIGURES = ("waterfall", "sections", "turns", "errors", "conversations")
_PARTS = ("dom", "plotly", "page", "courier", "bar", "handles", "charts", "files", "panels", "view")
_FOLDER = Path(__file__).parent / "view"


def _source() -> str:
    return "\n".join((_FOLDER / f"{part}.js").read_text("utf-8") for part in _PARTS)


@cache
def plotly_script() -> bytes:
    """Return plotly's JavaScript as it lies in the plotly package, compressed.

    Returns
    -------
    bytes
        gzip; about 1.5 MB.
    """
    import plotly

    script = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    return gzip.compress(script.read_bytes(), 6, mtime=0)


class View(anywidget.AnyWidget):
    """The picture beside the controls.

    Its traits are what the page shows; what a hand does there comes back as messages.
    """

    _esm = _source()
    _css = (_FOLDER / "view.css").read_text("utf-8")
    state = t.Dict().tag(sync=True)
    texts = t.Dict().tag(sync=True)
    figures = t.List(list(FIGURES)).tag(sync=True)
    opened = t.List(t.Unicode()).tag(sync=True)
    figure_waterfall = t.Dict().tag(sync=True)
    figure_sections = t.Dict().tag(sync=True)
    figure_turns = t.Dict().tag(sync=True)
    figure_errors = t.Dict().tag(sync=True)
    figure_conversations = t.Dict().tag(sync=True)

    def send_plotly(self) -> None:
        """Send plotly's JavaScript to the page that asked for it."""
        self.send({"kind": "plotly"}, buffers=[plotly_script()])
