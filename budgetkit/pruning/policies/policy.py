"""Inputs and outputs of a pruning policy, with all sizes in tokens.

A policy never changes the history itself. It receives the history's size and limit, and returns cuts, each with a
target size and an order of removal. `budgetkit.pruning.dropping` carries out the cuts and ensures three things for
every policy: a tool call and its results are dropped together, the policy's floor is kept, and if the history still
exceeds its limit, the oldest messages are dropped until it fits.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from types import FunctionType
from typing import Any, Literal, NamedTuple, get_args

from budgetkit.budget.allocation import check_choice
from budgetkit.budget.amounts import Amount, check_tokens, tokens_of

Base = Literal["limit", "usable", "window"]
Unit = Literal["message", "turn"]
Order = Literal["oldest", "importance", "results"]
FloorUnit = Literal["tokens", "turns", "messages"]
Conflict = Literal["exceed", "raise", "shrink"]
Prefix = Literal["own", "shared"]


@dataclass(frozen=True, slots=True)
class Floor:
    """A minimum of the history that is kept regardless of the budget.

    Parameters
    ----------
    least : int, default 1
        Minimum to keep, at least 1. The default floor of one message is ignored if the message does not fit in the
        window; any other floor is kept.
    unit : {"messages", "turns", "tokens"}
        The unit of `least`.
    conflict : {"exceed", "raise", "shrink"}
        Treatment of a floor above the limit: exceed the limit, raise an error, or shrink the other sections.

    Raises
    ------
    ValueError
        If `least` is below 1 or a choice is unknown.

    Examples
    --------
    >>> Floor(3, "turns")
    Floor(least=3, unit='turns', conflict='exceed')
    """

    least: int = 1
    unit: FloorUnit = "messages"
    conflict: Conflict = "exceed"

    def __post_init__(self) -> None:
        check_choice("unit of the floor", self.unit, get_args(FloorUnit))
        check_choice("conflict of the floor", self.conflict, get_args(Conflict))
        check_tokens("least of the floor", self.least, 1)


class PruningContext(NamedTuple):
    """The state of the history before a request, which a policy receives.

    Parameters
    ----------
    tokens : int
        Tokens of the history.
    limit : int
        Limit of the history, in tokens.
    others : int
        Tokens of the other sections.
    usable, window : int
        The budget's usable window and whole window, in tokens.
    turn : int
        Number of the current turn, starting at 1.
    messages : int
        Number of messages in the history.
    pause : float
        Seconds since the last request, or 0 if unknown.

    Examples
    --------
    >>> from budgetkit.budget.amounts import Share
    >>> context = PruningContext(tokens=900, limit=1_000, others=500, usable=1_500, window=2_000, turn=7)
    >>> context.used("limit"), context.used("usable"), context.size(Share(.5), "window")
    (900, 1400, 1000)
    """

    tokens: int
    limit: int
    others: int = 0
    usable: int = 0
    window: int = 0
    turn: int = 1
    messages: int = 0
    pause: float = 0.0

    def used(self, of: Base) -> int:
        """Return the tokens that count towards a base.

        Parameters
        ----------
        of : {"limit", "usable", "window"}
            The base. For "usable" and "window", the tokens of the other sections count as well.

        Returns
        -------
        int
            Tokens of the history, and of the other sections if these count.
        """
        return self.tokens + (0 if of == "limit" else self.others)

    def size(self, amount: Amount, of: Base) -> int:
        """Convert an amount, in tokens or as a share of a base, to tokens.

        Parameters
        ----------
        amount : int or Share
            An amount in tokens, or a share of the base.
        of : {"limit", "usable", "window"}
            The base.

        Returns
        -------
        int
            The amount, in tokens.
        """
        base: int = getattr(self, of)
        return tokens_of(amount, max(0, base))

    def history(self, tokens: int, of: Base) -> int:
        """Return the tokens that a given size leaves for the history.

        Parameters
        ----------
        tokens : int
            Size of the base, in tokens, such as a target.
        of : {"limit", "usable", "window"}
            The base. "usable" and "window" also hold the other sections.

        Returns
        -------
        int
            Tokens left for the history, at least 0.
        """
        return max(0, tokens - (0 if of == "limit" else self.others))


@dataclass(frozen=True, slots=True)
class SummaryRule:
    """A rule for replacing old messages with a summary.

    Parameters
    ----------
    share : int or Share
        Number of oldest messages replaced by one summary, or their share of all messages.
    size : int or Share
        Length of a summary, in tokens or as a share of the messages it replaces.

    Examples
    --------
    >>> from budgetkit.budget.amounts import Share
    >>> SummaryRule(Share(0.3), 200)
    SummaryRule(share=Share(0.3), size=200)
    """

    share: Amount
    size: Amount


@dataclass(frozen=True, slots=True)
class SummaryCall:
    """The request that writes a summary.

    Parameters
    ----------
    prefix : {"own", "shared"}
        Prompt of the call: a separate, uncached prompt ("own"), or the session's prompt with an instruction appended,
        mostly read from the cache ("shared").
    calls : int, default 1
        Number of calls per summary. A second call reads the prompt of the first call from the cache.
    instruction : int, default 500
        Length of the instruction, in tokens.
    input_cap : int, optional
        Maximum number of tokens of the summarised messages to send.
    cache_write : bool, default False
        If true, a separate prompt is also written to the cache, although that prompt is never read again.

    Examples
    --------
    >>> SummaryCall("shared")
    SummaryCall(prefix='shared', calls=1, instruction=500, input_cap=None, cache_write=False)
    """

    prefix: Prefix = "own"
    calls: int = 1
    instruction: int = 500
    input_cap: int | None = None
    cache_write: bool = False

    def __post_init__(self) -> None:
        check_choice("prefix of the summary's call", self.prefix, get_args(Prefix))


@dataclass(frozen=True, slots=True)
class Compaction:
    """The messages to keep when one summary replaces all others.

    Parameters
    ----------
    keep_tail : int, default 0
        Size of the newest messages to keep, in tokens.
    keep_messages : int, default 0
        Number of newest messages to keep regardless of their size.
    keep_head : int, default 0
        Number of first messages to keep.
    important_only : bool, default False
        If true, keep only the messages of the tail that the policy marks as important.
    size : int or Share, default 2,500
        Length of the summary, in tokens or as a share of the messages it replaces.
    reattached : int, default 0
        Tokens that are added again after the summary, such as those of files.

    Examples
    --------
    >>> Compaction(keep_tail=20_000)
    Compaction(keep_tail=20000, keep_messages=0, keep_head=0, important_only=False, size=2500, reattached=0)
    """

    keep_tail: int = 0
    keep_messages: int = 0
    keep_head: int = 0
    important_only: bool = False
    size: Amount = 2_500
    reattached: int = 0


class Cut(NamedTuple):
    """A request to reduce the history.

    Parameters
    ----------
    down_to : int
        Size at which cutting stops, in tokens.
    order : {"oldest", "importance", "results"}
        Order of removal: the oldest messages first, the least important messages first, or the oldest tool results,
        which are replaced by placeholders.
    before_turn : int, optional
        If given, drop exactly the messages before this turn, regardless of their size.
    whole_turns : bool, default False
        If true, drop earlier turns as a whole; of the current turn, keep the question and the newest step.
    rounds : SummaryRule, optional
        Rule for summarising dropped messages.
    placeholder : int, default 0
        Size of a tool result's placeholder, in tokens.
    intact : int, default 0
        Number of newest tool results to leave unchanged.
    calls_intact : bool, default False
        If true, `intact` counts calls, each with all its results.
    intact_tokens : int, default 0
        Size of the newest tool results to leave unchanged, in tokens.
    least_gain : int, default 0
        Minimum tokens to be freed; otherwise no tool result is changed.
    compaction : Compaction, optional
        The messages to keep when one summary replaces all others.

    Examples
    --------
    >>> Cut(1_000).order, Cut(1_000).compaction
    ('oldest', None)
    """

    down_to: int
    order: Order = "oldest"
    before_turn: int | None = None
    whole_turns: bool = False
    rounds: SummaryRule | None = None
    placeholder: int = 0
    intact: int = 0
    calls_intact: bool = False
    intact_tokens: int = 0
    least_gain: int = 0
    compaction: Compaction | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Policy:
    """The base class of all pruning policies, whose subclasses define the cuts.

    Parameters
    ----------
    unit : {"message", "turn"}
        Unit of dropping. With "message", each message is dropped by itself, and a tool call together with all its
        results. With "turn", all messages of a turn are dropped together, so that no answer loses its question.
    floor : Floor
        Minimum of the history that is never dropped.

    Examples
    --------
    >>> class Halve(Policy):
    ...     def cuts(self, context):
    ...         return (Cut(context.tokens // 2),) if context.tokens > context.limit else ()
    >>> Halve(unit="turn").cuts(PruningContext(tokens=1_200, limit=1_000))[0].down_to
    600
    """

    unit: Unit = "message"
    floor: Floor = field(default_factory=Floor)

    def __post_init__(self) -> None:
        check_choice("unit of the policy", self.unit, get_args(Unit))

    def cuts(self, context: PruningContext) -> tuple[Cut, ...]:
        """Return the cuts to make before one request.

        Parameters
        ----------
        context : PruningContext
            State of the history before the request.

        Returns
        -------
        tuple of Cut
            Cuts to carry out in order, or an empty tuple if none are needed.
        """
        return ()

    @property
    def stages(self) -> tuple[Policy, ...]:
        """The policies that are asked for cuts, in order.

        Each policy sees the history that the previous policy left.
        """
        return (self,)

    def last_resort(self, context: PruningContext) -> Cut:
        """Return the cut for a history still above its limit.

        Parameters
        ----------
        context : PruningContext
            State of the history before the request.

        Returns
        -------
        Cut
            A cut that drops the oldest messages, unless a subclass overrides it.
        """
        return Cut(context.limit)

    @property
    def summary_call(self) -> SummaryCall | None:
        """The call that writes a summary, or None.

        Without a call, only the messages that the summary replaces are counted as input.
        """
        return None

    def arriving(self, tokens: int, is_result: bool) -> int:
        """Return the size of a message when it enters the history.

        Some policies cut tool results on arrival.

        Parameters
        ----------
        tokens : int
            Size of the message, in tokens.
        is_result : bool
            If true, the message is a tool result.

        Returns
        -------
        int
            Size of the message after any cut, in tokens.
        """
        return tokens

    def importance(self, payload: Any) -> int:
        """Return the importance of a message.

        The most important messages are kept longest.

        Parameters
        ----------
        payload : object
            The message.

        Returns
        -------
        int
            The importance; equal for all messages unless a subclass overrides it.
        """
        return 0

    def write(self, payloads: list[Any]) -> str | None:
        """Return a summary of messages, or None to model only its size.

        Parameters
        ----------
        payloads : list
            The messages, oldest first.

        Returns
        -------
        str or None
            The summary's text, or None if only the length of the summary is modelled.
        """
        return None

    def __repr__(self) -> str:
        shown = []
        for place, (name, definition) in enumerate(
            sorted(self.__dataclass_fields__.items(), key=lambda named: bool(named[1].kw_only))
        ):
            value = getattr(self, name)
            default = definition.default
            if definition.default_factory is not MISSING:
                default = definition.default_factory()
            if value != default:
                written = repr(value)
                # A function is shown with its line, because its address changes from run to run.
                if isinstance(value, FunctionType):
                    written = (
                        f"<function {value.__qualname__}, line {value.__code__.co_firstlineno}>"
                    )
                is_first = place == 0 and not definition.kw_only
                shown.append(written if is_first else f"{name}={written}")
        return f"{type(self).__name__}({', '.join(shown)})"
