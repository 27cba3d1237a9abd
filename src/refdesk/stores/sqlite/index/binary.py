"""Binary codes of vectors, one bit per component: codes are compared first, then the exact vectors of what is left.

A code holds, for each component, whether it lies above the mean of all vectors; the fewer bits two codes differ in, the
nearer the vectors. Codes are stored word by word, so that a search reads memory in one direction, and by cluster, so
that it reads only the part where the nearest are.

Vectors that lie near the mean without clusters, such as sums of the same frequent words, are all about equally near,
and one bit on either side says too little. Then the vectors are first rotated at random, which spreads what
distinguishes them over all components, and a query is rounded to several bits per component, with one code for each
bit, of which the higher ones count more.

Sources: Charikar, "Similarity estimation techniques from rounding algorithms" (2002), for the codes; Jégou, Douze and
Schmid, "Product Quantization for Nearest Neighbor Search" (2011), for the inverted lists; Gao and Long, "RaBitQ"
(2024), for rotating vectors and rounding queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from refdesk.stores.sqlite.index.columns import Integers, RowNumbers, Rows, get_offsets

if TYPE_CHECKING:
    from refdesk.model import Vector

PIECE = 1 << 13
"""Vectors converted to single precision at a time."""

CHUNK, ROW_CHUNK = 1 << 15, 1 << 12
"""Codes compared at a time: what is computed from them stays in the processor's cache."""

CLUSTERED_FROM, CLUSTERS = 16_384, 4
"""Vectors are clustered if there are at least this many, into this many times the square root of their number. A
cluster that holds members of many groups has a centre near none of them, and the nearest vectors are then looked for in
half of all clusters."""

TRIALS, TOP, FAR_TOP = 128, 10, 80
"""Queries tried, and how many nearest of each must be found: if all vectors are wanted, and if a filter leaves one in
eight, so that the nearest ten are as far away as the nearest eighty of all."""

FAR, DIFFERENT = 1 / 250, 1 / 250
"""Shares of these that may be missed because their clusters are too far, and because their codes differ too much."""

USUAL_SHARE, NEAR_CLUSTERS = 3, (2, 3)
"""The nearest vectors are expected among the third whose codes differ least and, under a filter, in the nearest two
thirds of the clusters looked at. If they are not, the filter excludes what was asked about, nothing is near, and a
wider search finds nearer ones (measured: it raises the share of the nearest ten that are found from .79 to .97
there)."""

SCAN_SHARE = 3
"""If at least one in this many clusters is looked at, all codes are compared: gathering some would cost more."""

SAMPLE = 2048
"""How many values are sampled to guess where the least of all end."""

TURNED_FROM, QUESTION_BITS = 1 / 32, 3
"""Vectors are rotated if at least this share of them would have to be compared exactly; a query then has this many bits
per component, as a fourth changes nothing."""

WIDEST = 2.5
"""How many standard deviations of a query's components are resolved; what lies beyond is rounded to the last level."""

TRAINED_SHARE, ROUNDS = 6, 6
"""Clusters are found among one vector in this many, in this many rounds: fewer leave the members of a group apart."""

Floats32 = NDArray[np.float32]
Words = NDArray[np.uint64]

_LEAST = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """The codes of vectors 0 to n - 1, ordered by cluster.

    Attributes:
        mean: Shape `(dimensions,)`.
        rotation: Shape `(dimensions, dimensions)`, orthogonal: rotates vectors; `None` if they are not rotated.
        words: Shape `(words, n)`: the codes, 64 components to a word.
        rows: Shape `(n, words)`: the same by vector, so that gathering a few reads one place in memory for each.
        vectors: The vector that each code belongs to.
        places: The inverse: the place of each vector's code.
        centres: Shape `(clusters, dimensions)`.
        offsets: `words[:, offsets[i]:offsets[i + 1]]` are those of cluster i.
        probes: In how many clusters the nearest `TOP` were found, when it was tried.
        far_probes: In how many the nearest `FAR_TOP` were.
        survivors: Among how many of the least differing codes the nearest `TOP` were found.
    """

    mean: Floats32
    rotation: Floats32 | None
    words: NDArray[np.uint64]
    rows: NDArray[np.uint64]
    vectors: Rows
    places: Rows
    centres: Floats32
    offsets: Integers
    probes: int
    far_probes: int
    survivors: int

    def count_probes(self, share: float) -> int:
        """Return in how many clusters to look for the nearest `TOP` if one vector in `share` is wanted."""
        if share <= 1.0:
            return self.probes
        return int(np.ceil(self.far_probes * max(1.0, share * TOP / FAR_TOP)))

    def encode(self, query: Vector) -> NDArray[np.uint64]:
        """Return the codes of a query, shape `(bits, words)`, the highest bits first."""
        if self.rotation is None:
            return _encode(query[np.newaxis] - self.mean).T
        # Along the mean all vectors are alike: that part of a query says nothing.
        across = query - self.mean * (np.vdot(query, self.mean) / max(np.vdot(self.mean, self.mean), _LEAST))
        turned, most = across @ self.rotation, (1 << QUESTION_BITS) - 1
        steps = (turned / max(WIDEST * turned.std(), _LEAST) + 1.0) * (most / 2)
        levels = np.rint(steps).clip(0, most).astype(np.uint8)
        shifts = np.arange(QUESTION_BITS - 1, -1, -1, dtype=np.uint8)
        return _pack(levels >> shifts[:, np.newaxis] & 1).T

    def compare_centres(self, query: Vector) -> Floats32:
        """Return how near the centre of each cluster is, in one thread: two wait for each other on a busy machine."""
        return np.vecdot(self.centres, query)

    def are_far(self, vectors: Integers, centres: Floats32, probes: int) -> bool:
        """Return whether any of these vectors is in a cluster that is far away for one of the `probes` nearest."""
        usual = probes * NEAR_CLUSTERS[0] // NEAR_CLUSTERS[1]
        if SCAN_SHARE * probes >= len(centres) or not usual:
            return False
        clusters = np.searchsorted(self.offsets, self.places.take(vectors), side="right") - 1
        return bool((centres.take(clusters) < np.partition(centres, -usual)[-usual]).any())

    def find_near(
        self, query: Vector, centres: Floats32, probes: int, among: Integers | None
    ) -> tuple[Rows | Integers, NDArray[np.uint16]]:
        """Return the vectors of the `probes` clusters nearest to the query, and in how many bits their codes differ.

        Args:
            centres: What `compare_centres` returned.
            among: Only these vectors, if given.
        """
        asked = self.encode(query)
        ranges = None
        if SCAN_SHARE * probes < len(centres):
            nearest = np.argpartition(-centres, probes)[:probes]
            nearest.sort()
            starts, ends = self.offsets[nearest].tolist(), self.offsets[nearest + 1].tolist()
            ranges = [slice(start, end) for start, end in zip(starts, ends, strict=True)]
        if among is not None:
            return self._compare_some(asked, among, ranges)
        if ranges is None:
            return self.vectors, count_differing(asked, self.words)
        words = np.concatenate([self.words[:, each] for each in ranges], axis=1)
        return np.concatenate([self.vectors[each] for each in ranges]), count_differing(asked, words)

    def _compare_some(
        self, asked: NDArray[np.uint64], vectors: Integers, ranges: Sequence[slice] | None
    ) -> tuple[Integers, NDArray[np.uint16]]:
        """Return those of the vectors whose codes are in the ranges, and in how many bits they differ."""
        if ranges is not None:
            is_near = np.zeros(len(self.vectors), np.bool_)
            for each in ranges:
                is_near[each] = True
            vectors = vectors.take(np.flatnonzero(is_near.take(self.places.take(vectors))))
        return vectors, _count_differing_rows(asked, self.rows.take(vectors, axis=0))


def make_codes(vectors: NDArray[np.float16]) -> Codes:
    """Return the codes of vectors, shape `(n, dimensions)`, n above 0."""
    mean = np.asarray(vectors.mean(axis=0, dtype=np.float64), np.float32)
    centres = _find_centres(vectors)
    clusters = np.empty(len(vectors), np.int32)
    for start, piece in _cut(vectors):
        clusters[start : start + len(piece)] = np.argmax(piece @ centres.T, axis=1)
    order = np.argsort(clusters, kind="stable").astype(np.int32)
    places = np.empty(len(vectors), np.int32)
    places[order] = np.arange(len(vectors), dtype=np.int32)
    words, rows = _encode_all(vectors, order, mean, None)
    offsets = get_offsets(np.bincount(clusters, minlength=len(centres)))
    count = len(centres)
    codes = _tune(Codes(mean, None, words, rows, order, places, centres, offsets, count, count, len(vectors)), vectors)
    if codes.survivors < TURNED_FROM * len(vectors):
        return codes
    rotation = _draw_rotation(vectors.shape[1])
    words, rows = _encode_all(vectors, order, mean, rotation)
    return _tune(replace(codes, rotation=rotation, words=words, rows=rows), vectors)


def _encode_all(
    vectors: NDArray[np.float16], order: Rows, mean: Floats32, rotation: Floats32 | None
) -> tuple[Words, Words]:
    """Return the codes of vectors word by word, in an order, and vector by vector."""
    words = np.empty((-(-vectors.shape[1] // 64), len(vectors)), np.uint64)
    for start, piece in _cut(vectors):
        centred = piece - mean
        words[:, start : start + len(piece)] = _encode(centred if rotation is None else centred @ rotation)
    rows = np.ascontiguousarray(words.T)
    for word in words:
        word[:] = word.take(order)
    return words, rows


def _draw_rotation(dimensions: int) -> Floats32:
    """Return an orthogonal matrix, shape `(dimensions, dimensions)`."""
    drawn = np.random.default_rng(dimensions).standard_normal((dimensions, dimensions))
    return np.ascontiguousarray(np.linalg.qr(drawn).Q, np.float32)


def _tune(codes: Codes, vectors: NDArray[np.float16]) -> Codes:
    """Return the codes with what a search must look at to miss no more of the nearest than `FAR` and `DIFFERENT`.

    It is tried with vectors half way between stored ones and noise: real queries are no nearer to what answers them.
    """
    generator = np.random.default_rng(len(vectors))
    asked = np.asarray(vectors[generator.integers(0, len(vectors), TRIALS)], np.float32)
    noise = generator.standard_normal(asked.shape, dtype=np.float32)
    asked += noise / np.linalg.norm(noise, axis=1, keepdims=True)
    nearest = _find_nearest(vectors, asked / np.linalg.norm(asked, axis=1, keepdims=True))
    probes, survivors = list[list[int]](), list[int]()
    for query, near in zip(asked, nearest, strict=True):
        places = codes.places[near]
        differing = count_differing(codes.encode(query), codes.words)
        survivors += np.searchsorted(np.sort(differing), differing[places[:TOP]], side="right").tolist()
        ranks = np.argsort(np.argsort(-(codes.centres @ query)))
        probes.append((1 + ranks[np.searchsorted(codes.offsets, places, side="right") - 1]).tolist())
    enough = [int(np.quantile([near[:count] for near in probes], 1.0 - FAR)) for count in (TOP, FAR_TOP)]
    return replace(
        codes,
        probes=enough[0],
        far_probes=max(enough),
        survivors=int(np.quantile(survivors, 1.0 - DIFFERENT)),
    )


def _find_nearest(vectors: NDArray[np.float16], asked: Floats32) -> Integers:
    """Return the `FAR_TOP` vectors nearest to each of those asked, nearest first, by comparing all."""
    count, best, numbers = (
        min(FAR_TOP, len(vectors)),
        np.empty((len(asked), 0), np.float32),
        np.empty((len(asked), 0), int),
    )
    for start, piece in _cut(vectors):
        products = asked @ piece.T
        first = np.argpartition(-products, min(count, len(piece)) - 1, axis=1)[:, :count]
        best = np.concatenate((best, np.take_along_axis(products, first, axis=1)), axis=1)
        numbers = np.concatenate((numbers, first + start), axis=1)
    kept = np.argsort(-best, axis=1)[:, :count]
    return np.take_along_axis(numbers, kept, axis=1)


def _cut(vectors: NDArray[np.float16]) -> Iterator[tuple[int, Floats32]]:
    """Yield the vectors in pieces, in single precision, each with the number of its first."""
    for start in range(0, len(vectors), PIECE):
        yield start, vectors[start : start + PIECE].astype(np.float32)


def _find_centres(vectors: NDArray[np.float16]) -> Floats32:
    """Return the centres of clusters, by some rounds of spherical k-means over a sample."""
    count = CLUSTERS * isqrt(len(vectors)) if len(vectors) >= CLUSTERED_FROM else 1
    generator = np.random.default_rng(len(vectors))
    sample = vectors[np.sort(generator.choice(len(vectors), max(count, len(vectors) // TRAINED_SHARE), replace=False))]
    centres = sample[generator.choice(len(sample), count, replace=False)].astype(np.float32)
    for _ in range(ROUNDS if count > 1 else 0):
        sums = np.zeros_like(centres)
        for _, piece in _cut(sample):
            clusters = np.argmax(piece @ centres.T, axis=1)
            order = np.argsort(clusters, kind="stable")
            held, starts = np.unique(clusters[order], return_index=True)
            sums[held] += np.add.reduceat(piece[order], starts, axis=0)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 0.0, sums / np.maximum(lengths, _LEAST), centres)
    return centres


def _encode(centred: Floats32) -> NDArray[np.uint64]:
    """Return the signs of vectors, shape `(n, dimensions)`, as words, shape `(words, n)`."""
    return _pack(centred > 0.0)


def _pack(bits: NDArray[np.bool_] | NDArray[np.uint8]) -> Words:
    """Return bits, shape `(n, dimensions)`, as words, shape `(words, n)`."""
    packed = np.zeros((len(bits), -(-bits.shape[1] // 64) * 8), np.uint8)
    packed[:, : -(-bits.shape[1] // 8)] = np.packbits(bits, axis=1)
    return np.ascontiguousarray(packed.view(np.uint64).T)


def count_differing(asked: Words, words: Words) -> NDArray[np.uint16]:
    """Return in how many bits codes, given word by word, differ from those asked, each counting twice the next."""
    count = len(words[0])
    differing = np.zeros(count, np.uint16)
    for start in range(0, count, CHUNK):
        piece = differing[start : start + CHUNK]
        for code in asked:
            piece <<= 1
            for word, one in zip(words, code, strict=True):
                piece += np.bitwise_count(word[start : start + CHUNK] ^ one)
    return differing


def _count_differing_rows(asked: NDArray[np.uint64], rows: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Return the same for codes given one after another, shape `(n, words)`."""
    differing = np.zeros(len(rows), np.uint16)
    for code in asked:
        differing <<= 1
        repeated = np.tile(code, (min(ROW_CHUNK, len(rows)), 1))
        for start in range(0, len(rows), ROW_CHUNK):
            piece, counted = rows[start : start + ROW_CHUNK], differing[start : start + ROW_CHUNK]
            # No broadcasting: numpy would go through the words of each code in a separate loop.
            for counts in np.bitwise_count(piece ^ repeated[: len(piece)]).T:
                counted += counts
    return differing


def select_least(values: NDArray[np.uint16], count: int) -> RowNumbers:
    """Return where the `count` least values are, and all that equal the last of them."""
    if count >= len(values):
        return np.arange(len(values))
    sample = np.sort(values[:: len(values) // SAMPLE or 1])
    for share in (2.0, 8.0):
        at = int(share * count * len(sample) / len(values)) + 8
        if at >= len(sample):
            break
        low = np.flatnonzero(values <= sample[at])
        if len(low) >= count:
            return low.take(_select_least(values.take(low), count))
    return _select_least(values, count)


def _select_least(values: NDArray[np.uint16], count: int) -> RowNumbers:
    reached = np.cumsum(np.bincount(values))
    return np.flatnonzero(values <= np.uint16(np.searchsorted(reached, count)))
