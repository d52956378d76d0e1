"""Rules by which other systems count a text, each under the name of its system.

All of them divide a length by a number. They differ in what they divide, in how they round, and in whether an empty
text counts.
"""

from __future__ import annotations

from typing import Final

__all__ = ["RULES"]

#: The counter by ratio that each system's rule is. What a system adds for a message is its framing.
RULES: Final = {
    "octopus": "utf16/4",  # document 000: text.Length / 4 in C#, at least 1
    "langchain": "chars/4 (ceil, minimum 0)",  # langchain-core 1.8.2, count_tokens_approximately
    "praisonai": "chars/4 (minimum 0)",  # PraisonAI, int(len(text) * 0.25); read 2026-11-21
    "ibex": "bytes/4 (ceil, minimum 0)",  # memory engine's estimate; its runes are (2 n + 6) // 7
    "ibex-runes": "chars/3.5 (ceil, minimum 0)",
}
