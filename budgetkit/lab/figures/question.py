"""Question: a figure for one question, with its table and its drawing.

A figure is drawn from its table alone, so that people who cannot see the figure can read the table. The specification
is plain data, so that an explorer can draw it without importing plotly. Many tables stay plain columns until a frame
is asked for, because building frames while a slider moves would take longer than all other steps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, ParamSpec

import pandas as pd

from budgetkit.files import extra
from budgetkit.lab.figures.drawing import svg
from budgetkit.lab.figures.scales import GRID, INK, save_svg
from budgetkit.lab.figures.scales import Spec as Spec

if TYPE_CHECKING:
    import plotly.graph_objects as go


Values = Iterable[Any]


def line(x: Values, y: Values, **more: Any) -> Spec:
    """Return a line as a trace; a single point gets a marker.

    Examples
    --------
    >>> line([1, 2], [3, 4])["mode"], line([1], [3])["mode"]
    ('lines', 'lines+markers')
    """
    x = list(x)
    mode = "lines" if len(x) > 1 else "lines+markers"
    return {"type": "scatter", "mode": mode, "x": x, "y": list(y), **more}


def named_line(x: Values, y: Values, name: str, form: str = "%{y:,}", **more: Any) -> Spec:
    """Return a line with tooltips that show the value and the name."""
    return line(x, y, name=name, hovertemplate=f"{form} {name}<extra></extra>", **more)


def points(x: Values, y: Values, **more: Any) -> Spec:
    """Return points as a trace."""
    return {"type": "scatter", "mode": "markers", "x": list(x), "y": list(y), **more}


def bars(
    sizes: Values,
    texts: Sequence[str] | None = None,
    tips: Sequence[str] | None = None,
    **more: Any,
) -> Spec:
    """Return horizontal bars as a trace.

    The texts are drawn beside the bars; the tips are shown when the mouse is over the bars.

    Examples
    --------
    >>> bars([10, 30])["y"]
    [0, 1]
    """
    sizes = list(sizes)
    if texts is not None:
        more |= {"text": texts, "textposition": "outside", "cliponaxis": False}
    if tips is not None:
        more |= {"hovertext": tips, "hoverinfo": "text"}
    rows = list(range(len(sizes)))
    return {"type": "bar", "orientation": "h", "x": sizes, "y": rows, **more}


def extent(values: Values) -> tuple[Any, Any]:
    """Return the lowest and the highest of 0 and the given numbers."""
    numbers = [0, *values]
    return min(numbers), max(numbers)


def named_rows(names: Iterable[str]) -> Spec:
    """Return a vertical axis that names the bars from top to bottom."""
    ticks = [*map(label, names)]
    places = list(range(len(ticks)))
    return {"autorange": "reversed", "tickvals": places, "ticktext": ticks, "showgrid": False}


def note(text: str, x: Any, y: Any, **more: Any) -> Spec:
    """Return a text annotation without an arrow."""
    return {"text": text, "x": x, "y": y, "showarrow": False, **more}


def across(y: float, colour: str) -> Spec:
    """Return a dashed horizontal line across the whole figure."""
    dashed = {"color": colour, "dash": "dash", "width": 1.5}
    ends = {"x0": 0, "x1": 1, "y0": y, "y1": y}
    return {"type": "line", "xref": "paper", "line": dashed, **ends}


TOKENS: Spec = {"title": "tokens", "tickformat": "~s"}  # an axis of tokens
Columns = Mapping[str, Sequence[Any]]  # plain lists by name, all of one length
P = ParamSpec("P")


@dataclass(frozen=True)
class Question(Generic[P]):
    """A figure that answers one question.

    Call a question to get a plotly figure. `table` returns the numbers as a frame, and `spec` returns the figure as
    plain data. The call, `table` and `spec` take the same arguments.

    Parameters
    ----------
    title : str
        The question, used as the title.
    answer : callable
        Function that returns the answer as a tidy frame, or as lists by column name.
    draw : callable
        Function that turns the answer into ``{"data": [...], "layout": {...}}``.
    say : callable, optional
        Function that returns the subtitle, which gives the answer in one sentence with a number.

    Examples
    --------
    >>> import budgetkit as bk
    >>> budget = bk.Budget(1000, [bk.Reserve("output", 200)], [bk.Allocation("system", 300)])
    >>> plan = bk.allocate(budget, {"system": 250})
    >>> bk.figures.waterfall.table(plan)[["line", "tokens"]].to_dict("list")
    {'line': ['window', 'output', 'system', 'shared pool'], 'tokens': [1000, -200, -300, 500]}
    """

    title: str
    answer: Callable[P, Any]  # a DataFrame or Columns, whichever `draw` takes
    draw: Callable[[Any], Spec]
    say: Callable[[Any], str] | None = None

    def table(self, *args: P.args, **options: P.kwargs) -> pd.DataFrame:
        """Return the tidy frame that the figure is drawn from.

        Parameters
        ----------
        *args, **options
            The object to draw, and the options of this figure.

        Returns
        -------
        DataFrame
            One row for each drawn element.
        """
        return frame_of(self.answer(*args, **options))

    def spec(self, *args: P.args, **options: P.kwargs) -> Spec:
        """Return the figure as plain data, without importing plotly.

        Parameters
        ----------
        *args, **options
            As in `table`.

        Returns
        -------
        dict
            ``{"data": [...], "layout": {...}}``, ready for JSON.
        """
        answer = self.answer(*args, **options)
        spec = self.draw(answer)
        if self.say is not None:
            meta = spec["layout"].get("meta", {})
            spec["layout"]["meta"] = {**meta, "answer": plain(self.say(answer))}
        return spec

    def svg(self, *args: P.args, **options: P.kwargs) -> str:
        """Return the figure as SVG, without plotly and without a browser.

        Parameters
        ----------
        *args, **options
            As in `table`.

        Returns
        -------
        str
            An SVG element; equal tables give the same text.
        """
        spec = self.spec(*args, **options)
        return svg(spec, self._asked(spec))

    def save(self, path: str | os.PathLike[str], *args: P.args, **options: P.kwargs) -> None:
        """Save the figure as an SVG, or as a PNG with Chromium.

        Parameters
        ----------
        path : str or path
            Path that ends in .svg or .png.
        *args, **options
            As in `table`.

        Raises
        ------
        ValueError
            If the path does not end in .svg or .png.
        FileNotFoundError
            If the path ends in .png and Chromium is not found. An SVG needs no Chromium.
        """
        save_svg(path, self.svg(*args, **options))

    def __call__(self, *args: P.args, **options: P.kwargs) -> go.Figure:
        """Return a plotly figure, which a notebook stores together with an SVG."""
        with extra("lab", "a plotly figure"):
            stored = import_module("budgetkit.lab.figures.stored")

        spec = self.spec(*args, **options)
        drawn = spec["layout"]
        title: Spec = {
            "text": plain(self._asked(spec)),
            "x": 0,
            "xref": "paper",
            "font": {"size": 17},
        }
        if answer := drawn.get("meta", {}).get("answer"):
            title["subtitle"] = {"text": answer, "font": {"size": 13}}
            drawn["margin"] = {**drawn["margin"], "t": 72}
        return stored.StoredFigure(data=spec["data"], layout={**drawn, "title": title})

    def _asked(self, spec: Spec) -> str:
        """Return the question of the specification, or else the title."""
        return str(spec["layout"].get("meta", {}).get("asks", self.title))


def spec_of(
    data: list[Spec], height: int, x: Mapping[str, Any], y: Mapping[str, Any], **more: Any
) -> Spec:
    """Return a figure's specification, legible in light and dark notebooks.

    Pass the titles of the axes as text, with the unit.

    Examples
    --------
    >>> spec_of([], 300, {"title": "tokens"}, {})["layout"]["xaxis"]["title"]
    {'text': 'tokens', 'standoff': 4}
    """
    common = {
        "gridcolor": GRID,
        "zerolinecolor": GRID,
        "linecolor": GRID,
        "automargin": True,
        "fixedrange": True,
    }
    axes = []
    for axis in (x, y):
        title = {"text": plain(axis.get("title", "")), "standoff": 4}
        axes.append({**common, **axis, "title": title})
    layout = {
        "height": height,
        "margin": {"l": 8, "r": 12, "t": 48, "b": 8, "pad": 3, **more.pop("margin", {})},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": INK, "size": 13},
        "separators": ".,",
        "showlegend": False,
        "bargap": 0.3,
        "dragmode": False,
        "xaxis": axes[0],
        "yaxis": axes[1],
        **more,
    }
    return {"data": data, "layout": layout}


def hover(texts: Sequence[str]) -> Spec:
    """Return the trace fields for tooltips without a legend entry."""
    return {"text": texts, "hoverinfo": "text", "showlegend": False}


def counted(many: int) -> Spec:
    """Return the tick settings for an axis of whole numbers.

    Up to eight numbers have a tick each; more numbers share about eight ticks.

    Examples
    --------
    >>> counted(2), counted(75)
    ({'tick0': 1, 'dtick': 1}, {'nticks': 8})
    """
    return {"nticks": 8} if many > 8 else {"tick0": 1, "dtick": 1}


def tick_format(reach: float) -> str:
    """Return a d3 tick format for an axis that ends at `reach`.

    Small numbers are written out, because d3's SI prefix for thousandths, "m", could be read as millions.

    >>> tick_format(12_000), tick_format(12), tick_format(0.004)
    ('~s', ',.2~f', '.3~r')
    """
    if reach >= 1_000:
        return "~s"
    return ",.2~f" if reach >= 1 else ".3~r"


def dollars(cost: float) -> str:
    """Format an amount in dollars with few digits.

    Examples
    --------
    >>> [dollars(cost) for cost in (0.0, 0.01234, 0.456, 12.345, 4321.0)]
    ['$0', '$0.012', '$0.46', '$12.35', '$4,321']
    """
    if cost >= 1_000:
        return f"${cost:,.0f}"
    if cost >= 0.1:
        return f"${cost:,.2f}"
    return f"${cost:.2g}"


def short(tokens: float) -> str:
    """Abbreviate a number of tokens with k or M.

    Examples
    --------
    >>> [short(n) for n in (999, 1_200, 26_400, 128_000, 1_047_576, -485)]
    ['999', '1.2k', '26.4k', '128k', '1.05M', '-485']
    """
    for unit, name, digits in ((1_000_000, "M", 2), (1_000, "k", 1)):
        if abs(tokens) >= 100 * unit:
            digits = 0
        if abs(tokens) >= unit:
            return f"{tokens / unit:.{digits}f}".removesuffix(".0") + name
    return f"{tokens:.0f}"


def signed(tokens: int, always: bool = False) -> str:
    r"""Format a number of tokens in full, with a typographic minus.

    If `always` is True, numbers of at least 0 have a plus sign.

    Examples
    --------
    >>> signed(8_192), signed(1_200, always=True), signed(-2_047) == "\u22122,047"
    ('8,192', '+1,200', True)
    """
    return f"{tokens:{'+' if always else ''},}".replace("-", "\u2212")


def plain(text: object) -> str:
    """Escape a text so that plotly shows it literally.

    Examples
    --------
    >>> plain("<b>tools & co")
    '&lt;b&gt;tools &amp; co'
    """
    return escape(str(text), quote=False)


def frame_of(answer: pd.DataFrame | Columns) -> pd.DataFrame:
    """Return an answer as a frame."""
    return answer if isinstance(answer, pd.DataFrame) else pd.DataFrame(answer)


def table_rows(table: pd.DataFrame | Columns) -> list[Spec]:
    """Return the rows of a table as dictionaries.

    Examples
    --------
    >>> table_rows({"line": ["window", "output"], "tokens": [1_000, -200]})[1]
    {'line': 'output', 'tokens': -200}
    """
    if isinstance(table, pd.DataFrame):
        rows: list[Any] = table.to_dict("records")
        return rows
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def label(name: object, longest: int = 18) -> str:
    """Shorten a long name in the middle, and escape it for plotly.

    Examples
    --------
    >>> label("history"), label("a section with a long name 15")
    ('history', 'a section …name 15')
    """
    text = str(name)
    if len(text) > longest:
        text = f"{text[: longest // 2 + 1]}…{text[-(longest // 2 - 2) :]}"
    return plain(text)


def end_labels(
    table: pd.DataFrame | Columns, texts: dict[str, str], gap: float, along: str = "turn"
) -> list[Spec]:
    """Return labels at the right ends of lines, avoiding overlaps.

    Examples
    --------
    Two of these lines end close together. The label of the lower line is placed below that line, and the other labels
    are placed above their lines.

    >>> table = {"turn": [1, 2], "a": [0, 5], "b": [0, 6], "c": [0, 20]}
    >>> [(note["text"], note["y"]) for note in end_labels(table, {"a": "a 5", "b": "b 6", "c": "c 20"}, 4)]
    [('a 5', 1.0), ('b 6', 6.0), ('c 20', 20.0)]
    """
    lines = {name: [*map(float, table[name])] for name in texts}
    places = [*table[along]]
    tail = max(1, len(places) // 3)  # a label is about as wide as a third of the figure
    spans = {name: (min(line[-tail:]), max(line[-tail:])) for name, line in lines.items()}
    ends = {name: line[-1] for name, line in lines.items()}
    lowest = min(map(min, lines.values()))
    # Below a negative line there is space for its label.
    floor = lowest - gap if lowest < 0 else 0.0

    def covers(y: float, name: str) -> float:
        """Return the number of covered lines plus the label's relative distance.

        The distance is measured from the end of the label's own line.
        """
        low, high = spans[name]
        others = sum(
            other != name and y <= top and bottom < y + gap
            for other, (bottom, top) in spans.items()
        )
        return others + (y < high and low < y + gap) + abs(y - ends[name]) / (2 * gap)

    least = -float("inf")
    labels: list[Spec] = []
    for name in sorted(texts, key=lambda name: (ends[name], spans[name])):
        low, high = spans[name]
        below = [low - gap] if low - gap >= max(least, floor) else []
        y = max(least, min([high, *below, ends[name]], key=partial(covers, name=name)))
        least = y + gap
        more = {"xanchor": "right", "yanchor": "bottom", "yshift": 2}
        labels.append(note(texts[name], int(places[-1]), y, **more))
    return labels
