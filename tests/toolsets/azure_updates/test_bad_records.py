"""One record that cannot be kept, in a feed of good ones: it is set aside alone, and the others land."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from refdesk.core.background import sync_log
from refdesk.core.background.syncing import Syncer
from refdesk.core.clock import FixedClock
from refdesk.sources import SourcePage
from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.azure_updates import TOOLSET_NAME, roadmap
from refdesk.toolsets.azure_updates.models import COLLECTION
from refdesk.toolsets.azure_updates.pages import read_page
from refdesk.toolsets.azure_updates.records import to_document
from tests.toolsets.azure_updates.samples import make_record

DEEP = 100_000


@dataclass(slots=True)
class FeedOfBytes:
    """A feed of one page."""

    body: bytes
    is_complete: bool = True
    seen: set[str] = field(default_factory=set[str])

    async def read(self, since: str | None) -> AsyncIterator[SourcePage]:
        yield read_page({}, self.body).to_source_page(0, frozenset(self.seen), 0)


def write_page(name: str, value: bytes) -> bytes:
    """Return a page of three records, the second of which has such a field, as JSON."""
    records = [make_record("first"), make_record(**{"id": "odd", name: "HERE"}), make_record("last")]
    return json.dumps({"@odata.count": 3, "value": records}).encode().replace(b'"HERE"', value)


async def sync(source: FeedOfBytes) -> tuple[set[str], dict[str, str]]:
    """Return the ids that landed, and the reasons for which others were set aside; nothing is written again."""
    clock = FixedClock(datetime(2026, 11, 7, 12, tzinfo=UTC))
    store = MemoryStore(clock)
    syncer = Syncer(store, source, COLLECTION, to_document, clock, converter_version="1")
    await syncer.sync()
    assert (await syncer.sync(full=True)).written == 0
    bad = await sync_log.read_dead_letters(store, TOOLSET_NAME)
    return set(await store.get_digests(COLLECTION)), {each.name: each.reason for each in bad}


@pytest.mark.parametrize("name", ["unknown", "description", "availabilities", "tags"])
@pytest.mark.parametrize(
    "value",
    [
        *(b"1e999", b"-1e999", b"NaN", b"Infinity", b"9" * 5000, b'"\\ud800"', b'"\xff"', b'{"\xed\xa0\x80": 1}'),
        *(b'"a\\u0000b"', b'{"a\\u0000": 1}', b"[" * 150 + b"]" * 150, b"[" * DEEP + b"]" * DEEP),
        *(b'{"[{\\"":' * 1500 + b"1" + b"}" * 1500, b'[["]"],' * DEEP + b"1" + b"]" * DEEP),
    ],
    ids=lambda value: value[:12].decode("latin-1"),
)
async def test_a_record_that_cannot_be_kept_is_set_aside_alone(name: str, value: bytes) -> None:
    landed, reasons = await sync(FeedOfBytes(write_page(name, value)))
    assert (landed, set(reasons)) == ({"first", "last"}, {"odd"})
    assert reasons["odd"]


@pytest.mark.parametrize("value", [b"1e999", b"NaN", b"9" * 5000, b'"\\ud800"', b'"\xff"', b"[" * DEEP + b"]" * DEEP])
async def test_a_record_whose_id_cannot_be_kept_is_set_aside_alone(value: bytes) -> None:
    landed, reasons = await sync(FeedOfBytes(write_page("id", value)))
    assert (landed, len(reasons)) == ({"first", "last"}, 1)


@pytest.mark.parametrize("value", [b"1" + b"0" * 400, b"1e308", b"[" * 60 + b"]" * 60, b'"\\ud83d\\ude00"'])
async def test_what_is_unusual_and_can_be_kept_is(value: bytes) -> None:
    landed, reasons = await sync(FeedOfBytes(write_page("unknown", value)))
    assert (landed, reasons) == ({"first", "odd", "last"}, {})


async def test_an_id_that_comes_twice_and_cannot_be_kept_is_no_obstacle() -> None:
    source = FeedOfBytes(write_page("id", b'"\\ud800"'), seen={"\ud800", "a\x00", "first"})
    landed, reasons = await sync(source)
    assert landed == {"first", "last"}
    assert "#again:first" in reasons


@pytest.mark.parametrize("date", ["9" * 5000 + "-03", "2026-" + "0" * 5000 + "3"])
def test_a_date_of_the_roadmap_that_is_none_is_left_out(date: str) -> None:
    record = make_record("m365-1", availabilities=[], generalAvailabilityDate=date)
    assert roadmap.to_document(record).data["availabilities"] == []
