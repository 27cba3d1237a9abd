from __future__ import annotations

import json
from pathlib import Path

from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.model import Document, Reference
from refdesk.toolsets.knowledge.models import get_collection
from refdesk.toolsets.knowledge.transfer.foreign import make_id
from tests.core.fakes import NOW
from tests.toolsets.knowledge.conftest import Desk
from tests.toolsets.knowledge.transfer.samples import bring_in, export, list_messages, make_base

ADA = {"type": "entity", "name": "Ada", "entityType": "Team Lead", "observations": ["Speaks French", "Two\nlines"]}
ACME = {"type": "entity", "name": "Acme", "entityType": "company", "observations": ["Makes anvils"]}
WORKS = {"type": "relation", "from": "Ada", "to": "Acme", "relationType": "works_at"}


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


async def read(base: KnowledgeBase, name: str) -> Document:
    [document] = await base.get(get_collection("acme"), [make_id("mcp-memory", name)])
    assert document is not None
    return document


async def test_an_entity_becomes_an_entry_and_a_relation_a_link(desk: Desk, tmp_path: Path) -> None:
    report = await bring_in(desk.base, write(tmp_path / "memory.jsonl", ADA, ACME, WORKS), "mcp-memory", author="ivo")
    assert (report.added, report.links_added, report.problems) == (2, 1, ())
    ada, acme = await read(desk.base, "Ada"), await read(desk.base, "Acme")
    assert ada.body == "- Speaks French\n- Two\n  lines\n\n- works_at [[Acme]]"
    assert (ada.title, ada.author, ada.created_at, ada.facets["tags"]) == ("Ada", "ivo", NOW, ("team-lead",))
    assert ada.data == {"origin": {"id": "Ada"}, "confidence": 80, "source": "mcp-memory"}
    assert acme.body == "Makes anvils"
    [link] = await desk.base.store.get_links("acme", Reference("knowledge", ada.id))
    assert (link.kind, link.source.id, link.target.id) == ("references", ada.id, acme.id)
    assert "Acme" in [hit.title for hit in await desk.search("anvils")]


async def test_importing_again_later_by_another_adds_nothing(desk: Desk, tmp_path: Path) -> None:
    path = write(tmp_path / "memory.jsonl", ADA, ACME, WORKS)
    await bring_in(desk.base, path, "mcp-memory", author="ivo")
    desk.clock.advance(NOW - NOW.replace(year=2020))
    again = await bring_in(desk.base, path, "mcp-memory", author="eve")
    assert (again.added, again.unchanged, again.links_added, again.problems) == (0, 2, 0, ())


async def test_an_entity_that_grew_is_a_conflict_and_the_new_ones_land(tmp_path: Path) -> None:
    base = make_base()
    await bring_in(base, write(tmp_path / "memory.jsonl", ADA), "mcp-memory")
    path = write(tmp_path / "memory.jsonl", ADA | {"observations": ["Speaks French", "Two\nlines", "new"]}, ACME)
    report = await bring_in(base, path, "mcp-memory")
    assert (report.added, report.conflicts) == (1, 1)
    assert "another body" in list_messages(report, "conflict")[0]


async def test_what_was_imported_survives_a_round_trip(tmp_path: Path) -> None:
    base, empty = make_base(), make_base()
    await bring_in(base, write(tmp_path / "memory.jsonl", ADA | {"version": 3}, ACME, WORKS), "mcp-memory")
    first = await export(base, "acme", tmp_path / "first", "markdown")
    await bring_in(empty, tmp_path / "first", "markdown")
    assert await export(empty, "acme", tmp_path / "second", "markdown") == first


async def test_what_is_not_taken_over_is_counted_with_its_line(tmp_path: Path) -> None:
    base = make_base()
    path = write(
        tmp_path / "memory.jsonl",
        ADA,
        {"type": "_marker", "source": "x"},
        WORKS,
        {"type": "relation", "from": "Bob", "to": "Ada", "relationType": "knows"},
        WORKS,
        {"type": "relation", "from": "Ada", "to": "Ada", "relationType": "likes", "weight": 1},
        ADA,
        {"type": "entity", "name": "Ada", "entityType": "", "observations": []},
    )
    report = await bring_in(base, path, "mcp-memory")
    assert list_messages(report, "left_out") == [
        "line 2: is neither an entity nor a relation.",
        "line 5: repeats line 3.",
        'line 6: its fields "weight" have no place in a link.',
        'line 3: there is no entity "Acme" to link to; the text says it.',
        'line 4: there is no entity "Bob" that it starts from.',
        "line 7: repeats line 1.",
    ]
    assert list_messages(report, "conflict") == ["line 8: has the id of line 1 and says something else."]
    assert (report.added, report.links_added) == (1, 0)
    assert (await read(base, "Ada")).body.endswith("- works_at [[Acme]]\n- likes [[Ada]]")


async def test_records_of_wrong_types_are_refused_and_the_rest_lands(tmp_path: Path) -> None:
    base = make_base()
    bad: list[object] = [
        "no object",
        {"type": "entity", "name": 5, "entityType": "x", "observations": []},
        {"type": "entity", "name": "x", "observations": []},
        {"type": "entity", "name": "x", "entityType": "x", "observations": "one"},
        {"type": "entity", "name": "x", "entityType": "x", "observations": [1]},
        {"type": "entity", "name": " ", "entityType": "x", "observations": ["a"]},
        {"type": "relation", "from": "x", "to": None, "relationType": "x"},
        {"type": "entity", "name": "\x00", "entityType": "x", "observations": []},
    ]
    report = await bring_in(base, write(tmp_path / "memory.jsonl", *bad, ADA), "mcp-memory")
    assert (report.added, report.invalid, report.left_out) == (1, len(bad), 0)
    assert [problem.place for problem in report.problems] == [
        *(f"line {number}" for number in (1, 2, 3, 4, 5, 7, 8)),
        "line 6",
    ]


async def test_bytes_that_are_no_text_are_refused_line_by_line(tmp_path: Path) -> None:
    base = make_base()
    whole = json.dumps(ADA).encode()
    lines = [
        b"\xef\xbb\xbf" + whole,
        b'{"type": "\xff"}',
        b"",
        b"\x00",
        b"[" * 100_000,
        b'{"a":1e999}',
        b"{",
        b'{"type":NaN}',
    ]
    (tmp_path / "memory.jsonl").write_bytes(b"\r\n".join(lines))
    report = await bring_in(base, tmp_path / "memory.jsonl", "mcp-memory")
    assert (report.added, report.invalid) == (1, 6)
    assert [problem.place for problem in report.problems] == [f"line {number}" for number in (2, 4, 5, 6, 7, 8)]
    assert list_messages(report, "invalid")[0] == "line 2: is not UTF-8 (byte 11)."


async def test_a_link_to_an_entity_that_was_refused_is_left_out_and_its_start_lands(tmp_path: Path) -> None:
    base = make_base()
    path = write(tmp_path / "m", ADA, ACME | {"name": " "}, WORKS | {"to": " "})
    report = await bring_in(base, path, "mcp-memory")
    assert (report.added, report.invalid, report.left_out, report.links_added) == (1, 1, 1, 0)
    assert list_messages(report, "left_out")[0].endswith("that entry was not imported.")


async def test_an_entity_without_observations_says_its_type(tmp_path: Path) -> None:
    base = make_base()
    path = write(
        tmp_path / "memory.jsonl",
        {"type": "entity", "name": "Bolt", "entityType": "dog", "observations": [" "]},
        {"type": "entity", "name": "Moon", "entityType": "", "observations": []},
    )
    assert (await bring_in(base, path, "mcp-memory")).added == 2
    assert ((await read(base, "Bolt")).body, (await read(base, "Moon")).body) == ("Bolt (dog)", "Moon")


async def test_long_observations_are_kept_whole_and_split_only_beyond_the_limit(tmp_path: Path) -> None:
    base = make_base()
    short, long = "x " * 15_999 + "y", "word " * 15_000
    path = write(
        tmp_path / "memory.jsonl",
        {"type": "entity", "name": "short", "entityType": "t", "observations": [short]},
        {"type": "entity", "name": "long", "entityType": "t", "observations": [long], "extra": 1},
        {"type": "relation", "from": "short", "to": "long", "relationType": "r"},
    )
    # One relation more would make the short one too long; so it belongs to another entity's line here.
    path.write_text(path.read_text().replace('"from": "short", "to": "long"', '"from": "long", "to": "short"'))
    report = await bring_in(base, path, "mcp-memory")
    assert (report.added, report.problems) == (4, ())
    assert (await read(base, "short")).body == short
    parts = [document for document in await read_everything(base) if document.title.startswith("long")]
    parts.sort(key=lambda document: document.title)
    assert [part.title for part in parts] == ["long (1/3)", "long (2/3)", "long (3/3)"]
    assert "".join(part.body for part in parts) == f"- {long}\n\n- r [[short]]"
    for part in parts[1:]:
        [link] = await base.store.get_links("acme", Reference("knowledge", part.id))
        assert (link.source.id, link.kind, link.target.id) == (part.id, "references", parts[0].id)
    assert (await bring_in(base, path, "mcp-memory")).unchanged == 4


async def read_everything(base: KnowledgeBase) -> list[Document]:
    collection = get_collection("acme")
    documents = await base.get(collection, list(await base.store.get_digests(collection)))
    return [document for document in documents if document is not None]


async def test_a_name_too_long_for_a_title_is_kept_in_the_text(tmp_path: Path) -> None:
    base = make_base()
    name = "very " * 60 + "long"
    await bring_in(base, write(tmp_path / "m", ADA | {"name": name, "observations": ["fact"]}), "mcp-memory")
    document = await read(base, name)
    assert (document.title, document.body) == ("very " * 38 + "very…", f"{name}\n\nfact")


async def test_a_type_that_is_no_tag_is_made_one_or_noted(tmp_path: Path) -> None:
    base = make_base()
    path = write(
        tmp_path / "m", ADA | {"name": "a", "entityType": "Tool/CLI"}, ADA | {"name": "b", "entityType": "\x1b[31m!"}
    )
    report = await bring_in(base, path, "mcp-memory")
    assert (await read(base, "a")).facets["tags"] == ("tool-cli",)
    assert (await read(base, "b")).facets["tags"] == ("31m",)
    path = write(tmp_path / "m", ADA | {"name": "c", "entityType": "\x1b!"})
    report = await bring_in(base, path, "mcp-memory")
    assert list_messages(report, "left_out") == ['line 1: its tag "\\u001b!" is not made of words.']
