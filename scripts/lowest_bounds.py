"""Print the lowest version of every library that pyproject.toml allows, as constraints for pip: `make lowest`.

    python scripts/lowest_bounds.py > lowest.txt

Runs in a bare Python, for it is needed before anything is installed. What the benchmarks are run beside (group
`peers`) is pinned already, and stays out.
"""

import re
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
BOUNDED = re.compile(r"(?P<name>[\w.-]+)(\[[\w,]+\])?>=(?P<lowest>[\w.]+)")


def lowest() -> Iterator[str]:
    """Give a line `name==version` for each requirement that has a lower bound."""
    content = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    project = content["project"]
    groups = project["optional-dependencies"] | content["dependency-groups"]
    del groups["peers"]
    requirements = chain(project["dependencies"], *groups.values())
    for requirement in requirements:
        if isinstance(requirement, str) and (found := BOUNDED.match(requirement)):
            yield f"{found['name']}=={found['lowest']}"


if __name__ == "__main__":
    print("\n".join(sorted({*lowest()})))
