from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.errors import InvalidInputError
from refdesk.model import Document
from refdesk.toolsets.knowledge.models import get_collection, get_expiry
from refdesk.toolsets.knowledge.transfer.foreign import make_id
from tests.core.fakes import NOW
from tests.toolsets.knowledge.transfer.samples import bring_in, list_messages, make_base

MEMORY: dict[str, object] = {
    "id": "8f9e",
    "memory": "Prefers aisle seats.",
    "hash": "abc",
    "metadata": {"trip": {"to": "Rome"}, "n": 1.5},
    "created_at": "2024-07-20T01:30:36.275141-07:00",
    "updated_at": "2024-07-21T01:30:36Z",
    "user_id": "alex",
    "agent_id": "travel-agent",
    "run_id": None,
    "categories": ["Travel", "user_preferences"],
}


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


async def read(base: KnowledgeBase, origin_id: str) -> Document:
    [document] = await base.get(get_collection("acme"), [make_id("mem0", origin_id)])
    assert document is not None
    return document


@pytest.mark.parametrize("wrap", [False, True])
async def test_a_memory_becomes_an_entry(tmp_path: Path, wrap: bool) -> None:
    base = make_base()
    path = write(tmp_path / "mem0.json", {"results": [MEMORY]} if wrap else [MEMORY])
    report = await bring_in(base, path, "mem0")
    assert (report.added, report.problems) == (1, ())
    entry = await read(base, "8f9e")
    assert (entry.title, entry.body, entry.author) == ("Prefers aisle seats.", "Prefers aisle seats.", "travel-agent")
    assert entry.facets["tags"] == ("travel", "user-preferences")
    assert entry.created_at == datetime(2024, 7, 20, 8, 30, 36, 275141, tzinfo=UTC)
    assert entry.modified_at == datetime(2024, 7, 21, 1, 30, 36, tzinfo=UTC)
    assert entry.data == {
        "confidence": 80,
        "source": "mem0",
        "origin": {
            "id": "8f9e",
            "fields": {"hash": "abc", "metadata": {"trip": {"to": "Rome"}, "n": 1.5}, "user_id": "alex"},
        },
    }
    assert (await bring_in(base, path, "mem0")).unchanged == 1


async def test_a_memory_is_valid_through_the_day_it_expires_on(tmp_path: Path) -> None:
    base = make_base()
    await bring_in(base, write(tmp_path / "m", [MEMORY | {"expiration_date": "2030-01-31"}]), "mem0")
    assert get_expiry(await read(base, "8f9e")) == datetime(2030, 2, 1, tzinfo=UTC)


async def test_without_dates_and_agent_the_importer_and_now_stand_in(tmp_path: Path) -> None:
    base = make_base()
    path = write(tmp_path / "m", [{"id": "1", "memory": "x", "created_at": None, "agent_id": None, "categories": None}])
    await bring_in(base, path, "mem0", author="ivo")
    entry = await read(base, "1")
    assert (entry.author, entry.created_at, entry.modified_at) == ("ivo", NOW, NOW)
    assert (await bring_in(base, path, "mem0", author="eve")).unchanged == 1


async def test_a_long_memory_has_its_beginning_as_title(tmp_path: Path) -> None:
    base = make_base()
    text = f"\n  {'many words ' * 20}\nsecond line"
    await bring_in(base, write(tmp_path / "m", [{"id": "1", "memory": text}]), "mem0")
    entry = await read(base, "1")
    assert (entry.title, entry.body) == ("many words " * 6 + "many words…", text)
    assert len(entry.title) <= 80


async def test_what_is_not_taken_over_is_counted(tmp_path: Path) -> None:
    base = make_base()
    answer = {
        "results": [
            MEMORY | {"expiration_date": "soon", "created_at": "yesterday", "categories": "travel"},
            MEMORY | {"id": "2", "metadata": {"blob": "x" * 20_000}, "expiration_date": "9999-12-31"},
            MEMORY | {"id": "3", "categories": [*(f"c{number}" for number in range(17)), "!"]},
        ],
        "relations": [{"source": "alex", "relationship": "likes", "target": "rome"}],
        "next": "https://api.test/?page=2",
        "took": 5,
    }
    report = await bring_in(base, write(tmp_path / "m", answer), "mem0")
    assert (report.added, report.invalid) == (3, 0)
    assert list_messages(report, "left_out") == [
        "relations: 1 of them join names, and not memories.",
        "the end: the file is one page of several: export and import the others, too.",
        'the file: its fields "took" belong to no memory.',
        "memory 1: categories is not a list of strings.",
        "memory 1: created_at is not a time in ISO 8601.",
        "memory 1: expiration_date is not a day, written YYYY-MM-DD.",
        "memory 2: expiration_date is not a day, written YYYY-MM-DD.",
        'memory 2: "hash, metadata, user_id" would take more than 16384 characters.',
        'memory 3: its tag "c16" is one more than the 16 that an entry has.',
        'memory 3: its tag "!" is not made of words.',
    ]
    assert "origin" not in (await read(base, "2")).data


async def test_memories_of_wrong_types_are_refused_and_the_rest_lands(tmp_path: Path) -> None:
    base = make_base()
    bad = ["x", None, {}, {"id": "1"}, {"id": "1", "memory": " "}, {"id": 1, "memory": "x"}, {"memory": "x"}]
    bad += [
        {"id": "1", "memory": "x", "agent_id": ["y"]},
        {"id": " ", "memory": "x"},
        {"id": "1", "memory": "\u200b\n\u00ad"},
    ]
    report = await bring_in(base, write(tmp_path / "m", [*bad, MEMORY]), "mem0")
    assert (report.added, report.invalid) == (1, len(bad))
    assert [problem.place for problem in report.problems] == [f"memory {n}" for n in range(1, len(bad) + 1)]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'{"results": {}}',
        b'"x"',
        b"\xff",
        b"[\x00]",
        b"[" * 200_000,
        b'{"a":1,"a":2}',
        b"[1e999]",
        b"[NaN]",
    ],
    ids=range(10),
)
async def test_a_file_without_memories_is_refused_whole(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(InvalidInputError):
        await bring_in(make_base(), tmp_path / "m", "mem0")


async def test_an_update_is_never_before_the_creation(tmp_path: Path) -> None:
    base = make_base()
    path = write(tmp_path / "m", [{"id": "1", "memory": "x", "updated_at": (NOW - timedelta(days=1)).isoformat()}])
    await bring_in(base, path, "mem0")
    entry = await read(base, "1")
    assert entry.created_at == entry.modified_at == NOW - timedelta(days=1)


async def test_a_title_is_the_first_line_of_which_something_can_be_seen(tmp_path: Path) -> None:
    base = make_base()
    await bring_in(base, write(tmp_path / "m", [{"id": "1", "memory": "\u200b\nDrinks tea."}]), "mem0")
    assert (await read(base, "1")).title == "Drinks tea."
