"""Figures on a page: code that draws one, the figure, and the table it is drawn from.

A page says::

    ```{drawn}
    bk.figures.waterfall(plan)
    ```

All such code of one page runs in one namespace, in order. A last line that calls a figure is drawn; any other block
only prepares. plotly.js comes from the installed plotly and is loaded only by pages that show a figure.
"""

import ast
import html
import json
import shutil
from pathlib import Path

import plotly
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

SCRIPTS = ["plotly.min.js", "draw.js"]
SHOWN = 'class="drawn"'


def figure_html(spec: object, title: str) -> str:
    """Return a plotly specification as an element that `static/draw.js` draws."""
    data = json.dumps(spec).replace("</", "<\\/")
    label = html.escape(title, quote=True)
    return f'<div {SHOWN} role="img" aria-label="{label}"><script type="application/json">{data}</script></div>'


class Drawn(SphinxDirective):
    """Run Python, show its source and the figure that its last line draws."""

    has_content = True
    option_spec = {"rows": directives.nonnegative_int}

    def run(self) -> list[nodes.Node]:
        """Return the source and, where its last line calls a figure, that figure and its table."""
        source = "\n".join(self.content)
        names = self.env.temp_data.setdefault("drawn", {})
        *before, last = ast.parse(source).body
        exec(compile(ast.Module(before, []), self.env.docname, "exec"), names)
        shown: list[nodes.Node] = [nodes.literal_block(source, source, language="python")]
        if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
            exec(compile(ast.Module([last], []), self.env.docname, "exec"), names)
            return shown
        call = ast.unparse(last.value.func)
        drawn = ast.unparse(last)
        figure = json.loads(eval(drawn, names).to_json())
        table = eval(drawn.replace(f"{call}(", f"{call}.table(", 1), names)
        title = eval(f"{call}.title", names)
        raw = figure_html(figure, title) + _details(table, self.options.get("rows", 12))
        return [*shown, nodes.raw("", raw, format="html")]


def _details(table: object, rows: int) -> str:
    count = len(table)  # type: ignore[arg-type]
    said = f"{count} rows" if count <= rows else f"the first {rows} of {count} rows"
    body = table.head(rows).to_html(index=False, border=0)  # type: ignore[attr-defined]
    return f"<details><summary>The table it is drawn from ({said})</summary>{body}</details>"


def _copy_scripts(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        source = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
        shutil.copyfile(source, Path(app.outdir) / "_static" / "plotly.min.js")


def _add_scripts(app: Sphinx, _page: str, _template: str, context: dict[str, object], _tree: object) -> None:
    if SHOWN in str(context.get("body", "")):
        for name in SCRIPTS:
            app.add_js_file(name, loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive, and the scripts to the pages that need them."""
    app.add_directive("drawn", Drawn)
    app.connect("html-page-context", _add_scripts)
    app.connect("build-finished", _copy_scripts)
    return {"parallel_read_safe": False}
