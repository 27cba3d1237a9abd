"""Whether the gap list has the questions without an answer, and no others, each with its like.

    python -m benchmarks.gaps [--fit]

Half of the articles of a real collection are stored as notes. A hundred questions about them are asked, a hundred
about the other half, and questions of ours in several wordings, all in one order by chance. Printed are how many of the
second hundred are listed, each in a gap of its own, how many of the first, and how well our wordings are grouped.
`--fit` prints what the two thresholds do on other data: questions about manuals and scientific claims, whose answers
are stored or left out, beside what a bank's customers ask; and wordings that are not measured.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from benchmarks.gaps.measuring import COLLECTION, EACH, make_world, measure, read_wordings
from benchmarks.quality import get_data_folder


async def fit(data: Path) -> None:
    """Print what the thresholds do on other data."""
    from benchmarks.gaps.fitting import fit_alike, fit_answered

    print("below which a question is a gap, on manuals and claims:", *await fit_answered(data), sep="\n")
    print("likeness of wordings:", *await fit_alike(read_wordings("wordings_dev.txt")), sep="\n")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gaps", description=__doc__)
    parser.add_argument("--fit", action="store_true", help="print what the thresholds do on other data")
    options, data = parser.parse_args(), get_data_folder()
    if not (data / COLLECTION).is_dir():
        sys.exit(f"No {COLLECTION} in {data}: set REFDESK_TEST_DATA to the folder of real records.")
    if options.fit:
        asyncio.run(fit(data))
        return
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(make_world(data), read_wordings("wordings_test.txt"), Path(folder)))
    print(f"of {EACH} questions without an answer {found.listed} are listed, each in a gap of its own")
    print(f"of {EACH} questions with an answer {found.wrongly} are listed")
    print(f"our wordings: {found.grouped:.1%} in just their gap; pairs precision {found.precision:.2f}", end=", ")
    print(f"recall {found.recall:.2f}")


if __name__ == "__main__":
    main()
