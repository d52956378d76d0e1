"""An Item is a plain value: what it refuses, and what it leaves alone."""

import dataclasses
from typing import Any

import pytest

from budgetkit.budget.amounts import MOST_TOKENS
from budgetkit.plan.items import Item


def test_an_item_is_a_section_and_a_size_and_never_changes() -> None:
    item = Item("history", 0)
    assert (item.score, item.importance, item.group, item.payload) == (0.0, None, None, None)
    payload = {"role": "user", "content": "Hello world"}
    assert Item("current", 9, payload=payload).payload is payload
    with pytest.raises(dataclasses.FrozenInstanceError):
        item.tokens = 13  # type: ignore[misc]


@pytest.mark.parametrize("tokens", [-1, 1.5, 2.0, True, "12", None])
def test_tokens_that_are_no_whole_number_are_refused_in_a_sentence(tokens: Any) -> None:
    with pytest.raises(ValueError) as error:
        Item("history", tokens)
    problem, remedy = str(error.value).split(f": {tokens!r}. ")
    assert problem == "Invalid token count of an item in section 'history'"
    assert remedy.startswith("Use a whole number from 0 to 1,099,511,627,776")


def test_tokens_that_no_column_could_add_up_are_refused_before_they_are_in_one() -> None:
    assert Item("history", MOST_TOKENS).tokens == 2**40
    refusal = r"Invalid token count .*: 1180591620717411303424\. Use .* to 1,099,511,627,776"
    with pytest.raises(ValueError, match=refusal):
        Item("history", 2**70)
