"""Cost of tokens and requests, from dated prices in genai-prices.

    cost = fresh * input + cached * cache_read + written * cache_write + output * output_price

Prices are in US dollars per million tokens. Some prices are higher for all tokens of a request whose input exceeds a
threshold (the price cliff of long contexts). An unknown price is None, never 0, and makes a cost that needs the price
NaN.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from importlib.metadata import version
from itertools import product
from typing import Any

import numpy as np

from budgetkit.budget import brief, warn_caller
from budgetkit.budget.errors import out_of_range, unknown_name, wrong_type
from budgetkit.files import extra, read_toml
from budgetkit.lab.replay.prompt_cache import CACHES, IDEAL, PromptCache, provider_rules
from budgetkit.models import Model, found_by, model_name, today
from budgetkit.models.names import host_of, is_spelling, spellings
from budgetkit.plan import Floats, Ints

__all__ = [
    "CACHES",
    "IDEAL",
    "Price",
    "Prices",
    "PromptCache",
    "compaction_turns",
    "prices",
    "prices_of",
    "provider_rules",
]
__dir__ = __all__.copy  # completion shows no other names


MILLION = 1_000_000
_US = 1.1  # inference in the US alone: platform.claude.com, Data residency; read 2026-11-26
#: Kinds of tokens with separate prices, as fields of :class:`Prices`.
PRICED = ("input", "output", "cache_read", "cache_write")


@dataclass(frozen=True)
class Price:
    """A price per million tokens, which may depend on the request's size.

    Parameters
    ----------
    base : float
        The price up to the first threshold, in US dollars.
    tiers : tuple of (int, float)
        Pairs of a threshold in input tokens and the price of all tokens of a request above it, in ascending order.

    Raises
    ------
    ValueError
        If a price is not a number of at least 0.

    Examples
    --------
    >>> Price(1.25, ((200_000, 2.5),)).of(np.array([200_000, 200_001])).tolist()
    [1.25, 2.5]
    """

    base: float
    tiers: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        for price in (self.base, *(price for _, price in self.tiers)):
            is_number = isinstance(price, int | float) and not isinstance(price, bool)
            if not is_number or not 0 <= price <= sys.float_info.max:
                limits = "dollars per million tokens, 0 or more"
                raise ValueError(out_of_range("price", price, limits))

    def times(self, factor: float) -> Price:
        """Return a multiple of this price.

        >>> Price(1.25, ((200_000, 2.5),)).times(2).tiers
        ((200000, 5.0),)
        """
        tiers = ((threshold, price * factor) for threshold, price in self.tiers)
        return Price(self.base * factor, tuple(tiers))

    def of(self, sent: Ints) -> Floats:
        """Return the price for each request size.

        Parameters
        ----------
        sent : int64 array, shape (requests,)
            Number of input tokens of each request, including cached tokens.

        Returns
        -------
        float64 array, shape (requests,)
            Price for each request, in US dollars per million tokens.
        """
        prices = np.full(np.shape(sent), float(self.base))
        for threshold, price in self.tiers:
            prices = np.where(np.asarray(sent) > threshold, float(price), prices)
        return prices


@dataclass(frozen=True)
class Prices:
    """The prices of a model.

    Parameters
    ----------
    model : str
        Name of the model.
    input, output : Price, optional
        Prices of input and output; None if unknown.
    cache_read, cache_write : Price, optional
        Prices of input read from and written to the prompt cache. If `cache_write` is None, writing costs as much as
        input. If `cache_read` is None, the price of reading is unknown.
    source : str
        Source of the prices, as a short text.
    date : str
        Date for which the prices are valid.
    searches : float, optional
        Price of a thousand web searches with the provider's tool, in US dollars.
    lacking : tuple of str
        Missing prices that were replaced by similar prices, such as "the price of the tier turbo".

    Raises
    ------
    TypeError
        If a price is neither a `Price` nor None.
    ValueError
        If the price of searches is not a number of at least 0.

    Examples
    --------
    >>> known = Prices("mine", Price(2.0), Price(8.0), Price(0.5))
    >>> float(known.cost(np.array([1_000_000]), np.array([0]), np.array([0]), np.array([500_000]))[0])
    6.0
    """

    model: str
    input: Price | None = None
    output: Price | None = None
    cache_read: Price | None = None
    cache_write: Price | None = None
    source: str = ""
    date: str = ""
    searches: float | None = None
    lacking: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for price in (self.input, self.output, self.cache_read, self.cache_write):
            if not isinstance(price, Price | None):
                raise TypeError(wrong_type("price", price, "a Price, such as Price(2.5), or None"))
        if self.searches is not None:
            Price(self.searches)  # within the same limits

    def cost(
        self, fresh: Ints, cached: Ints, written: Ints, output: Ints, sent: Ints | None = None
    ) -> Floats:
        """Return the cost of requests.

        Parameters
        ----------
        fresh, cached, written, output : int64 array, shape (requests,)
            Uncached, cached, cache-write and output tokens of each request.
        sent : int64 array, shape (requests,), optional
            Sizes of the whole prompts, which determine the price tiers; default: fresh + cached + written. Pass the
            sizes if only parts of the prompts are priced.

        Returns
        -------
        float64 array, shape (requests,)
            Cost in US dollars; NaN if a needed price is unknown.
        """
        sent = fresh + cached + written if sent is None else sent
        listed = self.input, self.cache_read, self.cache_write or self.input, self.output
        parts = zip((fresh, cached, written, output), listed, strict=True)
        total = np.zeros(np.shape(sent))
        for tokens, price in parts:
            if price is None:
                total = total + np.where(np.asarray(tokens) > 0, np.nan, 0.0)
            else:
                total = total + tokens * price.of(sent) / MILLION
        return total


def prices_of(given: Prices | str | Model | None, hour: bool = False) -> Prices | None:
    """Return prices unchanged, or look up the prices of a model.

    Parameters
    ----------
    given : Prices, str, Model or None
        Prices, a model or its name in genai-prices, or None for no prices.
    hour : bool, default False
        If True, use the price of one-hour cache writes, as in :func:`prices`.

    Returns
    -------
    Prices or None
        Prices in US dollars per million tokens; None if None was given.

    Raises
    ------
    TypeError
        If the value is not of one of these types.

    Examples
    --------
    >>> prices_of("gpt-5.4").model, prices_of(None)
    ('gpt-5.4', None)
    """
    if given is None or isinstance(given, Prices):
        return given
    if not isinstance(given, str | Model):
        raise TypeError(wrong_type("prices", given, "Prices, or a model's name, such as 'gpt-5.4'"))
    return prices(given, hour=hour)


def prices(
    model: str | Model,
    on: date | None = None,
    *,
    provider: str | None = None,
    hour: bool = False,
    tier: str = "",
    region: str = "",
    **overrides: Price | float | None,
) -> Prices:
    """Look up the prices of a model.

    Parameters
    ----------
    model : str or Model
        The model, or its name in genai-prices.
    on : date or datetime, optional
        The day or time, because some prices vary within a day; default: now.
    provider : str, optional
        The seller, such as ``"azure"``; default: the seller that the model's name implies.
    hour : bool
        If True, use the price of one-hour cache writes. If none is listed, Claude's price is twice that of input, and
        other models' price is that of other cache writes.
    tier : str
        Service tier, such as ``"batch"``, ``"flex"``, ``"priority"`` or ``"fast"``. If a tier has no prices of its own,
        the standard prices are used, and the source says so.
    region : str
        Region of the inference. Anthropic charges a tenth more for ``"us"``.
    **overrides
        Prices to use for ``input``, ``output``, ``cache_read`` or ``cache_write``, as `Price` or in US dollars per
        million tokens.

    Returns
    -------
    Prices
        The prices. If genai-prices does not list the model, all prices that were not given are None, and `source`
        says so.

    Raises
    ------
    TypeError
        If an override has an unknown name.
    ValueError
        If a price is not a number of at least 0.

    Examples
    --------
    >>> known = prices("gpt-5.4", date(2026, 11, 21))
    >>> known.input, known.cache_read, known.cache_write
    (Price(base=2.5, tiers=((272000, 5.0),)), Price(base=0.25, tiers=((272000, 0.5),)), None)
    >>> prices("no such model").input is None, prices("no such model", input=1.0).input
    (True, Price(base=1.0, tiers=()))
    """
    if strange := [name for name in overrides if name not in PRICED]:
        raise TypeError(unknown_name("price", strange[0], PRICED))
    listed = _list_prices(model_name(model), on, provider, hour, tier, region)
    if not overrides:
        return listed
    given: dict[str, Any] = {
        name: p if isinstance(p, Price | None) else Price(p) for name, p in overrides.items()
    }
    return replace(listed, source=f"{listed.source}; {', '.join(sorted(given))} given", **given)


def known_prices(model: str, on: date | None = None, **about: Any) -> Prices:
    """Look up a model's prices, or warn if genai-prices is not installed.

    If it is not installed, all of the returned prices are None.
    """
    try:
        return prices(model, on, **about)
    except ImportError as error:
        warn_caller(f"Costs in dollars are not available: {error}")
        return Prices(model)


def compaction_turns(
    before: int, after: int, summary_input: int, summary_output: int, prices: Prices
) -> float | None:
    """Return the number of turns after which a compaction pays off.

        turns = once / saved
        once  = summary_input * read + summary_output * output + after * (write' - read')
        saved = before * read - after * read'

    Here read' and write' are the prices of a prompt of `after` tokens, and the other prices are those of a prompt of
    `before` tokens.

    Parameters
    ----------
    before, after : int
        Tokens of a request before and after the compaction.
    summary_input : int
        Tokens read for the summary. They cost as much as cached tokens, because they have just been sent.
    summary_output : int
        Length of the summary, in tokens.
    prices : Prices
        Prices of the model that answers and summarises.

    Returns
    -------
    float or None
        Number of turns; None if a price is unknown or nothing is saved.

    Notes
    -----
    The formula comes from tokenmaster 0.2, which compares the cost of continuing with the cost of compacting. The
    cost of reading the summarised messages is added here; ``summary_input=0`` gives the original formula.

    Examples
    --------
    >>> claude = Prices("claude", Price(3.0), Price(15.0), Price(0.3), Price(3.75))
    >>> round(compaction_turns(100_000, 20_000, 0, 2_000, claude), 3)
    4.125
    """
    answers, writes, reads = prices.output, prices.cache_write or prices.input, prices.cache_read
    if answers is None or writes is None or reads is None:
        return None
    sizes = np.array([before, after])
    (answer, _), (_, write), (read, later_read) = (
        price.of(sizes).tolist() for price in (answers, writes, reads)
    )
    saved = before * read - after * later_read
    once = summary_input * read + summary_output * answer + after * (write - later_read)
    return once / saved if saved > 0 else None


def _list_prices(
    model: str, on: date | None, provider: str | None, hour: bool, tier: str, region: str
) -> Prices:
    """Look up the prices of a model in genai-prices."""
    with extra("lab", "a price list"):
        from genai_prices.data_snapshot import get_snapshot

    moment = datetime.combine(today(), datetime.now(UTC).time(), UTC) if on is None else on
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    day = moment.date().isoformat()
    source = f"genai-prices {_version('genai-prices')}"
    match = _entry(get_snapshot, id(get_snapshot()), model, provider)
    if match is None:
        return Prices(model, source=f"{source} does not list {brief(model)}", date=day)
    seller, entry, spelling = match
    source += f", {seller.id}/{entry.id}"
    name = model.rpartition("/")[2]
    lacking = []
    clauses = getattr(entry.match, "or_", [entry.match])
    names = [str(getattr(clause, "equals", "")).casefold() for clause in clauses]
    is_known = spelling.casefold() in names or found_by(spelling) is not None
    if spelling.rpartition("/")[2] != name and is_known:
        source += f", of which {brief(model)} is a spelling"
    elif not is_spelling(spelling, entry.id):
        if not is_known:
            # The price is that of a model with a similar name.
            source += f"; {brief(model)} has no price of its own"
            lacking.append(f"the price of {brief(model)} itself")
        source += f"; {brief(model)} is priced as {entry.id}"

    place = _place(model)
    if provider is None and _is_other_seller(get_snapshot(), place, seller.id):
        source += f"; {place} has no price of its own"
        lacking.append(f"the price of {place} itself")

    # The tier is in the request's usage, or in the name used by a router.
    is_sold_fast = name.endswith("-fast") and "fast" not in entry.id
    tier = "fast" if is_sold_fast else tier
    entry_prices = entry.get_prices(moment)
    if tier:
        conditions = dict.fromkeys(("processing", "service_tier", "speed"), tier)
        variant = entry.get_prices(moment, conditions)
        if variant is entry_prices or vars(variant) == vars(entry_prices):
            source += f"; {tier} has no price of its own"
            lacking.append(f"the price of the tier {tier}")
            if is_sold_fast:
                return Prices(model, source=source, date=day)
        entry_prices = variant
    if getattr(entry_prices, "requests_kcount", None):
        lacking.append("the fee of each request")
    factor = _US if region == "us" and seller.id == "anthropic" else 1
    write = entry_prices.cache_write_mtok
    write_factor = factor
    if hour and getattr(entry_prices, "cache_write_1h_mtok", None) is not None:
        write = entry_prices.cache_write_1h_mtok
    elif hour and "claude" in entry.id:
        # Twice the price of input: platform.claude.com, Prompt caching; read 2026-11-26.
        write = entry_prices.input_mtok
        write_factor = 2 * factor
    searches = _price(getattr(entry_prices, "web_searches_kcount", None), 1)
    return Prices(
        model,
        input=_price(entry_prices.input_mtok, factor),
        output=_price(entry_prices.output_mtok, factor),
        cache_read=_price(entry_prices.cache_read_mtok, factor),
        cache_write=_price(write, write_factor),
        source=source,
        date=day,
        searches=None if searches is None else searches.base,
        lacking=tuple(lacking),
    )


# Reading a package's version takes longer than finding a price.
_version = cache(version)


@lru_cache(maxsize=256)
def _entry(
    snapshot: Callable[[], Any], _: int, model: str, provider: str | None
) -> tuple[Any, Any, str] | None:
    """Find a model's provider, price entry and listed spelling.

    If no entry matches, return None. The second argument is the id of the snapshot, which is part of the cache key
    because the snapshot itself cannot be.
    """
    name = model.rpartition("/")[2]
    newer_models = read_toml("sellers.toml")["mistral"]
    if _place(model) in ("", "mistral") and name.casefold() in newer_models:
        name = model = newer_models[name.casefold()]
    # A fine-tuned model has its own price, and so does a model that a router offers for free.
    others = () if name.startswith("ft:") or name.endswith(":free") else spellings(model)
    # Ollama runs a model on the user's own machine, which no list prices.
    if provider is None and "ollama" in (host_of(model), host_of(name)):
        return None
    # Sellers charge different prices, and Amazon more within a region than globally.
    facts = found_by(name)
    places = (_place(model), facts.provider.casefold() if facts else "")
    sellers = [provider] if provider else [*map(_listed_seller, places), None]
    names = (model.partition("/")[2] or model, model, name, *others)
    for seller_id, spelling in product(sellers, names):
        try:
            seller, entry = snapshot().find_provider_model(spelling, None, seller_id, None)
        except LookupError:
            continue
        if not name.endswith(":free") or entry.id.endswith(":free"):
            return seller, entry, spelling
    return None


def _place(model: str) -> str:
    """Return the seller or maker that a model's name states, or ""."""
    return host_of(model) or model.casefold().rpartition("/")[0].partition("/")[0]


def _listed_seller(place: str) -> str:
    """Return a seller's name in genai-prices."""
    return str(read_toml("sellers.toml")["spellings"].get(place, place))


def _is_other_seller(snapshot: Any, place: str, seller: str) -> bool:
    """Return True if a place sells models itself and is not the given seller."""
    try:
        return bool(snapshot.find_provider(None, _listed_seller(place), None).id != seller)
    except LookupError:
        return place in read_toml("sellers.toml")["unlisted"]


def _price(value: Any, factor: float) -> Price | None:
    """Read a price with its tiers, multiplied by a factor, or None."""
    if value is None:
        return None
    tiers = [(int(tier.start), float(tier.price)) for tier in getattr(value, "tiers", ())]
    price = Price(float(getattr(value, "base", value)), tuple(tiers))
    return price if factor == 1 else price.times(factor)
