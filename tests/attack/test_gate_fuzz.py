"""A mistake never opens the gate: one thing in its files or options is misspelt, missing, unknown or of a wrong type.

What is right opens it, which the first test holds; every mutant of it must end with an error or a refusal in words.
"""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import budgetkit as bk
from budgetkit.extras.shell.gate import check
from budgetkit.extras.shell.program import run
from budgetkit.extras.shell.pytest_plugin import check_files as checked
from budgetkit.files import read_toml
from budgetkit.models import resolve
from tests.conftest import examples
from tests.core.test_blocks import MODELS, NAMED, body_of, in_places, spoken
from tests.messages import assistant, calling, system, user

WRONG = (ValueError, TypeError, LookupError, OSError)
ROLES = {"system": "system", "tools": "tools"}
ROLES |= dict.fromkeys(("user", "assistant", "current"), "history")
BUDGET = bk.Budget(
    4_000,
    [bk.Reserve("output", 500, serves="output"), bk.Reserve("safety", bk.Share(0.05))],
    [
        bk.Allocation("system", 200, required=True, importance=9),
        bk.Allocation("tools", 300),
        bk.Allocation("history", floor=100, keep="newest"),
    ],
    remainder="history",
    roles=ROLES,
    name="mine",
)
TALK: dict[str, Any] = {"id": "one", "messages": [user("Why?"), assistant("So.")]}
TOOLS = [
    {
        "name": "ping",
        "description": "Look whether a host answers",
        "inputSchema": {"type": "object"},
    }
]
#: What every option of the gate is given, files by their names.
OPTIONS: dict[str, str] = {
    "--budget": "mine.json",
    "--model": "gpt-4o",
    "--counter": "o200k_base",
    "--prompt": "system=prompt.txt",
    "--tools": "tools.json",
    "--policy": "haystack",
    "--most-cut": "0.5",
    "--floor": "100",
    "--thinking": "0",
}
Mutant = tuple[dict[str, str | bytes], list[str]]  # the files, and the arguments


def right() -> tuple[dict[str, str | bytes], dict[str, str]]:
    """Return files and options with which the gate opens."""
    files: dict[str, str | bytes] = {
        "mine.json": bk.state.to_json(BUDGET),
        "prompt.txt": "Be brief, and say where you are not sure.",
        "tools.json": json.dumps(TOOLS),
        "chats.jsonl": json.dumps(TALK),
    }
    return files, dict(OPTIONS)


def arguments(options: dict[str, str], conversation: str = "chats.jsonl") -> list[str]:
    return ["check", conversation, *(part for pair in options.items() for part in pair)]


def ends(files: dict[str, str | bytes], words: list[str], folder: Path) -> int:
    """Write the files and run the gate among them; return its exit code."""
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return run(words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of its own, in which the gate runs."""
    with pytest.MonkeyPatch.context() as patched:
        path = tmp_path_factory.mktemp("gate")
        patched.chdir(path)
        yield path


def test_what_is_right_opens_the_gate(folder: Path) -> None:
    files, options = right()
    assert ends(files, arguments(options), folder) == 0
    files["mine.json"] = yaml.safe_dump(json.loads(bk.state.to_json(BUDGET)))
    assert ends(files, arguments(options), folder) == 0


@st.composite
def misspelt(draw: st.DrawFn, word: str) -> str:
    """Change one letter: leave it out, double it, change places with the next, or put another one there."""
    places = [place for place, letter in enumerate(word) if letter.isalpha()]
    place = draw(st.sampled_from(places))
    before, letter, after = word[:place], word[place], word[place + 1 :]
    mutants = {
        before + after,
        before + letter + letter + after,
        before + after[:1] + letter + after[1:],
    }
    mutants |= {before + "q" + after, word + "x"}
    return draw(st.sampled_from(sorted(mutants - {word})))


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """List the places in plain data: of every key, and of every entry."""
    entries: Any = ()
    if isinstance(value, dict):
        entries = value.items()
    elif isinstance(value, list):
        entries = enumerate(value)
    for key, entry in entries:
        yield (*path, key)
        yield from spots(entry, (*path, key))


def holder(data: Any, path: tuple[Any, ...]) -> Any:
    """Return the mapping or list that a place is in."""
    for key in path[:-1]:
        data = data[key]
    return data


STRANGE: list[Any] = [None, -1, 1.5, True, "q", [], {}, [1], {"a": 1}, float("nan"), 10**30]


@st.composite
def budgets(draw: st.DrawFn) -> str:
    """Write the budget with one key misspelt, one name misspelt, or one value of another type."""
    data = json.loads(bk.state.to_json(BUDGET))
    path = draw(st.sampled_from(sorted(spots(data), key=str)))
    inside, key = holder(data, path), path[-1]
    how = draw(st.sampled_from(["key", "value", "type"]))
    if how == "key" and isinstance(key, str):
        inside[draw(misspelt(key))] = inside.pop(key)
    elif (
        how == "value"
        and isinstance(inside[key], str)
        and inside[key].isidentifier()
        and key != "name"
    ):
        inside[key] = draw(misspelt(inside[key]))
    else:
        inside[key] = draw(st.sampled_from(STRANGE))
    return json.dumps(data)


def is_another_budget(text: str) -> bool:
    """Say whether this is a mistake that nobody can see: it reads as a budget somebody may mean."""
    try:
        budget = bk.state.from_json(text)
    except (*WRONG, RecursionError):
        return False
    if not isinstance(budget, bk.Budget) or not set(ROLES.values()) <= set(budget.sections):
        return False
    # None, and said so.
    return budget.reserved > 500 or json.loads(text)["budget"].get("reserves") == []


def is_another_model(name: str) -> bool:
    """Say whether a misspelt name is a name too: "gp-t4o" is gpt-4o to a price list, and "gpt-4" another model."""
    return resolve(name).is_known


@st.composite
def mutants(draw: st.DrawFn) -> Mutant:
    """Change one thing in what is right."""
    files, options = right()
    conversation = "chats.jsonl"
    kinds = ["budget", "yaml", "option", "name", "value", "file", "gone", "twice", "cut off"]
    how = draw(st.sampled_from(kinds))
    if how == "budget":
        files["mine.json"] = draw(budgets().filter(lambda text: not is_another_budget(text)))
    elif how == "yaml":
        mistakes = budgets().filter(lambda text: not is_another_budget(text) and "NaN" not in text)
        text = draw(mistakes)
        files["mine.json"] = yaml.safe_dump(json.loads(text))
    elif how == "option":
        option = draw(st.sampled_from(sorted(options)))
        wrong = draw(misspelt(option))
        options = {wrong if name == option else name: value for name, value in options.items()}
    elif how == "name":
        option = draw(
            st.sampled_from(
                ["--budget", "--model", "--counter", "--prompt", "--tools", "--policy", ""]
            )
        )
        if option:
            options[option] = draw(
                misspelt(options[option]).filter(lambda word: not is_another_model(word))
            )
        else:
            conversation = draw(misspelt(conversation))
    elif how == "value":
        option = draw(st.sampled_from(["--most-cut", "--floor", "--thinking", "--window"]))
        options[option] = draw(
            st.sampled_from(["", "q", "-1", "nan", "inf", "1e3", "0x1", "1.5", "None", "9" * 40])
        )
    elif how == "file":
        file = draw(st.sampled_from(sorted(files)))
        files[file] = draw(
            st.sampled_from(
                [b"", b"  \n", b"\xff\xfe\xfd", b"[", b"null", b"3", b'"q"', b"[[]]", b"{}"]
            )
        )
        if file == "prompt.txt" and files[file] not in (b"", b"  \n", b"\xff\xfe\xfd"):
            files[file] = b""  # any other text is a prompt
    elif how == "gone":
        del files[draw(st.sampled_from(sorted(files)))]
    elif how == "twice":
        return files, [*arguments(options), "--prompt", options["--prompt"]]
    else:
        file = draw(st.sampled_from(["mine.json", "tools.json", "chats.jsonl"]))
        files[file] = files[file][: draw(st.integers(1, len(files[file]) - 1))]
    return files, arguments(options, conversation)


@settings(max_examples=examples(250))
@given(mutant=mutants())
def test_a_mistake_never_opens_the_gate(mutant: Mutant, folder: Path) -> None:
    files, words = mutant
    assert ends(files, words, folder) in (1, 2)


LONG = "Say where you are not sure, and why. "
HOST = {"type": "string", "description": LONG * 2}
SCHEMA = {"type": "object", "properties": {"host": HOST}, "required": ["host"]}


def about(field: str, number: int) -> dict[str, Any]:
    """Describe one of several tools, with its schema under a field."""
    return {"name": f"tool_{number}", "description": LONG, field: SCHEMA}


#: What is right and too much for the budget, each alone, so that the gate is closed whichever form it has.
TOO_MUCH: dict[str, Any] = {
    "mcp": {"result": {"tools": [about("inputSchema", n) for n in range(9)]}},
    "chat": [{"type": "function", "function": about("parameters", n)} for n in range(9)],
    "gemini": [{"functionDeclarations": [about("parameters", n) for n in range(9)]}],
    "talk": {"messages": [system(LONG * 40), user("Why?")]},
}
#: Keys that name nothing that counts, and those under which a key is a name of the author's own.
NAMES = {"name", "required", "id", "host"}


@st.composite
def changed(draw: st.DrawFn, kind: str) -> Any:
    """Misspell one key, put one thing a level deeper, or empty one list, in all entries that are alike."""
    data = json.loads(json.dumps(TOO_MUCH[kind]))  # each part is one of its own
    how = draw(st.sampled_from(["letter", "level", "empty", "by name"]))
    if how == "by name" and kind != "talk":
        tools = data if isinstance(data, list) else data["result"]["tools"]
        return {f"tool_{place}": tool for place, tool in enumerate(tools)}
    if how == "empty":
        whole = [*spots(data)]
        lists = [path for path in whole if isinstance(holder(data, path)[path[-1]], list)]
        outer = [path for path in lists if "required" not in path]
        if outer:
            path = draw(st.sampled_from(outer))
            holder(data, path)[path[-1]] = []
            return data
        return []
    keys = sorted({path[-1] for path in spots(data) if isinstance(path[-1], str)} - NAMES)
    key = draw(st.sampled_from(keys))
    wrong = draw(misspelt(key)) if how == "letter" else key
    # The deepest first: a place within a value moves with it.
    for path in sorted((path for path in spots(data) if path[-1] == key), key=len, reverse=True):
        inside = holder(data, path)
        value = inside.pop(key)
        inside[wrong] = value if how == "letter" else {key: value}
    return data


@pytest.mark.parametrize("kind", TOO_MUCH)
def test_what_is_too_much_closes_the_gate(kind: str, folder: Path) -> None:
    assert ends(*too_much(kind, TOO_MUCH[kind]), folder) == 1


def too_much(kind: str, data: Any) -> Mutant:
    files, options = right()
    options.pop("--prompt" if kind == "talk" else "--policy")
    file = "chats.jsonl" if kind == "talk" else "tools.json"
    files[file] = json.dumps(data)
    return files, arguments(options)


@pytest.mark.parametrize("kind", TOO_MUCH)
@settings(max_examples=examples(60))
@given(data=st.data())
def test_one_change_never_opens_a_closed_gate(kind: str, data: st.DataObject, folder: Path) -> None:
    """In 0.3.0 a misspelt description, tools by name and an empty list opened it."""
    files, words = too_much(kind, data.draw(changed(kind)))
    assert ends(files, words, folder) in (1, 2)


CALLS: dict[str, Any] = {
    "budget": BUDGET,
    "prompts": {"system": "Be brief, please."},
    "tools": TOOLS,
    "traces": [bk.Trace("one", tuple(map(bk.Message, TALK["messages"])))],
    "counter": "o200k_base",
    "model": "gpt-4o",
    "policy": "haystack",
    "most_cut": 0.5,
    "floor": 100,
    "thinking": 0,
}
TYPES: list[Any] = [
    -1, 2.5, True, "q", b"q", float("nan"), 10**400, object(), [3], {"q": 3}, {3}, ["q"],
    {"q": "q"},
]  # fmt: skip


def test_the_right_call_opens_the_gate_and_the_fixture() -> None:
    assert check(**deepcopy(CALLS)).passed
    assert checked(**deepcopy(CALLS)).passed


@pytest.mark.parametrize("gate", [check, checked])
@pytest.mark.parametrize("name", [*CALLS, "window"])
def test_no_value_of_a_wrong_type_opens_the_gate(gate: Callable[..., Any], name: str) -> None:
    """Nor does it end in anything but words."""
    for value in TYPES:
        call = {**deepcopy(CALLS), name: value}
        try:
            outcome = gate(call.pop("budget"), **call)
        except WRONG as error:
            assert len(str(error)) < 800, (value, error)
        else:
            assert not outcome.passed, value


@given(data=st.data())
def test_no_misspelt_keyword_or_name_opens_the_gate(data: st.DataObject) -> None:
    call = deepcopy(CALLS)
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from([name for name in CALLS if name != "budget"]))
        call[data.draw(misspelt(name))] = call.pop(name)
    else:
        name = data.draw(st.sampled_from(["counter", "model", "policy"]))
        call[name] = data.draw(misspelt(call[name]).filter(lambda word: not is_another_model(word)))
    with pytest.raises(WRONG):
        check(call.pop("budget"), **call)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "txt": "word " * 500},
        {"type": "blob", "data": "word " * 500},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "file", "file": {"file_id": "one"}},
    ],
    ids=lambda part: part["type"],
)
def test_a_part_that_is_not_counted_never_opens_the_gate(part: dict[str, Any]) -> None:
    body = {"messages": [user([part])]}
    assert part["type"] in bk.count_request({"model": "gpt-4o", **body}).uncounted
    trace = bk.Trace("one", tuple(map(bk.Message, body["messages"])))
    found = check(BUDGET, traces=[trace], model="gpt-4o")
    assert f"{part['type']} cannot be counted" in str(found)
    assert not found.passed


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": None},
        {"type": "function", "function": ["word " * 500]},
        {"type": "function", "function": "word " * 500},
        {"function": {"function": {"name": "f", "description": "word " * 500}}},
        {"type": "custom", "name": "f", "description": "word " * 500},
        {"type": "custom", "custom": {"name": "f", "description": "word " * 500}},
    ],
    ids=str,
)
def test_a_tool_that_is_not_counted_never_opens_the_gate(tool: dict[str, Any]) -> None:
    try:
        found = check(BUDGET, tools=[tool], model="gpt-4o")
    except WRONG:
        return
    assert not found.passed


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": ["word " * 500]},
        {"properties": {"host": "word " * 500}},
        {"properties": {"host": {"enum": {"one": "word " * 500}}}},
        {"properties": {"hosts": {"type": "array", "items": ["word " * 500]}}},
    ],
    ids=["properties", "property", "enum", "items"],
)
def test_a_wrong_type_in_a_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Invalid .* in a tool: "):
        check(BUDGET, tools=[{"name": "ping", "parameters": {"type": "object", **schema}}])


FEW = json.dumps(TOOLS)
ALL = json.dumps(TOO_MUCH["chat"])


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("tools.json", f'{{"tools": {FEW}, "next_cursor": "a"}}'),
        ("tools.json", f'{{"tools": {FEW}, "nextPageToken": "a"}}'),
        ("tools.json", f'{{"tools": {FEW}, "functions": {ALL}}}'),
        ("tools.json", f'{{"tools": {FEW}, "functionDeclarations": {ALL}}}'),
        ("tools.json", f'{{"tools": {ALL}, "tools": {FEW}}}'),
        ("tools.json", f'[{{"name": "a", "description": "{LONG * 99}", "description": "b"}}]'),
        ("tools.json", '[{"name": "a", "description": NaN}]'),
        *(
            ("chats.jsonl", json.dumps({**TALK, key: LONG * 99}))
            for key in ("sytem", "system_prompt", "instructions", "preamble", "developer", "tools_")
        ),
    ],
)
def test_what_is_not_read_closes_the_gate(file: str, text: str, folder: Path) -> None:
    files, options = right()
    files[file] = text
    assert ends(files, arguments(options), folder) in (1, 2)


def test_a_misspelt_key_of_a_call_is_refused() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "argumnts": "word " * 500}}
    said = {"messages": [calling(call)]}
    with pytest.raises(ValueError, match="Unknown key 'argumnts' of a tool call"):
        check(BUDGET, traces=[bk.Trace("one", tuple(map(bk.Message, said["messages"])))])


#: Names that a field, a block or an item has somewhere, and two that none has.
NEW_NAMES = [
    "attachments",
    "experimental_attachments",
    "documents",
    "document",
    "context",
    "thread",
    "files",
    "citations_of",
    "memory",
    "image_generation_call",
    "tool_search_call",
    "tool_search_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "mcp_list_tools",
    "computer_call",
    "compaction",
    "custom_tool_call_output",
    "code_interpreter_call",
    "container_upload",
    "item_reference",
    "program_output",
    "foo",
    "unheardOf",
]


@st.composite
def uncounted_bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Return a request in which one block, item, field, role or tool is of a kind that is not counted."""
    form = draw(st.sampled_from(sorted(NAMED)))
    name = draw(
        st.sampled_from(NEW_NAMES) | st.from_regex(r"[a-z]{3,9}_[a-z]{3,9}", fullmatch=True)
    )
    text = {"text": "Look."}
    if form not in ("gemini", "converse"):
        text["type"] = "input_text" if form == "responses" else "text"
    (question,) = spoken(form, text)
    how = draw(st.sampled_from(["block", "item", "field", "role", "tool", "setting"]))
    if how == "item" and form == "responses":
        return body_of(form, [question, {"type": name, "call_id": "a", "output": LONG}])
    if how == "field":
        value = draw(st.sampled_from([LONG, [LONG], {"text": LONG}]))
        return body_of(form, [{**question, name: value}])
    if how == "role":
        return body_of(form, [question, {**question, "role": name}])
    if how == "tool":
        return {**body_of(form, [question]), "tools": [{"type": name, "names": [LONG]}]}
    if how == "setting":
        return {**body_of(form, [question]), **draw(settings_beside(form))}
    block = {"type": name, "payload": LONG} if "type" in text else {name: {"payload": LONG}}
    block = draw(st.sampled_from([*NAMED[form], block]))
    return body_of(form, draw(st.sampled_from(in_places(form, block))))


@st.composite
def settings_beside(draw: st.DrawFn, form: str) -> dict[str, Any]:
    """Return a field under which a provider adds content to the prompt."""
    conditions = sorted(read_toml("framings.toml")["request"][form]["beside"])
    path, _, value = draw(st.sampled_from(conditions)).partition("=")
    keys = draw(st.sampled_from(path.split("|"))).split(".")
    field: Any = value or {"a": [LONG]}
    for key in reversed(keys):
        field = {key: field}
    return dict(field)


@settings(max_examples=examples(150))
@given(body=uncounted_bodies())
@pytest.mark.filterwarnings("ignore")
def test_whatever_a_request_is_not_counted_for_closes_the_gate(body: dict[str, Any]) -> None:
    """The gate had a list of its own, without the fields of messages and the items of Responses."""
    names = [
        name
        for name in bk.count_request(body).uncounted
        # The title of a file is no field of a request. Images are counted at their largest.
        if not name.startswith("field ") and name != "image of unknown size"
    ]
    try:
        found = check(ROOMY, traces=[bk.load_trace(body)], model=body["model"])
    except WRONG:
        return
    (estimate,) = found.failures if names else [""]
    assert [name for name in names if name not in str(estimate)] == []


#: Whatever fits it, and all kinds of messages have a section.
ROOMY = BUDGET.assign(window=900_000, system=200_000, tools=200_000)
ROOMY = replace(ROOMY, roles={**ROLES, "tool": "history"})
PICTURE: dict[str, Any] = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


@pytest.mark.parametrize(
    ("form", "image"),
    [
        ("chat", PICTURE),
        ("chat", {**PICTURE, "image_url": {**PICTURE["image_url"], "width": 0, "height": 9}}),
        ("responses", {"type": "input_image", "image_url": "https://example.org/a.png"}),
        ("anthropic", {"type": "image", "source": {"type": "url", "url": "https://example.org"}}),
        ("gemini", {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
    ],
    ids=str,
)
def test_images_of_unknown_size_are_checked_at_their_largest(form: str, image: Any) -> None:
    """They passed at the price of 1,024 x 1,024 pixels: 24,606 tokens of at most 60,026."""
    body = body_of(form, spoken(form, image) * 9)
    count = bk.count_request(body)
    assert count.uncounted == ("image of unknown size",)
    assert count.interval[1] is not None
    (found, wide) = (
        check(
            bk.Budget(window, [bk.Reserve("safety", 10)], [bk.Allocation("history")], roles=ONE),
            traces=[bk.load_trace(body)],
            model=body["model"],
        )
        for window in (count.tokens + 200, 2 * count.interval[1])
    )
    assert wide.passed
    assert wide.sections["history"] > count.tokens
    assert wide.sections["history"] > 0.85 * count.interval[1]  # an estimate is up to 13 % lower
    assert [failure.code for failure in found.failures] == ["estimate"]
    assert "image of unknown size cannot be counted" in str(found)


ONE = dict.fromkeys(["system", "tools", "user", "assistant", "tool", "current"], "history")


def test_a_failure_says_that_images_are_counted_at_their_largest() -> None:
    budget = bk.Budget(2_000, (), [bk.Allocation("history", required=True)], roles=ONE)
    trace = bk.load_trace(body_of("chat", spoken("chat", PICTURE) * 9))
    found = check(budget, traces=[trace], model="gpt-4o")
    assert ", with images of unknown size at their largest, turn 9: " in str(found)
    sized = body_of("chat", spoken("chat", {**PICTURE, "width": 64, "height": 64}) * 2)
    assert check(budget, traces=[bk.load_trace(sized)], model="gpt-4o").passed


@pytest.mark.parametrize("answer", ["as the provider sent it", "by hand"])
def test_an_answer_that_is_sent_back_with_its_usage_opens_the_gate(answer: str) -> None:
    more = {
        "id": "a",
        "type": "message",
        "model": "m",
        "stop_reason": "end_turn",
        "usage": {"a": 1},
    }
    said: dict[str, Any] = {"role": "assistant", "content": [{"type": "text", "text": "So."}]}
    said |= more if answer == "as the provider sent it" else {}
    body = body_of("anthropic", [*TALK["messages"][:1], said, *TALK["messages"][:1]])
    assert bk.count_request(body).uncounted == ()
    assert check(ROOMY, traces=[bk.load_trace(body)], model=MODELS["anthropic"]).passed
