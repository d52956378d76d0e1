"""RequestRules: the settings of a conversation's requests, completed and checked once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from budgetkit.budget import Budget, brief, check_choice
from budgetkit.budget.errors import out_of_range, unknown_name
from budgetkit.conversation.reading import check_sendable
from budgetkit.conversation.sent import USER_FIRST
from budgetkit.counters import Count
from budgetkit.inputs.budgets import Setup
from budgetkit.message import RESULT_ROLES, ROLES, Message
from budgetkit.pruning import OldestFirst, Policy, StartOn
from budgetkit.pruning.dropping import LEAST_RESULT
from budgetkit.pruning.policies import CapResults, DropToolResults, Summarise
from budgetkit.pruning.policies.systems import general_policy_of
from budgetkit.requests import Framing
from budgetkit.requests.reading.forms import Form
from budgetkit.trace import DEFAULT_ROLES, Roles, past_section
from budgetkit.trace.tally import roles_key
from budgetkit.truncation import truncate

Overrun = Literal["warn", "raise", "tell"]
Write = Callable[[list[Any]], "str | Awaitable[str]"]
PLACEHOLDER = "[tool result left out]"


@dataclass(frozen=True)
class RequestRules:
    """The settings of a conversation's requests.

    Attributes
    ----------
    roles : mapping or callable
        The section of each role.
    section : str
        The section that the policy prunes: the history.
    tell : bool
        True if the request ends with a text about the budget.
    shorten : bool
        True if tool results that do not fit may be shortened, and passages dropped.

    The other attributes are those of :class:`budgetkit.Conversation`.
    """

    budget: Budget
    count: Count
    framing: Framing
    policy: Policy
    roles: Roles
    section: str
    overrun: Overrun = "warn"
    start_on: StartOn = "user"
    form: Form | None = None
    tell: bool = False
    shorten: bool = True

    @classmethod
    def of(
        cls,
        setup: Setup,
        policy: Policy | str | None = None,
        roles: Roles | None = None,
        section: str | None = None,
        **options: Any,
    ) -> RequestRules:
        """Return the settings for a setup, with defaults filled in."""
        if policy is None:
            policy = setup.policy or OldestFirst()
        if roles is None:
            roles = setup.budget.roles or DEFAULT_ROLES
        roles_key(roles)  # rejects other types
        return cls(
            budget=setup.budget,
            count=setup.counter,
            framing=setup.framing,
            policy=general_policy_of(policy),
            roles=roles,
            section=section or past_section(Message({"role": "user"}), roles),
            **options,
        )

    def __post_init__(self) -> None:
        check_choice("overrun", self.overrun, get_args(Overrun))
        check_choice("start_on", self.start_on, get_args(StartOn))
        if self.form is not None:
            check_choice("form", self.form, get_args(Form))
        empty = Message({"role": "tool", "content": ""})
        for stage in self.policy.stages:  # raise errors now, not after a hundred turns
            if isinstance(stage, DropToolResults):
                self.shortened(empty, stage.placeholder, "placeholder")
            if isinstance(stage, CapResults):
                self.shortened(empty, stage.most)

    def first_speaker(self, form: str | None) -> StartOn:
        """Return the role of the first message after the system messages, or "any"."""
        return "user" if form in USER_FIRST else self.start_on

    def writer(self, summarise: Write | None = None) -> Callable[[list[Any]], object]:
        """Return the function that writes summaries, by default the policy's.

        A policy that summarises raises ValueError if it has no function and none is given.
        """
        stages = self.policy.stages
        if summarise is None and any(isinstance(s, Summarise) and s.text is None for s in stages):
            raise ValueError(
                f"{brief(self.policy)} needs a function that summarises messages. Pass it as text= to the policy, "
                "or as summarise= to a Conversation."
            )
        return summarise or self.policy.write

    def check(self, messages: Sequence[Message]) -> None:
        """Check that messages have a section, and can be sent and saved."""
        for message in messages if self.budget.undeclared == "error" else ():
            is_known = message.role in ROLES
            if not is_known and past_section(message, self.roles) not in self.budget.sections:
                problem = unknown_name("role", message.role, ROLES).removesuffix(".")
                raise ValueError(f"{problem}, or name its section in roles=.")
        check_sendable(messages)

    def least(self, message: Message, tokens: int) -> int:
        """Return the number of tokens to which a message can be shortened.

        Only tool results can be shortened.
        """
        if message.role not in RESULT_ROLES or message.is_whole:
            return tokens
        least = LEAST_RESULT
        if not message.is_cuttable:
            least += self.framing.message(message.with_text(""), self.count)
        return min(least, tokens)

    def shortened(self, result: Message, limit: int, what: str = "tool result") -> Message:
        """Shorten a tool result to a limit, or write its placeholder.

        A limit below the size of an empty result raises an error.
        """

        def cost(text: str) -> int:
            return self.framing.message(result.with_text(text), self.count)

        if cost("") > limit:
            raise ValueError(
                out_of_range(what, limit, f"at least the {cost(''):,} tokens of an empty result")
            )
        text = PLACEHOLDER if what == "placeholder" else result.text
        return result.with_text(truncate(text, limit, cost))
