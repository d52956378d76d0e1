"""Counters from other people's tokenizers: files of Hugging Face's tokenizers, Mistral's, and what litellm carries.

The libraries are extras. None is imported to find out whether it is there: litellm asks the network at its import.
"""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from budgetkit.counters import ForeignCounter, counter
from budgetkit.lab.accuracy.corpora import odd, shipped


def needs(*libraries: str) -> pytest.MarkDecorator:
    absent = [library for library in libraries if find_spec(library) is None]
    return pytest.mark.skipif(
        bool(absent), reason=f"{', '.join(absent)} (extra: tokenizers) is absent"
    )


TEXTS = (shipped() + odd(documents=1, characters=300)).texts


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small byte-level BPE, learned from the mini-corpus, as a model's repository would carry it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=2_000, initial_alphabet=alphabet, special_tokens=["<s>"], show_progress=False
    )
    tokenizer.train_from_iterator(shipped().texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    path = tmp_path_factory.mktemp("model") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


@needs("tokenizers")
def test_a_tokenizer_json_counts_as_its_library_does_without_special_tokens(trained: Path) -> None:
    from tokenizers import Tokenizer

    foreign, library = counter(str(trained)), Tokenizer.from_file(str(trained))
    assert foreign.exact
    assert foreign("") == 0
    assert foreign.many(TEXTS) == [len(library.encode(text).ids) - 1 for text in TEXTS]
    assert foreign.many(TEXTS[:3]) == [foreign(text) for text in TEXTS[:3]]


@needs("tokenizers")
def test_a_file_that_cuts_or_fills_texts_up_counts_them_whole_all_the_same(trained: Path) -> None:
    """Files of embedding models often say: at most 128 tokens, or always 128."""
    from tokenizers import Tokenizer

    cutting = Tokenizer.from_file(str(trained))
    cutting.enable_truncation(16)
    cutting.enable_padding(length=16)
    path = trained.with_name("cutting.json")
    cutting.save(str(path))
    assert json.loads(path.read_text("utf-8"))["truncation"]["max_length"] == 16
    assert counter(str(path)).many(["Hi", *TEXTS]) == counter(str(trained)).many(["Hi", *TEXTS])


@needs("tokenizers")
def test_half_a_character_is_counted_as_its_replacement(trained: Path) -> None:
    assert counter(str(trained))("a\ud800b") == counter(str(trained))("a\ufffdb")


@needs("tokenizers")
def test_a_file_that_is_no_tokenizer_is_an_error_that_says_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    for name in ("other.json", "absent.json"):
        with pytest.raises(ValueError, match=r"Cannot read tokenizer .*json': .+ Pass the path of"):
            counter(str(tmp_path / name))("Hello")


def test_foreign_tokenizers_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("budgetkit.counters.foreign.find_spec", lambda library: None)
    refusal = r"Missing optional dependency 'litellm', which .* needs. Run: pip install 'budgetkit\[makers\]'"
    with pytest.raises(ImportError, match=refusal):
        counter("litellm:anthropic_tokenizer.json")("Hello")


def test_only_text_is_counted() -> None:
    refusal = "Invalid text for some/tokenizer.json: .* Expected a string"
    with pytest.raises(TypeError, match=refusal):
        ForeignCounter("some/tokenizer.json")(5)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("litellm:anthropic_tokenizer.json", marks=needs("litellm", "tokenizers")),
        pytest.param("mistral:tekken_240911.json", marks=needs("mistral_common")),
        pytest.param("mistral:tokenizer.model.v1", marks=needs("mistral_common", "sentencepiece")),
    ],
)
def test_tokenizers_that_libraries_carry_count_without_the_network(name: str) -> None:
    foreign = counter(name)
    assert foreign("") == 0
    assert 2 <= foreign("Hello world") <= 4
    assert all(
        0 < tokens <= 4 * len(text) for tokens, text in zip(foreign.many(TEXTS), TEXTS, strict=True)
    )
    assert counter(foreign.name) == foreign


@needs("mistral_common")
def test_mistral_counts_as_its_library_does() -> None:
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    path = Path(mistral_common.__file__).parent / "data/tekken_240911.json"
    library = Tekkenizer.from_file(path)
    texts = TEXTS[::4]
    assert counter("mistral:tekken_240911.json").many(texts) == [
        len(library.encode(t, False, False)) for t in texts
    ]


@needs("mistral_common")
def test_a_tokenizer_that_a_library_does_not_carry_lists_those_it_does() -> None:
    refusal = r"Unknown mistral_common tokenizer 'tekken_9.json'.*tekken_240911"
    with pytest.raises(ValueError, match=refusal):
        counter("mistral:tekken_9.json")("Hello")
