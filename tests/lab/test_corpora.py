"""Texts by class, language and source; and what cannot be read."""

from __future__ import annotations

import csv
import json
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

import budgetkit as bk
from budgetkit.lab.accuracy.corpora import (
    RECIPES,
    Corpus,
    Document,
    folder,
    generate,
    odd,
    rows,
    shipped,
)


def test_the_mini_corpus_has_languages_by_script_code_and_formats() -> None:
    frame = shipped().frame()
    languages = frame.groupby("class")["language"].agg(set)
    assert languages["cjk prose"] == languages["cjk mixed"] == {"ja", "ko", "zh-Hans", "zh-Hant"}
    assert {"markdown", "html", "latex", "json", "csv", "log", "yaml"} <= languages[
        "markup"
    ] | languages["data"]
    assert (frame["characters"] > 100).all()
    assert len({(each.language, each.name) for each in shipped()}) == len(frame)


def test_the_mini_corpus_is_small_and_no_language_is_a_single_page() -> None:
    size = Counter[tuple[str, str]]()
    for document in shipped():
        size[document.kind, document.language] += len(document.text.encode())
    assert 150_000 <= sum(size.values()) <= 300_000
    assert (
        sum(kind.endswith("prose") and size[kind, language] >= 2_400 for kind, language in size)
        >= 30
    )
    assert sum(kind == "code" and size[kind, language] >= 3_000 for kind, language in size) >= 15


def test_what_the_mini_corpus_calls_data_or_python_can_be_read_as_such() -> None:
    readers: dict[str, Callable[[str], object]] = {
        "json": json.loads,
        "toml": tomllib.loads,
        "yaml": yaml.safe_load,
        "xml": lambda text: ElementTree.fromstring(text.encode()),
        "python": lambda text: compile(text, "mini-corpus", "exec"),
    }
    read = [
        readers[document.language](document.text)
        for document in shipped()
        if document.language in readers
    ]
    assert len(read) >= 10
    for document in shipped().where(lambda each: each.language == "csv"):
        widths = {
            len(row)
            for row in csv.reader(document.text.splitlines(), delimiter=_separator(document.text))
        }
        assert len(widths) == 1, document.name


def _separator(text: str) -> str:
    head = text.partition("\n")[0]
    return max(",;\t", key=head.count)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_seed_stands_for_one_text_of_the_length_asked_for(recipe: str) -> None:
    first, again, other = (
        generate(recipe, 1, 700),
        generate(recipe, 1, 700),
        generate(recipe, 2, 700),
    )
    assert first == again
    assert len(first) == len(other) == 700
    assert recipe == "run" or first != other


def test_an_unknown_recipe_is_an_error_that_lists_them() -> None:
    with pytest.raises(ValueError, match="Unknown recipe 'noise'. Choose one of: 'base64', 'hex'"):
        generate("noise", 1)


def test_odd_text_has_every_recipe() -> None:
    assert set(odd(documents=1).frame()["language"]) == set(RECIPES)


def test_bad_encodings_binaries_and_huge_files_are_reported_and_the_rest_is_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "good.py").write_text("print('hello')\n", encoding="utf-8")
    (tmp_path / "marked.txt").write_bytes("﻿Grüße".encode())
    (tmp_path / "wide.txt").write_text("Grüße", encoding="utf-16")
    (tmp_path / "latin.txt").write_bytes("Grüße".encode("latin-1"))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "huge.log").write_bytes(b"x" * 2_000)
    (tmp_path / ".hidden").write_text("no")
    corpus = folder(tmp_path, most=1_000)
    assert {document.name: (document.language, document.text) for document in corpus} == {
        "good.py": ("python", "print('hello')\n"),
        "marked.txt": ("text", "Grüße"),
        "wide.txt": ("text", "Grüße"),
    }
    assert {Path(problem.name).name: problem.reason for problem in corpus.problems} == {
        "latin.txt": "not UTF-8: byte 2 is 0xfc",
        "picture.png": "binary",
        "huge.log": "2,000 bytes, more than 1,000",
    }


def test_a_glob_chooses_files_and_the_user_may_say_what_they_are(tmp_path: Path) -> None:
    for name in ("a.md", "b.md", "c.txt"):
        (tmp_path / name).write_text(name)
    corpus = folder(tmp_path, "*.md", kind="notes", language="en")
    assert [(d.kind, d.language, d.name) for d in corpus] == [
        ("notes", "en", "a.md"),
        ("notes", "en", "b.md"),
    ]


def test_one_column_of_json_lines_or_csv_is_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text(
        '{"text": "Hallo", "lang": "de"}\nnot json\n{"body": "x"}\n'
    )
    (tmp_path / "talk.csv").write_text("who,said\nann,Hello\nbob,Bye\n")
    lines = rows(tmp_path / "talk.jsonl")
    assert [(d.text, d.language) for d in lines] == [("Hallo", "de")]
    assert [p.reason for p in lines.problems] == ["not JSON", "no text in 'text'; it has 'body'"]
    assert rows(tmp_path / "talk.csv", column="said").texts == ["Hello", "Bye"]
    with pytest.raises(
        ValueError,
        match="Cannot read rows from talk.txt. Pass a .jsonl, .csv or .tsv file",
    ):
        rows(tmp_path / "talk.txt")


def test_a_folder_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match="File not found: "):
        folder("/nowhere/at/all")


def test_pieces_are_of_the_lengths_asked_for_and_the_same_for_a_seed() -> None:
    corpus = Corpus(
        (
            Document("word " * 4_000, "prose", "en", "mine", "all"),
            Document("short", "prose", "en", "mine"),
        )
    )
    pieces = corpus.pieces(500, 2_000, most=5)
    assert len(pieces) == 5
    assert all(500 <= len(d.text) <= 2_000 for d in pieces)
    assert pieces == corpus.pieces(500, 2_000, most=5)
    assert pieces != corpus.pieces(500, 2_000, most=5, seed=1)


def test_the_class_of_an_own_file_comes_from_its_text(tmp_path: Path) -> None:
    """0.3.0 took a Chinese .txt for prose and a Japanese .md for markup."""
    texts = {
        "a.py": "for i in range(3):\n    print(i)",
        "b.txt": "Where is my order?",
        "c.txt": "您的包裹已于星期一离开仓库。",
        "d.md": "# お知らせ\n荷物は月曜日に倉庫を出ました。",
        "e.txt": "택배가 월요일에 창고를 떠났습니다.",
        "f.txt": '[{"city": "Oslo"}, {"city": "Rome"}]',
        "g.log": '{"city": "Oslo"}\n{"city": "Rome"}\n',
        "h.txt": "[1] Where is my order?",
        "i.txt": '{"city": "東京都千代田区丸の内"}',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    documents = folder(tmp_path).documents
    assert [(document.kind, document.language) for document in documents] == [
        ("code", "python"),
        ("prose", "text"),
        ("cjk", "zh hans"),
        ("cjk", "ja"),
        ("cjk", "ko"),
        ("data", "json"),
        ("data", "json"),
        ("prose", "text"),
        ("data", "json"),
    ]


def test_a_conversation_saved_as_text_is_read_as_one(tmp_path: Path) -> None:
    """JSON with the ending of a text was one document of prose."""
    said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi there"}]
    chats = {
        "one.txt": json.dumps({"messages": said}),
        "lines.txt": "\n".join(map(json.dumps, said)),
    }
    for name, text in chats.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        corpus = bk.corpora.corpus_of(tmp_path / name)
        assert corpus.texts == ["Hello", "Hi there"]
    (tmp_path / "rows.txt").write_text('[{"city": "Oslo"}]', encoding="utf-8")
    (document,) = bk.corpora.corpus_of(tmp_path / "rows.txt")
    assert (document.kind, document.language) == ("data", "json")
