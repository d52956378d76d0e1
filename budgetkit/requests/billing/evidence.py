"""Evidence: how often the rules were right about recorded calls that hold what a request holds.

A request's combination is what it is made of: the rules' family, the interface, and whatever costs more than text, such
as ``gpt-4o chat: tools, calls``. ``data/exactness.csv`` says of each combination how many recorded calls there are, of
how many projects, how many were counted exactly, and between which errors 19 in 20 lay.
``python -m benchmarks.exactness`` writes it from recorded calls.

The word *exact* is earned: it is said of a combination only where at least 98 % of at least 50 recorded calls of at
least two projects were counted exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from budgetkit.files import read_table
from budgetkit.message import RESULT_ROLES
from budgetkit.requests.reading.request import ProviderRequest
from budgetkit.requests.reading.tools import parameters_of

#: What earns the word exact: at least so many recorded calls, projects, and exact ones among the calls.
CALLS: Final = 50
PROJECTS: Final = 2
SHARE: Final = 0.98
_ENOUGH: Final = 40  # calls of a combination, for an interval of its own
_ENOUGH_PROJECTS: Final = 4
_UNHEARD_OF: Final = 0.1  # either way, of rules that no recorded call has tried
_DEEPEST: Final = 40
_UNIONS: Final = ("anyOf", "oneOf", "allOf", "$ref")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Hold what recorded calls say of one combination.

    Parameters
    ----------
    combination : str
        What the calls hold.
    calls, projects : int
        How many there are, and of how many projects.
    exact : int
        How many of the calls were counted exactly.
    low, high : float
        Between which errors 19 in 20 bills lay, billed less counted, as shares of the count.
    """

    combination: str
    calls: int = 0
    projects: int = 0
    exact: int = 0
    low: float = 0.0
    high: float = 0.0

    @property
    def earns_exact(self) -> bool:
        """Whether a count of this combination may be called exact."""
        return (
            self.calls >= CALLS and self.projects >= PROJECTS and self.exact >= SHARE * self.calls
        )

    def __str__(self) -> str:
        projects = f"{self.projects} project" + ("" if self.projects == 1 else "s")
        return f"{self.exact} of {self.calls} recorded calls of {projects} were counted exactly"


def combination(request: ProviderRequest, rules: str) -> str:
    """Say what a request is made of, in the words of the table.

    >>> from budgetkit.requests import read_request
    >>> hello = {"messages": [{"role": "user", "content": "Hello"}], "tool_choice": "required"}
    >>> combination(read_request({**hello, "tools": [{"function": {"name": "ping"}}]}), "gpt-4o")
    'gpt-4o chat: tools, required'
    """
    parts = ", ".join(_parts(request)) or "text"
    return f"{rules} {request.shape}: {parts}"


def evidence_for(request: ProviderRequest, rules: str) -> Evidence:
    """Return what recorded calls say of a request's combination, with the interval of a coarser one where few do."""
    return looked_up(coarser_names(request, rules), _rows())


def looked_up(names: Sequence[str], rows: Mapping[str, Evidence]) -> Evidence:
    """Return what a table says of the first of these names, with the interval of the first that has enough calls."""
    matches = [rows[name] for name in names if name in rows]
    enough = (row for row in matches if row.calls >= _ENOUGH and row.projects >= _ENOUGH_PROJECTS)
    spread = next(
        enough, matches[-1] if matches else Evidence(names[0], low=-_UNHEARD_OF, high=_UNHEARD_OF)
    )
    return replace(rows.get(names[0], Evidence(names[0])), low=spread.low, high=spread.high)


def coarser_names(request: ProviderRequest, rules: str) -> tuple[str, ...]:
    """Name a request's combination and the coarser ones that it belongs to, the finest first.

    >>> from budgetkit.requests import read_request
    >>> coarser_names(read_request({"messages": [{"role": "user", "content": "Hello"}]}), "claude-4.5")
    ('claude-4.5 chat: text', 'claude-4.5 chat: any text', 'claude chat: any text', 'claude: any text',
     'claude: anything')
    """
    kind = _kind(request)
    maker = rules.partition("-")[0]
    return (
        combination(request, rules),
        f"{rules} {request.shape}: {kind}",
        f"{maker} {request.shape}: {kind}",
        f"{maker}: {kind}",
        f"{maker}: anything",
    )


@cache
def _rows() -> Mapping[str, Evidence]:
    return {row["combination"]: _from_row(row) for row in read_table("exactness.csv")}


def _from_row(row: Mapping[str, str]) -> Evidence:
    return Evidence(
        combination=row["combination"],
        calls=int(row["calls"]),
        projects=int(row["projects"]),
        exact=int(row["exact"]),
        low=float(row["low"]),
        high=float(row["high"]),
    )


def _kind(request: ProviderRequest) -> str:
    """Return what costs most of all that a request holds beside text."""
    if any(message.images for message in request.messages):
        return "any image"
    if any(message.tool_calls or message.role in RESULT_ROLES for message in request.messages):
        return "any calls"
    if request.tools:
        return "any tools"
    if request.schema is not None:
        return "any schema"
    return "any text"


def _parts(request: ProviderRequest) -> Iterator[str]:
    """Name all that a request holds beside plain messages."""
    if request.tools:
        schemas = [parameters_of(tool) for tool in request.tools]
        yield "tools with unions" if any(_has_union(schema) for schema in schemas) else "tools"
    if request.schema is not None:
        yield "schema"
    most_calls = max((len(message.tool_calls) for message in request.messages), default=0)
    if most_calls:
        yield "parallel calls" if most_calls > 1 else "calls"
    if request.forced:
        yield "forced tool"
    for name in ("required", "none", "sequential", "thinking"):
        if getattr(request, name):
            yield name
    if any(message.images for message in request.messages):
        yield "image"


def _has_union(schema: Any, depth: int = 0) -> bool:
    """Whether anywhere in a schema there is a choice of types, or a reference."""
    if depth > _DEEPEST:
        return True
    if isinstance(schema, list | tuple):
        return any(_has_union(inner, depth + 1) for inner in schema)
    if not isinstance(schema, Mapping):
        return False
    if any(name in schema for name in _UNIONS) or isinstance(schema.get("type"), list | tuple):
        return True
    return any(_has_union(inner, depth + 1) for inner in schema.values())
