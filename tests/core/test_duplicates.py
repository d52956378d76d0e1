"""Near-duplicates are found before anything is budgeted, the first one stays, and what they cost is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import budgetkit as bk

pytest.importorskip("rapidfuzz")

PASSAGES = [
    "Parcels to Norway leave every day at noon, except on Sundays and on public holidays.",
    "Refunds are paid back to the card that was used, within five working days.",
    "Parcels to Norway leave every day at noon, except on Sundays and public holidays.",
    "Parcels to Norway leave every day at noon, except on Sundays and on public holidays.",
]


def items(texts: list[str], tokens: int = 20) -> list[bk.Item]:
    return [bk.Item("retrieval", tokens, payload=text) for text in texts]


def test_the_first_stays_and_each_repetition_names_it() -> None:
    found = bk.near_duplicates(items(PASSAGES))
    assert found[["item", "of"]].values.tolist() == [[2, 0], [3, 0]]
    assert found["similarity"].round(3).tolist() == [0.982, 1.0]
    assert found["tokens"].sum() == 40


def test_leaving_them_out_saves_what_was_said() -> None:
    budget, listed = bk.presets.rag(1_000), items(PASSAGES)
    found = bk.near_duplicates(listed)
    fewer = [item for index, item in enumerate(listed) if index not in set(found["item"])]
    saved = bk.fit(budget, listed)["retrieval"].granted - bk.fit(budget, fewer)["retrieval"].granted
    assert saved == found["tokens"].sum()


def test_a_tool_read_twice_is_found_and_told_to_belong_to_its_call() -> None:
    read = {"id": "1", "function": {"name": "read", "arguments": "{}"}}
    said: list[dict[str, object]] = [
        {"role": "user", "content": "Read it twice."},
        {"role": "assistant", "content": None, "tool_calls": [read]},
        {"role": "tool", "tool_call_id": "1", "content": PASSAGES[0]},
        {"role": "assistant", "content": None, "tool_calls": [{**read, "id": "2"}]},
        {"role": "tool", "tool_call_id": "2", "content": PASSAGES[0]},
    ]
    found = bk.near_duplicates(bk.Trace("x", tuple(map(bk.Message, said))).items(1, "gpt-4o"))
    assert found[["item", "of", "paired"]].values.tolist() == [[4, 2, True]]


def test_short_ones_and_other_ones_are_left_alone() -> None:
    assert len(bk.near_duplicates(items(["Thank you!", "Thank you!"], tokens=3))) == 0
    assert len(bk.near_duplicates(items(PASSAGES[:2]))) == 0
    assert len(bk.near_duplicates([bk.Item("history", 50), bk.Item("history", 50)])) == 0
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        bk.near_duplicates([], at_least=90)


@given(
    st.lists(st.text("ab ", min_size=1, max_size=12), max_size=8), st.sampled_from([0.5, 0.8, 1.0])
)
def test_what_stays_repeats_nothing_and_each_repetition_is_as_near_as_said(
    texts: list[str], least: float
) -> None:
    listed = items(texts)
    found = bk.near_duplicates(listed, at_least=least)
    assert found.equals(bk.near_duplicates(listed, at_least=least))
    stay = [item for index, item in enumerate(listed) if index not in set(found["item"])]
    assert len(bk.near_duplicates(stay, at_least=least)) == 0
    assert (found["of"] < found["item"]).all()
    assert (found["similarity"] >= least).all()
    assert set(found["of"]).isdisjoint(found["item"])


@st.composite
def edited(draw: st.DrawFn) -> list[str]:
    """Texts of which some are earlier ones with a few letters changed."""
    texts = draw(
        st.lists(st.text("abcdef é\ud800", min_size=1, max_size=60), min_size=1, max_size=4)
    )
    for _ in range(draw(st.integers(1, 4))):
        text = draw(st.sampled_from(texts))
        at, gone = draw(st.integers(0, len(text))), draw(st.integers(0, 4))
        texts.append(text[:at] + draw(st.text("ab", max_size=3)) + text[at + gone :] or "a")
    return texts


@given(edited(), st.sampled_from([0.3, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0]))
def test_nothing_is_missed_that_comparing_each_with_each_would_find(
    texts: list[str], least: float
) -> None:
    from rapidfuzz import fuzz

    own, expected = list[int](), []
    for index, text in enumerate(texts):
        near = [(-fuzz.ratio(texts[other], text), other) for other in own]
        if near and -min(near)[0] >= 100 * least:
            expected.append([index, min(near)[1]])
        else:
            own.append(index)
    assert (
        bk.near_duplicates(items(texts), at_least=least)[["item", "of"]].values.tolist() == expected
    )
