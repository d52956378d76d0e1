"""trim(): a list of messages made to fit, in one line and once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from budgetkit.conversation.conversation import Conversation
from budgetkit.conversation.engine import Engine
from budgetkit.conversation.newest import newest
from budgetkit.conversation.reading import check_sendable, is_plain, read
from budgetkit.conversation.running_tally import Left, Request
from budgetkit.conversation.sent import USER_FIRST
from budgetkit.inputs import AnyBudget, AnyCounter, AnyModel, setup_of
from budgetkit.message import ORIGIN, SYSTEM_ROLES, Data, Message, Raw
from budgetkit.presets.translation import trimmed
from budgetkit.pruning import Policy, StartOn
from budgetkit.requests import Framing, read_tools
from budgetkit.requests.reading.forms import Form
from budgetkit.requests.reading.writing import as_it_came
from budgetkit.trace import json_value


class Trimmed(list[Data]):
    """Hold the messages that fit, as a list like any other, and say what is not sent as it came.

    Examples
    --------
    >>> said = [{"role": "user", "content": "one two three"}, {"role": "assistant", "content": "four"}]
    >>> fitting = trim([*said, {"role": "user", "content": "five"}], 10)
    >>> fitting
    [{'role': 'user', 'content': 'five'}]
    >>> [(left.why, left.message["content"]) for left in fitting.left], fitting.warnings
    ([('dropped', 'one two three'), ('dropped', 'four')], ())
    """

    def __init__(
        self,
        messages: Sequence[Data],
        before: Sequence[Any],
        after: Sequence[Raw],
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(messages)
        # All that was said until now: a list goes on growing in its owner's hands.
        self._before = list(before) if isinstance(before, list) else before
        self._after = after  # what is sent of it, in OpenAI's chat format
        self._notes = tuple(notes)

    @property
    def left(self) -> tuple[Left, ...]:
        """What was dropped, and what was shortened, as it stood before; in order."""
        left: list[Left] = []
        waiting = [dict(raw) for raw in self._after]
        # From the end, since the newest of equal messages are those that stay.
        for message in reversed(read([self._before])):
            raw = {name: value for name, value in message.raw.items() if name != "contexts"}
            if waiting and waiting[-1] == raw:
                waiting.pop()
            elif waiting and _is_shortened(waiting[-1], raw):
                waiting.pop()
                left.append(Left(as_it_came(raw), "shortened"))
            else:
                left.append(Left(as_it_came(raw), "dropped"))
        return tuple(reversed(left))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on a floor that gives way, a newest message that was too large, and what nobody can count."""
        newest_message = read([self._before])[-1:]
        left = self.left[-1:]
        if not newest_message or not left or left[0].message != as_it_came(newest_message[0].raw):
            return self._notes
        role = newest_message[0].role
        became = "is left out" if left[0].why == "dropped" else "is cut inside"
        return (
            *self._notes,
            f"the newest message, of the role {role}, does not fit and {became}; allow more, or shorten it",
        )


def _is_shortened(sent: Raw, raw: Raw) -> bool:
    """Say whether a message that is sent is another one with a shorter text."""
    beside = {"content", "refusal", ORIGIN}
    same_fields = all(sent.get(name) == raw.get(name) for name in {*sent, *raw} - beside)
    return same_fields and len(Message(sent).text) < len(Message(raw).text)


def trim(
    messages: Sequence[Any],
    budget: int | AnyBudget,
    counter: AnyCounter | None = None,
    *,
    tools: Any = (),
    policy: Policy | str | None = None,
    framing: Framing | None = None,
    model: AnyModel | None = None,
    window: int | None = None,
    start_on: StartOn = "user",
    form: Form | None = None,
) -> Trimmed:
    """Return those messages that fit.

    System messages and the last question stay. The oldest of the rest go first, a tool call with its results; a tool
    result that is too large by itself is cut inside.

    Parameters
    ----------
    messages : sequence
        In any format that :func:`budgetkit.load_trace` reads, Messages, or an SDK's objects.
    budget : int, Budget, str, Path or callable
        Most tokens of the request; or a budget, a preset or its name, of which the usable window counts.
    counter : str, Model or callable, optional
        From text to tokens: a counter, or the name of one or of a model; that of `model`, else o200k_base, when left
        out.
    tools : list of Mapping, or the answer of an MCP server
        Tool schemas that go with the request, counted in; any form, see :mod:`budgetkit.requests.reading.tools`.
    policy : Policy or str, optional
        What leaves, or its name, where it is not the oldest first.
    framing : Framing, optional
        What a message costs beyond its text; that of `model` or of the counter's model when left out.
    model : str or Model, optional
        The model that answers: its window for a preset, its counter and its framing.
    window : int, optional
        Another window, in tokens, of a budget.
    start_on : {"user", "any"}
        Whose message comes first, after the system messages. The forms of Anthropic, Converse and Gemini always begin
        with the user's.
    form : {"chat", "responses", "anthropic", "converse", "gemini"}, optional
        The provider's form in which the messages go out; that in which they came when left out.

    Returns
    -------
    Trimmed
        A list of dict with two attributes more: `left`, what was dropped or shortened and why, and `warnings`,
        sentences on a floor that gives way, on a newest message that is not sent as it came, and on what only the
        provider can count. All are in the form in
        which they came, those that were not cut inside as they came; what has no form of a provider is in OpenAI's chat
        format, and so are system messages, which some providers take beside the others. With the schemas and the
        priming of the answer never more than the budget.

    Raises
    ------
    ValueError
        If system messages, question and schemas alone are too large.

    Examples
    --------
    >>> said = [{"role": "user", "content": "one two three"}, {"role": "assistant", "content": "four"}]
    >>> said.append({"role": "user", "content": "five"})
    >>> trim(said, 14, start_on="any")
    [{'role': 'assistant', 'content': 'four'}, {'role': 'user', 'content': 'five'}]
    >>> trim(said, 14)
    [{'role': 'user', 'content': 'five'}]
    """
    most = budget if type(budget) is int else None
    setup = setup_of(budget_of(budget), counter, framing, model, window)
    count = setup.counter
    framing = setup.framing
    policy = setup.policy if policy is None else policy
    if form in USER_FIRST:
        start_on = "user"
    conversation: Any = messages

    # In the usual case the newest messages that fit are read off, without the engine.
    is_countable = form in (None, "chat") and not read_tools(tools).uncounted
    if policy is None and most is not None and is_countable:
        suffix = None
        if isinstance(conversation, list | tuple):
            suffix = newest(conversation, most, count, tools, framing, start_on)
        if suffix is None:
            conversation = read([conversation])
            # What is a part of a record leaves with it, and what nobody can count is named: by the engine.
            if all(is_plain(message.raw) for message in conversation):
                suffix = newest(conversation, most, count, tools, framing, start_on)
        if suffix is not None and suffix.fits:
            fitting = [json_value(raw) for raw in suffix.messages]
            check_sendable(map(Message, fitting))
            return Trimmed(fitting, messages, fitting)
        if suffix is not None:
            conversation = [*map(Message, suffix.messages)]

    def next_request(messages: Sequence[Message]) -> tuple[Request, Engine]:
        talk = Conversation(
            replace(setup.budget, deficit="signed"),
            policy,
            count,
            tools=tools,
            framing=framing,
            overrun="tell",
            start_on=start_on,
            form=form,
        )
        talk.add(messages)
        return talk._request_in_chat(), talk._engine

    # Else the engine cuts inside; where that is not enough, only what is required stays.
    conversation = read([conversation])
    request, engine = next_request(conversation)
    if request.over:
        questions = [place for place, message in enumerate(conversation) if message.role == "user"]
        question_place = max(questions, default=len(conversation) - 1)
        request, engine = next_request(
            [
                message
                for place, message in enumerate(conversation)
                if place == question_place or message.role in SYSTEM_ROLES
            ]
        )
    if request.over:
        raise ValueError(
            f"system messages, the last question and tool schemas exceed what the window has for them by "
            f"{request.over:,} tokens; shorten them, or allow more"
        )
    fitting = request.messages
    sent = engine.sent
    if sent is None:
        return Trimmed(fitting, messages, fitting, engine.notes)
    # System messages that stand beside the others in this form are left in front of them.
    in_form = fitting[: sent.written.head] + sent.written.messages
    return Trimmed(in_form, messages, fitting, [*engine.notes, *sent.warnings])


def budget_of(budget: int | AnyBudget) -> AnyBudget:
    """Return a budget; so many tokens are one in which system messages and the question are required."""
    if isinstance(budget, int):
        return trimmed(budget)
    return budget
