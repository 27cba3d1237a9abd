"""Our store on PostgreSQL beside plain SQL on the same server, in turns: writes, searches, recall and space.

    python -m benchmarks.postgres [URL] [--parts writes search space] [--notes 10000] [--seconds 6] [--json]

Without a URL a server is started for it from the wheel that `make test-engines` installs, with fsync on; a database
named by a URL must be refdesk's, and empty. What is invented is invented from a seed: words follow Zipf's law, vectors
lie near the centres of topics, and each question is made from one note, which it ought to find.

Writes: notes stored by the operation's own handler (quotas, doubles, the change sequence and everything), beside
a durable INSERT of the same text into one plain table with a primary key and a full-text index; that of one writer also
beside durable INSERTs of the rows that its notes leave in our tables (`benchmarks.postgres_rows`). Eight writers are
measured in this process, where they share one interpreter, and in eight processes, as a team runs them; and what a
note takes of the client's and the server's processor, which is what bounds them where the disk does not. Searches: what
`search_knowledge` asks the store, fused and read, beside one statement that fuses HNSW and `ts_rank` by reciprocal rank
and returns the same ten notes, its graph asked with the same effort. Space: all tables and indexes, by the number of
notes.

Exit status 1 when a ratio is beyond `LIMITS`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter

import anyio
import anyio.to_thread
import numpy as np
import psycopg
from psycopg import AsyncConnection, sql

from benchmarks.invented import RARE, TOP, WIDTH, Corpus, Question, invent, make_document
from benchmarks.postgres_writes import (
    ONE,
    SAME_ROWS,
    Cost,
    compare_rates,
    connected,
    measure_costs,
    measure_in_processes,
    measure_writes,
    spell_rates,
)
from refdesk.core.search.analysis import parse_query
from refdesk.core.search.retrieval import read_documents
from refdesk.model import And as All
from refdesk.model import (
    Collection,
    EmbeddedPassage,
    EmbeddingModel,
    FindRequest,
    HasAll,
    InState,
    Or,
    State,
    VectorQuery,
)
from refdesk.protocols import Store
from refdesk.stores.postgres import open_store
from refdesk.stores.postgres.vectors import get_usual_effort
from refdesk.toolsets.knowledge.models import TAGS
from refdesk.toolsets.knowledge.ranking import rank
from refdesk.toolsets.knowledge.search import DEPTH

LIMITS = {
    ONE: 0.5,
    SAME_ROWS: 0.5,
    "eight orgs": 4.0,
    "processes": 4.0,
    "one org": 1.0,
    "search": 1.5,
    "recall": 0.95,
    "bytes": 5000.0,
}
"""One writer beside a plain insert, and beside inserts of the rows that its notes leave; eight in eight orgs, by one
process or eight, and 64 in one org beside one writer: at least; a search beside plain SQL and bytes a note, at most; of
the ten nearest behind a filter, at least."""

BATCH = 500
ORG = "benchmark"
PLACE = Collection(ORG, "knowledge")
MODEL = EmbeddingModel("invented", WIDTH)

PLAIN_TABLE = """
    CREATE TABLE plain_notes (
        org text NOT NULL, id text PRIMARY KEY, title text NOT NULL, body text NOT NULL, tags text[] NOT NULL,
        created_at timestamptz NOT NULL,
        words tsvector GENERATED ALWAYS AS (to_tsvector('english', title || ' ' || body)) STORED, vector halfvec(384)
    );
    CREATE INDEX ON plain_notes USING gin (words);
    CREATE INDEX ON plain_notes USING gin (tags);
"""
_PLAIN_GRAPH = "CREATE INDEX ON plain_notes USING hnsw (vector halfvec_ip_ops)"
_PLAIN_SEARCH = sql.SQL("""
    WITH near AS (
        SELECT id, row_number() OVER (ORDER BY vector <#> {vector}::halfvec) AS place FROM plain_notes
        WHERE org = {org} ORDER BY vector <#> {vector}::halfvec LIMIT {depth}
    ), worded AS (
        SELECT id, row_number() OVER (ORDER BY ts_rank(words, {query}::tsquery) DESC) AS place FROM plain_notes
        WHERE org = {org} AND words @@ {query}::tsquery ORDER BY ts_rank(words, {query}::tsquery) DESC LIMIT {depth}
    ), fused AS (
        SELECT id, coalesce(1.0 / (60 + near.place), 0) + coalesce(1.0 / (60 + worded.place), 0) AS score
        FROM near FULL JOIN worded USING (id) ORDER BY score DESC LIMIT {top}
    ) SELECT id, title, body, tags, score FROM fused JOIN plain_notes USING (id) ORDER BY score DESC, id
""")


# Searches


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of one kind of question, ours and plain SQL's, and how often the note it was made from is among
    the ten that each returns."""

    name: str
    ours: Sequence[float]
    plain: Sequence[float]
    hits: tuple[float, float]

    @property
    def ratio(self) -> float:
        """How many times plain SQL's median ours is."""
        return median(self.ours) / median(self.plain)


@dataclass(frozen=True, slots=True)
class Recall:
    """Of the ten nearest notes by comparing all, how many are found: ours and plain SQL's graph."""

    name: str
    ours: float
    plain: float | None


async def load(store: Store, corpus: Corpus, orgs: Sequence[str] = (ORG,)) -> float:
    """Store the notes with their vectors, in turns in each of some orgs; return how many a second."""
    start = perf_counter()
    async with store.loading():
        for first in range(0, len(corpus.texts), BATCH):
            numbers = range(first, min(first + BATCH, len(corpus.texts)))
            parts = [numbers[part :: len(orgs)] for part in range(len(orgs))]
            for org, part in zip(orgs, parts, strict=True):
                await _store(store, Collection(org, PLACE.toolset), corpus, part)
    return len(corpus.texts) / (perf_counter() - start)


async def _store(store: Store, place: Collection, corpus: Corpus, numbers: Sequence[int]) -> None:
    documents = [make_document(place, number, *corpus.texts[number]) for number in numbers]
    async with store.transaction() as transaction:
        await transaction.put_documents(documents)
        pairs = [
            (document, [(MODEL, [EmbeddedPassage(0, len(document.body), corpus.vectors[number])])])
            for number, document in zip(numbers, documents, strict=True)
        ]
        await transaction.put_all_vectors(pairs)


def load_plain(url: str, corpus: Corpus) -> None:
    """Copy the same into the plain table and index it as the manuals say."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DELETE FROM plain_notes")
        copying = "COPY plain_notes (org, id, title, body, tags, created_at, vector) FROM STDIN"
        with connection.cursor() as cursor, cursor.copy(copying) as copy:
            for number, texts in enumerate(corpus.texts):
                document = make_document(PLACE, number, *texts)
                vector = str(corpus.vectors[number].tolist())
                tags = list(document.facets[TAGS])
                copy.write_row((ORG, document.id, *texts, tags, document.created_at, vector))
        connection.execute("SET maintenance_work_mem = '1GB'")
        connection.execute(_PLAIN_GRAPH)
        connection.execute("VACUUM ANALYZE plain_notes")


def make_request(
    question: Question, *, rare: bool = False, text: bool = True, place: Collection = PLACE
) -> FindRequest:
    """Return what `search_knowledge` asks the store."""
    tags = (HasAll(TAGS, (RARE,)),) if rare else ()
    return FindRequest(
        place,
        parse_query(question.text) if text else None,
        VectorQuery(question.vector, MODEL.name),
        where=Or((All((InState((State.CURRENT,)), *tags)), InState((State.SUPERSEDED,)))),
        depth=DEPTH if text else TOP,
        title_contains=question.text if text else None,
        as_written=question.text if text else None,
        counts=False,
        shown=TOP,
    )


async def search(store: Store, question: Question, *, rare: bool = False, place: Collection = PLACE) -> list[str]:
    """Return the ids of the ten best notes, which are read too."""
    found = await store.find(make_request(question, rare=rare, place=place))
    best = rank(found.candidates, parse_query(question.text))[:TOP]
    documents = await read_documents(store, place, [candidate.id for candidate, _ in best], found)
    return [document.id for document in documents if document is not None]


async def search_plainly(connection: AsyncConnection, question: Question) -> list[str]:
    """Return the same by one statement."""
    values: dict[str, object] = {
        "vector": str(question.vector.tolist()),
        "query": " | ".join(question.text.lower().split()),
        "org": ORG,
        "depth": DEPTH,
        "top": TOP,
    }
    text = _PLAIN_SEARCH.format(**{name: sql.Placeholder(name) for name in values})
    cursor = await connection.execute(text, values)
    return [row[0] for row in await cursor.fetchall()]


async def measure_searches(store: Store, connection: AsyncConnection, corpus: Corpus) -> list[Times]:
    """Return the times of each kind of question; both sides answer each in turn, twice, and the better counts."""
    # With pgvector's default of 40, the graph gives fewer than the hundred that both sides fuse, and misses more.
    await connection.execute(f"SET hnsw.ef_search = {get_usual_effort(len(corpus.texts))}".encode())
    every: list[Times] = []
    for kind, questions in {**corpus.questions, "1 % tag": corpus.questions["natural"]}.items():
        ours, plain, hits = list[float](), list[float](), [0, 0]
        for question in questions:
            times, mine, yours = list[list[float]]([[], []]), list[str](), list[str]()
            for _ in range(2):
                start = perf_counter()
                mine = await search(store, question, rare=kind == "1 % tag")
                between = perf_counter()
                yours = await search_plainly(connection, question)
                times[0].append((between - start) * 1000)
                times[1].append((perf_counter() - between) * 1000)
            ours.append(min(times[0]))
            plain.append(min(times[1]))
            hits = [hits[0] + (str(question.target) in mine), hits[1] + (str(question.target) in yours)]
        every.append(Times(kind, ours, plain, (hits[0] / len(questions), hits[1] / len(questions))))
    return every


async def measure_recall(store: Store, connection: AsyncConnection, corpus: Corpus) -> list[Recall]:
    """Return how many of the ten nearest are found, with and without a tag that one note in a hundred has."""
    questions = corpus.questions["natural"]
    found = {"all": [0, 0], "1 % tag": [0, 0]}
    nearest = "SELECT id FROM plain_notes WHERE org = %s ORDER BY vector <#> %s::halfvec LIMIT %s"
    for question in questions:
        for name in found:
            right = corpus.get_nearest(question.vector, rare=name != "all")
            request = make_request(question, rare=name != "all", text=False)
            if name != "all":
                request = replace(request, where=HasAll(TAGS, (RARE,)))
            mine = {candidate.id for candidate in (await store.find(request)).candidates}
            found[name][0] += len(mine & right)
        cursor = await connection.execute(nearest, (ORG, str(question.vector.tolist()), TOP))
        right = corpus.get_nearest(question.vector)
        found["all"][1] += len({row[0] for row in await cursor.fetchall()} & right)
    count = TOP * len(questions)
    return [
        Recall("all", found["all"][0] / count, found["all"][1] / count),
        Recall("1 % tag", found["1 % tag"][0] / count, None),
    ]


# Space


def count_bytes(url: str) -> tuple[dict[str, tuple[int, int]], int]:
    """Return of each table its bytes without and with indexes and what it keeps out of line; and how many notes are
    stored, those of the writers too."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM")
        connection.execute("SELECT set_config('refdesk.all_orgs', 'on', false)")
        (stored,) = connection.execute("SELECT count(*) FROM documents").fetchone() or (0,)
        rows = connection.execute(
            "SELECT relname, pg_table_size(oid), pg_total_relation_size(oid) FROM pg_class "
            "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') ORDER BY 3 DESC"
        ).fetchall()
    return {name: (table, total) for name, table, total in rows}, stored


# The whole


@contextmanager
def opened(url: str | None) -> Generator[str]:
    """Yield the URL of an empty database with the plain table in it."""
    if url is None:
        from tests.engines.postgres import running

        with running(fsync=True) as server:
            server.create_schema("benchmark")
            yield server.get_url("benchmark")
    else:
        yield url


async def run(url: str, parts: Sequence[str], notes: int, seconds: float) -> dict[str, object]:
    """Measure, print and return what was measured."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS plain_notes")
        connection.execute(PLAIN_TABLE)
    results: dict[str, object] = {}
    if "writes" in parts:
        rates = await measure_writes(url, seconds)
        rates.insert(3, await anyio.to_thread.run_sync(measure_in_processes, url, seconds / 3))
        print(*spell_rates(rates), sep="\n")
        results.update(compare_rates(rates))
        ours, rows, plain = map(_spell_cost, await measure_costs(url))
        print(f"a note of one writer takes {ours};\ninserts of its rows {rows}; a plain insert {plain}")
    if "search" in parts or "space" in parts:
        corpus = invent(notes)
        async with open_store(url) as store, connected(url, 1) as (connection,):
            print(f"{notes} notes loaded, {await load(store, corpus):.0f} a second")
            load_plain(url, corpus)
            if "search" in parts:
                for times in await measure_searches(store, connection, corpus):
                    _print_times(times, results)
                for recall in await measure_recall(store, connection, corpus):
                    plain = "" if recall.plain is None else f", plain SQL's graph {recall.plain:.3f}"
                    print(f"recall@10 {recall.name:10} {recall.ours:.3f}{plain}")
                    results[f"recall {recall.name}"] = recall.ours
        if "space" in parts:
            _print_bytes(*count_bytes(url), notes, results)
    return results


def _spell_cost(cost: Cost) -> str:
    server = "" if cost.server is None else f" and {cost.server:.2f} of the server's"
    return f"{cost.client:.2f} ms of the client's processor{server}"


def _print_times(times: Times, results: dict[str, object]) -> None:
    mine, yours = (np.percentile(each, (50, 95)) for each in (times.ours, times.plain))
    print(
        f"search {times.name:10} p50 {mine[0]:7.2f} p95 {mine[1]:7.2f} ms, plain {yours[0]:7.2f} {yours[1]:7.2f}; "
        f"{times.ratio:5.2f} of plain; found {times.hits[0]:.2f}, plain {times.hits[1]:.2f}"
    )
    results[f"search {times.name}"] = times.ratio


def _print_bytes(sizes: dict[str, tuple[int, int]], stored: int, notes: int, results: dict[str, object]) -> None:
    own = {name: pair for name, pair in sizes.items() if not name.startswith("plain_")}
    total = sum(whole for _, whole in own.values())
    print(f"{total / stored:.0f} bytes a note, plain {sizes['plain_notes'][1] / notes:.0f}")
    for name, (table, whole) in own.items():
        if whole / stored >= 1:
            print(f"  {name:14} {table / stored:6.0f} + {(whole - table) / stored:6.0f} of indexes")
    results["bytes"] = total / stored


def is_within(results: dict[str, object]) -> bool:
    """Return whether every figure keeps its limit."""
    most = {"search", "bytes"}
    for name, value in results.items():
        kind = name if name in LIMITS else name.split(" ")[0]
        if not isinstance(value, float) or name == "search 1 % tag":
            continue
        if value > LIMITS[kind] if kind in most else value < LIMITS[kind]:
            return False
    return True


def main() -> None:
    """Measure, print, and fail when a ratio is beyond its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="the URL of an empty database")
    parser.add_argument(
        "--parts", nargs="+", choices=("writes", "search", "space"), default=["writes", "search", "space"]
    )
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=6.0, help="how long each number of writers writes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with opened(options.url) as url:
        results = anyio.run(run, url, options.parts, options.notes, options.seconds)
    if options.json:
        print(json.dumps(results))
    sys.exit(not is_within(results))


if __name__ == "__main__":
    main()
