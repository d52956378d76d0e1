"""Listing: several passages of a section written as one message, and a plan in which they cost what that one costs.

    message = title + between + entry 1 + between + entry 2 ...

Octopus sends what it retrieved as one formatted message, and the episodes as another (document 002). Each passage is
an item of its own, which a plan keeps, cuts or drops; what the message costs beyond their texts is paid by one of
those that stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from budgetkit.budget.quoting import brief
from budgetkit.budget.validation import unknown_section
from budgetkit.message import CHAT_ROLES, Message
from budgetkit.plan.item import Item
from budgetkit.plan.plan import Plan
from budgetkit.requests import FRAMINGS, Framing
from budgetkit.truncation import cutter

Cut = Callable[[Item, int, Any], Item | None]


@dataclass(frozen=True, slots=True)
class Listing:
    r"""Say how the passages of a section become one text.

    Parameters
    ----------
    title : str
        The first line; none when left out.
    entry : str, default "{text}"
        How each passage is written; "{number}" stands for its place, from 1.
    between : str, default "\n\n"
        What stands between two entries, and between the title and the first.

    Raises
    ------
    ValueError
        If an entry would not hold its text.

    Examples
    --------
    >>> print(Listing("Known:", "{number}. {text}", "\n").text(["Refunds take five days.", "Returns are free."]))
    Known:
    1. Refunds take five days.
    2. Returns are free.
    """

    title: str = ""
    entry: str = "{text}"
    between: str = "\n\n"

    def __post_init__(self) -> None:
        try:
            holds_text = "\0" in self.entry.format(number=1, text="\0")
        except (LookupError, ValueError, AttributeError):
            holds_text = False
        if not holds_text:
            raise ValueError(
                f"the entry of a listing is {brief(self.entry)}; known in it are {{text}} and {{number}}; "
                'write where the text stands, such as "{number}. {text}"'
            )

    def text(self, passages: Iterable[str]) -> str:
        """Return the text of all passages."""
        entries = [
            self.entry.format(number=number, text=text) for number, text in enumerate(passages, 1)
        ]
        return self.between.join([self.title, *entries] if self.title else entries)


AnyListings = Mapping[str, Listing | str] | Iterable[str] | None


def listings_of(value: AnyListings) -> dict[str, Listing]:
    """Return listings by section; a text is a title, and a bare name stands for a listing without one."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {value: Listing()}
    if not isinstance(value, Mapping):
        return {section: Listing() for section in value}
    listings = {}
    for section, listing in value.items():
        if listing is None or isinstance(listing, str):
            listing = Listing(listing or "")
        if not isinstance(listing, Listing):
            raise ValueError(
                f"as_one has {brief(listing)} for {brief(section)}; known are a title and a Listing; give one"
            )
        listings[section] = listing
    return listings


def check_listings(
    listings: Mapping[str, Listing],
    messages: Iterable[tuple[str, Mapping[str, Any]]],
    sections: Collection[str],
) -> None:
    """Refuse a listing of a section that is not there, or whose messages are more than texts of nobody's."""
    if unknown := [section for section in listings if section not in sections]:
        raise unknown_section(unknown, sections)
    for section, message in messages:
        is_text = message["role"] not in CHAT_ROLES and isinstance(message.get("content"), str)
        if section in listings and not is_text:
            raise ValueError(
                f"as_one names {brief(section)}, which holds a message of {brief(message['role'])}; known are "
                "sections of texts and passages; leave it out"
            )


@dataclass(frozen=True, slots=True)
class ListedSection:
    """Price the passages of one section as the one message that they become.

    Parameters
    ----------
    listing : Listing
        How they are written.
    count : callable
        From text to tokens.
    framing : Framing
        What the message costs beyond its text.
    more : int
        What is paid beside it, in tokens, such as the priming of a request that this message ends.
    """

    listing: Listing
    count: Callable[[str], int]
    framing: Framing
    more: int = 0

    def bare(self, item: Item) -> Item:
        """Return an item at the size of its text alone."""
        return replace(item, tokens=self.count(item.payload.text))

    def surplus(self, items: Sequence[Item]) -> int:
        """Return what the one message of some items costs beyond their texts, in tokens; below 0 where texts merge."""
        whole = {
            **items[0].payload.raw,
            "content": self.listing.text(item.payload.text for item in items),
        }
        cost = self.framing.message(Message(whole), self.count) + self.more
        return cost - sum(self.count(item.payload.text) for item in items)

    def cut(self, item: Item, limit: int, allocation: Any) -> Item | None:
        """Cut an item's text to what a limit leaves beside what the item pays for the others."""
        paid = item.tokens - self.count(item.payload.text)
        shorter = cutter(self.count, FRAMINGS["text"])(self.bare(item), limit - paid, allocation)
        if shorter is None:
            return None
        return replace(shorter, tokens=shorter.tokens + paid)


def plan_with_listings(
    items: Sequence[Item],
    sections: Mapping[str, ListedSection],
    cut: Cut,
    planned: Callable[[Sequence[Item], Cut], Plan],
) -> Plan:
    """Plan items of which those of some sections become one message each.

    The surplus of a section is paid by the best of its passages that stays. Who stays depends on the surplus, so it is
    planned again until nothing changes: {best: 300 + 12, second: 200} may leave no room for the best, and then the
    second pays too. Payers only become more and a surplus only grows, so it comes to an end, and the plan never says
    less than is sent.
    """
    if not sections:
        return planned(items, cut)

    def cut_listed(item: Item, limit: int, allocation: Any) -> Item | None:
        listing = sections.get(item.section)
        if listing is None:
            return cut(item, limit, allocation)
        return listing.cut(item, limit, allocation)

    bare = [
        sections[item.section].bare(item) if item.section in sections else item for item in items
    ]
    surpluses: dict[str, int] = {}
    payers: dict[int, str] = {}
    while True:
        priced = list(bare)
        for place, section in payers.items():
            priced[place] = replace(
                priced[place], tokens=max(0, priced[place].tokens + surpluses[section])
            )
        plan = planned(priced, cut_listed)

        has_changed = False
        for section, listing in sections.items():
            places = [
                place
                for place, decision in enumerate(plan.decisions)
                if decision.section == section and decision.outcome != "dropped"
            ]
            if not places:
                continue
            surplus = listing.surplus([plan.decisions[place].item for place in places])
            if section not in surpluses or surplus > surpluses[section]:
                surpluses[section] = surplus
                has_changed = True
            if not payers.keys() & set(places):
                best = max(places, key=lambda place: bare[place].score)
                payers[best] = section
                has_changed = True
        if not has_changed:
            return plan


def written_as_one(
    messages: Sequence[tuple[str, dict[str, Any]]], listings: Mapping[str, Listing]
) -> list[dict[str, Any]]:
    """Return messages, each with its section, of which those of a listed section are one, where the first stood."""
    texts: dict[str, list[str]] = {}
    for section, message in messages:
        if section in listings:
            texts.setdefault(section, []).append(message["content"])
    result = []
    for section, message in messages:
        if section not in listings:
            result.append(message)
        elif section in texts:
            result.append({**message, "content": listings[section].text(texts.pop(section))})
    return result
