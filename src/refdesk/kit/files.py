"""Writes files so that nobody ever sees half of one."""

from __future__ import annotations

import os
import secrets
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
        # Not named after the process: in a container each has the same number, and a killed one may have left its file.
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
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
