"""Serving: the app as a page of its own, without cells, by Voilà on this machine."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

from budgetkit.files import extra
from budgetkit.trace import load_traces, shipped_traces

#: Voilà's own page would ask another machine for icons that the app has no use for; this one asks nobody.
TEMPLATE: Final = {
    "conf.json": '{"base_template": "lab"}',
    "index.html.j2": """{%- extends 'voila/templates/lab/index.html.j2' -%}
{%- block notebook_css -%}
{{ super() | replace('<link rel="stylesheet" href="https:', '<meta content="not asked: ') }}
{%- endblock notebook_css -%}
""",
}


def serve(trace: str = "support-chat", *options: str) -> None:
    """Serve the app until it is stopped, and open it in a browser.

    Parameters
    ----------
    trace : str, default "support-chat"
        The conversations: the name of a shipped one, or a file.
    *options : str
        Options of Voilà's, such as "--no-browser" or "--port=9999".

    Raises
    ------
    ValueError, OSError
        If the file cannot be read; before anything is served.
    ImportError
        If Voilà is not installed, which the extra `app` brings.
    """
    with extra("app", "the app as a page of its own"):
        from voila.app import Voila
    if trace not in shipped_traces():
        load_traces(trace)
        trace = str(Path(trace).resolve())
    with tempfile.TemporaryDirectory() as folder:
        page, template = Path(folder, "budgetkit.ipynb"), Path(folder, "voila", "templates", "budgetkit")
        page.write_text(json.dumps(notebook(trace)), encoding="utf-8")
        template.mkdir(parents=True)
        for name, text in TEMPLATE.items():
            (template / name).write_text(text, encoding="utf-8")
        os.environ["JUPYTER_PATH"] = os.pathsep.join([folder, *filter(None, [os.environ.get("JUPYTER_PATH")])])
        Voila.launch_instance([str(page), "--Voila.ip=127.0.0.1", "--template=budgetkit", *options])


def notebook(trace: str) -> dict[str, Any]:
    """Return the one cell that Voilà runs for each visitor.

    Examples
    --------
    >>> print(notebook("support-chat")["cells"][0]["source"])
    import budgetkit as bk
    bk.App('support-chat', window=16_384)
    """
    cell: dict[str, Any] = {"cell_type": "code", "id": "app", "metadata": {}, "outputs": [], "execution_count": None}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    shown = ", window=16_384" if trace in shipped_traces() else ""  # a short conversation leaves a whole window empty
    source = f"import budgetkit as bk\nbk.App({trace!r}{shown})"
    return {"cells": [cell | {"source": source}], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
