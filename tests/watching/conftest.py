from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import REPOSITORY


@dataclass
class Receiver:
    """A receiver of webhooks in a process of its own."""

    process: subprocess.Popen[str]
    port: int

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    def read(self) -> dict[str, Any]:
        """Return the next message that it received, as soon as there is one."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def end(self) -> list[dict[str, Any]]:
        """End it, and return what it received that was not read."""
        rest, _ = self.process.communicate(timeout=60)
        return [json.loads(line) for line in rest.splitlines()]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    command = [sys.executable, "-m", "tests.watching.receiver"]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Receiver(process, int(process.stdout.readline()))
        process.kill()
