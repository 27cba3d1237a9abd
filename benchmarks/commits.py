"""How many notes a second are stored where a commit takes as long as on a disk across a network.

    python -m benchmarks.commits [--milliseconds 3 5] [--seconds 6] [--json]

The writes of `benchmarks.postgres`, with its limits, on a server of their own whose every flush of the log waits so
much longer (PostgreSQL's `commit_delay`): others who commit meanwhile share the flush, as they do on a slow disk.
Where the disk answers at once, two processors say how many notes are stored; here it shows whether a writer waits for
others. What a commit took is measured, and printed: a row of a table of its own, updated by itself.

Exit status 1 when a figure is below its limit.
"""

from __future__ import annotations

import argparse
import json
import sys
from statistics import median
from time import perf_counter

import anyio
import psycopg

from benchmarks.postgres import LIMITS, PLAIN_TABLE
from benchmarks.postgres_writes import Rates, compare_rates, measure_in_processes, measure_writes, spell_rates
from tests.engines.postgres import PostgresServer, running

MILLISECONDS = (3.0, 5.0)
COMMITS = 50


def delay_commits(server: PostgresServer, milliseconds: float) -> None:
    """Have every flush of the log take so much longer from now on, whether others are writing or not."""
    with server.connect() as connection:
        connection.execute(f"ALTER SYSTEM SET commit_delay = {round(milliseconds * 1000)}".encode())
        connection.execute("ALTER SYSTEM SET commit_siblings = 0")
        connection.execute("SELECT pg_reload_conf()")


def measure_commit(url: str) -> float:
    """Return how many milliseconds an update of a row takes with its commit: the median."""
    times = list[float]()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE commits AS SELECT 0 AS number")
        for _ in range(COMMITS):
            start = perf_counter()
            connection.execute("UPDATE commits SET number = number + 1")
            times.append((perf_counter() - start) * 1000)
    return median(times)


def measure(server: PostgresServer, milliseconds: float, seconds: float) -> tuple[float, list[Rates]]:
    """Return what a commit took, and the rates of each number of writers, in a store of their own."""
    schema = f"commits_{round(milliseconds * 1000)}"
    server.create_schema(schema)
    url = server.get_url(schema)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(PLAIN_TABLE)
    delay_commits(server, milliseconds)
    commit, rates = measure_commit(url), anyio.run(measure_writes, url, seconds)
    return commit, [*rates[:3], measure_in_processes(url, seconds / 3), *rates[3:]]


def main() -> None:
    """Measure, print, and fail when a figure is below its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--milliseconds", type=float, nargs="+", default=MILLISECONDS)
    parser.add_argument("--seconds", type=float, default=6.0, help="how long each number of writers writes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    every = dict[str, dict[str, float]]()
    with running(fsync=True) as server:
        for milliseconds in options.milliseconds:
            commit, rates = measure(server, milliseconds, options.seconds)
            print(f"a commit takes {commit:.1f} ms")
            for line in spell_rates(rates):
                print(f"  {line}")
            every[f"{commit:.1f} ms"] = compare_rates(rates)
    if options.json:
        print(json.dumps(every))
    sys.exit(any(ratio < LIMITS[name] for ratios in every.values() for name, ratio in ratios.items()))


if __name__ == "__main__":
    main()
