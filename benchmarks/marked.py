"""Conversations of our own with marks of what is needed: ``python -m benchmarks.marked FOLDER``.

Writes ``made-up-marked.jsonl`` for `benchmarks.promised`. Facts are told at random places, by either side, among talk
that names the same people, things, weekdays and numbers; later each is asked for once, and the question carries the
index of the message that told it, as `budgetkit.deciding.evidence` documents it. Nobody ever held these
conversations, so what they show is how the measures behave, not how people talk. The same seed writes the same bytes.
"""

import argparse
import json
from pathlib import Path
from random import Random

from scripts.build_made_up import ADVICE, NAMES, PLACES, THINGS, TROUBLES, WEEKDAYS

CONVERSATIONS, FACTS, TALK = 24, 10, 60


def conversation(number: int, random: Random) -> dict[str, object]:
    """Make one conversation: talk, with facts told in its first two thirds and asked for after them."""
    people, things = random.sample(NAMES, FACTS), random.sample(THINGS, FACTS)
    told = sorted(random.sample(range(2 * TALK // 3), FACTS))
    asked = sorted(random.sample(range(2 * TALK // 3, TALK), FACTS))
    order = random.sample(range(FACTS), FACTS)
    messages: list[dict[str, object]] = [
        {"role": "system", "content": "You keep the lost property of a railway."}
    ]
    where: dict[int, int] = {}
    for place in range(TALK):
        if place in told:
            fact = told.index(place)
            where[fact] = len(messages) + random.randrange(2)
            said = [random.choice(ADVICE), random.choice(ADVICE)]
            thing, town, code = things[fact], random.choice(PLACES), random.randint(10_000, 99_999)
            said[where[fact] - len(messages)] = (
                f"{people[fact]} left a {thing} on the train to {town}, number {code}."
            )
            messages += _pair(said[0], said[1])
        elif place in asked:
            fact = order[asked.index(place)]
            question = random.choice(
                ["Where did {} lose the {}?", "What number has what {} left behind, the {}?"]
            )
            question = question.format(people[fact], things[fact])
            messages += _pair(question, "Let me look.", [where[fact]])
        else:
            thing, day = random.choice(THINGS), random.choice(WEEKDAYS)
            messages += _pair(
                f"On {day} a {thing} {random.choice(TROUBLES)}.", random.choice(ADVICE)
            )
    return {"id": f"made-up-marked-{number:02}", "messages": messages, "meta": {"made_up": True}}


def _pair(asked: str, answered: str, evidence: list[int] | None = None) -> list[dict[str, object]]:
    user: dict[str, object] = {"role": "user", "content": asked}
    return [
        user | ({"evidence": evidence} if evidence else {}),
        {"role": "assistant", "content": answered},
    ]


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.marked", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("folder", type=Path)
    folder, random = parser.parse_args().folder, Random(2_026)
    lines = [
        json.dumps(conversation(number, random), ensure_ascii=False)
        for number in range(1, CONVERSATIONS + 1)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "made-up-marked.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
