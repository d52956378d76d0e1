"""Messages in OpenAI's chat format: user("Hi"), calling(tool_call("1", "look")), tool_result("1", "Sun")."""

from typing import Any


def system(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "system", "content": content, **more}


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def assistant(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def calling(*calls: Any) -> dict[str, Any]:
    """Write an answer that has tool calls and no text."""
    return assistant(None, tool_calls=list(calls))


def tool_call(id: Any, name: Any, arguments: Any = "{}") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool_result(id: Any, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def tool(name: str, **more: Any) -> dict[str, Any]:
    """Write a tool that the model may call, with its description and parameters."""
    return {"type": "function", "function": {"name": name, **more}}
