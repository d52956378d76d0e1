"""Write data/traces/made-up-chats.jsonl: short conversations that no one ever held, for the notebook on deciding.

Each customer names a few facts early (a name, an order, a date, a place) and asks about them later, so that a budget
that forgets too much loses something that is needed. The same seed writes the same bytes.
"""

import json
from pathlib import Path
from random import Random

TARGET = Path(__file__).parents[1] / "data" / "traces" / "made-up-chats.jsonl"
NAMES = [
    "Amara",
    "Benedek",
    "Chidi",
    "Dorota",
    "Emre",
    "Farida",
    "Goran",
    "Hoa",
    "Ines",
    "Jomo",
    "Katya",
    "Liang",
]
PLACES = [
    "Brno",
    "Cusco",
    "Dakar",
    "Espoo",
    "Fukuoka",
    "Galway",
    "Hobart",
    "Izmir",
    "Jaipur",
    "Kigali",
    "Lviv",
    "Malmo",
]
THINGS = [
    "kettle",
    "rucksack",
    "lamp",
    "bicycle pump",
    "raincoat",
    "keyboard",
    "tent",
    "blender",
    "desk",
    "headset",
]
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
TROUBLES = [
    "arrived with a dent near the handle, and the box was open on one side",
    "has not arrived, although the tracking page said it was delivered yesterday",
    "is the wrong colour; I chose green and got something closer to brown",
    "stopped working after two days, with a faint smell of warm plastic",
]
ADVICE = [
    "Please keep the packaging until the case is closed; the carrier may ask to see it.",
    "You can print the label at home or show the code on your phone at any parcel shop.",
    "Refunds go back to the card that was used and take three to five working days.",
    "A photograph of the serial number helps the workshop to find the right spare part.",
    "If the parcel shop is closed, the driver leaves a note with the next opening hours.",
    "The guarantee covers two years from the day of delivery, accessories included.",
]
SYSTEM = "You are the help desk of a small shop. Be brief, be kind, and never ask twice for what the customer has said."


def facts(random: Random) -> dict[str, str]:
    """Draw what one customer tells."""
    return {
        "name": random.choice(NAMES),
        "place": random.choice(PLACES),
        "thing": random.choice(THINGS),
        "order": f"{random.choice('ABCDEFGH')}{random.randint(10_000, 99_999)}",
        "day": random.choice(WEEKDAYS),
        "trouble": random.choice(TROUBLES),
    }


def opening(told: dict[str, str]) -> list[tuple[str, str]]:
    """Return the first exchange, in which all facts are told."""
    said = "Hello, this is {name} from {place}. My order {order}, a {thing}, {trouble}.".format(
        **told
    )
    return [
        ("user", said),
        (
            "assistant",
            "I am sorry to hear that, {name}. I have opened order {order}.".format(**told),
        ),
    ]


def later(told: dict[str, str], random: Random) -> list[tuple[str, str]]:
    """Return an exchange about something, which in one of two cases needs a fact from the beginning."""
    advice = " ".join(random.sample(ADVICE, random.randint(1, 4)))
    asks = [
        ("Can the driver come on {day} instead?", "Yes, {day} works for {place}. " + advice),
        ("Which order was that again?", "It is {order}, the {thing}. " + advice),
        ("What else should I know?", advice),
        ("Is there anything I have to pay?", "No, nothing. " + advice),
    ]
    question, answer = random.choice(asks)
    return [("user", question.format(**told)), ("assistant", answer.format(**told))]


def conversation(number: int, random: Random) -> dict[str, object]:
    """Make one conversation of 6 to 26 messages after the system prompt."""
    told = facts(random)
    said = opening(told)
    for _ in range(random.randint(2, 12)):
        said += later(told, random)
    messages = [
        {"role": "system", "content": SYSTEM},
        *({"role": role, "content": text} for role, text in said),
    ]
    return {"id": f"made-up-{number:02}", "messages": messages, "meta": {"made_up": True}}


def main() -> None:
    """Write the file."""
    random = Random(2_026)
    lines = [
        json.dumps(conversation(number, random), ensure_ascii=False) for number in range(1, 49)
    ]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
