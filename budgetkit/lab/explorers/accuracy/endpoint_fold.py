"""The fold that asks a provider to count: its number beside the exact count and the estimate, when a button says so.

Nothing is sent when the fold is opened, nor when a provider is chosen: then it says what would be sent, to whom and
with which key. The button sends just that, in a thread of its own, so that no slider waits for an answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from budgetkit.counters import Counter
from budgetkit.lab.accuracy.errors import USES, kind_of
from budgetkit.lab.accuracy.figures.documents import signed_percent
from budgetkit.lab.explorers.accuracy.results import AccuracyResults
from budgetkit.lab.explorers.accuracy.settings import AccuracySettings
from budgetkit.lab.explorers.folds import button, choice, refusal, text
from budgetkit.lab.explorers.shelves import Library

Data = dict[str, Any]
MOST_TEXTS = 20  # texts that are sent: each is a call
NOBODY = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """Texts as they were when they were offered to be sent, and whose counts they are compared with."""

    texts: tuple[str, ...]
    corpus: str
    model: str
    counters: tuple[Counter, ...]


@dataclass
class EndpointCall:
    """One question to a provider: its name, the texts, and what came of it."""

    provider: str
    sample: Sample
    tokens: int | None = None
    problem: str = ""

    @property
    def is_open(self) -> bool:
        """Whether a provider was asked and has not answered yet."""
        return self.tokens is None and not self.problem


class EndpointFold:
    """Estimate, exact count and a provider's endpoint side by side: tokens, cost, and when to use which."""

    def __init__(self, library: Library, again: Callable[[], None]) -> None:
        self._again = again
        self._provider = NOBODY
        self._offer: Sample | None = None
        self._request: EndpointCall | None = None

    def parts(self, settings: AccuracySettings, results: AccuracyResults) -> list[Data]:
        """Compare the ways of counting, and say what would be sent to the provider that is chosen."""
        request = self._request
        if request is not None and request.is_open:
            waiting = f"Asking {request.provider} about {_amount(request.sample)}"
            return [
                *_comparison(request.sample, request),
                {"is": "progress", "value": 0, "text": waiting},
            ]

        sample = self._sample(settings, results)
        if request is not None and request.tokens is not None:
            shown = _comparison(request.sample, request)
        else:
            shown = _comparison(sample, None)
        shown += self._question(sample)
        if request is not None and request.problem:
            return [*shown, text(request.problem, "error")]
        return shown

    def hear(self, settings: AccuracySettings, results: AccuracyResults, event: Data) -> None:
        """Choose a provider, or send it the texts that were offered."""
        if "provider" in event:
            self._provider = str(event["provider"])
            self._request = None
            self._offer = None
        elif (
            "send" in event
            and self._offer is not None
            and event["send"] == self._provider != NOBODY
        ):
            if self._request is not None and self._request.is_open:
                return
            request = EndpointCall(self._provider, self._offer)
            self._request = request
            threading.Thread(
                target=self._ask, args=(request,), daemon=True, name="budgetkit asking"
            ).start()

    def _question(self, sample: Sample) -> list[Data]:
        """Let a provider be chosen; of the one that is, say what it would be sent, with the button that sends it."""
        try:
            endpoints = import_module("budgetkit.extras.endpoints").ENDPOINTS
        except ImportError as problem:
            return [text(refusal(problem)["text"], "cut")]
        names = {
            NOBODY: "nobody",
            **{name: endpoint.provider for name, endpoint in endpoints.items()},
        }
        parts = [
            choice("Ask", "provider", names, self._provider if self._provider in names else NOBODY)
        ]
        if self._provider not in endpoints:
            return parts

        endpoint = endpoints[self._provider]
        try:
            endpoint.read_key()
        except ValueError as problem:
            return [*parts, text(refusal(problem)["text"], "cut")]
        self._offer = sample
        sentence = (
            f"{_amount(sample)} go over the network to {endpoint.provider}, which counts them for {sample.model}, "
            f"signed with the key in {endpoint.key}. Each different text is a call, "
            "and one more counts the letter a; answers are kept."
        )
        return [*parts, text(sentence), button("Send them and count", {"send": self._provider})]

    def _sample(self, settings: AccuracySettings, results: AccuracyResults) -> Sample:
        """Take some of the documents that are looked at, evenly spread over them."""
        documents = results.texts.corpus.documents
        numbers = results.errors.index.to_numpy()
        places = np.linspace(0, len(numbers) - 1, min(MOST_TEXTS, len(numbers))).round().astype(int)
        return Sample(
            texts=tuple(documents[number].text for number in numbers[places]),
            corpus=settings.corpus,
            # Without the router's or host's name before it.
            model=results.model.name.rpartition("/")[2],
            counters=tuple(
                {count.name: count for count in (results.counter, results.exact)}.values()
            ),
        )

    def _ask(self, request: EndpointCall) -> None:
        """Ask, and show the fold again with the answer or with why there is none."""
        try:
            count = import_module("budgetkit.extras.endpoints").provider_counter(
                request.provider, request.sample.model
            )
            request.tokens = sum(count.many(request.sample.texts))
        except Exception as problem:  # whatever it is: a thread that died in silence would wait for ever in the page
            request.problem = refusal(problem)["text"]
        self._again()


def _comparison(sample: Sample, request: EndpointCall | None) -> list[Data]:
    """Return a row for each way of counting: tokens, how far off, what it costs and when to use it."""
    counts = [
        (count.name, kind_of(count), sum(count.many(sample.texts))) for count in sample.counters
    ]
    answer = None if request is None else request.tokens
    reference = answer if answer is not None else counts[-1][2]

    rows = []
    for name, kind, tokens in counts:
        if reference and tokens != reference:
            deviation = f", {signed_percent(tokens / reference - 1)}"
        else:
            deviation = ""
        rows.append(_row(name, kind, f"{tokens:,} tokens{deviation}"))
    if request is None or answer is None:
        rows.append(_row("a provider's count endpoint", "endpoint", "nobody was asked"))
    else:
        rows.append(
            _row(
                f"{request.provider}'s count endpoint",
                "endpoint",
                f"{answer:,} tokens, its own count",
            )
        )
    return [text(f"{_amount(sample)} of {sample.corpus}:"), {"is": "rows", "rows": rows}]


def _row(name: str, kind: str, counted: str) -> Data:
    costs, use = USES[kind]
    return {
        "key": f"{kind} {name}",
        "text": f"{name}: {counted}",
        "note": f"Costs {costs}. For {use}.",
    }


def _amount(sample: Sample) -> str:
    many = len(sample.texts)
    characters = sum(map(len, sample.texts))
    return f"{many:,} text{'' if many == 1 else 's'} with {characters:,} characters"
