"""Session: a recorded conversation with the provider's counts for each request.

    prompt = counted + not in the log + difference        (the provider's number, for every request)

The contents of the log are counted and scaled to the growth of the provider's prompts. The size of instructions and
tools, which are not in the log, follows from the first request. This size is checked against all other requests: the
signed difference is its error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from os import PathLike

import numpy as np

import budgetkit.frames as pd
from budgetkit.budget import block, brief, many
from budgetkit.counters import Count
from budgetkit.counters import counter as counter_named
from budgetkit.counters.protocol import as_counter
from budgetkit.files import missing_extra
from budgetkit.inputs.conversations import AnyTrace, trace_of
from budgetkit.lab.replay.cost import Prices, known_prices, prices_of
from budgetkit.lab.sessions.causes import COMPACTION, UNEXPLAINED, Miss, events, foretold, misses
from budgetkit.lab.sessions.listing import BILLED
from budgetkit.message import Data, replace_surrogates
from budgetkit.models import price_list
from budgetkit.plan import Floats, Ints
from budgetkit.requests.reading.formats import format_table, without_empty
from budgetkit.trace import Trace, Usage, counted_prompts, load_traces, usage_columns, usage_frame

# limits of a plausible growth
_LEAST_GROWTH = 0.5
_MOST_GROWTH = 3.0
# The names of the provider's columns in this package.
_BILLED = {
    "context_tokens": "prompt",
    "cache_read_tokens": "read",
    "cache_write_tokens": "written",
    "fresh_tokens": "fresh",
    "output_tokens": "answered",
}
#: Rows of a prompt's contents that are not counted but follow from the provider's numbers.
UNLOGGED_ROW = "not in the log: instructions, tools"
DIFFERENCE = "missed by the count"
#: The start of the row for a tool's results, before the tool's name.
RESULTS_ROW = "results of "
#: Name of an unrecorded summary call in :meth:`Session.compactions`.
NOT_LOGGED = "not in the log"
# A compaction without further facts.
_COMPACTION: Data = {
    "message_index": 0,
    "before": 0,
    "after": 0,
    "left": 0,
    "summary": 0,
    "call": NOT_LOGGED,
    "call_tokens": 0,
    "next_paid": 0,
    "next_cost": float("nan"),
    "miss_cost": 0.0,
}
_NO_SUMS: Data = dict.fromkeys(BILLED[:-1], 0)
_HALF_HOUR = 1_800.0  # in seconds
_JUMP = 0.1  # share of the prompt above which a difference is reported


@dataclass(frozen=True, eq=False, repr=False)
class Session:
    """A recorded session with its provider's bill.

    Parameters
    ----------
    trace : Trace, str or Path
        A conversation with usage, such as a coding agent's session, or its path or name.
    counter : callable or str, optional
        Counter of the texts, or its name; default: characters divided by 4, scaled to the session's growth.
    prices : Prices or str, optional
        Token prices, or the name of a model with these prices; default: the prices of each request's own model.

    Raises
    ------
    ValueError
        If the conversation has no usage.

    Examples
    --------
    >>> import budgetkit as bk
    >>> session = Session(bk.load_trace("made-up-session"))
    >>> rows = session.requests()
    >>> bool((rows["counted"] + rows["unlogged"] + rows["difference"] == rows["prompt"]).all())
    True
    """

    trace: AnyTrace
    counter: Count | str | None = None
    prices: Prices | str | None = None
    _beside: Sequence[Trace] = field(init=False)

    def __post_init__(self) -> None:
        as_counter(self.count)("Hello world")  # reject an invalid counter at once
        # A session's file is large, so it is read once; sub-agents are in it or next to it.
        if isinstance(self.trace, str | PathLike):
            trace, *beside = load_traces(self.trace)
        else:
            trace, *beside = [trace_of(self.trace)]
        object.__setattr__(self, "trace", trace)
        object.__setattr__(self, "_beside", beside)
        if not len(self.columns["model"]):
            raise ValueError(
                f"Trace {brief(self.trace.id)} has no usage, so its bill is unknown. "
                "Pass a session of a coding agent, such as 'made-up-session', or use bk.replay."
            )

    @cached_property
    def columns(self) -> Usage:
        """The provider's token counts as arrays, one entry per request."""
        return usage_columns(self.trace)

    @cached_property
    def usage(self) -> pd.DataFrame:
        """The provider's token counts, one row per request."""
        return usage_frame(self.trace)

    @cached_property
    def agents(self) -> tuple[Session, ...]:
        """The session's sub-agents, if it was read from a file.

        The sums of the session do not include its sub-agents.
        """
        agents = []
        seen = {*self.columns["id"]} - {""}
        for trace in self._beside:
            # Claude Code may write answers of the session, or of an agent, into an agent's file again.
            rows = [row for row in trace.fields.get("usage", ()) if row.get("id") not in seen]
            own = replace(trace, fields={**trace.fields, "usage": rows})
            columns = usage_columns(own)
            if columns["side_chain"].any():
                seen |= {*columns["id"]} - {""}
                agents.append(Session(own, self.counter, self.prices))
        return tuple(agents)

    @cached_property
    def count(self) -> Count:
        """The counter of the session's texts."""
        if callable(self.counter):
            return self.counter
        return counter_named("chars/4" if self.counter is None else self.counter)

    @property
    def model(self) -> str | None:
        """The model with the most answers, or None.

        None means that no model is named.
        """
        names = [*filter(None, self.columns["model"])]
        # Of equally frequent models, the first by name.
        return max(sorted({*names}), key=names.count, default=None)

    @cached_property
    def counted(self) -> tuple[Ints, float]:
        """The counted tokens of each prompt, and a scaling factor.

        Multiplied by the factor, the counts grow as the provider's counts do.
        """
        is_placed = self.columns["message_index"] >= 0
        counted = np.zeros(len(is_placed), "int64")
        counted[is_placed] = counted_prompts(self.trace, self.count)
        grown = np.diff(counted[is_placed])
        paid = np.diff(self.columns["context_tokens"][is_placed])
        usual = (grown > 0) & (paid > 0)
        usual &= (paid < _MOST_GROWTH * grown + 200) & (paid > _LEAST_GROWTH * grown - 200)
        if not usual.any():
            return counted, 1.0
        scale = paid[usual].sum() / grown[usual].sum()
        return counted, float(np.clip(scale, _LEAST_GROWTH, _MOST_GROWTH))

    @cached_property
    def sizes(self) -> Floats:
        """The counted tokens of each message, scaled to the provider's counts."""
        return np.asarray(self.trace.counts(self.count) * self.counted[1])

    @cached_property
    def unlogged(self) -> int:
        """The tokens of the first prompt that are missing from the log.

        They include instructions and tools. The number is negative if the counts are too high.
        """
        counted, scale = self.counted
        first = int(np.argmax(self.columns["message_index"] >= 0))
        return int(self.columns["context_tokens"][first] - round(scale * counted[first]))

    @cached_property
    def happened(self) -> Usage:
        """The events that can break each request's prefix."""
        return events(self.trace, self.columns)

    @cached_property
    def _billed(self) -> dict[str, Ints]:
        return {name: self.columns[column].astype("int64") for column, name in _BILLED.items()}

    @cached_property
    def _misses(self) -> list[Miss]:
        read_price, rest_price = self.input_prices
        return misses(self.trace, self.columns, self.happened, rest_price - read_price)

    def requests(self) -> pd.DataFrame:
        """Return billed numbers, counts and predictions, one row per request.

        Returns
        -------
        DataFrame
            One row per request, with these columns:

            - request: number of the request, counting from 1
            - message_index, model, time: as in :func:`budgetkit.trace.usage_frame`
            - prompt, read, written, fresh, answered: billed tokens
            - counted: tokens of the log's contents, scaled to the provider's counts
            - unlogged: tokens missing from the log
            - difference: prompt minus counted and unlogged tokens
            - mark: "estimated" if the difference is more than a tenth of the prompt; otherwise "derived"
            - foretold: predicted cache read, in tokens
            - missed, cause: tokens of a cache miss, and its cause; 0 and "" if there is none
            - cost: cost in US dollars; NaN if no price is known
        """
        counted, scale = self.counted
        frame = self.usage[["message_index", "model", "time"]].assign(**self._billed)
        frame.insert(0, "request", np.arange(1, len(frame) + 1))
        scaled = np.round(counted * scale).astype("int64")
        difference = frame["prompt"] - scaled - self.unlogged
        is_far = difference.abs() > _JUMP * frame["prompt"]
        missed = self.misses().set_index("request").reindex(frame["request"])
        return frame.assign(
            counted=scaled,
            unlogged=self.unlogged,
            difference=difference,
            mark=np.where(is_far, "estimated", "derived"),
            foretold=foretold(self.columns, self.happened),
            missed=missed["missed"].fillna(0).to_numpy("int64"),
            cause=missed["cause"].fillna("").to_numpy(),
            cost=self.cost,
        )

    @cached_property
    def cost(self) -> Floats:
        """The cost of each request in US dollars, or NaN if unknown.

        Each request is billed at its model's prices at the time of the request. Web searches are included if they have
        a price; :attr:`unpriced` lists the omissions.
        """
        return self._cost() + self.searches_cost

    @property
    def searches_cost(self) -> Floats:
        """The cost of each request's web searches, in US dollars.

        The cost is 0 if no price is known.
        """
        rates = np.array([rate.searches or 0.0 for rate, _ in self._rates])
        return np.asarray(self.columns["web_searches"] * rates / 1_000)

    @property
    def unpriced(self) -> str:
        """A sentence about items missing from the cost, or ""."""
        usage = self.columns
        has_price = np.array([rate.searches is not None for rate, _ in self._rates])
        tools = int(usage["paid_tools"].sum()) + int(usage["web_searches"][~has_price].sum())
        parts = [many(tools, "call") + " of paid tools"] if tools else []
        if media := int(usage["media_tokens"].sum()):
            parts.append(
                f"the price of {many(media, 'token')} of audio or generated images, counted as text"
            )
        if self.prices is None:
            parts += sorted({price for rate, _ in self._rates for price in rate.lacking})
        return f"Not in the cost: {', '.join(parts)}." if parts else ""

    @property
    def missing(self) -> list[str]:
        """The sentences about unread records and unpriced items.

        If there are any, the sums of the session may be too low: an unread record may be a request.
        """
        marks = format_table("marks")["missing"]
        notes = (*self.trace.warnings, self.unpriced)
        return [note for note in notes if any(mark in note for mark in marks)]

    @property
    def at_least(self) -> str:
        """The sign "\u2265 " for sums that may be too low, or ""."""
        return "\u2265 " if self.missing else ""

    @cached_property
    def steps_cost(self) -> Floats:
        """The extra cost of each request due to price steps.

        The cost is in US dollars.

        A step is a prompt size above which the model's price rises.
        """
        return self._cost() - self._cost(with_steps=False)

    @cached_property
    def input_prices(self) -> tuple[Floats, Floats]:
        """Each request's prices of a cached and an uncached input token.

        The prices are in US dollars, and NaN if unknown. For a request without a cache read, the price of a cached
        token is hypothetical.
        """
        read = self._billed["read"]
        rest = self._billed["prompt"] - read
        read_cost = self._cost(kinds=("read",), at_least=1)
        rest_cost = self._cost(kinds=("fresh", "written"))
        return read_cost / np.maximum(read, 1), rest_cost / np.maximum(rest, 1)

    def _cost(
        self,
        with_steps: bool = True,
        kinds: Collection[str] = ("fresh", "read", "written", "answered"),
        at_least: int = 0,
    ) -> Floats:
        """Return each request's cost for some kinds of tokens.

        If `with_steps` is False, price steps are ignored.
        """
        tokens = self._tokens
        none = np.zeros(len(tokens["read"]), "int64")
        # A price step depends on the whole prompt, even if part of it was written for an hour.
        sent = tokens["fresh"] + tokens["read"] + tokens["written"] if with_steps else none
        priced = dict.fromkeys(tokens, none)
        priced |= {kind: np.maximum(tokens[kind], at_least) for kind in kinds}
        long = tokens["long"] if "written" in kinds else none
        cost = np.zeros(len(none))
        for (short, long_lived), rows in self._rows_by_rates.items():
            of_all = short.cost(
                priced["fresh"], priced["read"], priced["written"] - long, priced["answered"], sent
            )
            cost[rows] = (of_all + long_lived.cost(none, none, long, none, sent))[rows]
        return cost

    @cached_property
    def _tokens(self) -> dict[str, Ints]:
        """The billed tokens of each kind, request by request.

        Tokens of the kind `long` were written to the cache for an hour.
        """
        tokens = dict(self._billed)
        # Cohere bills other tokens than it counts, all at the full price.
        is_other = self.columns["billed_input_tokens"] >= 0
        for kind, name in (("fresh", "input"), ("answered", "output")):
            billed = np.maximum(self.columns[f"billed_{name}_tokens"], 0)
            tokens[kind] = np.where(is_other, billed, tokens[kind])
        tokens["read"] = np.where(is_other, 0, tokens["read"])
        return tokens | {"long": np.maximum(self.columns["cache_write_1h_tokens"], 0)}

    def misses(self) -> pd.DataFrame:
        """Return the cache misses, one row per miss.

        A miss is a request that read over 1,024 tokens less than was cached.

        Returns
        -------
        DataFrame
            The columns are request (its number, counting from 1), missed (cached tokens that were not read), cause,
            detail (a sentence), cost (the extra cost of these tokens over cached ones, in US dollars) and paid (the
            missed tokens that were paid for, which are fewer if a compaction shortened the prompt).
        """
        frame = pd.DataFrame(self._misses, columns=Miss._fields)
        whole = ("request", "missed", "paid")
        return frame.astype({"cost": "float64", **dict.fromkeys(whole, "int64")})

    def compactions(self) -> pd.DataFrame:
        """Return one row per recorded compaction.

        Returns
        -------
        DataFrame
            The columns are message_index (of the summary), before and after (tokens of the last prompt before the
            compaction and of the first prompt after it), left (removed tokens), summary (scaled tokens of the summary),
            call (how the call that wrote the summary was sent: "shared prefix", "new prefix" or "not in the log"),
            call_tokens (tokens of that call's prompt), next_paid (uncached tokens of the next prompt), next_cost (cost
            of the next request) and miss_cost (the part of that cost caused by the compaction's miss, as in
            :meth:`misses`).
        """
        sizes = np.round(self.sizes)
        missed = {miss.request: miss.cost for miss in self._misses if miss.cause == COMPACTION}
        prompt, read = (self._billed[name] for name in ("prompt", "read"))
        places = self.columns["message_index"]
        writes_summary = self.columns["is_summary"]
        rows = []
        for compaction in self.trace.compactions:
            at = compaction["at"]
            before = prompt[~writes_summary & (places >= 0) & (places < at)].tolist()
            row = _COMPACTION | {
                "message_index": at,
                "before": compaction.get("before_tokens", 0) or [0, *before][-1],
                "summary": int(sizes[at]),
            }
            for call in np.flatnonzero(writes_summary & (places == at))[:1].tolist():
                is_shared = 2 * read[call] > prompt[call]
                row["call"] = "shared prefix" if is_shared else "new prefix"
                row["call_tokens"] = int(prompt[call])
            for following in np.flatnonzero(~writes_summary & (places > at))[:1].tolist():
                row["after"] = int(prompt[following])
                row["left"] = max(0, row["before"] - row["after"])
                row["next_paid"] = int(prompt[following] - read[following])
                row["next_cost"] = float(self.cost[following])
                row["miss_cost"] = missed.get(following + 1, 0.0)
            rows.append(row)
        return pd.DataFrame(rows, columns=[*_COMPACTION])

    def filled_by(self, request: int | None = None) -> pd.DataFrame:
        """Break a prompt down by kind of content.

        Parameters
        ----------
        request : int, optional
            Request number, counting from 1; default: the request with the largest prompt.

        Returns
        -------
        DataFrame
            One row per kind: unlogged instructions and tools, messages of each role, and results of each tool. The last
            row is the billed prompt minus the sum of the other rows, and may be negative. The columns are what (the
            kind), tokens (which sum to the billed prompt), share (of the prompt) and mark ("estimated" for counts,
            "derived" for numbers that follow from the billed prompt).

        Raises
        ------
        ValueError
            If the request does not exist, or its prompt is not in the log.
        """
        prompts = self._billed["prompt"]
        places = self.columns["message_index"]
        if request is None:
            request = int(np.argmax(np.where(places >= 0, prompts, -1))) + 1
        if not 1 <= request <= len(prompts) or places[request - 1] < 0:
            raise ValueError(
                f"The prompt of request {request:,} is unknown. Choose one from 1 to {len(prompts):,} that is not "
                "on an abandoned branch."
            )
        place = int(places[request - 1])
        prompt = int(prompts[request - 1])
        calls = {
            call.id: call.name for message in self.trace.messages for call in message.tool_calls
        }
        tokens = Counter[str]({UNLOGGED_ROW: self.unlogged})
        for index in np.flatnonzero(self.trace.gone[:place] >= place).tolist():
            message = self.trace.messages[index]
            name = _KINDS.get(message.role, message.role)
            if message.role == "tool":
                name = RESULTS_ROW + calls.get(message.tool_call_id or "", "a tool")
            tokens[name] += self.sizes[index]
        rows = [(replace_surrogates(name), round(float(size))) for name, size in tokens.items()]
        rows.sort(key=lambda row: -row[1])
        rows.append((DIFFERENCE, prompt - sum(size for _, size in rows)))
        filled = pd.DataFrame(rows, columns=["what", "tokens"])
        filled["share"] = filled["tokens"] / max(1, prompt)
        is_derived = filled["what"].isin([UNLOGGED_ROW, DIFFERENCE])
        filled["mark"] = np.where(is_derived, "derived", "estimated")
        return filled

    def totals(self) -> Data:
        """Return the sums over all requests.

        Returns
        -------
        dict
            The keys are requests (their number), prompt, read, written, fresh and answered (in tokens), cost (in US
            dollars), steps (the number of requests above a price step of their model), steps_cost (the extra cost of
            these requests), misses (their number), missed (tokens), missed_cost, unexplained (the share of missed
            tokens without a known cause), compactions (their number) and missing (the number of sentences about unread
            records and unpriced items, without which the sums may be too low).
        """
        missed = sum(miss.missed for miss in self._misses)
        strange = sum(miss.missed for miss in self._misses if miss.cause == UNEXPLAINED)
        return {
            "requests": len(self.columns["model"]),
            **{name: int(tokens.sum()) for name, tokens in self._billed.items()},
            "cost": float(self.cost.sum()),
            "steps": int(np.count_nonzero(self.steps_cost > 1e-9)),
            "steps_cost": float(self.steps_cost.sum()),
            "misses": len(self._misses),
            "missed": missed,
            "missed_cost": sum((miss.cost for miss in self._misses), 0.0),
            "unexplained": strange / missed if missed else 0.0,
            "compactions": len(self.trace.compactions),
            "missing": len(self.missing),
        }

    def parts(self, seen: Collection[str] = ()) -> list[Data]:
        """Return the sums for each day (in UTC) and model.

        The requests whose ids are in `seen` are left out and counted as copied. The last part has the whole sums
        compactions, warnings, missing and copied. An unknown day is "".
        """
        ids = self.columns["id"].tolist()
        missed = {miss.request - 1: miss.cost for miss in self._misses}
        parts: dict[tuple[str, str], Data] = {}
        for number, time in enumerate(self.columns["time"].tolist()):
            if ids[number] in seen:
                continue
            day = "" if time != time else datetime.fromtimestamp(time, UTC).date().isoformat()
            model = self.columns["model"][number] or self.model or ""
            part = parts.setdefault((day, model), {"day": day, "model": model, **_NO_SUMS})
            part["requests"] += 1
            part["prompt"] += int(self._billed["prompt"][number])
            part["read"] += int(self._billed["read"][number])
            part["cost"] += float(self.cost[number])
            part["misses"] += number in missed
            part["missed_cost"] += missed.get(number, 0.0)
        if not parts:
            parts["", ""] = {"day": "", "model": self.model or "", **_NO_SUMS}
        last = [*parts.values()][-1]
        # A compaction is copied if the next request is.
        places = self.columns["message_index"]
        for compaction in self.trace.compactions:
            following = [*self.columns["id"][places > compaction["at"]], ""][0]
            last["compactions"] += following not in seen
        last["warnings"] = sum(map(bool, (*self.trace.warnings, self.unpriced, self.price_gap)))
        last["missing"] = len(self.missing)
        last["copied"] = sum(id in seen for id in ids)
        return [*parts.values()]

    @property
    def sentence(self) -> str:
        """The cost of the misses, in one sentence."""
        totals = self.totals()
        if not totals["misses"]:
            return f"0 of {many(totals['requests'], 'request')} missed the cache."
        number = many(totals["misses"], "cache miss", "cache misses")
        if self.price_gap:
            again = sum(miss.paid for miss in self._misses)
            return (
                f"{number}: {totals['missed']:,} cached tokens were not read; {again:,} were still in the prompt "
                f"and were paid again. {self.price_gap}"
            )
        paid = f"${totals['missed_cost']:,.2f} of {self.at_least}${totals['cost']:,.2f}"
        return f"Its {number} cost {paid}."

    @property
    def price_gap(self) -> str:
        """A note on the models without a price, with a fix.

        The note is "" if the whole cost is known.
        """
        unknown = dict.fromkeys(self.columns["model"][np.isnan(self.cost)])
        if not unknown:
            return ""
        named = ", ".join(name or "an unnamed model" for name in unknown)
        fix = "Give the prices of another model with --price, or prices= in Python"
        if price_list() is None:
            fix = missing_extra("genai-prices", "lab", "the cost")
        return f"No price is known for {named}. {fix}."

    @property
    def gap_sentence(self) -> str:
        """A sentence about gaps between the log and the provider's counts.

        The sentence is "" if there are no gaps. A gap is a difference of more than a tenth of the prompt.
        """
        frame = self.requests()
        frame = frame[frame["message_index"].notna()]
        far = frame[frame["mark"] == "estimated"]
        if far.empty:
            return ""
        first = far.iloc[0]
        sentence = (
            f"At {len(far):,} of {len(frame):,} requests the log and the provider's count differ by more than a tenth"
            f" of the prompt, first at request {first['request']:,} ({first['difference']:+,} tokens)."
        )
        return sentence.replace("-", "\u2212")

    def cost_by_kind(self) -> dict[str, float]:
        """Return the total cost of cache reads, new tokens, answers and searches.

        Returns
        -------
        dict
            Costs in US dollars with the keys "read", "new" and "answered", and with "searches" if web searches were
            billed; NaN if the price of a request is unknown.
        """
        kinds = {"read": ("read",), "new": ("fresh", "written"), "answered": ("answered",)}
        costs = {name: float(self._cost(kinds=columns).sum()) for name, columns in kinds.items()}
        return costs | without_empty(searches=float(self.searches_cost.sum()))

    def __repr__(self) -> str:
        return f"Session({brief(self.trace.id)}, {many(len(self.cost), 'request')})"

    def _repr_html_(self) -> str:
        filled = self.filled_by()
        rows = [*filled.assign(share=filled["share"].map("{:.0%}".format)).itertuples(index=False)]
        parts = [(name, max(0, size)) for name, size, *_ in rows[:-1]]
        title = f"{self.trace.id}: {many(len(self.cost), 'request')}, the largest prompt"
        return block(title, parts, [("what", "tokens", "share", "mark"), *rows], [self.sentence])

    def prices_by_request(self, hour: bool | None = None) -> tuple[Prices, ...]:
        """Return each request's prices, for five-minute or one-hour cache writes.

        If `hour` is None, the recorded lifetime of each request's writes is used.
        """
        of_hour = self.columns["cache_write_1h_tokens"] > 0
        if hour is not None:
            of_hour[:] = hour
        return tuple(
            long if is_long else short
            for (short, long), is_long in zip(self._rates, of_hour.tolist(), strict=True)
        )

    @cached_property
    def _rates(self) -> tuple[tuple[Prices, Prices], ...]:
        """Each request's prices, for five-minute and for one-hour cache writes."""
        if self.prices is not None:
            short, long = (prices_of(self.prices, hour) or Prices("") for hour in (False, True))
            return ((short, long),) * len(self.columns["model"])
        same: dict[Prices, Prices] = {}  # requests at the same prices have the same objects

        @cache
        def rates(half: float, model: str | None, tier: str, region: str) -> tuple[Prices, Prices]:
            on = datetime.fromtimestamp(half * _HALF_HOUR, UTC) if half >= 0 else None
            short, long = (
                known_prices(model, on, hour=hour, tier=tier, region=region)
                if model
                else Prices("")
                for hour in (False, True)
            )
            return same.setdefault(short, short), same.setdefault(long, long)

        # No listed price changes within half an hour.
        halves = np.nan_to_num(self.columns["time"] // _HALF_HOUR, nan=-1.0).tolist()
        return tuple(
            map(rates, halves, *(self.columns[name] for name in ("model", "tier", "region")))
        )

    @cached_property
    def _rows_by_rates(self) -> dict[tuple[Prices, Prices], list[int]]:
        """The indices of the requests billed at each pair of prices."""
        rows: dict[tuple[Prices, Prices], list[int]] = {}
        for row, rates in enumerate(self._rates):
            rows.setdefault(rates, []).append(row)
        return rows


_KINDS: Mapping[str, str] = {
    "user": "user",
    "assistant": "answers and calls",
    "system": "instructions in the log",
}
