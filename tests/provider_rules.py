"""Which lists of messages a provider accepts: one function for each form, with the rules and where they come from.

Written down on 2026-11-23 from each provider's documentation and from the errors that users report; facts only. Each
function returns what is wrong, in words, and nothing where the list is valid.

chat: a tool message answers a call of the assistant's message before it, and every call is answered before anybody else
speaks (OpenAI's guide to function calling); a list of calls is not empty (baptisteArno/typebot.io issue 1205).

responses: a function_call_output has its function_call before it, a function_call its output behind it; reasoning is
followed by the item that it led to, and that item is not sent without it (vercel/ai issue
7099, 0xPlaygrounds/rig issue 751).

anthropic: user and assistant only; neighbours of one role count as one; the first is a user's; no content is empty;
results stand first in the message right after their calls, one for each; thinking keeps its signature (Anthropic's
reference of Messages, its guide to tool use). No text is blank and no two calls have one id (anthropics/claude-code
issues 23369, 28515).

gemini: the first is a user's; a turn of calls comes right after a user's or one of results; the turn after it has as
many results, of the same tools (the API's errors in google-gemini/gemini-cli issues 17208 and 26486). No part is empty,
and a part with an empty text is (router-for-me/CLIProxyAPI issue 1293).

converse: user and assistant alternate, the first is a user's; no content is empty; the message after calls has a result
for each (the API's errors in microsoft/semantic-kernel issue 10281 and langchain-ai/langchain-aws issue 130). No text
is blank (OpenHands/OpenHands issue 5339).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

Raw = dict[str, Any]


def chat(messages: Sequence[Raw]) -> Iterator[str]:
    waiting: set[str] = set()
    for place, message in enumerate(messages):
        if message["role"] not in ("system", "developer", "user", "assistant", "tool"):
            yield f"message {place} has the role {message['role']}"
        if "origin" in message or "native" in message:
            yield f"message {place} has a field of this package"
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"message {place} answers no call"
            waiting.discard(message.get("tool_call_id", ""))
            continue
        if waiting:
            yield f"message {place} stands before the results of {sorted(waiting)}"
        if message.get("tool_calls") == []:
            yield f"message {place} has an empty list of calls"
        waiting = {call["id"] for call in message.get("tool_calls") or ()}
    if waiting:
        yield f"no results of {sorted(waiting)}"


def responses(items: Sequence[Raw]) -> Iterator[str]:
    called: set[str] = set()
    answered: set[str] = set()
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        following = items[place + 1] if place + 1 < len(items) else {}
        if kind == "message" and item.get("role") not in (
            *("user", "assistant", "system", "developer"),
        ):
            yield f"item {place} has the role {item.get('role')}"
        if "origin" in item or "native" in item:
            yield f"item {place} has a field of this package"
        if kind == "function_call":
            called.add(item["call_id"])
        if kind == "function_call_output":
            if item["call_id"] not in called:
                yield f"item {place} answers no call"
            answered.add(item["call_id"])
        is_answer = (
            following.get("type") in ("function_call", "reasoning")
            or following.get("role") == "assistant"
        )
        if kind == "reasoning" and not is_answer:
            yield f"item {place} is reasoning without what it led to"
    if called - answered:
        yield f"no output of {sorted(called - answered)}"


def anthropic(messages: Sequence[Raw]) -> Iterator[str]:
    if messages and messages[0]["role"] != "user":
        yield "the first message is not a user's"
    turns: list[tuple[str, list[Raw]]] = []
    for place, message in enumerate(messages):
        if message["role"] not in ("user", "assistant") or message.keys() - {"role", "content"}:
            yield f"message {place} has the role {message['role']} and the fields {sorted(message)}"
        if not message["content"]:
            yield f"message {place} is empty"
    for role, group in groupby(messages, key=lambda message: str(message["role"])):
        turns.append((role, [block for message in group for block in _blocks(message["content"])]))

    called = [block["id"] for _, blocks in turns for block in blocks if block["type"] == "tool_use"]
    if len(called) > len(set(called)):
        yield "two calls have one id"
    waiting: set[str] = set()
    for place, (role, blocks) in enumerate(turns):
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            yield f"in turn {place} a text is blank"
        kinds = [block["type"] for block in blocks]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if kinds[: len(results)] != ["tool_result"] * len(results):
            yield f"in turn {place} something stands before results"
        if sorted(results) != sorted(waiting):
            yield f"turn {place} answers {results}, and calls were {sorted(waiting)}"
        if any(block["type"] == "thinking" and not block.get("signature") for block in blocks):
            yield f"in turn {place} thinking has no signature"
        if role == "user" and "tool_use" in kinds:
            yield f"in turn {place} a user calls a tool"
        waiting = {block["id"] for block in blocks if block["type"] == "tool_use"}
    if waiting:
        yield f"no results of {sorted(waiting)}"


def _blocks(content: Any) -> list[Raw]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def gemini(contents: Sequence[Raw]) -> Iterator[str]:
    if contents and contents[0].get("role", "user") != "user":
        yield "the first content is not a user's"
    calls: list[str] = []
    before = ""
    for place, content in enumerate(contents):
        if content.keys() - {"role", "parts"} or content.get("role", "user") not in (
            "user",
            "model",
        ):
            yield f"content {place} has the fields {sorted(content)}"
        if not content["parts"] or any(
            not part or part.get("text") == "" for part in content["parts"]
        ):
            yield f"content {place} has no parts, or an empty one"
        results = [
            part["functionResponse"]["name"]
            for part in content["parts"]
            if "functionResponse" in part
        ]
        if sorted(results) != sorted(calls):
            yield f"content {place} has results of {results}, and calls were {calls}"
        calls = [
            part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part
        ]
        if calls and before != "user":
            yield f"the calls of content {place} come after {before or 'nothing'}"
        before = content.get("role", "user")
    if calls:
        yield f"no results of {calls}"


def converse(messages: Sequence[Raw]) -> Iterator[str]:
    waiting: set[str] = set()
    for place, message in enumerate(messages):
        if message["role"] != ("user", "assistant")[place % 2]:
            yield f"message {place} has the role {message['role']}"
        if message.keys() - {"role", "content"} or not message["content"]:
            yield f"message {place} is empty, or has the fields {sorted(message)}"
        if any("text" in block and not block["text"].strip() for block in message["content"]):
            yield f"message {place} has a blank text"
        results = [
            block["toolResult"]["toolUseId"]
            for block in message["content"]
            if "toolResult" in block
        ]
        if sorted(results) != sorted(waiting):
            yield f"message {place} answers {results}, and calls were {sorted(waiting)}"
        waiting = {
            block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block
        }
    if waiting:
        yield f"no results of {sorted(waiting)}"


#: What is wrong with a list of messages, by the form that it is in.
RULES: Final[dict[str, Callable[[Sequence[Raw]], Iterator[str]]]] = {
    "chat": chat,
    "responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "converse": converse,
}
