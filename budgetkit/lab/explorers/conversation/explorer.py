"""The ConversationExplorer class, and its panel of sent and missing messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from budgetkit.budget import brief, many, one_line
from budgetkit.counters import Count
from budgetkit.inputs.budgets import AnyBudget, read_budget
from budgetkit.lab.explorers.base import Explorer, Kind
from budgetkit.lab.explorers.budget.controls import initial_settings
from budgetkit.lab.explorers.commands import OF_CONVERSATIONS, file_entry
from budgetkit.lab.explorers.conversation.charts import FIGURES, charts, scene
from budgetkit.lab.explorers.conversation.controls import COMMANDS, controls
from budgetkit.lab.explorers.conversation.notices import status
from budgetkit.lab.explorers.conversation.results import ConversationStage
from budgetkit.lab.explorers.conversation.settings import AT_FIRST, CHOICES, ConversationSettings
from budgetkit.lab.explorers.conversation.texts import texts
from budgetkit.lab.explorers.reading import speaker, whole, words
from budgetkit.lab.explorers.report import replay_requests
from budgetkit.lab.explorers.shelves import Library, title_of
from budgetkit.lab.explorers.view import view_of
from budgetkit.lab.replay.cost import Prices
from budgetkit.lab.replay.outcome import Replay
from budgetkit.lab.replay.prefix import By
from budgetkit.lab.replay.prompt_cache import PromptCache
from budgetkit.message import Data
from budgetkit.models import DEFAULT_MODEL, Model
from budgetkit.pruning import NEVER, Policy
from budgetkit.pruning.policies.systems import AnyPolicies, policies_of
from budgetkit.state import to_dict
from budgetkit.trace import Trace

# Messages shown: the newest sent, the last missing, and the first.
NEWEST = 16
GONE = 8
FIRST = 2


Summaries = dict[int, tuple[int, int, int]]


def reading(stage: ConversationStage) -> Data:
    """Return the chosen request's sent and missing messages for the page."""
    outcome = stage.outcome
    request = stage.request
    there = outcome.present(request)
    absent = outcome.absent(request)
    shrunk = [slot for slot in there if NEVER < outcome.kept.shrunk[slot] < request]

    # Summaries in the request, by slot: their request, messages and tokens.
    summaries: Summaries = {}
    for at, slot, tokens, slots in outcome.kept.written:
        if at >= request:
            break
        replaced = sum(summaries.pop(old, (0, 1, 0))[1] for old in slots)
        summaries[slot] = (at + 1, replaced, tokens)
    for at, slot in outcome.kept.dropped_summaries:
        if at < request and slot in summaries and summaries[slot][0] <= at + 1:
            del summaries[slot]

    # The first messages, the latest losses and cuts, and the newest.
    shown = {*there[:FIRST], *there[-NEWEST:], *absent[-GONE:], *shrunk[-GONE:], *summaries}
    return {
        "title": f"What does {stage.request_name(request)} send, and what is missing?",
        "note": _note(stage, len(there), absent, shown),
        "blocks": list(_blocks(stage, {*there}, {*absent}, shown, summaries)),
        "follows": "request",
    }


def _note(stage: ConversationStage, sent: int, absent: list[int], shown: set[int]) -> str:
    row = stage.shown.frame.iloc[stage.request - 1]
    there = f"{many(sent, 'message')}, {many(int(row['sent']), 'token')}"
    compacted = len(stage.shown.taken_out.intersection(absent))
    dropped = len(absent) - compacted
    gone = (
        f"{many(dropped, 'message')} dropped earlier" if dropped else "nothing was dropped earlier"
    )
    known = sent + len(absent)
    left = known - len(shown)
    cut = f" {left:,} of these {known:,} messages are not shown here." if left > 0 else ""
    messages = len(stage.trace.messages)
    if messages > known:
        cut += f" Not part of this request: {messages - known:,} of {messages:,} messages."
    if compacted:
        cut = f" The session itself took out {many(compacted, 'more message')}.{cut}"
    return f"{there}; {gone}, under {brief(stage.settings.main)}.{cut}"


def _blocks(
    stage: ConversationStage,
    there: set[int],
    absent: set[int],
    shown: set[int],
    summaries: Summaries,
) -> Iterator[Data]:
    """Yield blocks for shown messages, and for gaps of hidden messages."""
    past = stage.outcome.placed.tally.past
    for is_shown, slots in groupby(sorted(there | absent), lambda slot: slot in shown):
        if not is_shown:
            hidden = [*slots]
            gone = len(absent.intersection(hidden))
            label = f"#{hidden[0]:,} not shown here"
            if len(hidden) > 1:
                which = f"#{hidden[0]:,} to #{hidden[-1]:,}"
                label = f"{which}: {len(hidden):,} messages not shown here"
            state = {0: "all still sent", len(hidden): "all gone"}.get(gone, f"{gone:,} gone")
            mark = f"{many(sum(int(past[slot].tokens) for slot in hidden), 'token')}, {state}"
            yield {"label": label, "mark": mark, "level": "gap", "pieces": []}
            continue
        for slot in slots:
            if slot in summaries:
                at, replaced, tokens = summaries[slot]
                text = f"A summary of {many(replaced, 'message')}, written at {stage.request_name(at)}."
                block = {"label": "summary", "mark": many(tokens, "token"), "level": "note"}
                yield block | {"pieces": [{"text": text}]}
            message = stage.trace.messages[slot]
            fate, level, why = _fate(stage, slot, slot in absent)
            pieces = whole(words(message))
            if level == "cut":
                pieces = [{**piece, "struck": True} for piece in pieces]
            yield {
                "key": str(slot),
                "label": f"#{slot:,} {speaker(message)}",
                "mark": ", ".join(filter(None, [many(past[slot].tokens, "token"), fate])),
                "level": level,
                "why": why,
                "pieces": pieces,
            }


def _fate(stage: ConversationStage, slot: int, is_absent: bool) -> tuple[str, str, str]:
    """Return a message's outcome, level and reason in the chosen request.

    The reason is taken from the request that dropped or cut the message.
    """
    retention = stage.outcome.kept
    if is_absent:
        at = retention.gone[slot]
        if slot in stage.shown.taken_out:
            fate = f"compacted at {stage.request_name(at + 1)}"
            return fate, "gone", "The session's own compaction took it out."
        word = "summarised" if stage.shown.fates[slot] == "summarised" else "dropped"
        return f"{word} at {stage.request_name(at + 1)}", "gone", _why(stage, at)
    if NEVER < retention.shrunk[slot] < stage.request:
        at = retention.shrunk[slot]
        return f"cut to a placeholder at {stage.request_name(at + 1)}", "cut", _why(stage, at)
    return "", "", f"The message is sent whole in {stage.request_name(stage.request)}."


def _why(stage: ConversationStage, at: int) -> str:
    row = stage.shown.frame.iloc[at]
    size = int(row["history"] + row["dropped"] + row["summary_input"] - row["summary_output"])
    limit = int(row["limit"])
    if size > limit:
        return f"The {stage.section} had {size:,} tokens, with a limit of {limit:,}."
    return f"The policy cuts before the {stage.section} is full ({size:,} of {limit:,} tokens)."


def heading(stage: ConversationStage) -> str:
    """Return a report's title: the conversation, its window and the policies."""
    base = stage.settings
    whose = title_of(str(base.trace), stage.trace)
    policies = ", ".join(stage.settings.chosen)
    return f"{whose} in {stage.budget.window:,} tokens of {base.model}: {policies}"


ConversationView = view_of("ConversationView", FIGURES)


class ConversationExplorer(Explorer):
    """An explorer of a conversation's kept messages, cache reads and cost.

    Parameters
    ----------
    trace : str, path, Trace or sequence of Trace, default "coding-agent"
        The conversations: the name of a shipped conversation, a path, or loaded traces.
    budget : str or Budget, default "working_memory"
        A preset's name, or the initial budget.
    policies : sequence of str, or mapping of str to Policy, optional
        The initial policies to compare: their names, or a mapping of names to your own policies. The first policy is
        shown in detail.
    model : str, optional
        The model, which determines the window of a preset, the prompt cache and the prices. Default: the conversation's
        own model, or `DEFAULT_MODEL`.
    window : int, optional
        Context window, in tokens, in place of the window of the budget or the model. If neither model nor budget is
        given and the model's window would never be full, a smaller window is used, so that the policies differ, and the
        page says so.
    counter : str, Counter or callable, optional
        The counter or its name; default: the model's own counter.
    by : {"turn", "request"}, optional
        One request per turn, or one per answer of the model. Default: one per answer if the conversation calls tools,
        otherwise one per turn.
    cache : str or PromptCache, optional
        The prompt cache: a name in :data:`budgetkit.lab.replay.cost.CACHES`, or your own.
    prices : Prices, str or Model, optional
        Token prices, or the name of a model with these prices; default: the prices of `model`.

    Raises
    ------
    ValueError, LookupError, OSError
        If an argument is unknown or cannot be read.

    Examples
    --------
    >>> explorer = ConversationExplorer("support-chat", window=8_192, policies=["last turns", "oldest first"])
    >>> explorer
    ConversationExplorer(support-chat, gpt-5.4, window=8,192, last turns, oldest first)
    >>> explorer.set(turns=5)
    >>> explorer.replay
    Replay(SlidingWindow(5) on 'support-chat', 75 requests)
    """

    stage: ConversationStage
    kind: ClassVar[Kind] = Kind(
        commands={**OF_CONVERSATIONS, **COMMANDS},
        name="conversation",
        view=ConversationView,
        stage=ConversationStage,
        scene=scene,
        controls=controls,
        status=status,
        charts=charts,
        entry=file_entry,
        texts=texts,
        reader=reading,
        requests=lambda stage: replay_requests(stage.outcome, stage.request),
        heading=heading,
    )

    def __init__(
        self,
        trace: str | Path | Trace | Sequence[Any] = "coding-agent",
        budget: AnyBudget = "working_memory",
        policies: AnyPolicies | None = None,
        *,
        model: str | None = None,
        window: int | None = None,
        counter: str | Count | None = None,
        by: By | None = None,
        cache: str | PromptCache | None = None,
        prices: Prices | str | Model | None = None,
    ) -> None:
        view = self.kind.view()
        library = Library(view.report)
        budget = read_budget(budget)
        base = initial_settings(
            ConversationSettings(), library, trace, budget, model, counter, window
        )
        is_plain = model is None and window is None and isinstance(budget, str)
        if is_plain and base.model == DEFAULT_MODEL:
            telling = ConversationStage(base, library).telling_window
            base = replace(base, window=telling, chosen_window=telling)
        chosen: tuple[str, ...] = AT_FIRST
        own_policies: dict[str, Policy] = {}
        if policies is not None:
            own_policies = policies_of(policies)
            chosen = tuple(own_policies)
        if not isinstance(policies, Mapping):  # a listed name keeps the numbers of its sliders
            own_policies = {
                name: policy for name, policy in own_policies.items() if name not in CHOICES
            }
        if not chosen:
            raise ValueError("No policy is chosen. Choose at least one.")
        settings = replace(
            base,
            chosen=chosen,
            main=chosen[0],
            given=own_policies,
            by=by,
            rules=cache,
            own_cache=cache if isinstance(cache, PromptCache) else None,
            given_prices=prices,
        )
        super().__init__(settings, library, view)

    @property
    def replay(self) -> Replay:
        """The replay that is shown in detail."""
        return self.stage.outcome

    @property
    def replays(self) -> dict[str, Replay]:
        """The replay of each chosen policy, under the policy's name."""
        return {name: replayed.outcome for name, replayed in self.stage.replays.items()}

    @property
    def ranking(self) -> pd.DataFrame:
        """The ranked policies, with the share of needed messages that each keeps.

        The table has the columns of `budgetkit.deciding.rank_policies`, and the column evidence with this share.
        """
        return self.stage.compared.ranking.copy()

    @property
    def forecast(self) -> pd.DataFrame:
        """The turns in which simulated continuations pass each limit.

        The table has the columns of :func:`budgetkit.lab.replay.forecast.first_over`.
        """
        return self.stage.ahead.copy()

    @property
    def config(self) -> Data:
        """All settings as plain data."""
        stage = self.stage
        now = stage.settings
        return {
            "trace": now.trace,
            "conversation": now.conversation,
            "model": now.model,
            "preset": now.preset,
            "counter": stage.counter.name,
            "policies": {name: repr(policy) for name, policy in stage.policies.items()},
            "main": stage.settings.main,
            "by": stage.by,
            "request": stage.request,
            "turn": stage.turn_of(stage.request),
            "cache": stage.rules,
            "lifetime": stage.cache.lifetime,
            "prices": {"source": stage.prices.source, "date": stage.prices.date},
            "horizon": stage.horizon,
            "money": now.money,
            **to_dict(stage.budget),
        }

    def __repr__(self) -> str:
        base = self.stage.settings
        chosen = ", ".join(base.chosen)
        window = f"window={self.budget.window:,}"
        return (
            f"ConversationExplorer({one_line(str(base.trace))}, {base.model}, {window}, {chosen})"
        )
