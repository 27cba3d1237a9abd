from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, timedelta
from pathlib import Path
from random import Random

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from refdesk.core.clock import FixedClock
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.writing import supersession
from refdesk.core.writing.quotas import Quota, read_usage
from refdesk.errors import InvalidInputError
from refdesk.model import Link, Reference
from refdesk.protocols import Clock
from refdesk.stores.memory import MemoryStore, MemoryTransaction
from refdesk.toolsets.knowledge.models import get_collection
from refdesk.toolsets.knowledge.transfer import jsonl
from refdesk.toolsets.knowledge.transfer.entries import Entry, to_document
from refdesk.toolsets.knowledge.transfer.files import import_entries
from refdesk.toolsets.knowledge.transfer.reports import MOST_PROBLEMS
from tests.core.fakes import NOW
from tests.toolsets.knowledge.conftest import Desk
from tests.toolsets.knowledge.transfer.samples import (
    bring_in,
    export,
    link_from_task,
    link_to,
    list_messages,
    make_base,
    make_entry,
    make_id,
    put,
    read_all,
    read_heads,
)

RECORD: dict[str, object] = {
    "id": make_id(1),
    "title": "T",
    "author": "ann",
    "createdAt": "2026-03-01T12:00:00+00:00",
    "body": "B",
}


def write_entries(path: Path, entries: Sequence[Entry]) -> Path:
    path.write_text("".join(jsonl.write(entries, len(entries))), encoding="utf-8")
    return path


def write_records(path: Path, *records: object) -> Path:
    header = {"format": "refdesk-knowledge", "version": 1, "entries": len(records)}
    path.write_text("\n".join(json.dumps(record) for record in (header, *records)))
    return path


async def count_used(base: KnowledgeBase, agent: str) -> tuple[int, int]:
    usage = await read_usage(base.store, Quota("knowledge_stored"), "acme", agent)
    return usage.org, usage.agent


async def test_a_dry_run_says_what_the_import_then_does_and_writes_nothing(tmp_path: Path) -> None:
    base = make_base()
    await put(base, "acme", [make_entry(1), make_entry(2)])
    entries = [
        make_entry(1),
        make_entry(2, title="other"),
        make_entry(3, superseded_by=4, links=(link_to(1), link_from_task("T"))),
        make_entry(4),
        make_entry(5, superseded_by=9),
    ]
    path = write_entries(tmp_path / "in.jsonl", entries)
    planned = await bring_in(base, path, "jsonl", dry=True)
    assert (planned.added, planned.unchanged, planned.conflicts, planned.invalid) == (2, 1, 1, 1)
    assert (planned.links_added, planned.dry_run) == (2, True)
    assert len(await read_all(base, "acme", range(1, 6))) == 2
    assert await count_used(base, "ann") == (0, 0)
    assert await bring_in(base, path, "jsonl") == replace(planned, dry_run=False)
    assert len(await read_all(base, "acme", range(1, 6))) == 4


async def test_importing_twice_adds_nothing(desk: Desk, tmp_path: Path) -> None:
    entries = [make_entry(1, superseded_by=2, links=(link_to(3),)), make_entry(2), make_entry(3, links=(link_to(1),))]
    path = write_entries(tmp_path / "in.jsonl", entries)
    await bring_in(desk.base, path, "jsonl")
    first = await export(desk.base, "acme", tmp_path / "first", "jsonl")
    again = await bring_in(desk.base, path, "jsonl")
    assert (again.added, again.unchanged, again.links_added, again.problems) == (0, 3, 0, ())
    assert await export(desk.base, "acme", tmp_path / "second", "jsonl") == first
    assert await count_used(desk.base, "ann") == (3, 3)


async def test_other_content_under_a_stored_id_is_a_conflict_and_stays(tmp_path: Path) -> None:
    base = make_base()
    await put(base, "acme", [make_entry(1, title="mine", tags=("a",))])
    links = (link_from_task("T"),)
    path = write_entries(tmp_path / "in.jsonl", [make_entry(1, title="theirs", tags=("b",), links=links)])
    report = await bring_in(base, path, "jsonl")
    assert list_messages(report, "conflict") == [f"line 2: {make_id(1)} is stored with another title, tags; it stays."]
    assert (report.conflicts, report.links_added) == (1, 0)
    [document] = await read_all(base, "acme", [1])
    assert (document.title, document.version) == ("mine", 1)


async def test_an_entry_keeps_its_id_author_and_dates_and_counts_in_its_authors_quota(tmp_path: Path) -> None:
    base = make_base()
    at = NOW - timedelta(days=900)
    entry = make_entry(1, author="zoe", created_at=at, modified_at=at + timedelta(days=1), expires_at=at)
    await bring_in(base, write_entries(tmp_path / "in.jsonl", [entry]), "jsonl", author="ivo")
    [document] = await read_all(base, "acme", [1])
    assert (document.author, document.created_at, document.version) == ("zoe", at, 1)
    assert document.modified_at == at + timedelta(days=1)
    assert await count_used(base, "zoe") == (1, 1)
    assert await count_used(base, "ivo") == (1, 0)


async def test_whoever_imports_is_the_author_of_what_has_none(tmp_path: Path) -> None:
    base = make_base()
    path = write_records(tmp_path / "in.jsonl", {name: RECORD[name] for name in RECORD if name != "author"})
    await bring_in(base, path, "jsonl", author="ivo")
    assert [document.author for document in await read_all(base, "acme", [1])] == ["ivo"]
    assert (await bring_in(base, path, "jsonl", author="eve")).unchanged == 1


@pytest.mark.parametrize("limits", [{"per_org": 3}, {"per_agent": 3}])
async def test_what_the_quota_has_no_room_for_is_reported_and_the_rest_lands(
    desk: Desk, tmp_path: Path, limits: dict[str, int]
) -> None:
    limited = desk.limit(**limits)
    await limited.store("first")
    entries = [make_entry(number) for number in range(1, 5)]
    path = write_entries(tmp_path / "in.jsonl", entries)
    planned = await bring_in(limited.base, path, "jsonl", dry=True)
    report = await bring_in(limited.base, path, "jsonl")
    assert (report.added, report.over_quota) == (planned.added, planned.over_quota) == (2, 2)
    assert await count_used(limited.base, "ann") == (3, 3)


async def test_what_is_superseded_by_something_over_the_quota_is_not_imported_either(tmp_path: Path) -> None:
    base = make_base()
    limited = replace(base, quotas={"knowledge_stored": Quota("knowledge_stored", per_agent=0)})
    entries = [make_entry(1, superseded_by=2, author="bob"), make_entry(2, author="ann")]
    report = await bring_in(limited, write_entries(tmp_path / "in.jsonl", entries), "jsonl")
    assert (report.added, report.over_quota, report.invalid) == (0, 1, 1)
    assert "which was not imported" in list_messages(report, "invalid")[0]


async def test_circles_and_what_leads_into_them_are_refused(tmp_path: Path) -> None:
    base = make_base()
    entries = [
        make_entry(1, superseded_by=2),
        make_entry(2, superseded_by=3),
        make_entry(3, superseded_by=2),
        make_entry(4, superseded_by=5),
        make_entry(5),
    ]
    report = await bring_in(base, write_entries(tmp_path / "in.jsonl", entries), "jsonl")
    assert report.added == 2
    assert list_messages(report, "invalid") == [
        "line 3: closes a circle of supersessions.",
        "line 4: closes a circle of supersessions.",
        f"line 2: points to the entry {make_id(2)}, which is neither stored nor importable.",
    ]
    assert [document.id for document in await read_all(base, "acme", range(1, 6))] == [make_id(4), make_id(5)]


async def test_a_circle_that_the_store_does_not_have_is_none(tmp_path: Path) -> None:
    base = make_base()
    await put(base, "acme", [make_entry(1)])
    entries = [make_entry(1, superseded_by=2), make_entry(2, superseded_by=1)]
    report = await bring_in(base, write_entries(tmp_path / "in.jsonl", entries), "jsonl")
    assert (report.added, report.conflicts, report.invalid) == (1, 1, 0)
    assert await read_heads(base, "acme", [1, 2]) == [make_id(1)] * 2


class InterruptedStore(MemoryStore):
    """Lets something happen before its second transaction."""

    def __init__(self, clock: Clock, meanwhile: Callable[[KnowledgeBase], Awaitable[object]]) -> None:
        super().__init__(clock)
        self._meanwhile = meanwhile
        self._transactions = 0

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[MemoryTransaction]:
        self._transactions += 1
        if self._transactions == 2:
            await self._meanwhile(KnowledgeBase(self))
        async with super().transaction() as transaction:
            yield transaction


async def test_a_head_that_moves_during_an_import_is_the_head_of_what_lands_later(tmp_path: Path) -> None:
    async def supersede_head(base: KnowledgeBase) -> None:
        async with base.store.transaction() as transaction:
            await transaction.put_documents([to_document(make_entry(500), "acme")])
            collection = get_collection("acme")
            old, new = await supersession.read_pair(transaction, collection, make_id(300), make_id(500))
            await supersession.supersede(transaction, old, new, NOW)

    clock = FixedClock(NOW)
    base = KnowledgeBase(InterruptedStore(clock, supersede_head), clock=clock)
    entries = [make_entry(number, superseded_by=number + 1) for number in range(1, 300)]
    path = write_entries(tmp_path / "in.jsonl", [*entries, make_entry(300)])
    assert (await bring_in(base, path, "jsonl")).added == 300
    assert set(await read_heads(base, "acme", range(1, 301))) == {make_id(500)}


async def test_an_entry_that_links_to_nowhere_is_refused_whole(tmp_path: Path) -> None:
    base = make_base()
    entries = [make_entry(1, links=(link_to(9),)), make_entry(2, links=(link_to(1),)), make_entry(3)]
    report = await bring_in(base, write_entries(tmp_path / "in.jsonl", entries), "jsonl")
    assert (report.added, report.invalid, report.links_added) == (1, 2, 0)


async def test_another_orgs_entries_are_nowhere(tmp_path: Path) -> None:
    base = make_base()
    await put(base, "beta", [make_entry(2)])
    report = await bring_in(base, write_entries(tmp_path / "in.jsonl", [make_entry(1, superseded_by=2)]), "jsonl")
    assert (report.added, report.invalid) == (0, 1)


async def test_a_chain_may_lead_into_what_is_stored_and_gets_its_head(desk: Desk, tmp_path: Path) -> None:
    await put(desk.base, "acme", [make_entry(2, superseded_by=3), make_entry(3)])
    path = write_entries(tmp_path / "in.jsonl", [make_entry(1, superseded_by=2)])
    assert (await bring_in(desk.base, path, "jsonl")).added == 1
    entry = await desk.get(make_id(1))
    assert (entry.superseded_by, entry.head_id) == (make_id(2), make_id(3))
    assert [member.id for member in entry.chain] == [make_id(1), make_id(2), make_id(3)]
    new = await desk.store("newest")
    await desk.as_agent("ann").supersede(make_id(3), new.id)
    assert (await desk.get(make_id(1))).head_id == new.id


async def test_a_chain_that_grew_in_the_store_is_a_conflict_only_where_it_grew(tmp_path: Path) -> None:
    base = make_base()
    path = write_entries(tmp_path / "in.jsonl", [make_entry(1, superseded_by=2), make_entry(2)])
    await put(base, "acme", [make_entry(1, superseded_by=2), make_entry(2, superseded_by=3), make_entry(3)])
    report = await bring_in(base, path, "jsonl")
    assert (report.unchanged, report.conflicts) == (1, 1)


async def test_long_chains_and_links_both_ways_cross_transactions(desk: Desk, tmp_path: Path) -> None:
    count = 450
    entries = [
        make_entry(number, superseded_by=number + 1, links=(link_to(count + 1 - number),)) for number in range(1, count)
    ]
    path = write_entries(tmp_path / "in.jsonl", [*entries, make_entry(count, links=(link_to(1),))])
    steps: list[tuple[int, int]] = []
    report = await import_entries(
        desk.base, "acme", "ivo", path, "jsonl", False, lambda done, of: steps.append((done, of))
    )
    assert (report.added, report.links_added, report.problems) == (count, count, ())
    assert steps == [(200, 450), (400, 450), (450, 450)]
    assert set(await read_heads(desk.base, "acme", range(1, count))) == {make_id(count)}
    assert await count_used(desk.base, "ann") == (count, count)
    [link, *_] = await desk.base.store.get_links("acme", Reference("knowledge", make_id(1)))
    assert isinstance(link, Link)


async def test_an_import_that_stopped_between_transactions_is_completed_by_the_next(tmp_path: Path) -> None:
    base = make_base()
    entries = [make_entry(number, superseded_by=number + 1, links=(link_to(400 - number),)) for number in range(1, 400)]
    path = write_entries(tmp_path / "in.jsonl", [*entries, make_entry(400)])

    def stop(done: int, of: int) -> None:
        raise InterruptedError(f"{done} of {of}")

    with pytest.raises(InterruptedError):
        await import_entries(base, "acme", "ivo", path, "jsonl", False, stop)
    landed = await read_all(base, "acme", range(1, 401))
    assert {document.id for document in landed} == {make_id(number) for number in range(201, 401)}
    report = await bring_in(base, path, "jsonl")
    assert (report.added, report.unchanged, report.problems) == (200, 200, ())
    assert await count_used(base, "ann") == (400, 400)
    whole = make_base()
    await bring_in(whole, path, "jsonl")
    assert await export(base, "acme", tmp_path / "a", "jsonl") == await export(whole, "acme", tmp_path / "b", "jsonl")


@settings(deadline=None, max_examples=60)
@example(successors=[0, 3, 4, 2], stored={1, 3}, links=[])
@given(
    successors=st.lists(st.integers(0, 9), min_size=1, max_size=8),
    stored=st.sets(st.integers(1, 9)),
    links=st.lists(st.tuples(st.integers(1, 8), st.integers(1, 9)), max_size=6),
)
def test_whatever_the_edges_no_import_makes_a_circle_or_an_edge_to_nowhere(
    successors: list[int], stored: set[int], links: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    anyio.run(check_edges, successors, stored, links, tmp_path_factory.mktemp("edges") / "in.jsonl")


async def check_edges(successors: list[int], stored: set[int], links: list[tuple[int, int]], path: Path) -> None:
    base = make_base()
    await put(base, "acme", [make_entry(number) for number in sorted(stored)])
    entries = [
        make_entry(
            number,
            superseded_by=successor if successor not in (0, number) else None,
            links=tuple(link_to(to) for to in sorted({to for start, to in links if start == number})),
        )
        for number, successor in enumerate(successors, start=1)
    ]
    path = write_entries(path, entries)
    planned = await bring_in(base, path, "jsonl", dry=True)
    report = await bring_in(base, path, "jsonl")
    assert report == replace(planned, dry_run=False)
    assert report.added + report.unchanged + report.conflicts + report.invalid == len(entries)
    documents = {document.id: document for document in await read_all(base, "acme", range(1, 10))}
    heads = await supersession.find_heads(base.store, documents.values())
    for document in documents.values():
        path_to_head, at = [document.id], document
        while "superseded_by" in at.data:
            at = documents[str(at.data["superseded_by"])]
            assert at.id not in path_to_head
            path_to_head.append(at.id)
        assert heads[document.id] == at.id
        for link in await base.store.get_links("acme", Reference("knowledge", document.id)):
            assert {link.source.id, link.target.id} <= documents.keys()
    assert (await bring_in(base, path, "jsonl")).added == 0


INVALID: dict[str, dict[str, object]] = {
    "id: is not a UUID": {"id": "../x"},
    "plain form": {"id": "{" + make_id(1) + "}"},
    "title": {"title": ""},
    "title: is blank": {"title": " \n"},
    "title: String should have at most 200": {"title": "x" * 201},
    "title is not a string": {"title": 5},
    "body: String should have at most 32000": {"body": "x" * 32_001},
    "author has not": {"author": " "},
    "author has not 1 to 200 characters": {"author": "x" * 201},
    "confidence": {"confidence": "80"},
    "confidence: Input should be less": {"confidence": 101},
    "confidence: Input should be a valid integer": {"confidence": True},
    "tags is not a list of strings": {"tags": ["a", 1]},
    "tags: holds a tag": {"tags": ["!"]},
    "tags: has 17": {"tags": [f"t{number}" for number in range(17)]},
    "createdAt is not a time": {"createdAt": 5},
    "createdAt has no offset": {"createdAt": "2026-01-01T00:00:00"},
    "createdAt is not a time in": {"createdAt": "0001-01-01T00:00:00+14:00"},
    "state is none of": {"state": "gone"},
    "contradict": {"state": "superseded"},
    "come together": {"supersededBy": make_id(2)},
    "superseded by itself": {"supersededBy": make_id(1), "supersededAt": "2026-03-01T12:00:00Z"},
    "field that is unknown: mood": {"mood": "good"},
    "data is not an object": {"data": []},
    "data repeats": {"data": {"head": "x"}},
    "links is not a list": {"links": "x"},
    "a link is not an object": {"links": ["x"]},
    "exactly one of from and to": {"links": [{"kind": "x", "createdAt": "2026-01-01T00:00:00Z"}]},
    "a link has a field": {"links": [{"kind": "x", "weight": 1}]},
    "lacks its kind": {"links": [{"kind": "x", "to": {"toolset": "task", "id": "1"}}]},
    "one of a chain": {
        "links": [
            {
                "kind": "supersedes",
                "to": {"toolset": "knowledge", "id": make_id(2)},
                "createdAt": "2026-01-01T00:00:00Z",
            }
        ]
    },
    "a link twice": {
        "links": [{"kind": "x", "to": {"toolset": "t", "id": "1"}, "createdAt": "2026-01-01T00:00:00Z"}] * 2
    },
    "kind or toolset of more than 64 characters": {
        "links": [{"kind": "x" * 65, "to": {"toolset": "t", "id": "1"}, "createdAt": "2026-01-01T00:00:00Z"}]
    },
    "id of more than 300 characters": {
        "links": [{"kind": "x", "to": {"toolset": "t", "id": "1" * 301}, "createdAt": "2026-01-01T00:00:00Z"}]
    },
    "half of a surrogate": {"body": "\ud800"},
    "nested too deep": {"data": json.loads("[" * 40 + "]" * 40)},
    "NUL": {"body": "a\x00b"},
}


@pytest.mark.parametrize("reason", INVALID)
async def test_a_record_that_breaks_a_rule_is_refused_with_the_reason_and_the_rest_lands(
    tmp_path: Path, reason: str
) -> None:
    base = make_base()
    path = write_records(tmp_path / "in.jsonl", RECORD | INVALID[reason], RECORD | {"id": make_id(7)})
    report = await bring_in(base, path, "jsonl")
    [message] = list_messages(report, "invalid")
    assert message.startswith("line 2: ")
    assert reason in message
    assert (report.added, report.invalid) == (1, 1)


async def test_the_longest_names_that_are_accepted_fit_into_the_keys_of_every_store(desk: Desk, tmp_path: Path) -> None:
    author, kind, toolset, id = (draw_letters(length) for length in (200, 64, 64, 300))
    link = {"kind": kind, "to": {"toolset": toolset, "id": id}, "createdAt": "2026-01-01T00:00:00Z"}
    path = write_records(tmp_path / "in.jsonl", RECORD | {"author": author, "links": [link]})
    report = await import_entries(desk.base, "o" * 64, "ivo", path, "jsonl", dry_run=False)
    assert (report.added, list_messages(report, "invalid")) == (1, [])
    quota = Quota("knowledge_stored")
    assert (await read_usage(desk.base.store, quota, "o" * 64, author)).agent == 1
    assert [
        each.target.id for each in await desk.base.store.get_links("o" * 64, Reference("knowledge", make_id(1)))
    ] == [id]


def draw_letters(length: int) -> str:
    """Return letters of four bytes each, which no engine makes shorter."""
    letters = Random(length)
    return "".join(chr(letters.randrange(0x20000, 0x2A6E0)) for _ in range(length))


async def test_times_with_other_offsets_become_utc(tmp_path: Path) -> None:
    base = make_base()
    await bring_in(base, write_records(tmp_path / "in", RECORD | {"createdAt": "2026-03-01T14:00:00+02:00"}), "jsonl")
    [document] = await read_all(base, "acme", [1])
    assert (document.created_at, document.created_at.tzinfo) == (NOW, UTC)


async def test_the_same_id_twice_in_a_file_is_one_entry_and_a_note(tmp_path: Path) -> None:
    base = make_base()
    path = write_records(tmp_path / "in.jsonl", RECORD, RECORD, RECORD | {"body": "other"})
    report = await bring_in(base, path, "jsonl")
    assert (report.added, report.conflicts, report.left_out) == (1, 1, 1)
    assert list_messages(report, "left_out") == ["line 3: repeats line 2."]
    assert list_messages(report, "conflict") == ["line 4: has the id of line 2 and says something else."]


async def test_a_file_that_was_cut_short_is_reported(tmp_path: Path) -> None:
    base = make_base()
    lines = list(jsonl.write([make_entry(1), make_entry(2)], 2))
    (tmp_path / "in.jsonl").write_text(lines[0] + lines[1] + lines[2][:40])
    report = await bring_in(base, tmp_path / "in.jsonl", "jsonl")
    assert (report.added, report.invalid) == (1, 1)
    (tmp_path / "in.jsonl").write_text(lines[0] + lines[1])
    report = await bring_in(base, tmp_path / "in.jsonl", "jsonl")
    assert list_messages(report, "invalid") == [
        "the end: the header announces 2 entries, and there are 1: the file is damaged."
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"{}\n",
        b"[1]\n",
        b"\xff\xfe\n",
        b'{"format":"refdesk-knowledge","version":2,"entries":1}\n',
        b'{"format":"refdesk-knowledge","version":1,"entries":"1"}\n',
        b'{"type":"entity","name":"x","entityType":"y","observations":[]}\n',
    ],
)
async def test_a_file_without_the_header_is_refused_whole(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "in.jsonl").write_bytes(content)
    with pytest.raises(InvalidInputError):
        await bring_in(make_base(), tmp_path / "in.jsonl", "jsonl")


async def test_problems_beyond_the_limit_are_counted_and_not_listed(tmp_path: Path) -> None:
    path = write_records(tmp_path / "in.jsonl", *["no entry"] * (MOST_PROBLEMS + 5))
    report = await bring_in(make_base(), path, "jsonl")
    assert (report.invalid, len(report.problems)) == (MOST_PROBLEMS + 5, MOST_PROBLEMS)
