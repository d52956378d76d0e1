"""Print the lowest version of every library that pyproject.toml allows, as constraints for pip: `make lowest`.

    python scripts/lowest_bounds.py > lowest.txt

Runs in a bare Python, for it is needed before anything is installed. What the benchmarks are run beside (extra
`peers`) is pinned already, and stays out.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
BOUNDED = re.compile(r"(?P<name>[\w.-]+)(\[[\w,]+\])?>=(?P<lowest>[\w.]+)")


def lowest() -> Iterator[str]:
    """Give a line `name==version` for each requirement that has a lower bound."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].items()
    for group in (project["dependencies"], *(group for name, group in extras if name != "peers")):
        for found in filter(None, map(BOUNDED.match, group)):
            yield f"{found['name']}=={found['lowest']}"


if __name__ == "__main__":
    print("\n".join(sorted({*lowest()})))
