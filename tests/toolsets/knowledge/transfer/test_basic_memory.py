from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.model import Document, Reference
from refdesk.toolsets.knowledge.models import get_collection
from refdesk.toolsets.knowledge.transfer.foreign import make_id
from tests.toolsets.knowledge.transfer.samples import bring_in, list_messages, make_base

COFFEE = """---
title: Pour Over
type: guide
tags: [coffee, 'Brewing']
permalink: drinks/pour-over
created: 2025-01-02T03:04:05+01:00
modified: 2025-02-03
rating: 5
---

# Pour Over

- [method] Water at 96 °C keeps it sweet #technique #taste/sweet (my trials)
- plain item
Prose with a #hash and a link to [[Grinder|the grinder]].

- needs [[drinks/kettle]]
- pairs_with [[Missing Note]]

```
- [code] not an observation #nope [[Nowhere]]
```
"""
KETTLE = "Just text about the kettle. See [[pour over]] and [[Kettle]].\n"
GRINDER = "---\ntitle: Grinder\n---\n"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "drinks").mkdir(parents=True)
    (folder / "drinks" / "Pour Over.md").write_text(COFFEE)
    (folder / "drinks" / "kettle.md").write_text(KETTLE)
    (folder / "Grinder.md").write_text(GRINDER)
    set_dates(folder, 1_700_000_000)
    return folder


def set_dates(folder: Path, seconds: int) -> None:
    for path in folder.rglob("*.md"):
        os.utime(path, (seconds, seconds))


async def read(base: KnowledgeBase, origin_id: str) -> Document:
    [document] = await base.get(get_collection("acme"), [make_id("basic-memory", origin_id)])
    assert document is not None
    return document


async def list_targets(base: KnowledgeBase, document: Document) -> list[str]:
    links = await base.store.get_links("acme", Reference("knowledge", document.id))
    return sorted(link.target.id for link in links if link.source.id == document.id)


async def test_a_note_becomes_an_entry_with_its_text_whole(notes: Path) -> None:
    base = make_base()
    report = await bring_in(base, notes, "basic-memory", author="ivo")
    assert (report.added, report.links_added) == (3, 3)
    assert list_messages(report, "left_out") == [
        'drinks/Pour Over.md: its link to "Missing Note": there is no such note; the text keeps it.'
    ]
    coffee = await read(base, "drinks/pour-over")
    assert (coffee.title, coffee.author, coffee.body) == ("Pour Over", "ivo", COFFEE.rpartition("---\n\n")[2].strip())
    assert coffee.facets["tags"] == ("coffee", "brewing", "guide", "technique", "taste-sweet")
    assert coffee.created_at == datetime(2025, 1, 2, 2, 4, 5, tzinfo=UTC)
    assert coffee.modified_at == datetime(2025, 2, 3, tzinfo=UTC)
    assert coffee.data["source"] == "basic-memory"
    assert coffee.data["origin"] == {
        "id": "drinks/pour-over",
        "fields": {"type": "guide", "permalink": "drinks/pour-over", "rating": 5},
    }


async def test_wiki_links_find_notes_by_permalink_title_path_and_file_name(notes: Path) -> None:
    base = make_base()
    await bring_in(base, notes, "basic-memory")
    coffee, kettle = await read(base, "drinks/pour-over"), await read(base, "drinks/kettle")
    grinder = await read(base, "Grinder")
    assert await list_targets(base, coffee) == sorted([kettle.id, grinder.id])
    assert await list_targets(base, kettle) == [coffee.id]


async def test_a_note_without_front_matter_is_named_and_dated_by_its_file(notes: Path) -> None:
    base = make_base()
    await bring_in(base, notes, "basic-memory")
    kettle = await read(base, "drinks/kettle")
    assert (kettle.title, kettle.body) == ("kettle", KETTLE.strip())
    assert kettle.created_at == kettle.modified_at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert (await read(base, "Grinder")).body == "Grinder"


async def test_a_note_without_a_title_is_named_by_the_heading_it_begins_with_and_linked_by_either(
    tmp_path: Path,
) -> None:
    (tmp_path / "0012.md").write_text("\ufeff# Who approves refunds #\r\n\r\nA lead: [[0013]], [[Refund limits]].\r\n")
    (tmp_path / "0013.md").write_text("#Tag, no heading\n\n# Later\n")
    (tmp_path / "0014.md").write_text("---\ntags: [a]\n---\n# Refund limits\n")
    base = make_base()
    await bring_in(base, tmp_path, "basic-memory")
    first = await read(base, "0012")
    assert first.title == "Who approves refunds"
    assert (await read(base, "0013")).title == "0013"
    assert (await read(base, "0014")).title == "Refund limits"
    assert await list_targets(base, first) == sorted(make_id("basic-memory", each) for each in ("0013", "0014"))


async def test_importing_again_after_a_copy_adds_nothing(notes: Path) -> None:
    base = make_base()
    first = await bring_in(base, notes, "basic-memory", dry=True)
    assert (await bring_in(base, notes, "basic-memory")).added == first.added == 3
    set_dates(notes, 1_800_000_000)
    again = await bring_in(base, notes, "basic-memory", author="eve")
    assert (again.added, again.unchanged, again.links_added) == (0, 3, 0)


async def test_a_link_that_may_mean_two_notes_is_left_out(tmp_path: Path) -> None:
    base = make_base()
    for name, text in (("a/same", "one"), ("b/same", "two"), ("c", "see [[same]]")):
        (tmp_path / "n" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "n" / f"{name}.md").write_text(text)
    report = await bring_in(base, tmp_path / "n", "basic-memory")
    assert list_messages(report, "left_out") == [
        'c.md: its link to "same": more than one note has that name; the text keeps it.'
    ]


async def test_front_matter_that_is_not_understood_is_noted_and_the_note_lands(tmp_path: Path) -> None:
    base = make_base()
    text = "---\ntitle: x\nnested:\n  a: 1\nanchor: &a b\ntags: one, two\ncreated: once\n---\nbody\n"
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "x.md").write_text(text)
    report = await bring_in(base, tmp_path / "n", "basic-memory")
    assert (report.added, report.left_out) == (1, 2)
    assert [problem.place for problem in report.problems] == ["x.md, line 5", "x.md"]
    assert (await read(base, "x")).facets["tags"] == ("one", "two")


async def test_nested_maps_and_block_scalars_are_kept_beside_the_note(tmp_path: Path) -> None:
    base = make_base()
    fields = "title: >-\n  A long\n  title\nsource:\n  book: {title: B, year: 1999}\nabstract: |\n  one\n  two\n"
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "x.md").write_text(f"---\n{fields}---\nbody\n")
    report = await bring_in(base, tmp_path / "n", "basic-memory")
    assert (report.added, report.left_out) == (1, 0)
    note = await read(base, "x")
    assert note.title == "A long title"
    [origin] = [value for name, value in note.data.items() if name == "origin"]
    assert cast("dict[str, object]", origin)["fields"] == {
        "source": {"book": {"title": "B", "year": 1999}},
        "abstract": "one\ntwo\n",
    }


async def test_two_notes_of_one_permalink_are_a_conflict(tmp_path: Path) -> None:
    (tmp_path / "n").mkdir()
    for name in ("a", "b"):
        (tmp_path / "n" / f"{name}.md").write_text(f"---\npermalink: same\n---\ntext {name}")
    report = await bring_in(make_base(), tmp_path / "n", "basic-memory")
    assert (report.added, report.conflicts) == (1, 1)


async def test_a_note_beyond_the_limit_is_split_before_a_heading(tmp_path: Path) -> None:
    base = make_base()
    text = "".join(f"# Part {number}\n\n{'word ' * 4000}\n" for number in range(4))
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "long.md").write_text(text)
    report = await bring_in(base, tmp_path / "n", "basic-memory")
    assert report.added == 4
    collection = get_collection("acme")
    parts = await base.get(collection, list(await base.store.get_digests(collection)))
    parts = sorted((part for part in parts if part is not None), key=lambda part: part.title)
    assert [part.body[:8] for part in parts] == [f"# Part {number}" for number in range(4)]
    assert "".join(part.body for part in parts) == text.strip()
