"""Static pictures stored with plotly figures, for viewers without plotly's JavaScript.

JupyterLab draws the figure and ignores the SVG; GitHub, nbviewer and `nbconvert` show the SVG. No PNG is stored,
because plotly's JupyterLab extension would show the PNG in place of the figure until the mouse enters the output.
"""

from __future__ import annotations

import json
from typing import Any

import plotly.graph_objects as go
import plotly.io as pio

from budgetkit.lab.figures.drawing import svg

LIVE = "application/vnd.plotly.v1+json"
PICTURE = "image/svg+xml"


class StoredFigure(go.Figure):  # type: ignore[misc]  # plotly has no types
    """A plotly figure that is stored together with an SVG."""

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> dict[str, Any]:
        return {**(super()._repr_mimebundle_(*args, **options) or {}), **self._picture()}

    def _ipython_display_(self) -> None:
        """Show the figure, with its SVG if the renderer stores plotly's data."""
        from IPython.display import display

        if "plotly_mimetype" in str(pio.renderers.default):
            display({LIVE: json.loads(self.to_json()), **self._picture()}, raw=True)  # type: ignore[no-untyped-call]
        else:
            super()._ipython_display_()

    def _picture(self) -> dict[str, str]:
        """Return the SVG under its MIME type, or {} if drawing fails."""
        try:
            return {PICTURE: svg(self.to_plotly_json(), self.layout.title.text or "")}
        except (AttributeError, KeyError, LookupError, TypeError, ValueError):
            return {}
