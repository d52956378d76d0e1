"""Layouts: in which states, for which models and at which widths explorers are looked at, and what is wrong there."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path

FAULTS = (Path(__file__).parent / "layout_faults.js").read_text(encoding="utf-8")
#: The same faults once the page has come to rest: in ten frames, one after the other.
FAULTS_AT_REST = f"""async () => {{
    const faults = {FAULTS.split(chr(10), 2)[2]};
    let before = "", same = 0;
    for (let frame = 0; same < 10 && frame < 600; frame++) {{
        await new Promise(requestAnimationFrame);
        const now = JSON.stringify(faults());
        same = now === before ? same + 1 : 0;
        before = now;
    }}
    return JSON.parse(before);
}}"""
CONTAINER = "width => { document.querySelector('.bk-explorer').style.width = `${width}px`; }"
#: What is set after model and preset: code that the kernel runs.
STATES = {
    "as it opens": "",
    "claims too much": "explorer.move('output', '50%')",
    "a large window": "explorer.set(window=2_000_000)",
    "a small window": "explorer.set(window=1_024)",
    "no conversation": "explorer._run_command('trace', name=None)",
}
FACTORS: Mapping[str, Sequence[object]] = {
    "model": (
        "gpt-4o",
        "claude-sonnet-4-5",
        "gemini-2.5-pro",
        "deepseek-v3.1",
        "mistral-large",
        "llama-3.1-70b",
    ),
    "preset": ("chat", "working_memory", "agent_prompt", "memory_engine"),
    "state": tuple(STATES),
    "width": (480, 640, 780, 1024, 1300, 1400),
    "theme": ("light", "dark"),
}


def every_layout() -> Iterator[dict[str, object]]:
    """Yield every combination."""
    for values in product(*FACTORS.values()):
        yield dict(zip(FACTORS, values, strict=True))


def pairwise_layouts() -> list[dict[str, object]]:
    """Return few combinations in which each two values of two factors meet, those of one theme together."""
    waiting = {
        ((one, a), (other, b))
        for one, other in combinations(FACTORS, 2)
        for a, b in product(FACTORS[one], FACTORS[other])
    }
    layouts = []
    while waiting:
        best = max(every_layout(), key=lambda layout: len(waiting & pairs_of(layout)))
        waiting -= pairs_of(best)
        layouts.append(best)
    return sorted(layouts, key=lambda layout: str(layout["theme"]), reverse=True)


def pairs_of(layout: Mapping[str, object]) -> set[tuple[tuple[str, object], tuple[str, object]]]:
    """Return each two values that meet in a combination."""
    return set(combinations(layout.items(), 2))


def code_of(layout: Mapping[str, object]) -> str:
    """Return what the kernel runs so that the card comes into a state."""
    return f"""explorer.reset()
explorer._run_command('trace', name='mixed-language')
explorer.set(model={layout["model"]!r})
explorer.set(preset={layout["preset"]!r})
{STATES[str(layout["state"])]}"""
