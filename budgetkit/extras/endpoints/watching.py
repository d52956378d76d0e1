"""Watching: the calls of a client, as conversations with what the provider has counted.

The methods of the client are wrapped while it is watched, and are as they were afterwards. What is asked and what is
answered stays in this process. Of a call only the fields of a conversation are kept, never headers or keys; where a
key stands in a text, it is taken out.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final

from budgetkit.budget.quoting import one_line
from budgetkit.counters.encodings import ForkSafeLock
from budgetkit.extras.endpoints.answers import Growing, Grown, added
from budgetkit.extras.endpoints.streams import is_stream, watched_stream
from budgetkit.trace import Trace
from budgetkit.trace.conversation import plain

#: Where clients have what is called.
METHODS: Final = (
    *("chat.completions.create", "chat.completions.parse", "responses.create", "responses.parse"),
    *("messages.create", "beta.messages.create", "completion", "acompletion"),
)
#: The fields of a call that are kept.
FIELDS: Final = (
    "model",
    "messages",
    "input",
    "system",
    "instructions",
    "tools",
    "functions",
    "previous_response_id",
)
_KEYS: Final = ("api_key", "auth_token", "admin_api_key", "webhook_secret")
_HEADERS: Final = ("extra_headers", "headers", "extra_query", "_custom_headers", "_custom_query")
#: What names of secrets have in them; a cache key is no secret, and `max_tokens` is none.
_SECRET: Final = re.compile(
    r"(?i)(?:auth|authorization|(?<!cache.)key|token|cookie|secret|password)(?![a-z])"
)
_SHORTEST: Final = 6  # characters of a key
_HIDDEN: Final = "[key]"
#: Those that are at a call already: of two calls, one in the other, the outer one counts.
_INSIDE: ContextVar[frozenset[int]] = ContextVar("inside", default=frozenset())


def watch(*clients: Any, explorer: Any = None) -> Watched:
    """Record what clients are asked and answered, while a ``with`` block lasts.

    Parameters
    ----------
    *clients : objects
        Clients of OpenAI's or Anthropic's package, synchronous or not, or the module `litellm`: whatever has
        ``chat.completions.create``, ``responses.create``, ``messages.create`` or ``completion``.
    explorer : Explorer, optional
        An explorer that shows the conversation as it grows.

    Returns
    -------
    Watched
        Its `trace` is the conversation, with what the provider counted; its `traces` are all of them.

    Raises
    ------
    TypeError
        If a client has nothing that can be watched; when the block begins.

    Notes
    -----
    Nothing is sent anywhere, and keys are not kept. A stream is recorded when it has ended; what it says was counted
    depends on the provider (OpenAI's says so with ``stream_options={"include_usage": True}``). Calls that go around
    these methods (``with_raw_response``, ``messages.stream``, a client made by ``with_options``) are not seen.

    Examples
    --------
    >>> from types import SimpleNamespace as Object
    >>> answer = {"choices": [{"message": {"role": "assistant", "content": "Hello."}}], "usage": {"prompt_tokens": 9}}
    >>> client = Object(chat=Object(completions=Object(create=lambda **asked: answer)))
    >>> with watch(client) as watched:
    ...     _ = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hello world"}])
    >>> watched
    Watched(1 call, 1 conversation, 9 tokens in, 0 out)
    >>> [message.text for message in watched.trace.messages]
    ['Hello world', 'Hello.']
    """
    return Watched(clients, explorer)


class Watched:
    """What clients were asked and answered while they were watched; `watch` makes one.

    Attributes
    ----------
    calls : int
        How many answers have come.
    refused : list of str
        Why a call could not be read as a conversation, a sentence each.
    unshown : list of str
        Why the explorer did not show a call that was recorded, a sentence each.
    """

    def __init__(self, clients: Iterable[Any], explorer: Any = None) -> None:
        self.calls, self.refused, self.unshown = 0, list[str](), list[str]()
        self._clients = list(clients)
        self._explorer = explorer
        self._wrapped: list[tuple[Any, str, Any]] = []
        self._keys = frozenset[str]()
        self._grown = Grown()
        self._last: Growing | None = None
        self._lock = ForkSafeLock(threading.RLock)
        self.is_open = False

    @property
    def traces(self) -> list[Trace]:
        """The conversations, in the order in which they began."""
        with self._lock:
            return [growing.trace() for growing in self._grown]

    @property
    def trace(self) -> Trace:
        """The conversation that was added to last; LookupError where no call was answered yet."""
        with self._lock:
            if self._last is None:
                raise LookupError(
                    "no answer has come while this was watched; call the client inside the with block"
                )
            return self._last.trace()

    def __enter__(self) -> Watched:
        with self._lock:
            self.is_open = True
            self._known({})
            try:
                for client in self._clients:
                    self._wrap(client)
            except BaseException:
                self._restore()
                raise
        return self

    def __exit__(self, *problem: object) -> None:
        self._restore()

    def __repr__(self) -> str:
        with self._lock:
            rows = [row for growing in self._grown for row in growing.usage]
            counted = ((self.calls, "call"), (len(self._grown), "conversation"))
        sent, answered = (
            sum(row[name] for row in rows) for name in ("context_tokens", "output_tokens")
        )
        missed = ((self.refused, "not read"), (self.unshown, "not shown in the explorer"))
        notes = "".join(f", {len(problems):,} {what}" for problems, what in missed if problems)
        many = [f"{number:,} {what}{'' if number == 1 else 's'}" for number, what in counted]
        return f"Watched({', '.join(many)}, {sent:,} tokens in, {answered:,} out{notes})"

    def _wrap(self, client: Any) -> None:
        places = [place for path in METHODS if (place := method_at(client, path)) is not None]
        if not places:
            kind = type(client).__name__
            raise TypeError(
                f"a client of type {kind}; it has none of {', '.join(METHODS)}; give one that has"
            )
        for owner, name in places:
            setattr(owner, name, self._watching(getattr(owner, name), vars(owner).get(name)))
            self._wrapped.append((owner, name, vars(owner)[name]))

    def _restore(self) -> None:
        """Take the wrappers off that are ours; one that somebody put around ours stays, and calls through."""
        with self._lock:
            self.is_open, self._keys, self._clients = False, frozenset(), []
            for owner, name, original in reversed(self._wrapped):
                if vars(owner).get(name) is not original:
                    continue
                before = original.budgetkit_before
                while (
                    watched := getattr(before, "budgetkit_watched", None)
                ) is not None and not watched.is_open:
                    before = before.budgetkit_before
                if before is None:
                    delattr(owner, name)
                else:
                    setattr(owner, name, before)
            self._wrapped = []

    def _watching(self, original: Callable[..., Any], before: Any) -> Callable[..., Any]:
        """Return a method that records what it passes on; before is what stood in its place, None for its class's."""

        @wraps(original)
        def call(*arguments: Any, **named: Any) -> Any:
            if not self.is_open or id(self) in _INSIDE.get():
                return original(*arguments, **named)
            # Now: the caller may go on writing into its lists.
            request = self._request(arguments, named)
            with self._inside():
                answer = original(*arguments, **named)
            if inspect.isawaitable(answer):
                return self._awaited(request, answer)
            return self._answered(request, answer)

        vars(call).update(budgetkit_watched=self, budgetkit_before=before)
        return call

    async def _awaited(self, request: Any, answer: Any) -> Any:
        with self._inside():
            response = await answer
        return self._answered(request, response)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        mark = _INSIDE.set(_INSIDE.get() | {id(self)})
        try:
            yield
        finally:
            _INSIDE.reset(mark)

    def _answered(self, request: Any, answer: Any) -> Any:
        if is_stream(answer):
            return watched_stream(answer, lambda events: self._keep(request, events))
        self._keep(request, answer)
        return answer

    def _request(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[Any, list[str]]:
        """Return what is kept of a call, copied, and the keys that nothing of it may hold, the longest first."""
        fields = dict(zip(("model", "messages"), arguments, strict=False)) | dict(named)
        request_fields = {name: fields[name] for name in FIELDS if _is_given(fields.get(name))}
        keys = self._known(fields)
        try:
            return _without(plain(request_fields), keys), keys
        except (TypeError, ValueError) as problem:
            return problem, keys

    def _known(self, request: Mapping[str, Any], before: Iterable[str] = ()) -> list[str]:
        """Return the keys of a call and those that the clients have had until now, the longest first."""
        with self._lock:
            self._keys = self._keys.union(*(_keys(vars_of(client)) for client in self._clients))
            return sorted(self._keys.union(_keys(request), before), key=len, reverse=True)

    def _keep(self, request: tuple[Any, list[str]], answer: Any) -> None:
        """Add a call to its conversation; what goes wrong here never reaches the one who called."""
        fields, before = request
        with self._lock:
            self.calls += 1
            told = self.refused
            keys = before
            try:
                keys = self._known({}, before)  # a client may have taken another key for this call
                if isinstance(fields, Exception):
                    raise fields
                if keys == before:
                    fields = fields
                else:
                    fields = _without(fields, keys)
                self._last = added(self._grown, fields, _without(_written(answer), keys))
                told = self.unshown
                if self._explorer is not None and self.is_open:
                    self._explorer.follow(self._last.trace())
            except Exception as problem:  # whatever a client of some other version may send
                told.append(_without(one_line(f"{type(problem).__name__}: {problem}"), keys))


def method_at(client: Any, path: str) -> tuple[Any, str] | None:
    """Return the object that has a method, and the method's name; None where there is none."""
    *way, name = path.split(".")
    owner = client
    for step in way:
        owner = getattr(owner, step, None)
    if callable(getattr(owner, name, None)) and hasattr(owner, "__dict__"):
        return (owner, name)
    return None


def vars_of(client: Any) -> dict[str, Any]:
    """Return what a client holds itself, and what stands at its class under names that keys have."""
    return {name: getattr(client, name, None) for name in _KEYS} | getattr(client, "__dict__", {})


def _keys(request: Mapping[str, Any]) -> frozenset[str]:
    """Return the words that stand under names of secrets, here and in headers."""
    places = [request, *(request.get(name) for name in _HEADERS)]
    pairs = [pair for value in places if isinstance(value, Mapping) for pair in value.items()]
    secrets = [
        value for name, value in pairs if isinstance(value, str) and _SECRET.search(str(name))
    ]
    words = [
        part
        for value in secrets
        for word in re.split(r"[\s;]+", value)
        for part in (word, word.partition("=")[2])
    ]
    return frozenset(word for word in words if len(word) >= _SHORTEST)


def _written(answer: Any) -> Any:
    """Write an answer as plain data; pydantic's warnings about a parsed one are for whoever parsed it."""
    write = getattr(answer, "model_dump", None)
    return plain(write(warnings=False) if callable(write) else answer)


def _is_given(value: Any) -> bool:
    """Tell whether something was given; OpenAI's and Anthropic's packages have values that stand for nothing."""
    return value is not None and type(value).__name__ not in ("NotGiven", "Omit")


def _without(value: Any, keys: Iterable[str]) -> Any:
    """Return plain data in which no text holds a key."""
    if isinstance(value, str):
        for key in keys:
            value = value.replace(key, _HIDDEN)
        return value
    if isinstance(value, Mapping):
        return {_without(name, keys): _without(entry, keys) for name, entry in value.items()}
    if not isinstance(value, list):
        return value
    return [_without(entry, keys) for entry in value]
