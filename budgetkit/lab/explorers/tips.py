"""Tips: what each control does, in plain words, by the label that it has."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

TIPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Model": "Which model it is for: its window, its tokenizer and its prices. Type a part of its name",
        "Preset": "A budget to start from; it sets all lines below",
        "Window": "How many tokens the model takes in at once",
        "Counter": "What counts the tokens; empty for the model's own tokenizer",
        "From": "Where the messages come from: a shipped conversation, or one that was opened",
        "File": "The path of a conversation on this machine, read when you press Enter",
        "Find": "A part of a title; Enter leaves the conversations that have it in the list, and shows the first",
        "Which": "Which conversation of the file",
        "Turn": "The turn that is planned; each begins with what the user says",
        "A request for": "Whether the model is asked once a turn, or once for each of its answers and tool calls",
        "In detail": "The policy that the figures show",
        "If it won't fit": "What happens when what must stay is larger than its room",
        "Rules": "How the provider's prompt cache works: what is cached, from which size, at what price",
        "Lifetime": "How long the cache is kept after its last use",
        "Prices of": "The day whose prices are taken, as YYYY-MM-DD; empty for today",
        "Turns ahead": "How many turns the forecast looks ahead",
        "Cheap counter": "The quick count whose error is measured",
        "Exact encoding": "The tokenizer that is right; empty for the model's own",
        "Texts": "The texts on which both are compared",
        "Path": "A folder, a file or a pattern such as **/*.md on this machine",
        "Kind of text": "The kind of the texts at hand: what is looked at, and what the buffer is for",
        "Classes": "Kinds of text that are looked at; several with Ctrl",
        "Cut to": "Whether documents are compared whole, or in pieces of about that length",
        "Length": "The shortest and the longest documents that are looked at, in characters",
        "Risk, %": "How many windows of a hundred may overflow",
        "A window has": "Whether one window mixes all kinds of text, or holds one kind",
        "Document": "The text that is shown below, token by token",
    }
)
