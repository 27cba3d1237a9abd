"""Writes files so that nobody ever sees half of one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from refdesk import errors

if TYPE_CHECKING:
    from collections.abc import Iterable


def write_text(target: Path | TextIO, pieces: Iterable[str]) -> None:
    """Write a text to a stream, or to a file as `write_atomically` does."""
    if isinstance(target, Path):
        write_atomically(target, pieces)
    else:
        target.writelines(pieces)


def write_atomically(path: Path, pieces: Iterable[str]) -> None:
    """Write the whole text to `path`, or leave what was there unchanged.

    Raises:
        ConfigurationError: The folder cannot be written to.
    """
    try:
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with temporary.open("x", encoding="utf-8", newline="") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise errors.ConfigurationError(f"{path} cannot be written: {error.strerror}.") from None
