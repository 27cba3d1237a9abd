"""What the tests' own way to start processes promises."""

from __future__ import annotations

import os

from tests.acceptance.processes import Said

MUCH = 1 << 20
"""Bytes: more than any pipe holds."""


def test_a_process_that_nobody_asks_what_it_says_does_not_stand_still() -> None:
    reading, writing = os.pipe()
    said = Said(os.fdopen(reading, "rb"))
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(b"much\n" * (MUCH // 5) + b"listening\n")
    assert b"listening\n" in said
    assert said.read_line() == said.read_rest() == b""
