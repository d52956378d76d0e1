"""Messages cut inside: placeholders of tool results, results too large for the window, fewer passages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from budgetkit.budget import Allocation, Budget
from budgetkit.conversation.request import Left
from budgetkit.conversation.running_tally import RunningTally, TallyRules
from budgetkit.message import RESULT_ROLES, Message
from budgetkit.plan import Grant, fit
from budgetkit.plan.item import Item
from budgetkit.pruning.dropping import LEAST_RESULT, least_tokens
from budgetkit.truncation import cutter, truncate

PLACEHOLDER = "[tool result left out]"
_INSIDE = Allocation("result", granularity="token", keep="first")


def placeholder(result: Message, limit: int, rules: TallyRules) -> Message:
    """Return what is left of a tool result, of at most so many tokens."""
    return result.with_text(
        truncate(PLACEHOLDER, limit, _cost(result, limit, rules, "a placeholder"))
    )


def capped(result: Message, limit: int, rules: TallyRules) -> Message:
    """Return a tool result cut inside, of at most so many tokens."""
    return result.with_text(
        truncate(result.text, limit, _cost(result, limit, rules, "a tool result"))
    )


def _cost(result: Message, limit: int, rules: TallyRules, what: str) -> Callable[[str], int]:
    """Return what the result holds with another text; refuse a limit that it exceeds without one."""

    def cost(text: str) -> int:
        return rules.framing.message(result.with_text(text), rules.count)

    if cost("") > limit:
        raise ValueError(
            f"{what} of {limit:,} tokens was asked for; an empty tool result has {cost(''):,}; give at least these"
        )
    return cost


def shorten_results(tally: RunningTally, excess: int, section: str | None = None) -> Iterator[Left]:
    """Cut tool results inside, the largest first, until so many tokens are saved; of one section, or of all."""
    cut = cutter(tally.rules.count, tally.rules.framing)
    candidates = [
        (line.tokens, slot)
        for slot, line in tally.entries.items()
        if line.sent and line.message.role in RESULT_ROLES
    ]
    for tokens, slot in sorted(candidates, key=lambda pair: (-pair[0], pair[1])):
        line = tally.entries[slot]
        if excess <= 0 or tokens <= LEAST_RESULT:
            return
        if section is not None and section != tally.section_of(slot):
            continue
        shorter = cut(
            Item("result", tokens, payload=line.message),
            max(LEAST_RESULT, tokens - excess),
            _INSIDE,
        )
        if shorter is not None and shorter.tokens < tokens:
            tally.rewrite(slot, shorter.payload, shorter.tokens)
            excess -= tokens - shorter.tokens
            yield Left(line.message.raw, "shortened")


def sent_at_least(tally: RunningTally, grant: Grant) -> int:
    """Return what a section sends at least, in tokens: it gives up passages, and tool results down to a rest."""
    saved = sum(item.tokens for item in tally.passages if item.section == grant.section)
    for slot, line in tally.entries.items():
        if line.sent and tally.section_of(slot) == grant.section:
            saved += line.tokens - least_tokens(line.message.role, line.tokens)
    return max(grant.granted, grant.demand - saved)


def fewer_passages(tally: RunningTally, budget: Budget, section: str, most: int) -> list[Item]:
    """Keep of a section's passages what so many tokens have room for, as its allocation chooses."""
    in_section = [item for item in tally.passages if item.section == section]
    room = max(0, most - tally.demand()[section] + sum(item.tokens for item in in_section))
    line = next((a for a in budget.allocations if a.section == section), Allocation(section))
    alone = Budget(
        room, (), [replace(line, cap=None, floor=0, weight=0, required=False)], deficit="signed"
    )
    kept_ids = {id(decision.item) for decision in fit(alone, in_section).decisions if decision.kept}
    return [item for item in tally.passages if item.section != section or id(item) in kept_ids]
