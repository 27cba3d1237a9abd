"""Files of arrays: written once, checked, and mapped into memory by any number of processes.

A file is a magic word, the length and CRC-32 of a JSON header, the header, and then the arrays, each aligned to 64
bytes. The header says what each array is, where it begins and what its checksum is.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from refdesk.kit import memory

Array: TypeAlias = "NDArray[Any]"

FORMAT = 7
"""Goes up when arrays are named, laid out or interpreted in another way."""

PIECE_BYTES = 65_536
"""Bytes written or read ahead at once. Linux keeps a file in folios as large as the pieces it came in, and maps a whole
folio when one byte of it is read: with pieces of two megabytes a search that reads a hundred short lists brings all of
an index into memory."""

MAGIC = b"refdesk index\x00\x00\x00"
_ALIGNMENT = 64
_PAGE_WORDS = 512
_PREFIX = len(MAGIC) + 12


class DoubtfulFileError(Exception):
    """The file is missing, damaged or not of this format: what it held is built anew."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds: named arrays, and notes about them, as JSON has it."""

    arrays: Mapping[str, Array]
    notes: Mapping[str, Any]


def write_content(path: Path, content: Content) -> None:
    """Write a file, readable by its owner only; it gets its name once it is complete.

    Raises:
        OSError: There is no room, or no right to write there.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            arrays = {name: np.ascontiguousarray(array) for name, array in content.arrays.items()}
            header, places = _make_header(arrays, content.notes)
            file.write(header)
            for name, array in arrays.items():
                file.seek(places[name])
                _write_in_pieces(file, array)
            file.truncate(max([len(header), *(places[name] + array.nbytes for name, array in arrays.items())]))
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def map_content(path: Path) -> Content:
    """Return what a file holds, mapped into memory and checked: each byte is read once.

    Memory that only the check has read is given back, so that a process keeps only what searches read.

    Raises:
        DoubtfulFileError: It cannot be used.
    """
    try:
        with path.open("rb") as file:
            _read_ahead(file)
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise DoubtfulFileError("The file is missing or empty.") from error
    mapped = np.frombuffer(mapping, np.uint8)
    header = _read_header(mapped)
    arrays = {name: _read_array(mapped, *place) for name, place in header["arrays"].items()}
    memory.note_mapped(mapping)
    memory.give_back()
    return Content(arrays, header["notes"])


def _write_in_pieces(file: IO[bytes], array: Array) -> None:
    content = array.reshape(-1).view(np.uint8).data
    file.flush()
    for place in range(0, len(content), PIECE_BYTES):
        file.write(content[place : place + PIECE_BYTES])
        file.flush()


def _read_ahead(file: IO[bytes]) -> None:
    """Have the system read a file that is not in its cache: by itself it would do so in large folios."""
    if sys.platform == "linux":
        for place in range(0, os.fstat(file.fileno()).st_size, PIECE_BYTES):
            os.posix_fadvise(file.fileno(), place, PIECE_BYTES, os.POSIX_FADV_WILLNEED)


def _make_header(arrays: Mapping[str, Array], notes: Mapping[str, Any]) -> tuple[bytes, dict[str, int]]:
    """Return the header, and where each array goes after it."""
    described = {name: [array.dtype.str, list(array.shape), 0, _sum_up(array)] for name, array in arrays.items()}
    header: dict[str, Any] = {"format": FORMAT, "order": sys.byteorder, "notes": notes, "arrays": described}
    # A place is longer as text only if it is larger, so a header with room for the longest has room for all.
    room = _PREFIX + len(json.dumps(header)) + 20 * len(arrays)
    place, places = -(-room // _ALIGNMENT) * _ALIGNMENT, dict[str, int]()
    for name, array in arrays.items():
        places[name] = described[name][2] = place
        place += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    text = json.dumps(header).encode()
    return MAGIC + len(text).to_bytes(8, "little") + zlib.crc32(text).to_bytes(4, "little") + text, places


def _read_header(mapped: NDArray[np.uint8]) -> dict[str, Any]:
    prefix = mapped[:_PREFIX].tobytes()
    length = int.from_bytes(prefix[len(MAGIC) : len(MAGIC) + 8], "little")
    text = mapped[_PREFIX : _PREFIX + length].tobytes()
    if not prefix.startswith(MAGIC) or zlib.crc32(text) != int.from_bytes(prefix[-4:], "little"):
        raise DoubtfulFileError("The header is damaged.")
    header: dict[str, Any] = json.loads(text)
    if header["format"] != FORMAT or header["order"] != sys.byteorder:
        raise DoubtfulFileError("The file was written by another version or on another kind of machine.")
    return header


def _read_array(mapped: NDArray[np.uint8], kind: str, shape: list[int], place: int, total: int) -> Array:
    dtype = np.dtype(kind)
    end = place + dtype.itemsize * int(np.prod(shape))
    if end > len(mapped):
        raise DoubtfulFileError("The file is cut short.")
    array = mapped[place:end].view(np.ndarray).view(dtype).reshape(shape)
    if _sum_up(array) != total:
        raise DoubtfulFileError("The file is damaged.")
    return array


def _sum_up(array: Array) -> int:
    """Return a checksum: the CRC-32 of the sums of each page's 64-bit words, computed as fast as memory is read."""
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    words = content[: len(content) // 8 * 8].view(np.uint64)
    pages = words[: len(words) // _PAGE_WORDS * _PAGE_WORDS].reshape(-1, _PAGE_WORDS).sum(axis=1, dtype=np.uint64)
    rest = content[len(pages) * _PAGE_WORDS * 8 :].tobytes()
    return zlib.crc32(rest, zlib.crc32(pages.tobytes()))
