"""Every table with a share says how many cases the share rests on."""

from __future__ import annotations

import re
from collections.abc import Callable

import pandas as pd
import pytest

import budgetkit as bk
from tests.lab.test_deciding import TIGHT, conversations

#: Columns that hold a share, and columns that say of how many; tokens sent are what a cached share is of.
SHARE = re.compile(
    r"share|fits|overflow|mape|bias|p95|change|hit|present|of_base|risk|buffer|cached_share"
)
CASES = re.compile(
    r"n|documents|sources|conversations|requests|turns|needed|cases|calls|sessions|demand|messages|sent"
)
CORPUS = bk.corpora.Corpus(
    tuple(
        bk.corpora.Document(f"Some words of text {number}.", "prose", "en", "mine", str(number))
        for number in range(20)
    )
)


def errors() -> pd.DataFrame:
    return bk.accuracy.compare(["chars/4"], CORPUS)


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "summary": lambda: bk.accuracy.summary(errors()),
    "consequences": lambda: bk.accuracy.consequences(bk.Budget(1_000), errors()),
    "language_tax": lambda: bk.figures.language_tax.table(errors()),
    "document_errors": lambda: bk.figures.document_errors.table(errors()),
    "compare_models": lambda: bk.deciding.compare_models(
        conversations(2), ["gpt-4o"], "working_memory"
    ),
    "sensitivity": lambda: bk.deciding.sensitivity(
        conversations(4), TIGHT, {"output": [100]}, counter="chars/4"
    ),
    "losses": lambda: bk.deciding.losses(bk.replay(conversations(1)[0], TIGHT, "oldest first")),
    "rank_policies": lambda: bk.deciding.rank_policies(
        {"one": bk.replay(conversations(1)[0], TIGHT, "oldest first")}
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_beside_a_share_stands_the_number_of_cases(name: str) -> None:
    """A share of one conversation said "fits 1.0", and 0.02 overflows had neither a number nor an interval."""
    table = TABLES[name]()
    columns = [str(column) for column in table.columns]
    shares = [column for column in columns if SHARE.fullmatch(column)]
    if shares:
        assert any(CASES.fullmatch(column) for column in columns), (shares, columns)


def test_an_overflow_has_an_interval() -> None:
    row = TABLES["consequences"]().iloc[0]
    assert row["overflow_low"] <= row["overflow"] <= row["overflow_high"]
