"""Copies of files that hold private notes: readable by their owner only, even before anything is in them."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PIECE = 1024 * 1024


def copy_file(source: Path, target: Path) -> None:
    """Copy the content of a file to a new one, which replaces any that is there; raises `OSError`.

    The umask, and the permissions of `source`, make no difference.
    """
    target.unlink(missing_ok=True)
    with (
        source.open("rb") as content,
        open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy,
    ):
        shutil.copyfileobj(content, copy, _PIECE)
