"""Prompt caches: the tokens of a request that a provider has cached.

    sent = cached + written + fresh

A provider caches its computation for the start of a request and reuses it if a later request starts in exactly the same
way. Caches differ in their minimum prefix, their increment, their lifetime and their lookup. There are two kinds of
lookup:

- *automatic* (OpenAI, Gemini): any prefix can be read, rounded down to an increment;
- *breakpoints* (Anthropic, OpenAI from GPT-5.6 on): only prefixes that end at a breakpoint can be read. Breakpoints
  are assumed after the opening (tool schemas and system messages) and at the end of each request. A later request reads
  such a prefix if it starts with the same tokens and the lifetime of the prefix has not ended. Anthropic looks back
  over 20 positions, and OpenAI considers the 80 most recent breakpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from budgetkit.budget import check_choice
from budgetkit.files import Table, read_rows
from budgetkit.models import IDEAL_CACHE, Model, resolve
from budgetkit.plan import Floats, Ints

Breakpoint = Literal["head", "end"]


@dataclass(frozen=True)
class PromptCache:
    """The rules of a provider's prompt cache.

    Parameters
    ----------
    minimum : int
        Size of the shortest prefix that is cached, in tokens.
    increment : int
        Increment of cached prefixes beyond the minimum, in tokens.
    write, read : float
        Price of writing a token to the cache and of reading one from it, as multiples of the input price.
    lifetime : float, optional
        Lifetime of a prefix after its last use, in seconds; None if no prefix expires.
    breakpoints : tuple of {"head", "end"}, optional
        Positions of the breakpoints: after the opening ("head") or at the end of each request ("end"). None stands for
        a cache that finds the longest prefix automatically.
    lookback : int, optional
        Number of positions that the cache looks back from a breakpoint. A text, an image, consecutive tool calls and
        consecutive tool results are one position each.
    considered : int, optional
        Maximum number of breakpoints considered, starting from the most recent one.
    source : str
        Source and date of the numbers.

    Examples
    --------
    >>> PromptCache(write=1.25).relative_cost(cached=900, written=100, fresh=0)
    0.215
    """

    minimum: int = 0
    increment: int = 1
    write: float = 1.0
    read: float = 0.1
    lifetime: float | None = None
    breakpoints: tuple[Breakpoint, ...] | None = None
    lookback: int | None = None
    considered: int | None = None
    source: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        for mark in self.breakpoints or ():
            check_choice("breakpoint", mark, get_args(Breakpoint))
        if self.minimum < 0 or self.increment < 1:
            raise ValueError(
                f"Invalid minimum {self.minimum} or increment {self.increment}. Use a minimum of at least 0 and an "
                "increment of at least 1 token."
            )

    @property
    def is_for_an_hour(self) -> bool:
        """True if its prefixes live for an hour or longer.

        Anthropic charges more for writing such prefixes.
        """
        return self.lifetime is not None and self.lifetime >= 3_600

    def relative_cost(self, cached: int, written: int, fresh: int) -> float:
        """Return the cost of input relative to its cost without a cache.

        Parameters
        ----------
        cached, written, fresh : int
            Tokens read from the cache, written to it, and neither.

        Returns
        -------
        float
            The cost divided by the cost without a cache; 1.0 if nothing is sent.
        """
        sent = cached + written + fresh
        if not sent:
            return 1.0
        return (cached * self.read + written * self.write + fresh) / sent

    def split(
        self,
        sent: Ints,
        head: Ints,
        equal: Ints,
        pauses: Floats | None = None,
        new_blocks: Ints | None = None,
    ) -> tuple[Ints, Ints]:
        """Return each request's tokens read from and written to the cache.

        Parameters
        ----------
        sent : int64 array, shape (requests,)
            Size of each request, in tokens.
        head : int64 array, shape (requests,)
            Tool schemas and opening system messages, in tokens.
        equal : int64 array, shape (requests,)
            Longest prefix shared with the previous request, in tokens; 0 for the first request.
        pauses : float64 array, shape (requests,), optional
            Seconds since the previous request; an unknown pause is NaN and counts as 0.
        new_blocks : int64 array, shape (requests,), optional
            Number of lookback positions that each request adds, from :func:`budgetkit.lab.replay.prefix.new_blocks`.

        Returns
        -------
        tuple of int64 arrays
            Cached and written tokens; all other tokens of `sent` are fresh.

        Examples
        --------
        >>> sent, head, equal = np.array([2_000, 2_100]), np.array([500, 500]), np.array([0, 2_000])
        >>> [part.tolist() for part in CACHES["openai"].split(sent, head, equal)]
        [[0, 1920], [2000, 180]]
        """
        # The longest cached prefix of the previous request.
        marks = self.breakpoints
        if marks is None:
            steps = np.maximum(equal - self.minimum, 0) // self.increment * self.increment
            read_tokens = np.where(equal >= self.minimum, self.minimum + steps, 0)
        else:
            before = np.concatenate(([0], sent))[: len(sent)]
            is_read = (equal >= head) & (before > 0) & ("head" in marks)
            read_tokens = np.where(is_read, head, 0)
        if self.lifetime is not None and pauses is not None:
            read_tokens = np.where(np.nan_to_num(pauses) > self.lifetime, 0, read_tokens)
        if marks and "end" in marks:
            read_tokens = np.maximum(read_tokens, self._ends(sent, equal, pauses, new_blocks))
        cached = np.where(read_tokens >= max(1, self.minimum), read_tokens, 0).astype("int64")
        kept_to = sent
        if marks is not None and "end" not in marks:
            kept_to = head * ("head" in marks)
        written = np.where(kept_to >= max(1, self.minimum), np.maximum(kept_to - cached, 0), 0)
        return cached, written.astype("int64")

    def _ends(
        self, sent: Ints, equal: Ints, pauses: Floats | None, new_blocks: Ints | None
    ) -> Ints:
        """Return the size of the longest earlier request that each request reads.

        The sizes are in tokens; a size is 0 if no earlier request can be read from the cache. Two requests share at
        least the shortest of the prefixes that neighbouring requests share, from the earlier request to the later
        one.
        """
        reads = np.zeros_like(sent)
        times = np.zeros(len(sent)) if pauses is None else np.cumsum(np.nan_to_num(pauses))
        used = times.tolist()
        ends = sent.tolist()
        shares = equal.tolist()
        blocks = [0] * len(ends) if new_blocks is None else new_blocks.tolist()
        for now in range(1, len(ends)):
            shared = ends[now]
            passed = 0
            best = 0
            whose = -1
            least = -1 if self.considered is None else now - 1 - self.considered
            for earlier in range(now - 1, max(-1, least), -1):
                shared = min(shared, shares[earlier + 1])
                passed += blocks[earlier + 1]
                if shared <= best or shared < self.minimum:
                    break
                if self.lookback is not None and passed > self.lookback:
                    break
                alive = self.lifetime is None or times[now] - used[earlier] <= self.lifetime
                if alive and best < ends[earlier] <= shared:
                    best = ends[earlier]
                    whose = earlier
            if best:
                reads[now] = best
                used[whose] = times[now]
        return reads


def _from_row(row: dict[str, Any]) -> PromptCache:
    marks = row.get("breakpoints")
    fields = {name: value for name, value in row.items() if name != "models"}
    return PromptCache(**fields | {"breakpoints": None if marks is None else tuple(marks)})


#: Prompt caches of providers; a replay uses the model's own price for cached tokens, if it is known.
CACHES: Mapping[str, PromptCache] = Table(
    lambda: {name: _from_row(row) for name, row in read_rows("prompt_caches.toml", "cache").items()}
)
#: The name of the default cache, for an unknown provider.
IDEAL = IDEAL_CACHE


def provider_rules(model: str | Model) -> str:
    """Return the name of the prompt cache that a model uses.

    Parameters
    ----------
    model : str or Model
        The model or its name.

    Returns
    -------
    str
        A name in `CACHES`; the name of the ideal cache if the provider's cache is unknown.

    Examples
    --------
    >>> from budgetkit.models import model
    >>> [provider_rules(model(name)) for name in ("gpt-5.4", "claude-haiku-4-5", "Llama-3.3-70B-Instruct")]
    ['openai', 'anthropic-4096', 'longest prefix']
    >>> provider_rules(Model("gpt-5.6-sol", 400_000)), provider_rules(Model("claude-opus-5", 200_000))
    ('openai-5.6', 'anthropic-512')
    """
    return resolve(model).cache
