"""Panels of the conversation explorer.

The panels show other systems' costs, cache misses, and the cheapest rules.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from budgetkit.budget import brief, many
from budgetkit.lab import figures
from budgetkit.lab.explorers.conversation.results import ConversationStage
from budgetkit.lab.explorers.conversation.settings import ConversationSettings
from budgetkit.lab.explorers.folds import (
    Content,
    button,
    choice,
    figure_part,
    table_text,
    text_part,
)
from budgetkit.lab.figures.question import dollars, table_rows
from budgetkit.lab.replay.losses import needed_there
from budgetkit.lab.sessions.comparing import AS_IT_WAS, RECORDED, Comparison
from budgetkit.lab.sessions.sentences import (
    MARKS,
    cost_text,
    finding,
    notices,
    replay_check,
    turning_points,
)
from budgetkit.message import Data

_MOST_CHOICES = 30  # messages that can be followed: those that were lost and needed come first
_MOST_ROWS = 200  # of a table in a fold


class SystemsFold(Content):
    """Panel that compares the pruning rules of real systems."""

    _followed: int | None = None

    def parts(self, stage: ConversationStage) -> list[Data]:
        """Return the parts of the panel: the comparison, and a followed message."""
        compared = stage.systems(window_of_systems(stage))
        followable = messages_to_follow(compared)
        if self._followed not in followable:
            self._followed = None
        options = {"": "none"} | {str(place): name for place, name in followable.items()}
        value = "" if self._followed is None else str(self._followed)
        table = compared.table.drop(columns=["system", "relative"]).head(_MOST_ROWS)
        requests = len(compared.outcomes[AS_IT_WAS].most.over)
        is_same = stage.by == "request" and requests == stage.request_count
        recorded = "The cost of this conversation was not recorded."
        for row in table_rows(compared.table):
            if row["system"] == RECORDED and not np.isnan(row["least"]):
                number = many(row["compactions"], "compaction")
                lost = many(row["used_later"], "message")
                recorded = f"Recorded: {dollars(row['least'])}, with {number}; {lost} used later had been dropped."
        drawn = figure_part(
            "rules",
            figures.rules_compared.title,
            f"Replayed in a window of {compared.setup.budget.window:,} tokens. {recorded}",
            figures.rules_compared.spec(compared, self._followed),
            table_text(table),
            "request" if is_same else None,
        )
        parts = [
            text_part(finding(compared.table)),
            *(text_part(sentence) for sentence in replay_check(compared.table)),
            *(text_part(notice, "cut") for notice in notices(compared.table)),
            drawn,
            choice("Follow a message", "follow", options, value),
        ]
        if self._followed is not None:
            parts.append({"is": "rows", "rows": fates(compared, self._followed)})
        return parts

    def hear(self, stage: ConversationStage, event: Data) -> ConversationSettings | None:
        """Follow another message, or go to a request."""
        if "follow" in event:
            name = str(event["follow"])
            self._followed = int(name) if name.isdecimal() else None
        request = event.get("request")
        if isinstance(request, int | float) and 1 <= request <= stage.request_count:
            return replace(stage.settings, request=int(request))
        return None


class ReadsFold(Content):
    """Panel of actual and predicted cache reads, with the cost of misses."""

    def parts(self, stage: ConversationStage) -> list[Data]:
        """Return the parts of the panel: misses, causes and cost."""
        session = stage.session
        if session is None:
            missing = (
                "This conversation has no recorded usage. Open a session, such as made-up-session."
            )
            return [text_part(missing)]
        drawn = figure_part(
            "cache",
            figures.cache_reads.title,
            f"Cache reads are predicted from earlier messages, times, models and settings. {MARKS}",
            figures.cache_reads.spec(session),
            table_text(figures.cache_reads.table(session).head(_MOST_ROWS)),
        )
        misses = []
        for row in table_rows(
            session.misses().sort_values("missed", ascending=False).head(_MOST_ROWS)
        ):
            cost = "" if np.isnan(row["cost"]) else f", {dollars(row['cost'])}"
            words = f"Request {row['request']:,}: {row['missed']:,} tokens{cost}. {row['cause'].capitalize()}"
            misses.append({"key": str(row["request"]), "text": words, "note": row["detail"]})
        sentences = [session.sentence, session.gap_sentence]
        parts = [text_part(sentence) for sentence in sentences if sentence]
        parts.append(drawn)
        if not misses:
            return parts
        return [*parts, {"is": "rows", "rows": misses}]


def window_of_systems(stage: ConversationStage) -> int | None:
    """Return the window for the comparison, or None for the recorded window."""
    # The window that the explorer chose so that policies differ does not count.
    settings = stage.settings
    window = settings.window
    if window is not None and window != settings.chosen_window:
        return window
    if stage.session:
        return None
    return stage.budget.window


def messages_to_follow(compared: Comparison) -> dict[int, str]:
    """Return up to 30 needed messages, most often lost first.

    A needed message is one that a later message refers to.
    """
    pairs = compared.setup.pairs
    needed = Counter(pairs["needs"].tolist())
    terms = pairs.drop_duplicates("needs").set_index("needs")["term"]
    lost: Counter[int] = Counter()
    for outcome in compared.outcomes.values():
        _, needs, there = needed_there(outcome.most, pairs)
        lost.update({*needs[~there].tolist()})
    order = sorted(needed, key=lambda place: (-lost[place], -needed[place], place))
    messages = compared.setup.trace.messages
    originals = {place: number for number, place in enumerate(compared.setup.places) if place >= 0}
    names: dict[int, str] = {}
    for place in order[:_MOST_CHOICES]:
        number = "1 call needs" if needed[place] == 1 else f"{needed[place]:,} calls need"
        gone = f", lost by {many(lost[place], 'rule')}" if place in lost else ""
        name = f"message {originals.get(place, place):,} ({messages[place].role})"
        names[place] = f"{name}: {number} {brief(terms[place])}{gone}"
    return names


def fates(compared: Comparison, place: int) -> list[Data]:
    """Return a row for each rule, with its treatment of a message."""
    lines = []
    for row in table_rows(compared.table):
        outcome = compared.outcomes.get(row["system"])
        if outcome is None:
            continue
        kept = outcome.most.kept
        ends = [(kept.gone[place], "gone"), (kept.shrunk[place], "replaced by a placeholder")]
        at, needs, there = needed_there(outcome.most, compared.setup.pairs)
        missing = [f"{request + 1:,}" for request in at[(needs == place) & ~there][:5]]
        level = ""
        words = "kept to the end"
        if ends := [end for end in ends if end[0] >= 0]:
            first, word = min(ends, key=lambda end: end[0])
            needed = "not needed afterwards"
            if missing:
                level = "cut"
                needed = f"needed later, in request {', '.join(missing)}"
            words = f"{word} from request {first + 1:,} on; {needed}"
        title = ", ".join(filter(None, [row["label"], cost_text(row["least"], row["most"])]))
        lines.append({"key": row["system"], "text": title, "note": words, "level": level})
    return lines


#: Windows to try, as multiples of the current window.
_MULTIPLES = (0.25, 0.5, 1.0, 2.0)
_MANY = 2_000  # messages above which 32 replays take seconds and need a click


class TurningFold(Content):
    """Panel of the cheapest rule at each cached-token price and window."""

    _wanted = False

    def parts(self, stage: ConversationStage) -> list[Data]:
        """Return the parts of the panel: sentences and a figure.

        For a long conversation, the parts are a note and a button until the button is pressed.
        """
        messages = len(stage.trace.messages)
        if messages > _MANY and not self._wanted:
            words = f"{messages:,} messages are replayed 32 times, which takes a few seconds."
            return [text_part(words), button("Calculate", {"work": True})]
        compared = stage.systems(window_of_systems(stage))
        size = compared.setup.budget.window
        windows = [int(size * multiple) for multiple in _MULTIPLES]
        table = stage.turning(windows)
        read = compared.setup.cache.read
        here = f"Here, the window is {size:,} tokens, and a cached token costs {read:g} times an uncached one."
        drawn = figure_part(
            "turning",
            figures.order_turns.title,
            f"{here} The number under a square is the change from the cost of keeping everything. The order changes "
            "at a red line.",
            figures.order_turns.spec(table),
            table_text(figures.order_turns.table(table)),
        )
        return [*map(text_part, turning_points(table)), drawn]

    def hear(self, _stage: ConversationStage, event: Data) -> None:
        """Compute the turning points when the button is pressed."""
        self._wanted = self._wanted or "work" in event
