"""Many texts in two arrays, which can be mapped from a file: nothing is decoded before it is asked for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from refdesk.stores.sqlite.index.columns import Integers, RowNumbers, Rows, differs_from_previous, get_offsets

GRAM = 3
"""Bytes of a gram. A shorter text is searched for in every title."""

RAREST = 3
"""How many of a text's grams are looked up: the rarest ones, so that few titles must be read to be sure."""


@dataclass(frozen=True, slots=True, eq=False)
class Texts(Sequence[str]):
    """Texts by number: text i is `content[offsets[i]:offsets[i + 1]]`, in UTF-8 (lone surrogates are let through)."""

    offsets: Integers
    content: NDArray[np.uint8]

    @staticmethod
    def of(texts: Sequence[str]) -> Texts:
        """Return the texts, encoded."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        lengths = np.array([len(each) for each in encoded], np.int64)
        return Texts(get_offsets(lengths), np.frombuffer(b"".join(encoded), np.uint8))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        start, end = int(self.offsets[index]), int(self.offsets[index + 1])
        return self.content[start:end].tobytes().decode("utf-8", "surrogatepass")


def get_texts(texts: Sequence[str], rows: RowNumbers) -> list[str]:
    """Return the texts with these numbers, many at once."""
    if not isinstance(texts, Texts):
        numbers: list[int] = rows.tolist()
        return [texts[number] for number in numbers]
    content = texts.content.data
    starts: list[int] = texts.offsets[rows].tolist()
    ends: list[int] = texts.offsets[rows + 1].tolist()
    encoded = [content[start:end].tobytes() for start, end in zip(starts, ends, strict=True)]
    return [each.decode("utf-8", "surrogatepass") for each in encoded]


@dataclass(frozen=True, slots=True, eq=False)
class TextNumbers(Mapping[str, int]):
    """Texts in order, and a number for each."""

    texts: Texts
    numbers: Rows

    def __getitem__(self, key: str) -> int:
        place = bisect_left(self.texts, key)
        if place == len(self.texts) or self.texts[place] != key:
            raise KeyError(key)
        return int(self.numbers[place])

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    @staticmethod
    def of(numbers: Mapping[str, int]) -> TextNumbers:
        """Return the same, in order."""
        ordered = sorted(numbers)
        return TextNumbers(Texts.of(ordered), np.array([numbers[text] for text in ordered], np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class SparseTexts(Mapping[int, str]):
    """A text for some rows; `rows` ascend."""

    rows: Rows
    texts: Texts

    def __getitem__(self, key: int) -> str:
        place = int(np.searchsorted(self.rows, np.int32(key)))
        if place == len(self.rows) or int(self.rows[place]) != key:
            raise KeyError(key)
        return self.texts[place]

    def __iter__(self) -> Iterator[int]:
        return iter(self.rows.tolist())

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def of(texts: Mapping[int, str]) -> SparseTexts:
        """Return the same, by row."""
        rows = sorted(texts)
        return SparseTexts(np.array(rows, np.int32), Texts.of([texts[row] for row in rows]))


@dataclass(frozen=True, slots=True, eq=False)
class Grams:
    """Which texts hold which runs of `GRAM` bytes.

    Attributes:
        grams: Each run as a number, ascending.
        offsets: `rows[offsets[i]:offsets[i + 1]]` are the numbers of the texts that hold `grams[i]`, ascending.
    """

    grams: NDArray[np.uint32]
    offsets: Integers
    rows: Rows

    @staticmethod
    def of(texts: Texts) -> Grams:
        """Return the grams of the texts."""
        content = texts.content.astype(np.uint32)
        owners = np.repeat(np.arange(len(texts), dtype=np.uint64), np.diff(texts.offsets))
        is_whole = owners[GRAM - 1 :] == owners[: len(owners) - GRAM + 1]
        pairs = _to_grams(content).astype(np.uint64)[is_whole] << np.uint64(32) | owners[GRAM - 1 :][is_whole]
        pairs.sort()
        pairs = pairs[differs_from_previous(pairs)]
        grams = (pairs >> np.uint64(32)).astype(np.uint32)
        starts = np.flatnonzero(differs_from_previous(grams))
        rows = (pairs & np.uint64(0xFFFFFFFF)).astype(np.int32)
        return Grams(grams[starts], np.append(starts, len(pairs)), rows)

    def find_holders(self, text: str) -> RowNumbers | None:
        """Return a superset of the texts that contain this one, or `None` if it is too short to tell."""
        asked = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8).astype(np.uint32)
        if len(asked) < GRAM:
            return None
        grams = np.unique(_to_grams(asked))
        places = np.minimum(np.searchsorted(self.grams, grams), max(len(self.grams) - 1, 0))
        if not len(self.grams) or bool((self.grams[places] != grams).any()):
            return np.empty(0, np.intp)
        sizes = self.offsets[places + 1] - self.offsets[places]
        rarest, *others = places[np.argsort(sizes, kind="stable")[:RAREST]].tolist()
        holders = self._get_rows(rarest)
        for place in others:
            rows = self._get_rows(place)
            at = np.minimum(np.searchsorted(rows, holders), len(rows) - 1)
            holders = holders[rows[at] == holders]
        return holders.astype(np.intp)

    def _get_rows(self, place: int) -> Rows:
        return self.rows[int(self.offsets[place]) : int(self.offsets[place + 1])]


def _to_grams(content: NDArray[np.uint32]) -> NDArray[np.uint32]:
    if len(content) < GRAM:
        return np.empty(0, np.uint32)
    return content[:-2] << np.uint32(16) | content[1:-1] << np.uint32(8) | content[2:]
