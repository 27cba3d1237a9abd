"""Copies of files that hold private notes: readable by their owner only, from before there is anything in them."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PIECE = 1024 * 1024


def copy_file(source: Path, target: Path) -> None:
    """Copy the content of a file to a new one, in the place of any that is there; raises `OSError`.

    What rights the umask leaves, and what rights others have to `source`, makes no difference.
    """
    target.unlink(missing_ok=True)
    with (
        source.open("rb") as content,
        open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy,
    ):
        shutil.copyfileobj(content, copy, _PIECE)
