"""What the harness that kills servers promises of itself."""

from __future__ import annotations

import os
from pathlib import Path

from tests.reliability.lives import Life, nursing

MUCH = 1 << 20
"""Bytes: more than any pipe holds."""


def test_a_server_that_nobody_asks_what_it_says_does_not_stand_still(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with nursing(tmp_path / "home") as nursery:
        life = Life(nursery.running, 0, os.fdopen(reading, "rb"))
        with os.fdopen(writing, "wb") as said:
            said.write(b"much\n" * (MUCH // 5) + b'{"message": "listening"}\n')
        assert life.read_log("listening") == {"message": "listening"}
        assert life.read_log("listening") is None
