"""Buffers keep what they promise: at the size that is filled, on sources not seen, and for kinds that are known."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from budgetkit import accuracy
from budgetkit.lab.accuracy.buffers import filled_windows
from budgetkit.lab.accuracy.kinds import language_of
from tests.lab.test_accuracy import errors_of


@cache
def drawn(
    seed: int, kinds: int = 12, sources: int = 8, documents: int = 60, spread: float = 0.08
) -> pd.DataFrame:
    """Texts whose ratio of exact to estimate differs by kind, by source and by document."""
    random = np.random.default_rng(seed)
    rows = []
    for kind in range(kinds):
        of_kind = random.normal(0, 2 * spread)
        for source in range(sources):
            of_source = of_kind + random.normal(0, spread)
            estimate = random.integers(100, 500, documents)
            exact = np.rint(estimate * np.exp(of_source + random.normal(0, 0.2, documents)))
            about = {"class": f"kind {kind}", "source": f"{kind}-{source}", "counter": "mine"}
            rows.append(pd.DataFrame({**about, "exact": exact, "estimate": estimate}))
    return pd.concat(rows, ignore_index=True)


def overflow(errors: pd.DataFrame, share: float, window: int, seed: int = 0) -> float:
    """Fill windows with one class of these texts each, document by document, and count those that run over."""
    random = np.random.default_rng(seed)
    over = []
    for _, texts in errors.groupby("class"):
        exact, estimate = texts["exact"].to_numpy(), texts["estimate"].to_numpy()
        for _ in range(30):
            order = random.integers(0, len(texts), 4 * window // 100)
            filled = np.cumsum(estimate[order]) <= window * (1 - share)
            over.append(exact[order][filled].sum() > window)
    return float(np.mean(over))


@pytest.mark.slow
@pytest.mark.parametrize("window", [4_096, 32_000])
@pytest.mark.parametrize(("risk", "most"), [(0.05, 0.075), (0.01, 0.015)])
def test_a_promise_holds_on_sources_that_were_not_seen(
    window: int, risk: float, most: float
) -> None:
    """Half of the sources ask for the buffer, the other half fill the windows; within half as much again."""
    found = []
    for seed in range(12):
        errors = drawn(seed)
        known = errors["source"].str[-1].astype(int) % 2 == 0
        buffer = accuracy.buffer_for(errors[known], window, risk)
        found.append(overflow(errors[~known], buffer.share, window, seed))
    assert np.mean(found) <= most


def test_the_share_is_found_at_the_size_that_is_filled() -> None:
    """Twenty texts fill the window, of which a share is held back: fewer are filled, and fewer spread more."""
    random = np.random.default_rng(1)
    exact = np.rint(100 * np.exp(random.normal(0.7, 0.8, 20_000))).astype(int)
    errors = errors_of(exact.tolist(), [100] * len(exact))
    buffer = accuracy.buffer_for(errors, 2_000, 0.05)
    held = round(2_000 * (1 - buffer.share) / 100)
    sums = random.choice(exact, (20_000, held)).sum(axis=1)
    assert 0.03 <= (sums > 2_000).mean() <= 0.065


def test_few_documents_ask_for_more_than_many_that_are_alike() -> None:
    """The mean of sixty documents is not known as that of six thousand is; a large window rests on the mean alone."""
    few, many = errors_of([100] * 60, [60, 140] * 30), errors_of([100] * 6_000, [60, 140] * 3_000)
    assert accuracy.buffer_for(few, 100_000).share > 3 * accuracy.buffer_for(many, 100_000).share


def test_by_default_a_window_is_of_one_class_or_of_one_language_whichever_asks_for_more() -> None:
    exact = [100] * 400
    one = errors_of(exact, [60] * 200 + [140] * 200).assign(language=["a", "b"] * 200)
    by_class = one.assign(**{"class": ["code"] * 200 + ["prose"] * 200})
    assert accuracy.buffer_for(by_class, 100_000).share == pytest.approx(0.4)
    by_language = by_class.rename(columns={"class": "language", "language": "class"})
    assert accuracy.buffer_for(by_language, 100_000).share == pytest.approx(0.4)
    assert accuracy.buffer_for(by_class, 100_000, window_mix="mixed").share < 0.1


def test_a_kind_that_no_document_has_is_said_and_gets_what_the_kind_that_asks_for_most_needs() -> (
    None
):
    errors = drawn(0, kinds=2, sources=20)
    buffer = accuracy.buffer_for(errors, 4_096, kinds=["kind 1", "log"])
    assert buffer.kinds == ("kind 0", "kind 1")
    assert buffer.warning == (
        "based on 'kind 0', 'kind 1' only, so it promises nothing about 'log' in the conversation; add such texts; "
        "the risk is an average, and windows of the worst kind of text may overflow more often"
    )
    assert buffer.share == accuracy.buffer_for(errors, 4_096).share
    assert (
        accuracy.buffer_for(errors, 4_096, kinds=["kind 1"]).warning
        == buffer.lacks(["kind 0"])
        == ""
    )


def test_the_interval_is_as_wide_as_kinds_differ() -> None:
    """Of five kinds nobody knows the sixth: with the same documents, their share is far less certain than of fifty."""
    few, many = (accuracy.buffer_for(drawn(3, n, 2, 600 // n), 32_000) for n in (5, 50))
    assert few.high - few.low > many.high - many.low


@pytest.mark.slow
def test_the_interval_holds_the_share_of_all_kinds() -> None:
    """A hundred corpora of ten kinds each would be apart; twenty are drawn, and their intervals asked."""
    truth = accuracy.buffer_for(drawn(99, 400, 4, 10), 32_000, 0.2).share
    found = [accuracy.buffer_for(drawn(seed, 10, 4, 30), 32_000, 0.2) for seed in range(40)]
    assert np.mean([buffer.low <= truth <= buffer.high for buffer in found]) >= 0.8


def test_a_mix_by_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"Unknown window_mix 'weather'. Choose 'mixed' or a column: 'class'"
    ):
        accuracy.buffer_for(drawn(0, kinds=2), 4_096, window_mix="weather")


def test_the_same_seed_finds_the_same() -> None:
    errors = drawn(0, kinds=3)
    one, other = (filled_windows(errors, 4_096, seed=7) for _ in range(2))
    assert (one.share(0.05), one.interval(0.05)) == (other.share(0.05), other.interval(0.05))


@pytest.mark.parametrize("window", [4_096, 128_000])
def test_for_a_kind_that_is_known_the_buffer_is_that_kinds_own(window: int) -> None:
    """It holds back less than the kind that asks for most needs, and keeps its promise on sources not seen."""
    observed, shares, worst = [], [], []
    for seed in range(6):
        errors = drawn(seed, kinds=5, sources=24, documents=40)
        is_seen = errors["source"].str.rpartition("-")[2].astype(int) % 2 == 0
        general = accuracy.buffer_for(errors[is_seen], window)
        for kind in ("kind 0", "kind 1", "kind 2"):
            buffer = accuracy.buffer_for(errors[is_seen], window, kinds=[kind])
            others = errors[~is_seen & (errors["class"] == kind)]
            observed.append(
                overflow(others.assign(**{"class": others["source"]}), buffer.share, window, seed)
            )
            shares.append(buffer.share)
            worst.append(general.share)
            assert buffer.kinds == (kind,)
            assert (
                buffer.warning
                == "a promise at 5 % risk needs 19 sources of its class, but there are 12"
            )
    assert np.mean(observed) <= 0.075
    assert np.mean(shares) < 0.8 * np.mean(worst)


def test_of_fewer_sources_than_a_promise_needs_the_kind_that_asks_for_most_decides_and_that_is_said() -> (
    None
):
    """Each kind has few sources; all kinds together show how sources differ, if they are nineteen."""
    errors = drawn(0, kinds=3, sources=6)
    buffer, worst = (
        accuracy.buffer_for(errors, 4_096, kinds=["kind 1"]),
        accuracy.buffer_for(errors, 4_096),
    )
    assert buffer.share == worst.share
    assert worst.warning == buffer.warning
    assert buffer.warning == (
        "a promise at 5 % risk needs 19 sources, but there are 18; "
        "the risk is an average, and windows of the worst kind of text may overflow more often"
    )
    enough = drawn(0, kinds=5, sources=4)
    least = min(
        accuracy.buffer_for(enough, 4_096, kinds=[f"kind {number}"]).share for number in range(5)
    )
    assert least < accuracy.buffer_for(enough, 4_096).share


EXACT = np.random.default_rng(0).integers(80, 120, 400)
WITHOUT_SOURCES = pd.DataFrame({"counter": "mine", "exact": EXACT, "estimate": 100})


def test_a_smaller_risk_than_documents_without_sources_carry_is_said() -> None:
    rare = accuracy.buffer_for(WITHOUT_SOURCES, 1_000, risk=0.001)
    assert rare.warning == "a promise at 0.1 % risk needs 999 documents, but there are 400"
    assert accuracy.buffer_for(WITHOUT_SOURCES, 1_000).warning == ""


@pytest.mark.parametrize("risk", [1e-6, 0.001, 0.05, 0.5])
def test_the_interval_of_a_buffer_holds_its_share(risk: float) -> None:
    buffer = accuracy.buffer_for(WITHOUT_SOURCES, 1_000, risk=risk)
    assert buffer.low <= buffer.share <= buffer.high


def test_documents_of_no_tokens_need_no_buffer() -> None:
    assert accuracy.buffer_for(WITHOUT_SOURCES.assign(exact=0), 1_000).share == 0


@pytest.mark.parametrize(
    "wrong", [{"exact": np.nan}, {"estimate": np.nan}, {"exact": -1}, {"estimate": "7"}]
)
def test_errors_without_a_number_in_each_row_are_refused(wrong: dict[str, Any]) -> None:
    errors = pd.DataFrame({"counter": "mine", "exact": [100] * 40, "estimate": 100}).assign(**wrong)
    with pytest.raises(ValueError, match="Invalid errors. Pass the columns exact and estimate"):
        accuracy.buffer_for(errors, 1_000)


def test_a_risk_that_is_a_text_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Invalid risk '0\.05'\. Pass a probability"):
        accuracy.buffer_for(WITHOUT_SOURCES, 1_000, risk="0.05")  # type: ignore[arg-type]


def test_a_smaller_risk_than_the_sources_carry_is_said() -> None:
    """Ninety-nine sources are needed for one in a hundred; of twenty of a class the widest window seen is held back."""
    errors = drawn(0, kinds=5, sources=20, documents=20)
    buffer = accuracy.buffer_for(errors, 4_096, risk=0.01, kinds=["kind 1"])
    assert buffer.warning == "a promise at 1 % risk needs 99 sources of its class, but there are 20"
    assert buffer.share > accuracy.buffer_for(errors, 4_096, risk=0.05, kinds=["kind 1"]).share


@pytest.mark.parametrize(("window", "most"), [(4_096, 0.06), (128_000, 0.07)])
def test_for_a_language_of_few_sources_its_class_says_the_rest(window: int, most: float) -> None:
    """Two sources of a language say little of the third; how sources of all languages differ says how little."""
    observed, shares, needs = [], [], []
    for seed in range(4):
        errors = drawn(seed, kinds=12, sources=4, documents=30)
        errors = errors.assign(language=errors["class"], **{"class": "prose"})
        errors["source"] = errors["source"].str.replace("-", " of ")
        is_seen = errors["source"].str[-1].astype(int) % 2 == 0
        for language in ("kind 0", "kind 3", "kind 7"):
            buffer = accuracy.buffer_for(errors[is_seen], window, kinds=["prose", language])
            others = errors[~is_seen & (errors["language"] == language)]
            observed.append(
                overflow(others.assign(**{"class": others["source"]}), buffer.share, window, seed)
            )
            shares.append(buffer.share)
            needs.append(buffer.needed)
    assert np.mean(observed) <= most
    assert np.mean(needs) < np.mean(shares)


@pytest.mark.parametrize("counted", ["five of data", "one named source"])
def test_sources_are_counted_in_the_class_of_the_window(counted: str) -> None:
    """Twenty-one sources, five of them data, silenced the warning; data overflowed in 14 % for 5 % promised."""
    errors = drawn(0, kinds=2, sources=21, documents=20)
    if counted == "five of data":
        is_left_out = (errors["class"] == "kind 1") & (errors["source"].str[2:].astype(int) >= 5)
        errors, few = errors[~is_left_out], "there are 5"
        assert accuracy.buffer_for(errors, 4_096, kinds=["kind 0"]).warning == ""
    else:
        errors, few = errors.assign(source="mine"), "there is 1"
    assert accuracy.buffer_for(errors, 4_096, kinds=["kind 1"]).warning == (
        f"a promise at 5 % risk needs 19 sources of its class, but {few}"
    )


def test_without_a_kind_no_promise_is_made_for_a_single_one() -> None:
    """CJK overflowed in 12 % of windows and odd text in 34 where 5 % was promised, and nothing was said."""
    errors = drawn(0, kinds=2, sources=20)
    warning = accuracy.buffer_for(errors, 4_096).warning
    assert (
        warning
        == "the risk is an average, and windows of the worst kind of text may overflow more often"
    )
    assert accuracy.buffer_for(errors, 4_096, window_mix="mixed").warning == ""
    assert accuracy.buffer_for(errors[errors["class"] == "kind 0"], 4_096).warning == ""


def test_labels_are_compared_by_what_they_mean() -> None:
    errors = drawn(0, kinds=2, sources=20).replace(
        {"class": {"kind 0": "code", "kind 1": "German"}}
    )
    buffer = accuracy.buffer_for(errors, 4_096, kinds=["Source code"])
    assert (buffer.kinds, buffer.warning) == (("code",), "")
    assert accuracy.buffer_for(errors, 4_096, kinds=["de-AT"]).kinds == ("German",)
    assert accuracy.buffer_for(errors, 4_096).lacks(["de", "program code"]) == ""


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Where is my order, and why was it not sent to me with the other one?", ("prose", "en")),
        (
            "Das ist nicht der Weg, den sie mit dem Rad zu der Stadt von gestern fuhren.",
            ("prose", "de"),
        ),
        ("Добрый день, где мой заказ и когда его отправят?", ("prose", "ru")),
        ("您的包裹已于星期一离开仓库，我们会尽快处理这个问题。", ("cjk", "zh hans")),
        ("お荷物は月曜日に倉庫を出ました。", ("cjk", "ja")),
        ("import os\nfor name in os.listdir():\n    print(name)", ("code",)),
        ("Xyzzy plugh frobozz quux.", ("prose",)),
    ],
)
def test_the_kinds_of_texts_are_told_from_the_texts(text: str, kinds: tuple[str, ...]) -> None:
    assert accuracy.kinds_of([text] * 3) == kinds


NEIGHBOURS = {
    "da": "Hvor er min ordre, og hvornår bliver den sendt? Jeg har ventet i en uge og har ikke fået noget svar.",
    "no": "Hvor er bestillingen min, og når blir den sendt? Jeg har ventet i en uke og har ikke fått noe svar.",
    "sv": "Var är min beställning, och när skickas den? Jag har väntat i en vecka och har inte fått något svar.",
    "sk": "Kde je moja objednávka? Čakám už týždeň a nedostal som od vás odpoveď, ktorú by som mohol čítať.",
    "cs": "Kde je moje objednávka? Čekám už týden a nedostal jsem od vás odpověď, kterou bych mohl číst.",
    "bg": "Къде е моята поръчка и кога ще бъде изпратена? Чакам от една седмица и не съм получил отговор от вас.",
    "ru": "Я живу в городе Рівне и жду заказ уже неделю, он так и не пришёл, но для меня это важно.",
    "uk": "Де моє замовлення і коли його відправлять? Я чекаю вже тиждень і не отримав від вас відповіді.",
    "mr": "माझी ऑर्डर कुठे आहे आणि ती कधी पाठवली जाईल? मी वाट पाहत आहे आणि मला उत्तर मिळाले नाही.",
    "hi": "मेरा ऑर्डर कहाँ है और यह कब भेजा जाएगा? मैं इंतज़ार कर रहा हूँ और मुझे कोई जवाब नहीं मिला है।",
    "fa": "سفارش من کجاست و چه زمانی ارسال می‌شود؟ یک هفته است که منتظرم و پاسخی از شما دریافت نکرده‌ام.",
    "ur": "میرا آرڈر کہاں ہے اور یہ کب بھیجا جائے گا؟ میں ایک ہفتے سے انتظار کر رہا ہوں۔",
    "": "Менің тапсырысым қайда және ол қашан жіберіледі? Мен бір апта күттім және жауап алмадым.",
}


@pytest.mark.parametrize("language", NEIGHBOURS)
def test_a_language_is_not_taken_for_its_neighbour(language: str) -> None:
    """Danish once had the buffer of Swedish, Marathi that of Hindi; what nothing tells has that of all languages."""
    assert accuracy.kinds_of([NEIGHBOURS[language]]) == ("prose", language)[: 2 if language else 1]


def test_a_language_without_documents_is_named_in_a_warning() -> None:
    """A neighbour's documents would say nothing of it, and nobody would know."""
    errors = drawn(0, kinds=2, sources=20).replace({"class": {"kind 0": "prose"}})
    errors = errors.assign(language=errors["class"].map({"prose": "sv"}).fillna(""))
    assert (
        "da"
        in accuracy.buffer_for(errors, 4_096, kinds=accuracy.kinds_of([NEIGHBOURS["da"]])).warning
    )
    assert (
        accuracy.buffer_for(errors, 4_096, kinds=accuracy.kinds_of([NEIGHBOURS["sv"]])).warning
        == ""
    )


def test_what_is_a_small_part_of_the_texts_is_not_at_hand() -> None:
    english = "The answer to that is in the book that you have on the table. " * 20
    assert accuracy.kinds_of([english, "print(i)"]) == ("prose", "en")
    assert set(accuracy.kinds_of([english, "for i in range(3):\n    print(i)\n" * 30])) == {
        "prose",
        "en",
        "code",
    }


LATIN = {
    "en": "The train to the coast leaves at noon, and we are on it with all of our bags.",
    "de": "Der Zug zur Küste fährt am Mittag ab, und wir sind mit allen Taschen darin.",
    "fr": "Le train pour la côte part à midi, et nous sommes dedans avec toutes nos valises.",
    "es": "El tren a la costa sale a mediodía, y nosotros vamos en él con todas las maletas.",
    "pt": "O trem para a costa parte ao meio-dia, e nós não estamos nele com todas as nossas malas.",
    "it": "Il treno per la costa parte a mezzogiorno, e noi siamo dentro con tutte le nostre valigie.",
    "nl": "De trein naar de kust vertrekt om twaalf uur, en wij zitten er met al onze tassen in.",
    "pl": "Pociąg nad morze odjeżdża w południe, a my siedzimy w nim ze wszystkimi torbami.",
    "cs": "Vlak k moři odjíždí v poledne a my v něm sedíme se všemi taškami.",
    "sv": "Tåget till kusten går vid tolv, och vi sitter på det med alla våra väskor.",
    "vi": "Chuyến tàu ra biển khởi hành lúc trưa và chúng tôi đang ở trên đó với tất cả hành lý.",
    "hu": "A vonat a tengerpartra délben indul, és mi az összes táskával rajta vagyunk.",
    "ro": "Trenul spre coastă pleacă la prânz, și noi suntem în el cu toate bagajele.",
}


@pytest.mark.parametrize("language", LATIN)
def test_a_language_in_latin_letters_is_told_by_its_small_words(language: str) -> None:
    """One script serves dozens of languages; a buffer for the wrong one promises what it cannot keep."""
    sentence = LATIN[language]
    assert language_of(sentence) == language
    assert language_of(sentence.upper()) == language


@pytest.mark.parametrize(
    "text",
    [
        "Oslo",
        "12,5 %",
        "x = 1",
        "La casa",
        "Toget til kysten kører klokken tolv, og vi sidder i det med alle vores tasker.",  # Danish, or Norwegian
        LATIN["de"] + " " + LATIN["fr"],
    ],
)
def test_where_small_words_do_not_tell_the_language_stays_open(text: str) -> None:
    assert language_of(text) == ""
