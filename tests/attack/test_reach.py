"""What a page can make the served app open: every command, with whatever would lead out of the named folder.

An audit hook notes each file that is opened; beside the folder only Python, its packages and the place of unpacked
uploads may be among them.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import Any, get_type_hints

import pytest

import budgetkit as bk
from budgetkit.lab.explorers.reach import Reach

TALK = '{"messages": [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "On its way."}]}'
SECRET = "TOPSECRET"
PACKAGE = Path(bk.__file__).parent
PYTHON = (sys.prefix, sys.base_prefix, PACKAGE, PACKAGE.parent / "data", "/dev", "/proc", "/sys")
#: Values of the right type for the arguments that are not attacked.
PLAIN = {int: 1, float: 0.05, str: "conversation", bool: True}
#: What the folds take; without the buttons that begin long work.
EVENTS: tuple[str, ...] = (
    *("objective", "risk", "stop", "example", "window", "preset", "point", "provider", "mend"),
)
EVENTS += ("of", "follow", "request", "clear")

_opened: list[str] | None = None


def _note(event: str, details: tuple[Any, ...]) -> None:
    if _opened is not None and event == "open" and isinstance(details[0], str | bytes):
        _opened.append(details[0] if isinstance(details[0], str) else details[0].decode())


sys.addaudithook(_note)


@contextmanager
def noting_files() -> Iterator[list[str]]:
    """Note every file that is opened."""
    global _opened
    notes: list[str] = []
    _opened = notes
    try:
        yield notes
    finally:
        _opened = None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a conversation, links that lead out of it, and a place for uploads that are unpacked."""
    chats, outside, uploads = tmp_path / "chats", tmp_path / "outside", tmp_path / "uploads"
    for place in (chats, outside, uploads):
        place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(uploads))
    (chats / "mine.jsonl").write_text(TALK)
    (outside / "secret.txt").write_text(SECRET)
    (outside / "secret.jsonl").write_text(TALK.replace("On its way", SECRET))
    (outside / "tokenizer.json").write_text("{}")
    for name in ("secret.txt", "secret.jsonl"):
        (chats / f"link_{name}").symlink_to(outside / name)
    (chats / "out").symlink_to(outside)
    return chats


def strangers(folder: Path) -> list[str]:
    """Texts that lead out of a folder: paths, links, patterns and the names of counters that open files."""
    outside = folder.parent / "outside"
    return [
        str(outside / "secret.jsonl"),
        "../outside/secret.txt",
        "link_secret.jsonl",
        "lin?_secret.*",
        "o?t/secret.txt",
        "out/*",
        str(outside / "*.txt"),
        f"gpt-4o (tokenizer {outside / 'secret.txt'})",
        f"qwen3 (tokenizer {outside / 'secret.txt'}, an estimate) (reconstructed by x)",
        f"mistral:{outside / 'secret.txt'}",
        f"litellm:{outside / 'tokenizer.json'}",
        str(outside / "tokenizer.json"),
    ]


def leaks(notes: list[str], folder: Path) -> set[str]:
    """Return the files outside the folder that were opened."""
    if not notes:
        return set()
    allowed = [Path(place).resolve() for place in (*PYTHON, folder, tempfile.gettempdir())]
    # "upload" is a folder of unpacked uploads, named by whoever removes it
    files = {Path(name).resolve() for name in notes if name != "upload"}
    return {str(file) for file in files if not any(map(file.is_relative_to, allowed))}


def send(explorer: Any, content: Any, *buffers: bytes) -> None:
    """Send what a page sends, from where the message arrives in the kernel."""
    data = {"method": "custom", "content": content}
    explorer.view._handle_msg({"content": {"data": data}, "buffers": list(buffers)})


def opened_tab(app: Any, tab: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a tab that does not draw itself again after each message: there are thousands."""
    app.open(tab)
    explorer = app.tabs[tab]
    monkeypatch.setattr(explorer, "_show_notice", lambda notice, ack="": None, raising=False)
    monkeypatch.setattr(explorer, "_send_charts", lambda is_moving=False: None, raising=False)
    return explorer


def shown(explorer: Any) -> str:
    return json.dumps(explorer.view.get_state(), default=str)


def attacks(explorer: Any, hostile: list[Any]) -> Iterator[dict[str, Any]]:
    """Give messages with each hostile value in each argument of each command and of each fold."""
    for kind, command in explorer.kind.commands.items():
        hints = get_type_hints(command)
        names = [*signature(command).parameters][1:]
        plain = {name: PLAIN.get(hints[name]) for name in names}
        for value in hostile:
            yield from (
                {"kind": kind, **plain, name: value} for name in [*names, "no such argument"]
            )
    for fold in explorer.kind.folds:
        for value in hostile:
            yield from ({"kind": "fold", "fold": fold, name: value} for name in EVENTS)


@pytest.mark.parametrize("tab", range(4))
def test_no_command_opens_a_file_outside_the_named_folder(
    folder: Path, tab: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = bk.App(str(folder / "mine.jsonl"), window=8_192, files=folder)
    explorer = opened_tab(app, tab, monkeypatch)
    nonsense: list[Any] = [None, -1, True, ["a"], {"path": "a"}, b"bytes"]
    with noting_files() as notes:
        send(explorer, {"kind": "path", "path": "mine.jsonl"})
        assert str(folder.resolve() / "mine.jsonl") in notes  # the hook sees what is opened
        for message in attacks(explorer, [*strangers(folder), *nonsense]):
            send(explorer, message)
            assert not leaks(notes, folder), message
            notes.clear()
        for purpose in explorer.kind.commands:
            for name in strangers(folder)[::4]:
                piece = {"kind": "file", "serial": name, "name": name, "purpose": purpose}
                send(explorer, {**piece, "size": 5, "offset": 0, "content": name}, b"bytes")
                send(explorer, {**piece, "size": 0, "offset": 0, "content": name})
        assert not leaks(notes, folder)
    assert SECRET not in shown(explorer)


@pytest.mark.parametrize("tab", range(4))
@pytest.mark.parametrize("is_link", [False, True])
def test_a_named_file_is_opened_alone(
    folder: Path, tab: int, is_link: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of its sub-agents, which lie beside it, were opened too."""
    record = {"type": "user", "uuid": "u1", "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z"}
    said = {"message": {"role": "user", "content": "Where is it?"}}
    (folder / "mine.jsonl").write_text(json.dumps({**record, **said}) + "\n")
    agent = folder / "mine" / "subagents" / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True)
    if is_link:
        agent.symlink_to(folder.parent / "outside" / "secret.jsonl")
    else:
        message = {"role": "user", "content": SECRET}
        side = {**record, "isSidechain": True, "agentId": "a1", "message": message}
        agent.write_text(json.dumps(side) + "\n")
    (folder / "other.jsonl").write_text(TALK)
    app = bk.App(window=8_192, files=folder / "mine.jsonl")
    explorer = opened_tab(app, tab, monkeypatch)
    paths = ["mine.jsonl", str(folder / "mine.jsonl"), *strangers(folder)]
    paths += ["other.jsonl", "*.jsonl", ".", "mine", "mine/subagents/agent-a1.jsonl", "link_*"]
    named = str((folder / "mine.jsonl").resolve())
    with noting_files() as notes:
        for path in paths:
            send(explorer, {"kind": "path", "path": path})
        inside = {str(Path(note).resolve()) for note in notes if str(folder) in note}
        assert not leaks(notes, folder)
    assert inside == {named}
    assert SECRET not in shown(explorer)


def test_no_link_in_the_named_folder_is_followed_out_of_it(folder: Path) -> None:
    explorer = bk.App(window=8_192, files=folder).card
    (folder / "again.jsonl").symlink_to(folder / "mine.jsonl")
    (folder / "chain.jsonl").symlink_to(folder / "link_secret.jsonl")
    with noting_files() as notes:
        for path in ("link_secret.jsonl", "chain.jsonl", "out/secret.jsonl", "out", "link_*.jsonl"):
            send(explorer, {"kind": "path", "path": path})
            assert "opened here" in explorer.status, path
        send(explorer, {"kind": "path", "path": "again.jsonl"})  # one that stays within it is
        assert "opened here" not in explorer.status
    assert not leaks(notes, folder)
    assert SECRET not in shown(explorer)


@pytest.mark.parametrize("tab", [0, 3])
def test_no_state_opens_a_file(folder: Path, tab: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text in a state, JSON or pasted YAML, is replaced by what leads out."""
    app = bk.App(str(folder / "mine.jsonl"), window=8_192, files=folder)
    explorer = opened_tab(app, tab, monkeypatch)
    texts = explorer.texts
    with noting_files() as notes:
        for state in (texts["json"], texts["yaml"]):
            words = {value for value in _texts_in(json.loads(texts["json"])) if value in state}
            for word in words:
                for stranger in strangers(folder)[::3]:
                    foreign = state.replace(word, json.dumps(stranger)[1:-1])
                    send(explorer, {"kind": "load", "text": foreign})
                    assert not leaks(notes, folder), foreign
                    notes.clear()
    assert SECRET not in shown(explorer)


def _texts_in(document: Any) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict | list):
        for part in document.values() if isinstance(document, dict) else document:
            yield from _texts_in(part)


@pytest.mark.parametrize("tab", range(4))
def test_a_file_message_without_its_bytes_reads_no_path(folder: Path, tab: int) -> None:
    app = bk.App(window=8_192, files="")
    app.open(tab)
    explorer: Any = app.tabs[tab]
    for name in ("secret.txt", "secret.jsonl"):
        path = str(folder.parent / "outside" / name)
        send(explorer, {"kind": "file", "name": name, "content": path})
        assert "A part of the uploaded file lacks" in explorer.status
        assert SECRET not in shown(explorer)


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ({"kind": "setup", "name": "a.yaml", "content": "window: 9"}, "Invalid argument 'content'"),
        ({"kind": "pin", "trace": "support-chat"}, "Invalid argument 'trace'"),
        ({"kind": "size", "line": "window", "size": "9000"}, "Invalid argument 'size'"),
        ({"kind": "size", "line": "window", "size": True}, "Invalid argument 'size'"),
        ({"kind": "size", "line": "window"}, "Invalid argument 'size'"),
        ({"kind": "model", "name": "gpt-5", "beside": "x"}, "Invalid argument 'beside'"),
        ({"kind": "reset", "merge": "x"}, "Invalid argument 'merge'"),
        ({"kind": ["line"]}, "Unknown command"),
    ],
)
def test_a_command_takes_only_declared_arguments(message: dict[str, Any], sentence: str) -> None:
    app = bk.App(window=8_192)
    before = app.card.settings
    send(app.card, message)
    assert sentence in app.card.status
    assert app.card.settings == before


def test_a_manifest_lists_only_files_of_its_folder(folder: Path) -> None:
    """A folder that somebody else filled is read as its manifest says, and its manifest cannot lead out."""
    (folder / "texts").mkdir()
    (folder / "texts" / "notes.txt").write_text("Some notes.")
    rows = ["notes.txt", "../../outside/secret.txt", str(folder.parent / "outside" / "secret.txt")]
    lines = ["path,class,language,source", *(f"{row},prose,en,mine" for row in rows)]
    (folder / "texts" / "MANIFEST.csv").write_text("\n".join(lines))
    app = bk.App(window=8_192, files=folder)
    app.open(2)
    explorer: Any = app.tabs[2]
    send(explorer, {"kind": "path", "path": "texts"})
    assert "texts" in explorer.settings.corpus
    assert SECRET not in shown(explorer)


def test_a_pattern_does_not_search_the_folder_again_and_again(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(12):
        for name in "abc":
            (folder / name).mkdir()
        folder /= "a"
    began = perf_counter()
    with pytest.raises(PermissionError, match=r"\*\* twice"):
        Reach(tmp_path).file("**/" * 30 + "x")
    assert perf_counter() - began < 1
    assert Reach(tmp_path).file("**/x")


def test_a_stored_session_is_opened_only_with_its_messages_inside(tmp_path: Path) -> None:
    """The file of a session of OpenCode makes the loader read the folders beside that of the sessions."""
    session = tmp_path / "storage" / "session" / "p" / "ses_1.json"
    (tmp_path / "storage" / "message" / "ses_1").mkdir(parents=True)
    session.parent.mkdir(parents=True)
    session.write_text('{"id": "ses_1"}')
    with pytest.raises(PermissionError, match="only files in .*p can be opened here"):
        Reach(session.parent).file("ses_1.json")
    assert Reach(tmp_path).file("storage/session/p/ses_1.json") == str(session.resolve())
    assert Reach(session).file("ses_1.json") == str(session.resolve())
