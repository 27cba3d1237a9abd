"""No test of what works may depend on how quickly a machine answers."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.conftest import REPOSITORY

TESTS = REPOSITORY / "tests"


def find_unsaid(source: str) -> list[int]:
    """Return the lines that open what is shared by Redis without saying how long an answer is waited for."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if getattr(call.func, "id", "") == "open_shared" and call.args and not call.keywords
    ]


def test_every_test_with_redis_says_how_long_an_answer_is_waited_for() -> None:
    """The product's own deadline is half a second: where Redis is not meant to be away, a loaded machine would have it
    be so. `tests.engines.redis.open_patiently` waits long."""
    folders = (TESTS / "engines", TESTS / "queues")
    unsaid: dict[Path, list[int]] = {
        path.relative_to(REPOSITORY): lines
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        if (lines := find_unsaid(path.read_text(encoding="utf-8")))
    }
    assert unsaid == {}


def test_one_that_does_not_say_is_found() -> None:
    assert find_unsaid("with open_shared(url, wake) as shared:\n    pass") == [1]
    assert find_unsaid("open_shared(url, wake, patience=CALL_SECONDS)") == []
