"""RequestCount: the bill for a request, with its ledger and evidence."""

from __future__ import annotations

import re
from collections import Counter as Counts
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from budgetkit.budget import brief, quoted, warn_caller
from budgetkit.budget.allocation import check_all
from budgetkit.budget.html import element, html_table, notebook_div
from budgetkit.counters import Basis, basis_of, counter, nearer_of, nearer_sentence
from budgetkit.files import read_toml
from budgetkit.message import Message, Raw, misspelt_keys, replace_surrogates
from budgetkit.models import Model, found_by, model_name, resolve, similar_models
from budgetkit.models.names import bare
from budgetkit.promise import range_of
from budgetkit.requests.billing.charges import (
    THINKING,
    Charge,
    Rules,
    count_charges,
    thinking_charges,
    uncharged_thinking,
    unwritten_tools,
)
from budgetkit.requests.billing.estimates import EstimatedRules, estimate_for
from budgetkit.requests.billing.evidence import evidence_for
from budgetkit.requests.billing.frames import hidden_prompt
from budgetkit.requests.billing.framing import rules_for
from budgetkit.requests.billing.images import least_priced, priced, sized, sizes_by_price
from budgetkit.requests.billing.media import media_costs
from budgetkit.requests.billing.openai import OpenAIRules
from budgetkit.requests.reading.request import ProviderRequest, as_object, read_request

if TYPE_CHECKING:
    import pandas as pd


_ASSUMED = {
    "chat": "gpt-4o",
    "responses": "gpt-4o",
    "anthropic": "claude-4-5",
    "gemini": "gemini",
    "converse": "unknown",
}
# Of 100 recorded answers with reasoning, 57 cost 9 tokens more, and 19 cost 10 more.
_AFTER_REASONING = 9
_BEYOND = 0.05  # share of a new project's bills on either side of the interval
_UNKNOWN_RULES = "estimate-any other"
_NO_LESS = 1  # minimum distance of an estimate from either end of its interval, in tokens


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One billed part of a request, as a row of the ledger.

    Parameters
    ----------
    kind : str
        Kind of charge: ``"framing"``, ``"message"``, ``"image"``, ``"media"``, ``"tools"``, ``"answer schema"`` or
        ``"hidden prompt"``.
    part : str
        Name of the part, such as a message's role or a tool's name.
    message : int or None
        Index of the message that the charge belongs to, or None for a charge for the whole request. A separate system
        text is the first message.
    tokens : int
        Tokens of the charge; negative if the parts cost less together than separately.
    """

    kind: str
    part: str
    message: int | None
    tokens: int


@dataclass(frozen=True, slots=True)
class RequestCount:
    """The tokens that a provider bills for a request.

    Parameters
    ----------
    model : str
        Model that the tokens are counted for.
    shape : str
        Format of the request: ``"chat"``, ``"responses"``, ``"anthropic"``, ``"gemini"`` or ``"converse"``.
    counted_by : str
        Names of the billing rules and of the counter, with the evidence for rules that are not estimated, and a note if
        the model was assumed or is unknown.
    exact : bool
        If true, everything was counted with the provider's own encoding, by rules that recorded calls confirm.
    interval : tuple of int or None
        Expected range of the bill, in tokens; `interval_words` describes its coverage. The upper end is None if
        something cannot be counted.
    uncounted : tuple of str
        Parts that cannot be counted, such as server state, built-in tools, reasoning before a call and media.
    ledger : tuple of LedgerRow
        One row per billed part.
    basis : {"exact", "reconstructed", "estimate"}
        The basis of the count, as in :func:`budgetkit.counters.basis_of`.
    nearer : str
        A hint on how to count more accurately; empty if there is none.
    interval_words : str
        How the interval was obtained: its coverage and the number of public projects behind it, or a note that it is
        assumed. Empty if the count is exact.

    Examples
    --------
    >>> count_request({"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello world"}]})
    RequestCount(model='gpt-4o', tokens=9, exact=True)
    """

    model: str
    shape: str
    counted_by: str
    exact: bool
    interval: tuple[int, int | None]
    uncounted: tuple[str, ...]
    ledger: tuple[LedgerRow, ...]
    basis: Basis = "estimate"
    nearer: str = ""
    interval_words: str = ""

    @property
    def tokens(self) -> int:
        """The tokens billed: the sum of the ledger."""
        return sum(row.tokens for row in self.ledger)

    @property
    def unknown(self) -> str:
        """A notice if the model is unknown, otherwise ""."""
        return _unknown_model(self.model)

    def frame(self) -> pd.DataFrame:
        """Return the ledger as a table.

        Returns
        -------
        pandas.DataFrame
            One row per billed part, with the columns kind, part, message and tokens.
        """
        import pandas as pd

        # pandas rejects lone surrogates, which a tool name shortened by another program may contain.
        rows = [replace(row, part=replace_surrogates(row.part)) for row in self.ledger]
        return pd.DataFrame(rows, columns=LedgerRow.__slots__).astype(
            {"message": "Int64", "tokens": "int64"}
        )

    def __repr__(self) -> str:
        between = "" if self.exact else f", interval={self.interval}"
        missing = f", uncounted={self.uncounted}" if self.uncounted else ""
        unknown = f"; {self.unknown}" if self.unknown else ""
        facts = f"tokens={self.tokens}, exact={self.exact}{between}{missing}{unknown}"
        return f"RequestCount(model={self.model!r}, {facts})"

    def _repr_html_(self) -> str:
        """Return the total, its basis and the ledger as HTML."""
        low, high = self.interval
        between = ""
        if not self.exact:
            most = "an unknown number" if high is None else f"{high:,}"
            between = f", {low:,} to {most}"
        missing = f" Not counted: {', '.join(self.uncounted)}." if self.uncounted else ""
        if self.interval_words:
            between += f" ({self.interval_words})"
        basis = "an estimate" if self.basis == "estimate" else self.basis
        counted_by = f"Counted by: {self.counted_by}. {nearer_sentence(self)}".rstrip()
        table = [
            ("kind", "part", "message", "tokens"),
            *(
                (row.kind, row.part, "" if row.message is None else row.message, row.tokens)
                for row in self.ledger
            ),
        ]
        return notebook_div(
            element(
                "div",
                element("b", f"{self.tokens:,} tokens"),
                f", {basis}{between}.{missing} {counted_by}",
            ),
            html_table(table, style="border-collapse:collapse"),
        )


def count_request(
    request: Raw | str | bytes,
    model: str | Model | None = None,
    *,
    host: str = "",
) -> RequestCount:
    """Count the tokens that a provider bills for a request.

    The count includes messages, tools, images and framing, and the answer schema if the provider bills it.

    Parameters
    ----------
    request : Mapping, str or bytes
        The request body, as a dictionary or JSON, in the format of OpenAI chat or Responses, Anthropic Messages, Gemini
        or Bedrock Converse.
    model : str or Model, optional
        The model that answers. Default: the model in the request. If the request names no model, the most common model
        of the format is assumed, and ``counted_by`` says so.
    host : str, optional
        Host that forwards the request and bills differently from the model's maker: ``"vertex"`` or ``"venice"``.
        Default: the host in the model's name, as in ``"vertex_ai/gemini-2.5-pro"``.

    Returns
    -------
    RequestCount
        The total with its basis, interval and ledger, and the parts that cannot be counted.

    Raises
    ------
    ValueError
        If the request is not a JSON object or is nested too deeply, if its format is unknown, or if a message has no
        role.

    Examples
    --------
    >>> tool = {"type": "function", "function": {"name": "ping", "description": "Look whether a host answers"}}
    >>> asked = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Is it up?"}], "tools": [tool]}
    >>> counted = count_request(asked)
    >>> counted.tokens, [row.tokens for row in counted.ledger]
    (40, [3, 8, 14, 15])
    """
    check_all("host", [host], str)
    try:
        return _request_count(read_request(request), model, host)
    except RecursionError:
        raise ValueError("Request nested too deeply. Check the program that made it.") from None


def _request_count(request: ProviderRequest, model: str | Model | None, host: str) -> RequestCount:
    misspelt: list[str] = []
    for place, message in enumerate(request.messages, start=1):
        natives = misspelt_keys(as_object(message.raw.get("native")))
        for problem, advice in dict.fromkeys([*misspelt_keys(message.raw), *natives]):
            warn_caller(f"{problem} in message {place} is not counted. {advice}, or leave it out.")
            if " tool " in problem:  # a message's own fields are listed already
                misspelt.append(f"{problem[0].lower()}{problem[1:]}")
    billing_model: str | Model = request.model or _ASSUMED[request.shape]
    if model is not None:
        billing_model = model
    resolved = resolve(billing_model)
    name = model_name(billing_model)
    rules = rules_for(resolved, host)
    count = counter(resolved)
    billed = replace(request, model=resolved.name)

    # each row of the bill
    charges = rules.charges(billed)
    charges += thinking_charges(billed, charges)
    media = [*media_costs(billed.messages, billed.model)] if request.uncounted else []
    charges += [cost.charge for cost in media]
    ledger = tuple(
        LedgerRow(charge.kind, charge.part, charge.message, tokens)
        for charge, tokens in zip(charges, count_charges(charges, count), strict=True)
    )
    tokens = sum(row.tokens for row in ledger)

    # the parts without a row
    measured = Counts(cost.kind for cost in media)
    parts = Counts(str(part.get("type")) for message in billed.messages for part in message.parts)
    kinds = [
        kind for kind in request.uncounted if not measured[kind] or measured[kind] < parts[kind]
    ]
    billed = replace(billed, uncounted=(*kinds, *misspelt))
    missing_parts = uncounted_parts(billed, rules, resolved, lambda: charges, host)
    images = [image for message in billed.messages for image in message.images]
    unsized = [image for image in images if sized(image) is None]
    uncounted = (*missing_parts, *(["image of unknown size"] if unsized else []))

    # the basis, which is exact only if recorded calls have confirmed it
    assumed = ""
    if not (model or request.model):
        assumed = f"{name} assumed, because the request names no model: "
    unknown = _unknown_model(name)
    evidence = evidence_for(billed, rules.name)
    basis: Basis = "estimate"
    estimate = rules.estimate if isinstance(rules, EstimatedRules) else None
    is_sure = not (media or uncounted or assumed or unknown)
    if is_sure and not estimate:
        basis = basis_of(count)
        if not (evidence.earns_exact if basis == "exact" else evidence.calls):
            basis = "estimate"

    # the interval, widened for media and by the errors of recorded calls
    low = tokens - sum(cost.charge.fixed - cost.least for cost in media)
    high = tokens + sum(cost.most - cost.charge.fixed for cost in media)
    low -= sum(max(0, priced(i, rules.model) - least_priced(i, rules.model)) for i in images)
    for image in unsized:
        taken = priced(image, rules.model)
        prices = sizes_by_price(image, billed.model)
        low += min(0, min(prices) - taken)
        high += max(0, max(prices) - taken)
    # an unknown size of an image matters more than the errors of recorded calls
    spread = evidence_for(billed, _UNKNOWN_RULES) if unknown else evidence
    if basis != "exact" and (estimate or unknown or not unsized):
        low = min(low - _NO_LESS, round(low * (1 + spread.low)))
        high = max(high + _NO_LESS, round(high * (1 + spread.high)))

    words = "range assumed, because no similar call was recorded"
    if basis == "exact":
        words = ""
    elif spread.seen_in:
        words = range_of(spread.seen_in, _BEYOND, "projects")
    name_of_rules = f"{rules.name} ({evidence})"
    if estimate:
        name_of_rules = estimate.family
    sentence = f"{assumed}rules of {name_of_rules}; the counter is {count.name}"
    return RequestCount(
        model=name,
        shape=request.shape,
        counted_by=f"{sentence}; {unknown}" if unknown else sentence,
        exact=basis == "exact",
        interval=(max(0, low), None if missing_parts else high),
        uncounted=uncounted,
        ledger=ledger,
        basis=basis,
        nearer=nearer_of(count),
        interval_words=words,
    )


def uncounted_parts(
    request: ProviderRequest,
    rules: Rules | None,
    model: Model | None,
    charges: Callable[[], list[Charge]],
    host: str = "",
) -> list[str]:
    """Name everything in a request that its charges do not cover.

    `model` is the model that answers, `host` the host that forwards the request, and `rules` are the billing rules, or
    None if they are unknown.
    """
    names = [*request.uncounted, *uncharged_thinking(request.messages, request.shape, rules)]
    if model is not None:
        names.append(hidden_prompt(host or model.host))
        if re.search(read_toml("framings.toml")["models"]["searching"], bare(model.name)):
            names.append("built-in tool web_search")
    names += unwritten_tools(request.tools, charges)
    return [*dict.fromkeys(filter(None, names))]


def count_answer(answer: Raw | Message, model: str | Model) -> int:
    """Count the tokens that a provider bills for an answer.

    Reasoning is billed in addition, but only the provider's usage reports its tokens. If an answer of an OpenAI model
    has reasoning, the count includes 9 tokens that are billed after the reasoning.

    Parameters
    ----------
    answer : Mapping or Message
        An assistant message in OpenAI's chat format.
    model : str or Model
        The model that answered.

    Returns
    -------
    int
        Number of tokens.

    Examples
    --------
    >>> call = {"id": "1", "function": {"name": "ping", "arguments": "{}"}}
    >>> count_answer({"role": "assistant", "content": "Hello world"}, "gpt-4o")
    2
    >>> count_answer({"role": "assistant", "tool_calls": [call]}, "gpt-4o")
    10
    """
    message = answer if isinstance(answer, Message) else Message(answer)
    resolved = resolve(model)
    rules = rules_for(resolved)
    tokens = sum(count_charges(rules.answer(message), counter(resolved)))
    if isinstance(rules, OpenAIRules) and any(message.raw.get(field) for field in THINKING):
        return tokens + _AFTER_REASONING
    return tokens


@lru_cache(maxsize=256)
def _unknown_model(name: str) -> str:
    """Return a notice if a model is unknown, otherwise "".

    The notice suggests models with similar names.
    """
    if estimate_for(name).pattern or found_by(name):
        return ""
    near = similar_models(name)
    return f"unknown model {brief(name)}{f', similar to {quoted(near)}' if near else ''}"
