"""Rivals filled with many notes. What takes long is done once and kept, so that a run can go on where one ended."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.peers.client import PeerError, measure_files
from benchmarks.peers.rival import Note, Rival
from benchmarks.peers.servers import Refdesk
from benchmarks.results import describe_run

Figures: TypeAlias = dict[str, Any]
Failure = (PeerError, subprocess.TimeoutExpired, OSError, ValueError, KeyError, LookupError)
"""What a rival's refusal may come as, its answer not being what it is elsewhere among it."""


def say(text: str) -> None:
    """Tell who waits."""
    print(text, file=sys.stderr, flush=True)


def fill(rival: Rival, home: Path, notes: Sequence[Note], vectors: Path | None, seconds: float) -> Figures:
    """Fill a rival in so many seconds; return what its files take and, where it embeds itself, how long it took."""
    say(f"filling {rival.name} with {len(notes):,} notes")
    began = time.perf_counter()
    try:
        rival.fill(home, notes, vectors, seconds)
    except subprocess.TimeoutExpired:
        return {"error": f"not filled within {seconds:.0f} s"}
    except Failure as error:
        return {"error": str(error) or type(error).__name__}
    taken = {"fill seconds": round(time.perf_counter() - began, 1)} if vectors is None else {}
    return {**taken, "disk": measure_files(home)}


class Keeper:
    """Keeps filled folders below one folder, by rival, version and number of notes.

    Args:
        folder: What is kept; `vectors.sqlite3` beside it holds what one rival has embedded for all.
        seconds: For filling one rival.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder = folder
        self._seconds = seconds

    def fill(self, rival: Rival, notes: Sequence[Note]) -> tuple[Path, Figures]:
        """Return a folder that is filled with some notes, now or before, and what it takes; or the error alone.

        Who could not be filled in time with fewer is not tried with more.
        """
        place = self._find(rival, len(notes))
        home, told = place / "home", place / "filled.json"
        before = self._read(told)
        if before is not None and (not self._has_failed(before) or before["seconds"] >= self._seconds):
            return home, before["figures"]
        if fewer := self._find_failure(rival, len(notes)):
            return home, {"error": f"not tried, for it was not filled with {fewer:,}"}
        shutil.rmtree(place, ignore_errors=True)
        home.mkdir(parents=True)
        vectors = self._folder.with_name("vectors.sqlite3")
        figures = fill(rival, home, notes, vectors, self._seconds)
        told.write_text(json.dumps({"seconds": self._seconds, "figures": figures}), encoding="utf-8")
        return home, figures

    def _find(self, rival: Rival, count: int) -> Path:
        edition = rival.read_version()
        if isinstance(rival, Refdesk):
            edition = f"{edition}-{describe_run()['commit']}"
        return self._folder / f"{rival.name}-{edition}" / str(count)

    def _find_failure(self, rival: Rival, count: int) -> int | None:
        """Return with how many notes fewer a rival could not be filled in as many seconds."""
        for told in self._find(rival, count).parent.glob("*/filled.json"):
            before, fewer = self._read(told), int(told.parent.name)
            if fewer < count and before and self._has_failed(before) and before["seconds"] >= self._seconds:
                return fewer
        return None

    def _has_failed(self, before: dict[str, Any]) -> bool:
        return "error" in before["figures"]

    def _read(self, told: Path) -> dict[str, Any] | None:
        return json.loads(told.read_text(encoding="utf-8")) if told.is_file() else None
