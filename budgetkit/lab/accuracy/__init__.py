"""Errors of token counts, and buffers against the overflows they cause.

    error  = estimate / exact - 1                       of a document
    ratio  = (sum of exact) / (sum of estimates)        of a window filled with documents
    safety = 1 - 1 / (quantile of the ratio at 1 - risk)

A window that is full by the estimate contains `ratio` times as many tokens as estimated. The errors of many documents
partly cancel, so the buffer is computed for the window and not for a single document.
"""

from budgetkit.counters import calibrate
from budgetkit.lab.accuracy.bills import fit_bill
from budgetkit.lab.accuracy.buffers import Buffer, buffer_for, consequences
from budgetkit.lab.accuracy.claims import claims
from budgetkit.lab.accuracy.errors import bounds, certify, compare, summary, ways
from budgetkit.lab.accuracy.kinds import kinds_of

__all__ = [
    "Buffer",
    "bounds",
    "buffer_for",
    "calibrate",
    "certify",
    "claims",
    "compare",
    "consequences",
    "fit_bill",
    "kinds_of",
    "summary",
    "ways",
]


__dir__ = __all__.copy  # completion shows no other names
