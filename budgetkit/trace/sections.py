"""Which section of a budget each message belongs to: the role table.

A table says it by key. A message of an earlier turn goes by its role (``developer`` as ``system``). Of the turn
that is being answered, the user's message goes by ``current`` and its own tool calls and results by ``step``;
where a table lacks one of these, they go by their role as well. Tool schemas go by ``tools`` and retrieved
passages by ``context``. A role that a table does not know is a section of its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from budgetkit.files import Table, read_toml
from budgetkit.message import RESULT_ROLES, Message

Roles = Mapping[str, str] | Callable[[Message], str]

DEFAULT_ROLES: Final[Mapping[str, str]] = Table(
    lambda: read_toml("presets.toml")["roles"]["working_memory"]
)


def past_section(message: Message, roles: Roles) -> str:
    """Return the section of a message of an earlier turn.

    Examples
    --------
    >>> past_section(Message({"role": "developer"}), DEFAULT_ROLES)
    'system'
    >>> past_section(Message({"role": "user"}), lambda message: message.role.upper())
    'USER'
    """
    if callable(roles):
        return roles(message)
    if message.role == "developer":
        return roles.get("developer", roles.get("system", "system"))
    return roles.get(message.role, message.role)


def present_section(message: Message, roles: Roles) -> str:
    """Return the section of a message of the turn that is being answered.

    Examples
    --------
    >>> present_section(Message({"role": "tool"}), DEFAULT_ROLES)
    'current'
    """
    key = ""
    if message.role == "user":
        key = "current"
    elif message.role in ("assistant", *RESULT_ROLES):
        key = "step"
    if not callable(roles) and key in roles:
        return roles[key]
    return past_section(message, roles)


def section_beside_call(section: str, of_call: str, pruned: str) -> str:
    """Return the section of a tool result: where its call is pruned it is pruned with it, whatever its own role has.

    Examples
    --------
    >>> section_beside_call("tool", "history", "history"), section_beside_call("tool", "current", "history")
    ('history', 'tool')
    """
    return of_call if of_call == pruned else section


def enters_at_once(role: str, present: str, pruned: str) -> bool:
    """Say whether a message can be pruned while its own turn lasts; the user's question cannot: it is what is asked."""
    return present == pruned and role != "user"


def schemas_section(tools: Sequence[Mapping[str, Any]], roles: Roles) -> str:
    """Return the section of the tool schemas.

    Examples
    --------
    >>> schemas_section([], DEFAULT_ROLES)
    'system'
    """
    return past_section(schemas_message(tools), roles)


def schemas_message(tools: Sequence[Mapping[str, Any]]) -> Message:
    """Return the message that stands for the tool schemas where a role table is asked for their section."""
    return Message({"role": "tools", "tools": list(tools)})


def roles_key(roles: Roles) -> Hashable:
    """Return a dictionary key that is the same for equal role tables."""
    if callable(roles):
        return roles
    return tuple(roles.items())
