from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from refdesk import errors
from refdesk.core.clock import FixedClock
from refdesk.kit.http import MAX_TRIES
from refdesk.model import JsonObject
from refdesk.toolsets.azure_updates.source import AzureUpdatesSource, make_reader
from sample_world.azure_updates.process import RunningEmulator
from sample_world.azure_updates.world import load_changes, load_world

NOW = datetime(2026, 11, 7, 12, tzinfo=UTC)


@dataclass(slots=True)
class Sleeper:
    """Waits for nothing and remembers for how long it was asked to."""

    waits: list[float] = field(default_factory=list[float])

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one reading gave."""

    records: list[JsonObject]
    pages: list[int]
    totals: set[int | None]

    @property
    def ids(self) -> list[str]:
        return [str(record.get("id")) for record in self.records]


@pytest.fixture
def sleeper() -> Sleeper:
    return Sleeper()


@pytest.fixture
def source(emulator: RunningEmulator, sleeper: Sleeper) -> AzureUpdatesSource:
    reader = replace(make_reader(emulator.url), clock=FixedClock(NOW), sleep=sleeper, chance=random.Random(7))
    return AzureUpdatesSource(reader, page_size=100)


async def read(source: AzureUpdatesSource, since: str | None = None) -> Reading:
    pages = [page async for page in source.read(since)]
    records = [record for page in pages for record in page.records]
    return Reading(records, [len(page.records) for page in pages], {page.total for page in pages})


async def get_options(emulator: RunningEmulator) -> list[dict[str, Any]]:
    return [request["options"] for request in await emulator.requests()]  # pyright: ignore[reportReturnType]


async def test_everything_is_read_once_in_order_of_id(source: AzureUpdatesSource) -> None:
    reading = await read(source)
    assert Counter(reading.ids) == Counter(str(record["id"]) for record in load_world())
    assert reading.ids == sorted(reading.ids)
    assert reading.totals == {len(reading.ids)}


async def test_pages_are_asked_for_by_number_with_a_user_agent(
    source: AzureUpdatesSource, emulator: RunningEmulator
) -> None:
    await read(source)
    requests: list[Any] = await emulator.requests()
    assert {request["path"] for request in requests} == {"/releasecommunications/api/v2/azure"}
    assert all(re.fullmatch(r"refdesk/\d.*", request["headers"]["user-agent"]) for request in requests)
    assert [request["options"]["$skip"] for request in requests] == ["0", "99", "198", "297"]
    expected = {"$count": "true", "$orderby": "id asc", "$top": "100"}
    assert all(request["options"].items() >= expected.items() for request in requests)


@pytest.mark.parametrize("page_size", [2, 3, 7, 306, 307, 308, 1000])
async def test_every_page_size_reads_everything(
    source: AzureUpdatesSource, emulator: RunningEmulator, page_size: int
) -> None:
    world = load_world()[:20] if page_size < 10 else load_world()
    await emulator.set_world(world)
    reading = await read(replace(source, page_size=page_size))
    assert reading.ids == sorted(str(record["id"]) for record in world)


async def test_a_server_that_gives_less_than_asked_is_read_to_the_end(
    source: AzureUpdatesSource, emulator: RunningEmulator
) -> None:
    # The service answers at most 1,000 records at a time.
    world = [record | {"id": f"{copy}-{record['id']}"} for copy in range(5) for record in load_world()]
    await emulator.set_world(world)
    reading = await read(replace(source, page_size=5000))
    assert len(set(reading.ids)) == len(world)
    assert reading.pages == [1000, len(world) - 1000]


async def test_an_empty_feed_is_read(source: AzureUpdatesSource, emulator: RunningEmulator) -> None:
    await emulator.set_world([])
    assert (await read(source)).records == []


async def test_a_delta_filters_with_seven_fractional_digits_and_includes_the_instant(
    source: AzureUpdatesSource, emulator: RunningEmulator
) -> None:
    newest = sorted(str(record["modified"]) for record in load_world())[-3]
    reading = await read(source, newest)
    assert len(reading.ids) == 3
    await read(source, "2026-10-23T17:45:19.888160+02:00")
    [first, second] = await get_options(emulator)
    assert re.fullmatch(r"modified ge \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}0Z", first["$filter"])
    assert second["$filter"] == "modified ge 2026-10-23T15:45:19.8881600Z"


async def test_records_without_an_id_are_read_too(source: AzureUpdatesSource, emulator: RunningEmulator) -> None:
    await emulator.set_world([*load_world(), {"title": "One"}, {"title": "Two"}])
    reading = await read(source)
    assert len(reading.records) == len(load_world()) + 2


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "status", "status": 408},
        {"fault": "status", "status": 429},
        {"fault": "status", "status": 500},
        {"fault": "status", "status": 502},
        {"fault": "status", "status": 503},
        {"fault": "status", "status": 504},
        {"fault": "reset"},
        {"fault": "truncate"},
        {"fault": "invalid_json"},
        {"fault": "wrong_content_type"},
    ],
    ids=lambda fault: f"{fault['fault']} {fault.get('status', '')}",
)
async def test_what_may_pass_is_tried_again(
    source: AzureUpdatesSource, emulator: RunningEmulator, sleeper: Sleeper, fault: dict[str, object]
) -> None:
    await emulator.set_faults([fault | {"at": [2, 3, 4]}])
    reading = await read(source)
    assert Counter(reading.ids) == Counter(str(record["id"]) for record in load_world())
    assert len(sleeper.waits) == 3


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"fault": "status", "status": 503}, "HTTP 503"),
        ({"fault": "reset"}, "."),
        ({"fault": "truncate"}, "."),
        ({"fault": "invalid_json"}, "not JSON"),
        ({"fault": "wrong_content_type"}, "not JSON"),
    ],
    ids=["status", "reset", "truncate", "invalid_json", "wrong_content_type"],
)
async def test_after_four_tries_the_reason_is_told(
    source: AzureUpdatesSource, emulator: RunningEmulator, fault: dict[str, object], reason: str
) -> None:
    await emulator.set_faults([fault])
    with pytest.raises(errors.SourceError, match=f"could not be read in 4 tries, last because of: .*{reason}"):
        await read(source)
    assert len(await emulator.requests()) == MAX_TRIES


async def test_a_server_that_never_answers_is_given_up(source: AzureUpdatesSource, emulator: RunningEmulator) -> None:
    await emulator.set_faults([{"fault": "hang"}])
    with anyio.fail_after(120), pytest.raises(errors.SourceError, match="no answer in time"):
        await read(replace(source, reader=replace(source.reader, request_seconds=0.1)))


async def test_a_slow_drip_is_read_in_time_and_given_up_beyond_it(
    source: AzureUpdatesSource, emulator: RunningEmulator
) -> None:
    await emulator.set_faults([{"fault": "drip", "chunk_bytes": 65536, "delay_seconds": 0.001}])
    assert len((await read(source)).ids) == len(load_world())
    await emulator.set_faults([{"fault": "drip", "chunk_bytes": 100, "delay_seconds": 0.05}])
    with anyio.fail_after(120), pytest.raises(errors.SourceError, match="no answer in time"):
        await read(replace(source, reader=replace(source.reader, request_seconds=0.2)))


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_a_refusal_is_not_tried_again(source: AzureUpdatesSource, emulator: RunningEmulator, status: int) -> None:
    await emulator.set_faults([{"fault": "status", "status": status}])
    with pytest.raises(errors.SourceError, match=f"HTTP {status}"):
        await read(source)
    assert len(await emulator.requests()) == 1


async def test_a_redirect_is_not_followed(source: AzureUpdatesSource, emulator: RunningEmulator) -> None:
    await emulator.set_faults([{"fault": "redirect"}])
    with pytest.raises(errors.SourceError, match=r"redirects to elsewhere\.example"):
        await read(source)
    assert len(await emulator.requests()) == 1


@pytest.mark.parametrize(
    ("rule", "wait"),
    [
        ({"retry_after": 7}, 7.0),
        ({"retry_after": 100000}, 60.0),
        ({"retry_after": 100000, "retry_after_form": "date"}, 60.0),
    ],
)
async def test_the_wait_that_the_server_asks_for_is_kept_up_to_a_bound(
    source: AzureUpdatesSource, emulator: RunningEmulator, sleeper: Sleeper, rule: dict[str, object], wait: float
) -> None:
    await emulator.set_faults([{"fault": "status", "status": 429, "at": [1], **rule}])
    await read(replace(source, reader=replace(source.reader, clock=FixedClock(datetime.now(UTC)))))
    assert sleeper.waits == [wait]


@pytest.mark.parametrize("skew", [timedelta(0), timedelta(hours=2), timedelta(hours=-2)])
async def test_a_date_to_wait_for_is_counted_from_now_by_the_feeds_clock(
    source: AzureUpdatesSource, emulator: RunningEmulator, sleeper: Sleeper, skew: timedelta
) -> None:
    await emulator.set_faults(
        [{"fault": "status", "status": 503, "at": [1], "retry_after": 30, "retry_after_form": "date"}]
    )
    clock = FixedClock(datetime.now(UTC) + skew)
    await read(replace(source, reader=replace(source.reader, clock=clock, max_wait=1000.0)))
    [wait] = sleeper.waits
    assert 20 < wait <= 40


async def test_a_date_that_no_calendar_has_is_as_if_no_wait_was_asked_for(
    source: AzureUpdatesSource, emulator: RunningEmulator, sleeper: Sleeper
) -> None:
    rule = {"fault": "status", "status": 429, "at": [1], "retry_after": 30, "retry_after_form": "endless"}
    await emulator.set_faults([rule])
    await read(source)
    [wait] = sleeper.waits
    assert wait <= source.reader.first_wait


async def test_waits_grow_and_differ(source: AzureUpdatesSource, emulator: RunningEmulator, sleeper: Sleeper) -> None:
    await emulator.set_faults([{"fault": "status", "status": 500}])
    for _ in range(12):
        with pytest.raises(errors.SourceError):
            await read(source)
    firsts, thirds = sleeper.waits[0::3], sleeper.waits[2::3]
    assert 0.5 < max(firsts) <= 1.0
    assert 2.0 < max(thirds) <= 4.0
    assert len(set(sleeper.waits)) == len(sleeper.waits)


@pytest.mark.parametrize("packed", [False, True])
async def test_a_huge_answer_is_not_read(source: AzureUpdatesSource, emulator: RunningEmulator, packed: bool) -> None:
    await emulator.set_faults([{"fault": "huge", "size_bytes": 8 * 2**20, "gzip": packed}])
    with pytest.raises(errors.SourceError, match="more than 1 MiB"):
        await read(replace(source, reader=replace(source.reader, max_body_bytes=2**20)))
    assert len(await emulator.requests()) == 1


async def test_packed_answers_are_read(source: AzureUpdatesSource, emulator: RunningEmulator) -> None:
    await emulator.set_faults([{"fault": "gzip"}])
    assert len((await read(source)).ids) == len(load_world())


@pytest.mark.parametrize("fault", ["duplicate_page", "empty_page"])
async def test_pages_that_do_not_join_are_read_again_from_the_start(
    source: AzureUpdatesSource, emulator: RunningEmulator, fault: str
) -> None:
    await emulator.set_faults([{"fault": fault, "at": [3]}])
    assert set((await read(source)).ids) == {str(record["id"]) for record in load_world()}
    assert [options["$skip"] for options in await get_options(emulator)] == ["0", "99", "198", "0", "99", "198", "297"]


@pytest.mark.parametrize("fault", ["duplicate_page", "empty_page"])
async def test_pages_that_never_join_are_an_error(
    source: AzureUpdatesSource, emulator: RunningEmulator, fault: str
) -> None:
    await emulator.set_faults([{"fault": fault, "at": list(range(2, 30))}])
    with pytest.raises(errors.SourceError, match="changed while it was read"):
        await read(source)


async def test_no_record_is_passed_over_when_earlier_ones_are_withdrawn_meanwhile(
    source: AzureUpdatesSource, emulator: RunningEmulator
) -> None:
    first = sorted(str(record["id"]) for record in load_world())[0]
    await emulator.set_faults([{"fault": "page_shift", "at": [2], "withdraw": [first]}])
    ids = set((await read(source)).ids)
    assert ids == {str(record["id"]) for record in load_world()}


async def test_records_published_meanwhile_are_read_too(source: AzureUpdatesSource, emulator: RunningEmulator) -> None:
    await emulator.set_faults([{"fault": "page_shift", "at": [2], "publish": 3}])
    ids = set((await read(source)).ids)
    published = [change["id"] for change in load_changes() if change["kind"] == "published"]
    assert ids >= {*published[:3], *(str(record["id"]) for record in load_world())}


async def test_a_feed_that_twice_holds_less_than_it_says_is_taken_at_its_records(
    source: AzureUpdatesSource, emulator: RunningEmulator
) -> None:
    await emulator.set_faults([{"fault": "wrong_count", "count_error": 7}])
    reading = await read(source)
    assert Counter(reading.ids) == Counter(2 * [str(record["id"]) for record in load_world()])
    assert reading.totals == {314}


@pytest.mark.parametrize("page_size", [2, 3, 500])
async def test_a_record_that_comes_twice_is_told_and_counts_once(
    source: AzureUpdatesSource, emulator: RunningEmulator, page_size: int
) -> None:
    world = load_world()[:9]
    await emulator.set_world([*world, world[4] | {"title": "Another"}, world[4]])
    pages = [page async for page in replace(source, page_size=page_size).read(None)]
    assert sum(len(page.records) for page in pages) == 11
    assert pages[-1].total == 9
    assert set[str]().union(*(page.repeated for page in pages)) == {str(world[4]["id"])}


async def test_a_feed_that_holds_more_than_it_says_is_read_to_the_end(
    source: AzureUpdatesSource, emulator: RunningEmulator
) -> None:
    await emulator.set_faults([{"fault": "wrong_count", "count_error": -250}])
    assert len(set((await read(source)).ids)) == len(load_world())


async def test_a_feed_without_end_is_given_up(source: AzureUpdatesSource) -> None:
    with pytest.raises(errors.SourceError, match="more than 2 pages"):
        await read(replace(source, max_pages=2))


async def test_a_reading_that_takes_too_long_is_given_up(source: AzureUpdatesSource) -> None:
    with pytest.raises(errors.SourceError, match="took longer"):
        await read(replace(source, total_seconds=-1.0))


async def test_a_feed_that_cannot_be_reached_is_an_error(sleeper: Sleeper) -> None:
    with pytest.raises(errors.SourceError, match="could not be read in 4 tries"):
        await read(AzureUpdatesSource(replace(make_reader("http://127.0.0.1:9"), sleep=sleeper)))
    assert len(sleeper.waits) == MAX_TRIES - 1


@pytest.mark.parametrize(
    "url",
    [
        "http://updates.example/azure",
        "ftp://updates.example/",
        "https://u:p@updates.example/",
        "https://",
        "nonsense",
        "",
    ],
)
def test_an_address_that_is_not_safe_to_read_from_is_refused(url: str) -> None:
    with pytest.raises(errors.ConfigurationError, match="REFDESK_AZURE_UPDATES_URL"):
        AzureUpdatesSource(make_reader(url))


@pytest.mark.parametrize(
    "url", ["https://updates.example/azure", "http://127.0.0.1:8/x", "http://[::1]:8/x", "http://localhost/x"]
)
def test_https_and_this_machine_are_taken(url: str) -> None:
    AzureUpdatesSource(make_reader(url))
