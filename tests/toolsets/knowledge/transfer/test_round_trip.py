from __future__ import annotations

import json
import resource
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refdesk.core.keeping.erasing import Erasable, erase
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.visible import is_seen
from refdesk.core.writing.audit import Actor
from refdesk.core.writing.supersession import find_heads
from refdesk.errors import InvalidInputError, OperatorError
from refdesk.model import Document, Reference, State
from refdesk.toolsets.knowledge.tags import normalise_tags
from refdesk.toolsets.knowledge.transfer.entries import Entry
from refdesk.toolsets.knowledge.transfer.files import export_entries
from refdesk.toolsets.knowledge.transfer.reports import ExportFormat
from tests.core.fakes import NOW
from tests.toolsets.knowledge.conftest import Desk
from tests.toolsets.knowledge.transfer.samples import (
    FORMATS,
    bring_in,
    export,
    link_from_task,
    link_to,
    list_names,
    make_base,
    make_entry,
    make_id,
    put,
    read_all,
    read_files,
)

AWKWARD = (
    "---\ntitle: x\n---\nbody",
    "---",
    "---\n",
    "\ntext",
    "text\n",
    "text\n\n\n",
    "text   ",
    " text",
    "a\r\nb\r\n",
    "a\rb",
    "tab\there",
    "line\u2028and\u2029and\x85and\x0b\x0c",
    "\ufeffmark",
    "quotes \" ' \\ \\n `",
    "# heading: yes & no * ! | > % @ [x] {y}",
    "null",
    "~",
    "yes",
    "12",
    "e\u0301 é \U0001f468\u200d\U0001f469\u200d\U0001f467 🇩🇪",
    "\u202eright to left\u202c שלום مرحبا",
    "\x01\x1b[31m\x7fred",
    "\ufffe\uffff\U0001fffe\U0010ffff",
)
TEXTS = st.sampled_from(AWKWARD) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=60
).filter(is_seen)
INSTANTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
TAGS = st.lists(st.sampled_from(["refunds", "EU Policy", "größe", "日本", "a-1"]), max_size=4, unique=True)


@st.composite
def entry_sets(draw: st.DrawFn) -> list[Entry]:
    count = draw(st.integers(1, 5))
    return [draw(entries(number, count)) for number in range(1, count + 1)]


@st.composite
def entries(draw: st.DrawFn, number: int, count: int) -> Entry:
    others = [other for other in range(1, count + 1) if other != number]
    successor = draw(st.none() | st.integers(number + 1, count)) if number < count else None
    targets = draw(st.lists(st.sampled_from(others), max_size=2, unique=True)) if others else []
    tasks = draw(st.lists(TEXTS, max_size=2, unique=True))
    links = [link_to(target, at=draw(INSTANTS)) for target in targets]
    links += [link_from_task(task, at=draw(INSTANTS)) for task in tasks]
    return make_entry(
        number,
        title=draw(TEXTS),
        body=draw(TEXTS),
        author=draw(TEXTS),
        source=draw(TEXTS),
        tags=normalise_tags(draw(TAGS)),
        confidence=draw(st.integers(0, 100)),
        created_at=draw(INSTANTS),
        modified_at=draw(INSTANTS),
        expires_at=draw(st.none() | INSTANTS),
        superseded_by=successor,
        data=draw(st.dictionaries(st.sampled_from(["origin", "more"]), VALUES, max_size=2)),
        links=tuple(links),
    )


@pytest.mark.parametrize("format", FORMATS)
@settings(deadline=None, max_examples=30)
@given(entries=entry_sets())
def test_export_import_export_is_byte_equal(
    format: ExportFormat, entries: list[Entry], tmp_path_factory: pytest.TempPathFactory
) -> None:
    anyio.run(check_round_trip, entries, format, tmp_path_factory.mktemp("trip"))


async def check_round_trip(entries: list[Entry], format: ExportFormat, folder: Path) -> None:
    base, empty = make_base(), make_base()
    await put(base, "acme", entries)
    first = await export(base, "acme", folder / "first", format)
    report = await bring_in(empty, folder / "first", format, org="other")
    assert (report.added, report.problems) == (len(entries), ())
    assert await export(empty, "other", folder / "second", format) == first
    numbers = range(1, len(entries) + 1)
    before, after = await read_all(base, "acme", numbers), await read_all(empty, "other", numbers)
    assert [each.digest for each in after] == [each.digest for each in before]
    for document in before:
        assert await list_links(empty, "other", document) == await list_links(base, "acme", document)


async def list_links(base: KnowledgeBase, org: str, document: Document) -> list[tuple[object, ...]]:
    links = await base.store.get_links(org, Reference("knowledge", document.id))
    return [(link.source, link.kind, link.target, link.created_at) for link in links]


@pytest.mark.parametrize("format", FORMATS)
async def test_what_agents_stored_survives_a_round_trip_on_every_engine(
    desk: Desk, tmp_path: Path, format: ExportFormat
) -> None:
    old = await desk.store("Refund limit", "400 EUR.\r\n", tags=["Refunds"], confidence=70)
    later = await desk.as_agent("bob").store(
        "Refund limit 2", "450 EUR.", taskRef={"taskId": "T 1", "kind": "produced"}
    )
    desk.clock.advance(timedelta(microseconds=1))
    new = await desk.store("Refund limit 3", "500 EUR.", expiresAt=(NOW + timedelta(days=1)).isoformat())
    await desk.supersede(old.id, later.id)
    await desk.supersede(later.id, new.id)
    first = await export(desk.base, "acme", tmp_path / "first", format)
    report = await bring_in(desk.base, tmp_path / "first", format, org="beta")
    assert (report.added, report.links_added, report.problems) == (3, 1, ())
    assert await export(desk.base, "beta", tmp_path / "second", format) == first

    copy = desk.as_agent("cid", "beta")
    entry = await copy.get(old.id)
    assert [member.id for member in entry.chain] == [old.id, later.id, new.id]
    assert (entry.head_id, entry.superseded_by, entry.author, entry.confidence) == (new.id, later.id, "ann", 70)
    assert [task.task_id for task in (await copy.get(later.id)).task_refs] == ["T 1"]
    assert [hit.id for hit in await copy.search("400 EUR refund")] == [new.id]


async def test_an_entry_on_a_line_has_its_keys_in_a_fixed_order(tmp_path: Path) -> None:
    base = make_base()
    both = [make_entry(1, superseded_by=2, tags=("b", "a"), data={"z": 1, "a": 2}), make_entry(2)]
    await put(base, "acme", both)
    lines = (await export(base, "acme", tmp_path / "out.jsonl", "jsonl"))[""].decode().split("\n")
    assert json.loads(lines[0]) == {"format": "refdesk-knowledge", "version": 1, "entries": 2}
    names = "id,title,author,source,confidence,tags,state,createdAt,modifiedAt,supersededBy,supersededAt,data,body"
    assert ",".join(json.loads(lines[1])) == names
    assert '"data":{"a":2,"z":1}' in lines[1]
    assert '"tags":["b","a"]' in lines[1]
    assert lines[3:] == [""]


async def test_entries_come_by_date_and_then_by_id(tmp_path: Path) -> None:
    base = make_base()
    await put(base, "acme", [make_entry(3, created_at=NOW), make_entry(1), make_entry(2, created_at=NOW)])
    lines = (await export(base, "acme", tmp_path / "out.jsonl", "jsonl"))[""].splitlines()[1:]
    assert [json.loads(line)["id"] for line in lines] == [make_id(2), make_id(3), make_id(1)]


async def test_files_are_named_by_us_whatever_the_title_says(tmp_path: Path) -> None:
    base = make_base()
    titles = ["../../etc/passwd", "Größe 100 %: 日本語!", "///", "word " * 40, "a" + "\U00020000" * 200]
    await put(base, "acme", [make_entry(number, title=title) for number, title in enumerate(titles, start=1)])
    names = list(await export(base, "acme", tmp_path / "out", "markdown"))
    assert names[:3] == [
        f"{make_id(1)}-etc-passwd.md",
        f"{make_id(2)}-größe-100-日本語.md",
        f"{make_id(3)}.md",
    ]
    assert names[3] == f"{make_id(4)}-{'-'.join(['word'] * 12)}.md"
    assert names[4] == f"{make_id(5)}-a" + "\U00020000" * 44 + ".md"
    assert all(len(name.encode()) <= 255 for name in names)
    assert list_names(tmp_path) == ["out"]


async def test_the_body_of_a_markdown_file_is_verbatim(tmp_path: Path) -> None:
    base = make_base()
    await put(base, "acme", [make_entry(1, title='A "b": c', body="---\nx: 1\n---\n\r\nend  ", tags=("a", "b"))])
    [file] = (await export(base, "acme", tmp_path / "out", "markdown")).values()
    assert file.decode() == (
        '---\nformat: "refdesk-knowledge/1"\n'
        f'id: "{make_id(1)}"\ntitle: "A \\"b\\": c"\nauthor: "ann"\nsource: "agent"\nconfidence: 80\n'
        'tags: ["a", "b"]\nstate: "current"\n'
        'createdAt: "2026-03-01T12:00:01+00:00"\nmodifiedAt: "2026-03-01T12:00:01+00:00"\n'
        "---\n---\nx: 1\n---\n\r\nend  "
    )


@pytest.mark.parametrize("format", FORMATS)
async def test_a_withdrawn_entry_that_a_chain_leads_to_is_exported(tmp_path: Path, format: ExportFormat) -> None:
    base, empty = make_base(), make_base()
    chain = [make_entry(1, superseded_by=2), make_entry(2, state=State.WITHDRAWN), make_entry(3)]
    await put(base, "acme", chain)
    first = await export(base, "acme", tmp_path / "first", format)
    await bring_in(empty, tmp_path / "first", format)
    assert await export(empty, "acme", tmp_path / "second", format) == first
    assert [each.state.value for each in await read_all(empty, "acme", [1, 2])] == ["superseded", "withdrawn"]


@pytest.mark.parametrize("format", FORMATS)
async def test_a_withdrawn_entry_that_nothing_leads_to_is_exported(tmp_path: Path, format: ExportFormat) -> None:
    base, empty = make_base(), make_base()
    task = link_from_task("T-1")
    await put(base, "acme", [make_entry(1, state=State.WITHDRAWN, links=(task,)), make_entry(2)])
    await put(base, "beta", [make_entry(3, state=State.WITHDRAWN)])
    first = await export(base, "acme", tmp_path / "first", format)
    await bring_in(empty, tmp_path / "first", format)
    assert await export(empty, "acme", tmp_path / "second", format) == first
    assert [each.state.value for each in await read_all(empty, "acme", [1, 2])] == ["withdrawn", "current"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("erased", [(2,), (2, 3), (3,), (1,), (3, 4)])
async def test_a_chain_with_a_gap_is_imported_whole_and_what_was_erased_stays_so(
    tmp_path: Path, format: ExportFormat, erased: tuple[int, ...]
) -> None:
    base, empty = make_base(), make_base()
    chain = [make_entry(number, superseded_by=number + 1) for number in (1, 2, 3)]
    await put(base, "acme", [*chain, make_entry(4)])
    await export(base, "acme", tmp_path / "before", format)
    for number in erased:
        await erase(base.store, base.clock, Actor("acme", "ann", "test"), Erasable("acme", entry=make_id(number)))
    first = await export(base, "acme", tmp_path / "first", format)
    taken = await bring_in(empty, tmp_path / "first", format)
    assert (taken.added, taken.problems) == (4 - len(erased), ())
    assert await export(empty, "acme", tmp_path / "second", format) == first
    again = await bring_in(empty, tmp_path / "first", format)
    assert (again.added, again.unchanged, again.problems) == (0, 4 - len(erased), ())
    refused = await bring_in(empty, tmp_path / "before", format)
    gone = [number for number in erased if number != 1]
    assert refused.added == (1 in erased), "nothing leads to the oldest, so nothing tells of it"
    said = sorted(problem.message for problem in refused.problems)
    assert said == [f"{make_id(number)} was erased here, and stays so." for number in gone]
    living = [number for number in (1, 2, 3, 4) if number not in erased]
    heads = [await find_heads(each.store, await read_all(each, "acme", living)) for each in (base, empty)]
    assert heads[0] == heads[1]


async def test_another_orgs_entries_are_not_exported(tmp_path: Path) -> None:
    base = make_base()
    await put(base, "acme", [make_entry(1)])
    await put(base, "beta", [make_entry(2, title="secret")])
    assert b"secret" not in (await export(base, "acme", tmp_path / "out", "jsonl"))[""]


async def test_what_the_format_does_not_know_is_reported(tmp_path: Path) -> None:
    base = make_base()
    await put(base, "acme", [make_entry(1)])
    [stored] = await read_all(base, "acme", [1])
    async with base.store.transaction() as transaction:
        changed = replace(stored, version=2, facets={**stored.facets, "mood": ("good",)})
        await transaction.put_documents([changed])
    report = await export_entries(base, "acme", tmp_path / "out", "jsonl")
    assert [problem.place for problem in report.problems] == [make_id(1)]


async def test_the_report_counts_entries_links_and_superseded(tmp_path: Path) -> None:
    base = make_base()
    links = (link_to(2), link_from_task("T-1"))
    await put(base, "acme", [make_entry(1, superseded_by=2, links=links), make_entry(2)])
    report = await export_entries(base, "acme", tmp_path / "out", "jsonl")
    assert (report.entries, report.links, report.superseded, report.problems) == (2, 2, 1, ())


async def test_an_export_shows_one_instant_while_others_write(desk: Desk, tmp_path: Path) -> None:
    entries = [make_entry(number) for number in range(1, 451)]
    await put(desk.base, "acme", entries)
    before = await export(desk.base, "acme", tmp_path / "before", "jsonl")
    has_begun = anyio.Event()

    async def supersede_half() -> None:
        await has_begun.wait()
        # The last first: an export that has begun has not read those yet.
        for old, new in zip(entries[-2:300:-2], entries[:301:-2], strict=True):
            await desk.supersede(old.id, new.id)

    async with anyio.create_task_group() as group:
        group.start_soon(supersede_half)
        await export_entries(desk.base, "acme", tmp_path / "out", "jsonl", lambda _done, _of: has_begun.set())
        assert read_files(tmp_path / "out") == before
    assert await export(desk.base, "acme", tmp_path / "after", "jsonl") != before


async def test_json_lines_can_go_to_a_stream_and_markdown_cannot() -> None:
    base, stream = make_base(), StringIO()
    await put(base, "acme", [make_entry(1)])
    await export_entries(base, "acme", stream, "jsonl")
    assert len(stream.getvalue().splitlines()) == 2
    assert not stream.closed
    with pytest.raises(InvalidInputError, match="folder"):
        await export_entries(base, "acme", stream, "markdown")


async def test_a_stream_that_takes_no_utf8_is_named_as_the_cause() -> None:
    base = make_base()
    await put(base, "acme", [make_entry(1, title="größe")])
    stream = TextIOWrapper(BytesIO(), encoding="ascii")
    with pytest.raises(OperatorError, match="UTF-8"):
        await export_entries(base, "acme", stream, "jsonl")


async def test_an_export_replaces_a_file_but_never_a_folder_with_something_in_it(tmp_path: Path) -> None:
    base = make_base()
    await put(base, "acme", [make_entry(1)])
    (tmp_path / "out.jsonl").write_text("old")
    assert b"Entry 1" in (await export(base, "acme", tmp_path / "out.jsonl", "jsonl"))[""]
    (tmp_path / "empty").mkdir()
    assert len(await export(base, "acme", tmp_path / "empty", "markdown")) == 1
    with pytest.raises(InvalidInputError, match="not empty"):
        await export_entries(base, "acme", tmp_path / "empty", "markdown")
    with pytest.raises(InvalidInputError, match="folder"):
        await export_entries(base, "acme", tmp_path / "empty", "jsonl")
    with pytest.raises(InvalidInputError, match="this is none"):
        await export_entries(base, "acme", tmp_path / "out.jsonl", "markdown")
    with pytest.raises(OperatorError):
        await export_entries(base, "acme", tmp_path / "no" / "such" / "folder", "jsonl")
    assert list_names(tmp_path) == ["empty", "out.jsonl"]


@contextmanager
def full_disk(after_bytes: int) -> Generator[None]:
    """No file of this process grows beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("format", FORMATS)
async def test_a_failed_export_leaves_the_old_file_and_no_other(tmp_path: Path, format: ExportFormat) -> None:
    base = make_base()
    await put(base, "acme", [make_entry(1), make_entry(2, body="x" * 30_000)])
    target = tmp_path / "out"
    if format == "jsonl":
        target.write_text("old")
    with full_disk(after_bytes=20_000), pytest.raises(OperatorError, match="written"):
        await export_entries(base, "acme", target, format)
    assert read_files(tmp_path) == ({"out": b"old"} if format == "jsonl" else {})
