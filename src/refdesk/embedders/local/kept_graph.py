"""The derived graph, kept on disk: deriving it anew takes five times as long as reading and checking it."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, sha256: str) -> bytes | None:
    """Return the graph with that digest; `None` if it is not kept or has changed."""
    try:
        content = _get_path(folder, sha256).read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == sha256 else None


def keep(folder: Path, sha256: str, content: bytes) -> None:
    """Keep the graph with that digest if the folder can be written to; a failure to do so does not matter.

    The folder is created if missing, but not its parent: merely searching must not create a data folder.
    """
    path = _get_path(folder, sha256)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        try:
            unfinished.touch(mode=0o600)
            unfinished.write_bytes(content)
            unfinished.replace(path)  # without a sync: after a loss of power, the digest tells
        finally:
            unfinished.unlink(missing_ok=True)


def _get_path(folder: Path, sha256: str) -> Path:
    return folder / f"all-minilm-l6-v2-int8-{sha256[:16]}.onnx"
