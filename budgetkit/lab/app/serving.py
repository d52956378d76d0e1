"""Serving: the app as a page of its own, without cells, by Voilà on this machine."""

from __future__ import annotations

import json
import os
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from budgetkit.files import extra
from budgetkit.trace import load_traces, shipped_traces

#: What is shown where no conversation, or a whole folder of them, is named.
FIRST: Final = "support-chat"
#: Voilà's own page would ask another machine for icons that the app has no use for; this one asks nobody. And it has a
#: landmark, to which readers of the screen go.
TEMPLATE: Final = {
    "conf.json": '{"base_template": "lab"}',
    "index.html.j2": """{%- extends 'voila/templates/lab/index.html.j2' -%}
{%- block notebook_css -%}
{{ super() | replace('<link rel="stylesheet" href="https:', '<meta content="not asked: ') }}
{%- endblock notebook_css -%}
{%- block body_header -%}
{{ super() | replace('<div id="rendered_cells"', '<div id="rendered_cells" role="main"') }}
{%- endblock body_header -%}
""",
}


def serve(source: str = "support-chat", *options: str) -> None:
    """Serve the app until it is stopped, and open it in a browser.

    Parameters
    ----------
    source : str, default "support-chat"
        The conversations: the name of a shipped one, a file, or a folder of files. A file or folder is also all that
        the box "File" opens; where a shipped one is shown, that box is off.
    *options : str
        Options of Voilà's, such as "--no-browser" or "--port=9999".

    Raises
    ------
    ValueError, OSError
        If the file cannot be read; before anything is served.
    ImportError
        If Voilà is not installed, which the extra `app` brings.

    Notes
    -----
    Who opens the address needs the token in it, see :mod:`budgetkit.lab.app.guarded`.
    """
    with extra("app", "the app as a page of its own"):
        server = import_module("budgetkit.lab.app.guarded").GuardedVoila

    # Say now, not in the page, that there is no such file, or none that can be read.
    trace = FIRST
    files = ""
    if source in shipped_traces():
        trace = source
    else:
        files = str(Path(source).expanduser().resolve())
    if files and not Path(files).is_dir():
        load_traces(source)
        trace = files

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "budgetkit.ipynb")
        page.write_text(json.dumps(notebook(trace, files)), encoding="utf-8")
        template = Path(folder, "voila", "templates", "budgetkit")
        template.mkdir(parents=True)
        for name, text in TEMPLATE.items():
            (template / name).write_text(text, encoding="utf-8")
        os.environ["JUPYTER_PATH"] = os.pathsep.join(
            [folder, *filter(None, [os.environ.get("JUPYTER_PATH")])]
        )
        server.launch_instance(
            [str(page), "--Voila.ip=127.0.0.1", "--template=budgetkit", *options]
        )


def notebook(trace: str, files: str = "") -> dict[str, Any]:
    """Return the one cell that Voilà runs for each visitor.

    Examples
    --------
    >>> print(notebook("support-chat")["cells"][0]["source"])
    import budgetkit as bk
    bk.App('support-chat', window=16_384, files='')
    """
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "app",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    window = ""
    if trace in shipped_traces():
        window = ", window=16_384"  # a short conversation leaves a whole window empty
    source = f"import budgetkit as bk\nbk.App({trace!r}{window}, files={files!r})"
    return {
        "cells": [cell | {"source": source}],
        "metadata": kernel,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
