"""A large session is listed without its texts: in memory for its numbers alone, in a child that is measured.

A session of 300 MB took 980 MB. The files here are of 40 MB, and each bound is in proportion.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("resource")

SIZE = 40_000_000
RESULT = "src/budget_1.py: a line of a file\n" * 180  # 6 kB
MORE_MEMORY = 0.75  # of the file; it takes half of it
SECONDS = 15

CHILD = """
import resource, sys, time
from budgetkit.extras.shell.program import run

run(["sessions", "made-up-session", "--json"])
print()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
run(["sessions", "--folder", sys.argv[1], "--json"])
more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(more * 1024, time.process_time() - start, file=sys.stderr)
"""


def claude_code() -> Iterator[dict[str, Any]]:
    """Give an answer with a call, then its result, which stands there twice."""
    about = {"sessionId": "made-up", "isSidechain": False, "cwd": "/home/ada", "version": "2.0.1"}
    before = None
    for number in range(1_000_000):
        usage = {"input_tokens": 5, "cache_read_input_tokens": 20_000 + number, "output_tokens": 99}
        call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {}}
        message = {"id": f"m{number}", "model": "claude-opus-4-6", "usage": usage}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": RESULT}
        contents: list[tuple[str, Any, Any]] = [
            ("assistant", [call], message),
            ("user", [result], {}),
        ]
        for role, content, more in contents:
            time = f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
            place = {"type": role, "uuid": f"{role}{number}", "parentUuid": before}
            said = {"message": {"role": role, "content": content, **more}, "timestamp": time}
            again = {"toolUseResult": {"stdout": RESULT}} if role == "user" else {}
            yield {**place, **said, **about, **again}
            before = place["uuid"]


def codex() -> Iterator[dict[str, Any]]:
    """Give a call and its result, which stands there twice, and what the request billed."""

    def record(kind: str, number: int, **payload: Any) -> dict[str, Any]:
        time = f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
        return {"type": kind, "timestamp": time, "payload": payload}

    yield record("session_meta", 0, id="made-up", base_instructions={"text": "Be brief."})
    yield record("turn_context", 0, model="gpt-5.5")
    for number in range(1_000_000):
        id = f"c{number}"
        call = {"type": "function_call", "name": "run", "arguments": "{}", "call_id": id}
        answer = {"type": "function_call_output", "call_id": id, "output": RESULT}
        yield record("response_item", number, **call)
        yield record("event_msg", number, type="exec_command_end", aggregated_output=RESULT)
        yield record("response_item", number, **answer)
        last = {"input_tokens": 20_000 + number, "cached_input_tokens": 20_000, "output_tokens": 99}
        total = {"total_tokens": number * 20_000}
        info = {"last_token_usage": last, "total_token_usage": total}
        yield record("event_msg", number, type="token_count", info=info)


@pytest.mark.parametrize("shape", [claude_code, codex])
def test_a_large_session_is_listed_in_little_memory(shape: Any, tmp_path: Path) -> None:
    written = 0
    with (tmp_path / "session.jsonl").open("w") as file:
        for record in shape():
            written += file.write(json.dumps(record) + "\n")
            if written > SIZE:
                break
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    environment = os.environ | {"BUDGETKIT_CACHE": "", "OPENBLAS_NUM_THREADS": "1"}
    child = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert child.returncode == 0, child.stderr[-2_000:]
    (listed,) = json.loads(child.stdout.partition("\n\n")[2])
    assert listed["requests"] > 2_000
    more, seconds = map(float, child.stderr.split()[-2:])
    assert more < MORE_MEMORY * SIZE
    assert seconds < SECONDS
