"""Commands for pages and notebooks: ``budgetkit report``, ``explore`` and ``notebook``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree
from typing import Any

import budgetkit
from budgetkit.budget import brief, one_line
from budgetkit.extras.shell.inputs import BudgetCase, with_conversation
from budgetkit.extras.shell.terminal import PIPE, show_json, show_lines
from budgetkit.files import extra, one_cell_notebook, shipped_folder
from budgetkit.message import Data
from budgetkit.presets import PRESETS
from budgetkit.pruning.policies.systems import policies_of
from budgetkit.trace import Trace, load_traces, shipped_traces

#: The notebook that the extension in scripts/lab runs on opening.
_RUN_FIRST = "notebooks/00-start.ipynb"


@with_conversation
def report_command(
    case: BudgetCase,
    trace: Trace,
    output: str,
    policies: tuple[str, ...],
    is_plan: bool,
    as_json: bool,
) -> None:
    """Write a report of a conversation as one self-contained HTML file."""
    # Names are passed on unchanged, so that the report equals an explorer with the same arguments.
    lines = case.budget_name if case.budget_name in PRESETS else case.budget
    options: Data = {"model": case.model, "window": case.window, "counter": case.counter_name}
    explorer: Any
    if is_plan:
        explorer = budgetkit.BudgetExplorer(lines, trace, **options)
    else:
        rules = policies_of(policies) if policies else None
        explorer = budgetkit.ConversationExplorer(trace, lines, rules, **options)
    explorer.save(output)
    size = Path(output).expanduser().stat().st_size
    if as_json:
        return show_json({"report": output, "bytes": size})
    window_text = f"in a window of {explorer.budget.window:,} tokens; change it with --window"
    show_lines(f"{output}: {size / 1_000:,.0f} kB, {window_text}")


def explore_command(file: str, **server: Any) -> int:
    """Open the design card for a conversation in the browser.

    The card opens in the app or, if the app is not installed, in JupyterLab.
    """
    return explore(file, server_options(**server))


def server_options(port: int | None, no_browser: bool) -> list[str]:
    """Return the command-line options for a page's server."""
    options = ["--no-browser"] if no_browser else []
    return [*options, f"--port={port}"] if port else options


def explore(source: str, options: Sequence[str] = ()) -> int:
    """Open a conversation in the app or, failing that, in JupyterLab."""
    if source == PIPE:
        raise ValueError("Cannot explore standard input. Save the conversation to a file.")
    has_app = find_spec("voila") is not None
    if not has_app and not find_spec("jupyterlab"):
        raise ImportError("explore needs Voilà or JupyterLab. Run: pip install 'budgetkit[app]'")
    with extra("lab", "explore"):
        for library in ("ipywidgets", "anywidget", "plotly"):
            import_module(library)
    if has_app:
        import_module("budgetkit.lab.app.serving").serve(source, *options)
        return 0

    name = re.sub(r"[^\w.-]+", "-", Path(source).stem)
    if source not in shipped_traces():
        load_traces(source)  # an error is shown here, not in a cell
        source = str(Path(source).expanduser().resolve())
    path = Path(f"explore-{name}.ipynb")
    is_new = not path.exists()
    if is_new:
        code = f"import budgetkit as bk\n\nbk.DesignCard(trace={source!r})"
        path.write_text(json.dumps(one_cell_notebook("card", code)), encoding="utf-8")
    return _open_lab(path, options, is_new)


def notebook_command(name: str, folder: str, **server: Any) -> int:
    """Write the teaching notebooks to a folder and open them in JupyterLab.

    NAME is a notebook's number or name, such as 02 or 02-budget-a-window; without NAME, all notebooks are written.
    Existing files are not changed. JupyterLab is optional.
    """
    shipped = sorted(shipped_folder("notebooks").glob("*.ipynb"))
    chosen = [path for path in shipped if name == "all" or name in (path.stem, path.stem[:2])]
    if not chosen:
        names = ", ".join(path.stem for path in shipped)
        raise ValueError(f"Unknown notebook {brief(name)}. Choose one of: {names}, or all.")
    goal = Path(folder).expanduser()
    goal.mkdir(parents=True, exist_ok=True)
    written = []
    for source in chosen:
        if not (goal / source.name).exists():
            (goal / source.name).write_bytes(source.read_bytes())
            written.append(source.name)
    old = [path.name for path in chosen if path.name not in written]
    if written:
        show_lines(f"Wrote to {one_line(folder)}: {', '.join(written)}.")
    if old:
        show_lines(f"Already in {one_line(folder)}, not changed: {', '.join(old)}.")
    first = goal / chosen[0].name
    if not find_spec("jupyterlab"):
        show_lines(
            "Open them in your notebook program. For JupyterLab, run: pip install 'budgetkit[jupyter]'"
        )
        return 0
    return _open_lab(first, server_options(**server), first.name in written)


def _open_lab(path: Path, options: Sequence[str], is_ours: bool) -> int:
    """Open a notebook in JupyterLab, and run it if it is new."""
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={path.parent.resolve()}"]
    command += [f"--LabApp.default_url=/lab/tree/{path.name}", *options]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # which JupyterLab needs as root, for example in a container
    with tempfile.TemporaryDirectory() as folder:
        if is_ours:
            extension = copytree(shipped_folder("scripts/lab"), Path(folder, "lab"))
            script = extension / "budgetkit-start" / "static" / "start.js"
            text = script.read_text(encoding="utf-8").replace(_RUN_FIRST, path.name)
            script.write_text(text, encoding="utf-8")
            command.append(f"--LabApp.extra_labextensions_path={extension}")
        # Not in the current folder, from which Python and Jupyter would load untrusted modules and settings.
        return subprocess.run(command, cwd=folder).returncode
