"""Parsers of SOQL and SOSL by other hands, run by Node.

They are installed by `npm ci` from the pinned `oracle/package-lock.json` into the cache folder of pytest, once.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import pytest

SOURCE = Path(__file__).resolve().parent / "oracle"
INSTALL_SECONDS = 300.0
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
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        _do_without(f"no {' and no '.join(missing)}: the statements cannot be judged by other parsers")
    folder = cache / "statement-oracle"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = (SOURCE / "package-lock.json").read_text()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder / "installed.json"
        if not stamp.is_file() or stamp.read_text() != wanted:
            _install(folder)
            stamp.write_text(wanted)
        shutil.copy(SOURCE / "judge.mjs", folder)
    return Oracle(folder)


def _install(folder: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SOURCE / name, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", str(folder / "npm-cache")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    if done.returncode:
        _do_without(f"npm could not install the other parsers: {done.stderr[-500:]}")


def _do_without(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
