"""Saving: a picture to a file, as SVG always, as PNG by a Chromium of this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from budgetkit.budget.html import DOCTYPE, Markup, element
from budgetkit.budget.quoting import one_line
from budgetkit.files import write_whole

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
_PATIENCE: Final = 60  # seconds
_ALONE: Final = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
)


def save(path: str | os.PathLike[str], drawn: str) -> None:
    """Write an SVG, or a PNG of it, to a file."""
    kind = Path(path).suffix.lower()
    if kind == ".svg":
        return write_whole(path, drawn.encode())
    if kind == ".png":
        return write_whole(path, png(drawn))
    raise ValueError(
        f"a figure was to be saved as {one_line(str(path))}; known are .svg and .png; end it with one"
    )


def chromium() -> str:
    """Find a Chromium: the one that BUDGETKIT_CHROMIUM names, or one on the path."""
    named = os.environ.get("BUDGETKIT_CHROMIUM")
    program = named or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise FileNotFoundError(
            "a PNG needs a Chromium, and there is none here; save the figure as .svg, install one, or name it in "
            "BUDGETKIT_CHROMIUM"
        )
    return program


def png(drawn: str) -> bytes:
    """Return a picture of an SVG, in two pixels for one; it is drawn in a folder of its own, without a network."""
    program = chromium()
    size = re.search(r'width="(\d+)" height="(\d+)"', drawn)
    assert size is not None, "an SVG of budgetkit.lab.figures.svg has a size"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = Path(folder, "figure.html")
        picture = Path(folder, "figure.png")
        body = element("body", Markup(drawn), style="margin:0")
        page.write_text(f"{DOCTYPE}{element('meta', charset='utf-8')}{body}", encoding="utf-8")
        options = [
            *_ALONE,
            f"--user-data-dir={folder}/profile",
            f"--screenshot={picture}",
            "--hide-scrollbars",
        ]
        options += [f"--window-size={size[1]},{size[2]}", "--force-device-scale-factor=2"]
        if getattr(os, "geteuid", lambda: 1)() == 0:  # it does not start as root else
            options.append("--no-sandbox")
        done = subprocess.run(
            [program, *options, page.as_uri()], capture_output=True, timeout=_PATIENCE
        )
        if not picture.exists():
            last_line = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise OSError(
                f"{one_line(program)} made no picture ({one_line(' '.join(last_line))}); save the figure as .svg"
            )
        return picture.read_bytes()
