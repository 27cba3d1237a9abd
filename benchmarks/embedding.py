"""How fast the local model embeds: its graph in int8 beside the packaged file, which multiplies in float32.

    python -m benchmarks.embedding [--json]

On one thread each, in turns, counted in this thread's CPU time; the best of `ROUNDS` is kept for each. Passages are
cut from this repository's own pages. Exit status 1 when passages gain less than `LEAST_GAIN` or any text loses.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import thread_time

import numpy as np

from refdesk.core.search.passages import embedding_text, split
from refdesk.embedders.local import PASSAGE_PIECES, QUERY_PIECES
from refdesk.embedders.local.model import SentenceEncoder
from refdesk.model import Vector

REPOSITORY = Path(__file__).resolve().parent.parent
LEAST_GAIN = 2.5
ROUNDS = 5
TEXTS = 24
QUESTIONS = ("why do card payments fail at night", "refund limit", "retirement of basic load balancer in 2027")


@dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds of CPU a text, and how near the vectors are."""

    kind: str
    pieces: float
    float32: float
    int8: float
    least_cosine: float

    @property
    def gain(self) -> float:
        """How many texts are embedded in the time of one before."""
        return self.float32 / self.int8

    def to_line(self) -> str:
        """Return them for people."""
        return (
            f"{self.kind:10} {self.pieces:4.0f} pieces: float32 {self.float32:6.2f} ms, int8 {self.int8:6.2f} ms, "
            f"{self.gain:4.2f} times as fast, cosine {self.least_cosine:.4f} or more"
        )


def read_passages() -> list[str]:
    """Return passages as they are embedded, of the repository's longer pages."""
    texts: list[str] = []
    for path in sorted(REPOSITORY.glob("*.md")):
        title, body = path.stem, path.read_text()
        texts += [embedding_text(title, body, span) for span in split(title, body)]
    return [text for text in texts if len(text) > 500][:TEXTS]


def time_encoding(
    encode: Callable[[str, int], Vector], texts: Sequence[str], pieces: int
) -> tuple[float, list[Vector]]:
    """Return milliseconds of CPU a text, and the vectors."""
    start = thread_time()
    vectors = [encode(text, pieces) for text in texts]
    return (thread_time() - start) * 1000 / len(texts), vectors


def measure(kind: str, texts: Sequence[str], limit: int, ours: SentenceEncoder, theirs: SentenceEncoder) -> Figures:
    """Return the figures of both graphs on the same texts."""
    times: dict[str, list[float]] = {"float32": [], "int8": []}
    made: dict[str, list[Vector]] = {}
    for _ in range(ROUNDS):
        for name, encoder in (("float32", theirs), ("int8", ours)):
            milliseconds, made[name] = time_encoding(encoder.encode, texts, limit)
            times[name].append(milliseconds)
    cosines = (np.stack(made["float32"]) * np.stack(made["int8"])).sum(axis=1)
    pieces = float(np.mean([ours.count_pieces(text, limit) for text in texts]))
    return Figures(kind, pieces, min(times["float32"]), min(times["int8"]), float(cosines.min()))


def main() -> None:
    """Measure, print, and fail when it gains too little."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ours, theirs = SentenceEncoder(), SentenceEncoder(in_int8=False)
    figures = [
        measure("passages", read_passages(), PASSAGE_PIECES, ours, theirs),
        measure("questions", QUESTIONS, QUERY_PIECES, ours, theirs),
    ]
    for each in figures:
        print(json.dumps({**asdict(each), "gain": each.gain}) if options.json else each.to_line())
    sys.exit(figures[0].gain < LEAST_GAIN or min(each.gain for each in figures) < 1)


if __name__ == "__main__":
    main()
