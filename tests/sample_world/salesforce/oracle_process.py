"""Parsers of SOQL and SOSL by other hands, run by Node.

They are installed by `npm ci` from the pinned `oracle/package-lock.json` into the cache folder of pytest, once.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from tests import npm

SOURCE = Path(__file__).resolve().parent / "oracle"
JUDGE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who accepts a statement. `jetstream` is `None` for SOSL, which it does not know; `tokens` are kinds of words."""

    apex: bool
    jetstream: bool | None
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Oracle:
    """The parsers, ready in a folder."""

    folder: Path

    def judge(self, language: Literal["soql", "sosl"], statements: Sequence[str]) -> list[Verdict]:
        """Return one verdict for each statement, in the same order."""
        lines = "\n".join(json.dumps({"language": language, "text": statement}) for statement in statements)
        done = subprocess.run(
            ["node", "judge.mjs"], cwd=self.folder, input=lines, capture_output=True, text=True, timeout=JUDGE_SECONDS
        )
        assert done.returncode == 0, done.stderr
        answers = [cast("dict[str, object]", json.loads(line)) for line in done.stdout.splitlines()]
        assert len(answers) == len(statements)
        return [
            Verdict(
                bool(answer["apex"]),
                cast("bool | None", answer["jetstream"]),
                tuple(cast("list[str]", answer["tokens"])),
            )
            for answer in answers
        ]


def install_oracle(cache: Path) -> Oracle:
    """Return the parsers, installed below `cache`; skip the test where they cannot be had, unless `CI=true`."""
    folder = cache / "statement-oracle"
    npm.install(SOURCE, folder, "the other parsers")
    npm.put(SOURCE / "judge.mjs", folder)
    return Oracle(folder)
