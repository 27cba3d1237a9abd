"""How often impacts and contradictions are right: precision and recall on pairs that we labelled, with 95 % intervals.

    python -m benchmarks.impact [--show] [--fit] [--count]

The pairs were written before the rules, in two halves that share no announcement and no trade. Weights are fitted on
the development half alone, and what is wrong in the other is never looked at: `--show` prints errors of the first half
only. `--fit` prints weights fitted anew, `--count` the common terms of the feed's titles.
"""

from __future__ import annotations

import argparse
import json
import sys

from benchmarks.impact import contradictions, impacts
from benchmarks.impact.counting import count_terms
from benchmarks.impact.reading import has_announcements
from benchmarks.quality import get_data_folder


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.impact")
    for option in ("--show", "--fit", "--count"):
        parser.add_argument(option, action="store_true")
    options = parser.parse_args()
    data = get_data_folder().parent
    if not has_announcements(data):
        sys.exit(f"No announcements in {data}: set REFDESK_TEST_DATA to the folder of real records.")
    if options.count:
        print(json.dumps(count_terms(data), indent=4))
        return
    if options.fit:
        print("impacts", json.dumps(impacts.fit_weights(data), indent=4))
        print("contradictions", json.dumps(contradictions.fit_weights(), indent=4))
        return
    for part in ("dev", "test"):
        print(f"impacts, {part}: {impacts.run(data, part, show=options.show and part == 'dev')}")
        print(f"  the same product named: {impacts.run_by_products(data, part)}")
    for part in ("dev", "test"):
        print(f"contradictions, {part}: {contradictions.run(part, show=options.show and part == 'dev')}")
        print(f"  shown of notes about different things: {contradictions.run_strangers(part)}")


if __name__ == "__main__":
    main()
