"""How well languages are recognised, and what it costs; makes the table of trigrams, too.

    python -m benchmarks.languages [FOLDER]             measure on collections, whose names end in a language code
    python -m benchmarks.languages --train TEXTS        write the table from TEXTS/CODE.txt, plain text in UTF-8

Measured on the questions and documents of collections such as `xquad-de` below FOLDER (default: `retrieval/` in the
folder of real records); one that names no language is taken for English.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import log
from pathlib import Path

import regex

from benchmarks.quality import REPOSITORY, get_data_folder, read_collection
from refdesk.core.search.analysis import analyse
from refdesk.core.search.languages import ENGLISH, LANGUAGES, STEPS, recognise

TABLE = REPOSITORY / "src/refdesk/core/search/languages/trigrams.txt"
KEPT = 2400
LEAST_BYTES = 40_000
MOST_CHARACTERS = 1_000_000
RARE = 4e-5
"""Added to each share, so that what a language was never seen to have is only rare in it."""
_WORD = regex.compile(r"[\p{L}][\p{L}\p{M}]*+")


def count_trigrams(texts: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Return how often each trigram stands in each language's words; words that many share are names and left out."""
    words = {language: Counter(_WORD.findall(text.lower())) for language, text in texts.items()}
    shared = Counter(word for counted in words.values() for word in counted)
    trigrams: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for language, counted in words.items():
        for word, count in counted.items():
            if shared[word] <= 3 and count > 1:
                padded = f" {word} "
                for start in range(len(padded) - 2):
                    trigrams[language][padded[start : start + 3]] += log(1 + count)
    return {language: dict(counts) for language, counts in trigrams.items()}


def make_table(texts: Mapping[str, str]) -> str:
    """Return the table: the languages, then a line for each of the most telling trigrams, a digit a language."""
    counted = count_trigrams(texts)
    languages = sorted(counted)
    totals = {language: sum(counts.values()) for language, counts in counted.items()}
    every = {trigram for counts in counted.values() for trigram in counts}
    rows: dict[str, tuple[float, list[float]]] = {}
    for trigram in every:
        shares = [counted[each].get(trigram, 0.0) / totals[each] + RARE for each in languages]
        logs = [log(share) for share in shares]
        mean = sum(logs) / len(logs)
        spread = sum(share * abs(value - mean) for share, value in zip(shares, logs, strict=True))
        rows[trigram] = spread, [value - mean for value in logs]
    best = sorted(rows, key=lambda trigram: (-rows[trigram][0], trigram))[:KEPT]
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    lines = [
        trigram + "".join(digits[min(35, max(0, round(value * STEPS / 2) + 12))] for value in rows[trigram][1])
        for trigram in sorted(best)
    ]
    return "\n".join([" ".join(languages), *lines]) + "\n"


def measure(name: str, texts: Sequence[str]) -> None:
    """Print how many texts were recognised, and what else they were taken for."""
    code = name.rsplit("-", 1)[-1]
    expected = code if code in LANGUAGES else ENGLISH
    start = time.process_time()
    found = Counter(recognise(text) for text in texts)
    took = time.process_time() - start
    start = time.process_time()
    for text in texts:
        analyse(text)
    beside = time.process_time() - start
    others = {key: count for key, count in found.most_common() if key not in (expected, None)}
    print(
        f"{name:<22}{len(texts):>6} texts  right {found[expected] / len(texts):.3f}  undecided "
        f"{found[None] / len(texts):.3f}  wrong {sum(others.values()) / len(texts):.3f}  "
        f"{took / len(texts) * 1e6:.0f} µs each beside {beside / len(texts) * 1e6:.0f} of analysis  {others}"
    )


def main() -> None:
    """Measure, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--train", type=Path, metavar="TEXTS")
    options = parser.parse_args()
    train: Path | None = options.train
    if train is not None:
        paths = [path for path in sorted(train.glob("*.txt")) if path.stat().st_size >= LEAST_BYTES]
        TABLE.write_text(
            make_table({path.stem: path.read_text(encoding="utf-8")[:MOST_CHARACTERS] for path in paths}),
            encoding="utf-8",
        )
        return
    folder: Path = options.folder or get_data_folder()
    for path in sorted(folder.glob("*/qrels.tsv")):
        collection = read_collection(path.parent)
        if collection.queries:
            measure(path.parent.name, [f"{title}\n{body}" for title, body in collection.documents])
            measure(f"… questions of {path.parent.name}"[-21:], collection.queries)


if __name__ == "__main__":
    main()
