"""Intake: what was read of a file, as the explorers, the shell and reports say it.

The format, which conversations there are, how many messages of which role the chosen one has, what was left out or
cannot be counted, and the model that the file names. Nothing here is counted in tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from budgetkit.trace.conversation import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """Hold what was read of a file.

    Attributes
    ----------
    format : str
        What the file was, such as "ChatGPT export".
    titles : tuple of str
        One for each conversation, in the file's order.
    chosen : int
        The place of the conversation that the rest is about, from 0.
    roles : tuple of (str, int)
        Messages by role, in the order in which the roles appear.
    notes : tuple of str
        What was left out, changed, or cannot be counted, a sentence each.
    model : str or None
        The model that the file says the conversation was held with; of several the last that is known.
    """

    format: str
    titles: tuple[str, ...]
    chosen: int
    roles: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]
    model: str | None

    @property
    def messages(self) -> str:
        """Say how many messages of which role there are.

        Examples
        --------
        >>> trace = Trace("toy", [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}])
        >>> intake([trace]).messages
        '2 messages: 1 user, 1 assistant'
        """
        number = sum(many for _, many in self.roles)
        parts = ", ".join(f"{many:,} {role}" for role, many in self.roles)
        return f"{number:,} {'message' if number == 1 else 'messages'}: {parts}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say all of it, a sentence each, for where nothing can be pressed."""
        which = f"{self.format}, {self.messages}"
        if len(self.titles) > 1:
            which = f"{self.format}, conversation {self.chosen + 1:,} of {len(self.titles):,}, {self.messages}"
        model = (f"the file names the model {self.model}",) if self.model else ()
        return (which, *self.notes, *model)


def intake(traces: Sequence[Trace], chosen: int = 0) -> Intake:
    """Say what was read of a file.

    Parameters
    ----------
    traces : sequence of Trace
        All conversations of the file, at least one.
    chosen : int
        The place of the one that is looked at, from 0.

    Returns
    -------
    Intake
        The facts, of which each is shown as it stands.

    Examples
    --------
    >>> import budgetkit as bk
    >>> found = intake(bk.load_traces("support-chat"))
    >>> found.format, found.roles[0], found.model
    ('OpenAI chat', ('system', 1), None)
    """
    trace = traces[chosen]
    roles = Counter(message.role for message in trace.messages)
    return Intake(
        format=trace.format,
        titles=tuple(conversation.title for conversation in traces),
        chosen=chosen,
        roles=tuple(roles.items()),
        notes=trace.warnings,
        model=trace.model,
    )
