"""Every block that a provider takes is counted or named, in whatever place it stands: no silent 0."""

from typing import Any

import pytest

import budgetkit as bk
from tests.messages import assistant, tool_call, tool_result, user

TEXT = "alpha beta gamma delta " * 300
PDF = "JVBERi0xLjQK"
MODELS = {
    "chat": "gpt-4o",
    "responses": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
    "converse": "claude-sonnet-4-5",
}
PASSAGE = {"type": "text", "text": TEXT}
FETCHED = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": TEXT}}
#: Blocks of each form that hold a text, and those that only their provider can count.
COUNTED: dict[str, list[Any]] = {
    "anthropic": [
        FETCHED,
        {"type": "document", "source": {"type": "content", "content": [PASSAGE]}},
        {"type": "document", "source": {"type": "content", "content": TEXT}},
        {"type": "search_result", "source": "here", "title": "a", "content": [PASSAGE]},
    ],
    "responses": [{"type": "input_text", "text": TEXT}],
    "chat": [PASSAGE],
    "gemini": [
        {"text": TEXT},
        {"executableCode": {"language": "PYTHON", "code": TEXT}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": TEXT}},
    ],
    "converse": [
        {"document": {"format": "txt", "name": "a", "source": {"text": TEXT}}},
        {"document": {"format": "txt", "name": "a", "source": {"content": [{"text": TEXT}]}}},
        {"searchResult": {"source": "here", "title": "a", "content": [{"text": TEXT}]}},
        {"citationsContent": {"content": [{"text": TEXT}], "citations": []}},
        {"guardContent": {"text": {"text": TEXT}}},
    ],
}
A_PDF = {"type": "base64", "media_type": "application/pdf", "data": PDF}
NAMED: dict[str, list[Any]] = {
    "anthropic": [
        {"type": "document", "source": A_PDF},
        {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
        {"type": "document", "source": {"type": "file", "file_id": "a"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "container_upload", "file_id": "a"},
        {"type": "unheard_of", "payload": TEXT},
    ],
    "responses": [
        {"type": "input_image", "image_url": "https://example.org/a.png"},
        {"type": "input_file", "file_id": "a"},
        {"type": "input_audio", "input_audio": {"data": PDF, "format": "wav"}},
        {"type": "unheard_of", "payload": TEXT},
    ],
    "chat": [
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "input_audio", "input_audio": {"data": PDF, "format": "wav"}},
        {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}},
        {"type": "unheard_of", "payload": TEXT},
    ],
    "gemini": [
        {"inlineData": {"mimeType": "application/pdf", "data": PDF}},
        {"inlineData": {"mimeType": "audio/wav", "data": PDF}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "a"}},
        {"unheardOf": {"payload": TEXT}},
    ],
    "converse": [
        {"document": {"format": "pdf", "name": "a", "source": {"bytes": PDF}}},
        {"image": {"format": "png", "source": {"s3Location": {"uri": "a"}}}},
        {"video": {"format": "mp4", "source": {"bytes": PDF}}},
        {"unheardOf": {"payload": TEXT}},
    ],
}


def spoken(form: str, block: Any) -> list[Any]:
    if form == "gemini":
        return [{"role": "user", "parts": [block]}]
    kind = {"type": "message"} if form == "responses" else {}
    return [{**kind, "role": "user", "content": [block]}]


def answered(form: str, block: Any) -> list[Any]:
    """Return a call and its result, which holds the block."""
    if form == "gemini":
        answer = {"name": "f", "response": {}, "parts": [block]}
        return [
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": answer}]},
        ]
    if form == "responses":
        call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
        return [call, {"type": "function_call_output", "call_id": "a", "output": [block]}]
    use: dict[str, Any]
    if form == "anthropic":
        use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
        result: Any = {"type": "tool_result", "tool_use_id": "a", "content": [block]}
    else:
        use = {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}
        result = {"toolResult": {"toolUseId": "a", "content": [block]}}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


#: A question beside which a block stands, in each form.
LOOK: dict[str, Any] = {
    **dict.fromkeys(("gemini", "converse"), {"text": "Look."}),
    **dict.fromkeys(("chat", "anthropic"), {"type": "text", "text": "Look."}),
    "responses": {"type": "input_text", "text": "Look."},
}


def in_places(form: str, block: Any) -> list[list[Any]]:
    places = [spoken(form, block)]
    if form not in ("chat", "gemini") and "citationsContent" not in block:
        places.append([*spoken(form, LOOK[form]), *answered(form, block)])
    return places


def body_of(form: str, messages: list[Any]) -> dict[str, Any]:
    name = {"responses": "input", "gemini": "contents"}.get(form, "messages")
    return {"model": MODELS[form], name: messages}


@pytest.mark.parametrize("form", COUNTED)
def test_a_block_with_text_counts_what_the_text_does(form: Any) -> None:
    for block in COUNTED[form]:
        for messages in in_places(form, block):
            talk = bk.Conversation("chat", model=MODELS[form], form=form)
            talk.add(messages)
            request = talk.request()
            assert request.tokens == bk.count_request(body_of(form, request.messages)).tokens
            assert request.tokens > 1_150, block
            built = bk.build("rag", model=MODELS[form], user=spoken(form, block)[0], form=form)
            assert built.plan.used > 1_150
            with pytest.raises(ValueError, match="exceed the usable window"):
                bk.trim(spoken(form, block), 1_000, model=MODELS[form], form=form)


@pytest.mark.parametrize("form", NAMED)
def test_a_block_that_nobody_can_count_is_named_everywhere(form: Any) -> None:
    for block in NAMED[form]:
        for messages in in_places(form, block):
            if form == "converse" and "unheardOf" in block and len(messages) > 1:
                continue  # a result of unknown JSON counts as its text
            body = body_of(form, messages)
            assert bk.count_request(body).uncounted, block
            talk = bk.Conversation("chat", model=MODELS[form], form=form)
            talk.add(messages)
            trimmed = bk.trim(messages, 20_000, model=MODELS[form], form=form)
            for warnings in (talk.request().warnings, trimmed.warnings):
                assert any("Only the provider can count" in text for text in warnings), block
        built = bk.build("rag", model=MODELS[form], user=spoken(form, block)[0], form=form)
        assert any("Only the provider can count" in text for text in built.warnings), block


def test_a_document_in_a_result_is_cut_inside_with_it() -> None:
    messages = [*spoken("anthropic", LOOK["anthropic"]), *answered("anthropic", FETCHED)]
    trimmed = bk.trim(messages, 500, model="claude-sonnet-4-5")
    assert [left.why for left in trimmed.left] == ["shortened"]
    assert bk.count_request(body_of("anthropic", [*trimmed])).tokens <= 500


@pytest.mark.parametrize(
    ("field", "value"), [("audio", {"id": "audio_1"}), ("images", ["iVBORw0KGgo="])]
)
def test_what_stands_beside_the_content_is_named(field: str, value: Any) -> None:
    messages = [*spoken("chat", {"type": "text", "text": "Look."})]
    messages += [{"role": "assistant", "content": "Done.", field: value}, *messages]
    assert bk.count_request(body_of("chat", messages)).uncounted == (field,)


@pytest.mark.parametrize("form", COUNTED)
def test_an_unknown_role_or_field_of_a_message_is_named(form: str) -> None:
    """No provider takes the role "usr", and nobody knows whether a field "foo" is billed."""
    (message,) = spoken(form, COUNTED[form][0])
    assert bk.count_request(body_of(form, [message])).uncounted == ()
    for change, name in (({"role": "usr"}, "role usr"), ({"foo": "bar"}, "message field foo")):
        count = bk.count_request(body_of(form, [message | change]))
        assert (count.uncounted, count.exact, count.interval[1]) == ((name,), False, None)


@pytest.mark.parametrize(
    ("field", "thought"),
    [
        ("reasoning", TEXT),
        ("reasoning_content", TEXT),
        ("reasoning_details", [{"type": "reasoning.text", "text": TEXT}]),
    ],
)
def test_gpt_oss_reads_again_what_it_thought_before_a_call(field: str, thought: Any) -> None:
    answer = assistant("", tool_calls=[tool_call("a", "f")])
    messages = [user("hi"), {**answer, field: thought}, tool_result("a", "x")]
    body = {"model": "openai/gpt-oss-120b", "messages": messages}
    assert bk.count_request(body).tokens > 1_200


@pytest.mark.parametrize("form", [None, "chat"])
@pytest.mark.parametrize(
    "block",
    [
        COUNTED["anthropic"][3],
        {"type": "reasoning", "reasoning": TEXT},
        {"type": "text-plain", "text": TEXT},
        {"type": "video_url", "video_url": {"url": TEXT}},
        {"type": "resource", "resource": {"uri": "file:///a", "text": TEXT}},
    ],
    ids=lambda block: block["type"],
)
def test_a_request_holds_no_text_twice(block: Any, form: Any) -> None:
    """The record that a message was read from went out beside it, and was in no count."""
    history = [{"role": "user", "content": [block]}, {"role": "assistant", "content": "Yes."}]
    loaded = bk.load_traces(history)[0]
    once = TEXT.count("alpha")
    values: list[Any] = [history, loaded]
    for value in values:
        budget = bk.presets.working_memory(30_000, output=300)
        built = bk.build(budget, "gpt-4o", history=value, form=form)
        said = getattr(value, "messages", value)
        trimmed = bk.trim(said, 30_000, "gpt-4o", form=form)
        talk = bk.Conversation("chat", model="gpt-4o", form=form)
        talk.add(said)
        for messages in (built.messages, trimmed, talk.request().messages):
            assert str(messages).count("alpha") == once
            assert all("native" not in message for message in messages)


def test_a_picture_by_its_address_is_named_where_the_form_has_none() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    message = {"role": "user", "content": [{"type": "text", "text": "Look."}, picture]}
    built = bk.build("rag", model="claude-sonnet-4-5", user=[message], form="converse")
    assert "Converse accepts no image URL. Send the bytes of the image." in built.warnings
