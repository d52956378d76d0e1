"""Notebooks as pages: copied beside the other pages, run if the build asks for it, made static."""

import json
from pathlib import Path
from typing import Any

from figures import figure_html
from sphinx.application import Sphinx

PLOTLY, WIDGET = "application/vnd.plotly.v1+json", "application/vnd.jupyter.widget-view+json"
LIVE = "<p><em>In JupyterLab, the live explorer is shown here.</em></p>"


def copy_notebooks(app: Sphinx, _config: object) -> None:
    """Write the numbered notebooks into the folder that Sphinx reads."""
    folder = Path(app.srcdir) / "notebooks"
    folder.mkdir(exist_ok=True)
    for path in sorted((Path(app.srcdir).parent / "notebooks").glob("0[1-9]*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        notebook = run(notebook, path.parent) if app.tags.has("executed") else notebook
        text = json.dumps(static(notebook), indent=1, ensure_ascii=False)
        page = folder / path.name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def run(notebook: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run a notebook's cells in its own folder."""
    import nbformat
    from nbclient import NotebookClient

    node = nbformat.reads(json.dumps(notebook), as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(node, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    done: dict[str, Any] = json.loads(json.dumps(node))
    return done


def static(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with links as they are from here, and outputs that need neither kernel nor host."""
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            cell["source"] = cell["source"].replace("../docs/", "../")
        for output in cell.get("outputs", []):
            if "data" in output:
                output["data"] = _static_output(output["data"])
    notebook["metadata"].pop("widgets", None)
    return notebook


def _static_output(data: dict[str, Any]) -> dict[str, Any]:
    if PLOTLY in data:
        title = data[PLOTLY].get("layout", {}).get("title", {}).get("text", "figure")
        return {"text/html": figure_html({key: data[PLOTLY][key] for key in ("data", "layout")}, title)}
    return {"text/html": LIVE} if WIDGET in data else data


def setup(app: Sphinx) -> dict[str, bool]:
    """Copy the notebooks before Sphinx looks for pages."""
    app.connect("config-inited", copy_notebooks)
    return {"parallel_read_safe": True}
