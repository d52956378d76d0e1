"""Files, states and answers with one thing changed: each is read, or refused in one sentence, whatever the change.

`BUDGETKIT_EFFORT=40` tries forty times as many (see conftest).
"""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from click import Context
from hypothesis import HealthCheck, given, settings

import budgetkit as bk
from budgetkit import policies, state
from budgetkit.extras.shell.program import COMMANDS, Commands, run
from budgetkit.trace import list_traces, readings, to_line, usage_frame
from tests.conftest import examples
from tests.messages import assistant, user

FORMATS = Path(__file__).parents[1] / "formats"
SAMPLES = sorted(
    path for path in FORMATS.iterdir() if path.suffix in (".json", ".jsonl", ".chat", ".traj")
)

TEXTS = ["", "user", "x", "\ud83d", '{"role": "user"}', '[{"type": "text"}]', "[1, 2]", "messages", "0"]  # fmt: skip
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from([10**400, -(10**30), 1e308, 0.5, *TEXTS]),
)
KEYS = st.sampled_from(["role", "content", "type", "text", "id", "messages", "0", "x.y"])
ANY = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def values(path: Path) -> list[Any]:
    text = path.read_text("utf-8")
    return (
        [json.loads(text)]
        if path.suffix != ".jsonl"
        else [json.loads(line) for line in text.splitlines()]
    )


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """List every place in a value: what holds it, and under which key."""
    stack = [value]
    while stack:
        holder = stack.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], dict | list):
                stack.append(holder[key])


def mutated(draw: Callable[[st.SearchStrategy[Any]], Any], written: list[Any]) -> str:
    """Change one thing, or two: put anything in a place, take it away, double it, nest it."""
    held = deepcopy(written)
    for _ in range(draw(st.integers(1, 2))):
        found = list(places(held))
        if not found:
            break
        holder, key = draw(st.sampled_from(found))
        how = draw(st.sampled_from(["change", "change", "delete", "double", "nest", "rename"]))
        if how == "change":
            holder[key] = draw(ANY)
        elif how == "delete":
            del holder[key]
        elif how == "nest":
            holder[key] = [holder[key]] if draw(st.booleans()) else {"content": holder[key]}
        elif how == "double":
            holder[key] = [holder[key], deepcopy(holder[key])]
        elif isinstance(holder, dict):
            holder[
                draw(st.sampled_from(["messages", "content", "role", "parts", "input", "usage"]))
            ] = holder.pop(key)
    return "\n".join(json.dumps(each) for each in held)


def use(stream: BytesIO) -> None:
    """Load, and look at everything that reads the file's own fields."""
    for trace in bk.load_traces(stream):
        assert int(trace.demand(len).to_numpy().sum()) >= 0
        assert trace.format and all("\n" not in note for note in trace.warnings)
        assert (usage_frame(trace)["context_tokens"].fillna(0) >= 0).all()
        readings(trace, len)
        to_line(trace).encode()


@pytest.mark.parametrize("sample", SAMPLES, ids=[path.name for path in SAMPLES])
@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore:.*No text in the:UserWarning")
@given(data=st.data())
def test_a_changed_file_loads_or_is_refused_in_words(sample: Path, data: st.DataObject) -> None:
    text = mutated(data.draw, values(sample))
    for read in (use, list_traces):
        stream = BytesIO(text.encode())
        stream.name = sample.name
        try:
            read(stream)
        except ValueError as refusal:
            assert str(refusal) and "\n" not in str(refusal) and len(str(refusal)) < 1_000


RESULT = {"id": {"content": "c1"}, "name": "weather", "response": {"result": "Sun"}}
LOOK = {"id": "c1", "name": "weather", "args": {}, "result": [{"functionResponse": RESULT}]}
ABOUT = {"sessionId": "s1", "projectHash": "0a", "startTime": "2026-01-01T10:00:00Z"}


@pytest.mark.parametrize(
    "text",
    [
        # an id that is no text, of a result that stands beside its call
        json.dumps({**ABOUT, "messages": [{"type": "gemini", "content": "", "toolCalls": [LOOK]}]}),
        # a text that is no text
        '{"messages": [{"role": "assistant", "content": [{"type": "text", "text": {"x": 1}}]}]}',
        # a message that is no object
        '[{"type": "message", "user": "U1", "text": "How is Oslo?", "ts": "17.1"}, "Hi"]',
    ],
)
def test_a_value_of_another_type_is_read_or_refused_in_words(text: str) -> None:
    stream = BytesIO(text.encode())
    stream.name = "chat.json"
    try:
        use(stream)
    except ValueError as refusal:
        assert str(refusal) and "\n" not in str(refusal)


def held(value: Any) -> dict[str, Any]:
    """Give a state, or a running conversation, as the JSON that it is saved as."""
    saved: dict[str, Any] = json.loads(
        value.to_json() if isinstance(value, bk.Conversation) else state.to_json(value)
    )
    return saved


def spoken() -> bk.Conversation:
    talk = bk.Conversation(
        bk.presets.working_memory(400, output=50), policies.SlidingWindow(2), len, overrun="tell"
    )
    for turn in range(6):
        talk.add(user("why " * turn), assistant("so " * 30))
        talk.request()
    return talk


PLANNED = bk.fit(
    bk.Budget(100, (), [bk.Allocation("a", 50, keep="best")]),
    [bk.Item("a", 30, 0.5), bk.Item("a", 40)],
)
STATES = {
    **{name: held(bk.presets.PRESETS[name](8_192)) for name in ("chat", "memory_engine", "agent")},
    "plan": held(PLANNED),
    "running": held(spoken()),
}
LONGEST = 700  # characters of an error: a sentence, with what was asked cut to a line


@pytest.mark.parametrize("name", STATES)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore:The .* of the saved conversation changes:UserWarning")
@given(data=st.data())
def test_a_changed_state_comes_back_or_is_refused_in_words(name: str, data: st.DataObject) -> None:
    text = mutated(data.draw, [STATES[name]])
    try:
        if name == "running":
            talk = bk.Conversation.from_json(text, policies.SlidingWindow(2), len, overrun="tell")
            talk.add(user("why"))
            try:
                assert talk.request().messages
            except LookupError as refusal:  # its budget says of its roles that they have no section
                assert type(refusal) is LookupError and len(str(refusal)) < LONGEST
            return
        for load in (state.from_json, state.from_yaml):
            found = load(text)
            assert repr(found) and state.from_json(
                state.to_json(found)
            ) == found == state.from_yaml(state.to_yaml(found))
    except ValueError as refusal:
        assert str(refusal) and "\n" not in str(refusal) and len(str(refusal)) < LONGEST, refusal


COUNTED = {
    "openai": {"object": "response.input_tokens", "input_tokens": 12},
    "anthropic": {"input_tokens": 12},
    "gemini": {"totalTokens": 12, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}]},
    "an error": {"error": {"message": "slow down", "type": "x", "code": 429}},
}


@pytest.mark.parametrize("name", COUNTED)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), status=st.sampled_from([200, 200, 200, 400, 401, 404, 429, 500]))
def test_an_answer_with_one_thing_changed_is_a_count_or_half_a_sentence(
    name: str, data: st.DataObject, status: int
) -> None:
    shapes = pytest.importorskip("budgetkit.extras.endpoints.asking")
    from budgetkit.extras.endpoints.exchange import Answer, Key

    endpoint = shapes.ENDPOINTS.get(name, shapes.ENDPOINTS["openai"])
    key = Key("KEY", lambda key: {"key": key}, "sk-1234567890abcdef")
    body = mutated(data.draw, [COUNTED[name]]).encode("utf-8", "replace")
    waits = data.draw(st.sampled_from(["", "20", "x" * 99]))
    found = shapes.tokens_in(Answer(status, "said", waits, body), endpoint, key)
    if isinstance(found, int):
        assert 0 <= found <= 10**9 and status == 200
    else:
        assert "\n" not in found and len(found) < LONGEST and key.value not in found


CALLED = [("fit",), ("replay",), ("compare",), ("redact",), ("count", "--chat"), ("check",)]


@pytest.mark.parametrize("command", CALLED, ids=" ".join)
@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore:.*No text in the:UserWarning")
@given(data=st.data())
def test_a_command_on_a_file_with_one_thing_changed_ends_in_a_table_or_a_sentence(
    command: tuple[str, ...],
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: Any,
) -> None:
    sample = data.draw(st.sampled_from(SAMPLES))
    path = tmp_path_factory.mktemp("mutant") / sample.name
    path.write_text(mutated(data.draw, values(sample)), "utf-8", errors="surrogatepass")
    capsys.readouterr()
    ends_in_words([command[0], str(path), *command[1:]], capsys)


@pytest.fixture(autouse=True)
def empty_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reads a home: sessions are looked for in an empty folder."""
    monkeypatch.setenv("HOME", str(tmp_path))


def ends_in_words(arguments: list[str], capsys: Any) -> None:
    """Run the program, in this process: what it does not know how to say is raised here."""
    returned = run(arguments)
    printed = capsys.readouterr()
    assert returned in (0, 1, 2)
    assert "Traceback" not in printed.err + printed.out
    assert (printed.out or printed.err).strip()


def options_of(name: str) -> list[Any]:
    """List what a command takes, by its own schema, but for files that it would write and pages that it would serve."""
    command = Commands().get_command(Context(Commands()), name)
    assert command is not None
    return [
        each
        for each in command.params
        if each.name not in ("output", "saved_as", "report", "in_lab")
        and each.param_type_name != "argument"
    ]


TYPED = [
    "", "0", "-1", "9" * 400, "1e999", "1e-99999999", "nan", "20%", "gpt-4o", "chars/4", "octopus",
    "a=b", "system=no file", "\u202e", "-",
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("explore", "report")])
@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore::budgetkit.models.RetiredModelWarning")
@given(data=st.data())
def test_a_command_with_any_options_ends_in_a_table_or_a_sentence(
    name: str, data: st.DataObject, capsys: Any
) -> None:
    arguments = [
        name,
        data.draw(st.sampled_from(["support-chat", "made-up-chats", "no such file", ""])),
    ]
    for option in data.draw(st.lists(st.sampled_from(options_of(name)), max_size=3)):
        arguments.append(option.opts[-1])
        if not option.is_flag:
            known = [*option.type.choices] if hasattr(option.type, "choices") else []
            arguments.append(data.draw(st.sampled_from([*TYPED, *known * 5])))
    capsys.readouterr()
    ends_in_words(arguments, capsys)
