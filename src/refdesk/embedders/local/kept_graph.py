"""The derived graph, kept on disk: to derive it anew takes five times as long as to read and check it."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, sha256: str) -> bytes | None:
    """Return the graph of that digest; `None` where it is not kept, or is not what it was."""
    try:
        content = _get_path(folder, sha256).read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == sha256 else None


def keep(folder: Path, sha256: str, content: bytes) -> None:
    """Keep the graph of that digest, where the folder can be written to; nobody needs it to be kept.

    The folder is made where there is none, but not what it is in: whoever only asks makes no data folder.
    """
    path = _get_path(folder, sha256)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        try:
            unfinished.touch(mode=0o600)
            unfinished.write_bytes(content)
            unfinished.replace(path)  # without a sync: what a loss of power leaves is checked when it is read
        finally:
            unfinished.unlink(missing_ok=True)


def _get_path(folder: Path, sha256: str) -> Path:
    return folder / f"all-minilm-l6-v2-int8-{sha256[:16]}.onnx"
