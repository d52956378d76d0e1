"""Evidence: the number of recorded calls that were counted exactly.

Each row of ``data/exactness.csv`` is a combination of billing rules and parts of a request. ``benchmarks/exactness.py``
writes the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from budgetkit.budget import many
from budgetkit.files import read_table
from budgetkit.message import RESULT_ROLES
from budgetkit.requests.reading.request import ProviderRequest
from budgetkit.requests.reading.tools import parameters_of

#: Requirements for an exact count: minimum numbers of recorded calls and projects, and share of calls counted exactly.
CALLS = 50


PROJECTS = 2


SHARE = 0.98


_ENOUGH = 40  # minimum calls of a combination for an interval of its own


_ENOUGH_PROJECTS = 4


# A union of types, or a reference, anywhere in the JSON of a schema.
_UNION = re.compile(r'"(anyOf|oneOf|allOf|\$ref)": |"type": \[')


_WITH_UNIONS = "tools with unions"
# OpenAI's open models are hosted and billed by other companies.
_MAKER = re.compile(r"^(?:gpt-oss|estimate-[^-]+|[^-]+)")


_UNHEARD_OF = 0.1  # error assumed in either direction, before it is widened for few projects


# The widest interval, as fractions of the count.
_LOWEST = -0.9


_HIGHEST = 3.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """The accuracy of counts for recorded calls with one combination of parts.

    Parameters
    ----------
    combination : str
        Name of the combination: the billing rules, and the format and parts of the calls.
    calls, projects : int
        Number of calls, and of projects with such calls.
    exact : int
        Number of calls counted exactly.
    low, high : float
        Lower and upper limit of the error (billed minus counted) as fractions of the count. 9 in 10 bills are within
        these limits.
    seen_in : int
        Number of projects that `low` and `high` are based on.
    """

    combination: str
    calls: int = 0
    projects: int = 0
    exact: int = 0
    low: float = 0.0
    high: float = 0.0
    seen_in: int = 0

    @property
    def earns_exact(self) -> bool:
        """True if there is enough evidence to call such counts exact."""
        return (
            self.calls >= CALLS and self.projects >= PROJECTS and self.exact >= SHARE * self.calls
        )

    def __str__(self) -> str:
        projects = many(self.projects, "project")
        return f"{self.exact} of {self.calls} recorded calls of {projects} were counted exactly"


def combination(request: ProviderRequest, rules: str) -> str:
    """Return the name of a request's row in ``data/exactness.csv``.

    The name combines the billing rules, the request's format and its parts.

    >>> from budgetkit.requests import read_request
    >>> hello = {"messages": [{"role": "user", "content": "Hello"}], "tool_choice": "required"}
    >>> combination(read_request({**hello, "tools": [{"function": {"name": "ping"}}]}), "gpt-4o")
    'gpt-4o chat: tools, required'
    """
    parts = ", ".join(_part_names(request)) or "text"
    return f"{rules} {request.shape}: {parts}"


def evidence_for(request: ProviderRequest, rules: str) -> Evidence:
    """Return the evidence for a request's combination of parts.

    If few calls with this combination were recorded, the error interval also covers the errors of coarser combinations.
    """
    return find_evidence(coarser_names(request, rules), evidence_rows())


def find_evidence(names: Sequence[str], rows: Mapping[str, Evidence]) -> Evidence:
    """Return the evidence for the first combination, with its error interval.

    `names` lists the combinations from the finest to the coarsest. The interval covers the error ranges of all names up
    to the first one with enough calls. The last name is used only if the table has none of the other names. Each range
    is multiplied by ``1 + 2 / projects``, because a new project may differ from the few observed.

    If no name has enough calls, the interval also covers errors of 10 % in both directions, multiplied by that factor
    for the largest number of projects. It covers errors of 30 % if the table has neither of the first two names, or if
    the first combination has tools with unions and fewer than two projects sent it.
    """
    own = rows.get(names[0], Evidence(names[0]))
    low = high = 0.0
    projects = 0
    is_enough = False
    known = [rows[name] for name in names[:-1] if name in rows]
    if not known and names[-1] in rows:
        known = [rows[names[-1]]]
    for row in known:
        projects = max(projects, row.projects)
        is_enough = row.calls >= _ENOUGH and row.projects >= _ENOUGH_PROJECTS
        wider = 1 + 2 / row.projects
        low = min(low, row.low * wider)
        high = max(high, row.high * wider)
        if is_enough:
            break
    # Schemas with unions or references cost more than other schemas.
    is_tried = any(name in rows for name in names[:2])
    if _WITH_UNIONS in names[0] and own.projects < PROJECTS:
        is_tried = False
    if not (is_enough and is_tried):
        least = _UNHEARD_OF * (1 + 2 / (projects if is_tried else 1))
        low = min(low, -least)
        high = max(high, least)
    return replace(own, low=max(low, _LOWEST), high=min(high, _HIGHEST), seen_in=projects)


def coarser_names(request: ProviderRequest, rules: str) -> tuple[str, ...]:
    """List the names of a request's combination and of coarser combinations.

    The finest combination comes first.

    >>> from budgetkit.requests import read_request
    >>> coarser_names(read_request({"messages": [{"role": "user", "content": "Hello"}]}), "claude-4.5")
    ('claude-4.5 chat: text', 'claude-4.5 chat: any text', 'claude chat: any text', 'claude: any text',
     'claude: any text')
    """
    kind = _kind(request)
    maker = _MAKER.findall(rules)[0]
    return (
        combination(request, rules),
        f"{rules} {request.shape}: {kind}",
        f"{maker} {request.shape}: {kind}",
        f"{maker}: {kind}",
        f"{maker.partition('-')[0]}: {kind}",
    )


@cache
def evidence_rows() -> Mapping[str, Evidence]:
    """Return the rows of ``data/exactness.csv`` by combination."""
    return {
        row["combination"]: Evidence(
            row["combination"],
            int(row["calls"]),
            int(row["projects"]),
            int(row["exact"]),
            float(row["low"]),
            float(row["high"]),
        )
        for row in read_table("exactness.csv")
    }


def _kind(request: ProviderRequest) -> str:
    """Return the general kind of a request, such as "any tools"."""
    if any(message.images for message in request.messages):
        return "any image"
    if any(message.tool_calls or message.role in RESULT_ROLES for message in request.messages):
        return "any calls"
    if request.tools:
        return "any tools"
    if request.schema is not None:
        return "any schema"
    return "any text"


def _part_names(request: ProviderRequest) -> Iterator[str]:
    """Yield the names of a request's parts other than plain messages."""
    if request.tools:
        schemas = json.dumps([parameters_of(tool) for tool in request.tools], default=str)
        yield _WITH_UNIONS if _UNION.search(schemas) else "tools"
    if request.schema is not None:
        yield "schema"
    most_calls = max((len(message.tool_calls) for message in request.messages), default=0)
    if most_calls:
        yield "parallel calls" if most_calls > 1 else "calls"
    calls = [call for message in request.messages for call in message.raw.get("tool_calls") or ()]
    if any("custom" in call for call in calls):
        yield "custom tools"
    if any(message.raw.get("tool_plan") for message in request.messages):
        yield "tool plan"
    if request.forced:
        yield "forced tool"
    for name in ("required", "none", "sequential", "thinking", "audio"):
        if getattr(request, name):
            yield name
    dialogue = [message for message in request.messages if message.role not in RESULT_ROLES]
    if any(message.name is not None for message in dialogue):
        yield "name"
    if any(len(message.texts) > 1 for message in dialogue):
        yield "several parts"
    if any(message.images for message in request.messages):
        yield "image"
