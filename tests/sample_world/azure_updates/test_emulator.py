"""The emulator over HTTP: what a client of the release communications API sees."""

from __future__ import annotations

import json
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import cast

import httpx2
import pytest

from sample_world.azure_updates import Record, load_world
from sample_world.azure_updates.emulator import FEED_PATH
from sample_world.azure_updates.process import EmulatorError, RunningEmulator


async def get_page(client: httpx2.AsyncClient, **options: str) -> Record:
    response = await client.get(FEED_PATH, params={f"${name}": value for name, value in options.items()})
    assert response.status_code == 200, response.text
    return cast("Record", response.json())


def get_records(page: Record) -> list[Record]:
    return cast("list[Record]", page["value"])


def get_ids(page: Record) -> list[object]:
    return [record["id"] for record in get_records(page)]


async def crawl(client: httpx2.AsyncClient) -> list[Record]:
    records: list[Record] = []
    while page := get_records(await get_page(client, orderby="id asc", skip=str(len(records)))):
        records += page
    return records


async def test_a_crawl_by_id_gives_the_world_as_it_is(client: httpx2.AsyncClient) -> None:
    assert await crawl(client) == sorted(load_world(), key=lambda record: str(record["id"]))


async def test_real_records_come_back_equal(
    emulator: RunningEmulator, client: httpx2.AsyncClient, shared_data: Path
) -> None:
    text = (shared_data / "azure-updates" / "archive.json").read_text(encoding="utf-8")
    records = cast("list[Record]", json.loads(text)["items"])
    await emulator.set_world(records)
    assert await crawl(client) == sorted(records, key=lambda record: str(record["id"]))


async def test_the_envelope_has_the_keys_of_a_captured_page(client: httpx2.AsyncClient, shared_data: Path) -> None:
    text = (shared_data / "azure-updates" / "page-2025-12-16.json").read_text(encoding="utf-8")
    captured = cast("Record", json.loads(text))
    page = await get_page(client, count="true", top="50")
    assert list(page) == list(captured)
    assert list(get_records(page)[0]) == list(get_records(captured)[0])


async def test_the_facets_have_the_shape_of_a_captured_answer(client: httpx2.AsyncClient, shared_data: Path) -> None:
    captured = json.loads((shared_data / "azure-updates" / "facets-2025-03.json").read_text(encoding="utf-8"))
    page = (await client.get(FEED_PATH, params={"includeFacets": "true"})).json()
    assert {facet["name"] for facet in page["facets"]} == {facet["name"] for facet in captured["facets"]}
    ours, theirs = (
        {facet["name"]: list(facet["values"][0]) for facet in answer["facets"]} for answer in (page, captured)
    )
    assert ours == theirs


async def test_one_record_is_read_by_its_path_and_not_by_the_key_form(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    record = load_world()[5]
    found = (await client.get(f"{emulator.url}/{record['id']}")).json()
    assert found.pop("@odata.context").endswith("#Azure/$entity")
    assert found == record
    for address in (f"{emulator.url}('{record['id']}')", f"{emulator.url}/unknown", f"{emulator.url}s"):
        response = await client.get(address)
        assert response.status_code == 404
        assert response.json()["error"].keys() == {"code", "message"}


async def test_a_slash_at_the_end_of_the_address_changes_nothing(client: httpx2.AsyncClient) -> None:
    assert (await client.get(f"{FEED_PATH}/")).content == (await client.get(FEED_PATH)).content


async def test_a_wrong_request_is_answered_with_code_and_message(client: httpx2.AsyncClient) -> None:
    response = await client.get(FEED_PATH, params={"$filter": "colour eq 'red'"})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "BadRequest"
    assert "colour" in response.json()["error"]["message"]


async def test_a_plus_sign_that_was_not_encoded_is_a_wrong_request(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    response = await client.get(f"{emulator.url}?$filter=modified%20ge%202026-05-01T00:00:00+00:00")
    assert response.status_code == 400


async def test_a_delta_holds_what_was_modified_at_the_watermark_or_later(client: httpx2.AsyncClient) -> None:
    watermark = "2026-05-19T16:00:11.9172033Z"
    reached = await get_page(client, filter=f"modified ge {watermark}", count="true")
    passed = await get_page(client, filter=f"modified gt {watermark}", count="true")
    assert cast("int", reached["@odata.count"]) - cast("int", passed["@odata.count"]) >= 25


async def test_the_log_tells_what_was_asked_and_how_it_was_answered(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    await emulator.set_faults([{"fault": "status", "status": 502, "at": [2]}])
    await get_page(client, top="1", orderby="id asc")
    await client.get(FEED_PATH, headers={"User-Agent": "refdesk-test"})
    first, second = await emulator.requests()
    assert (first["number"], first["path"]) == (1, "/releasecommunications/api/v2/azure")
    assert first["options"] == {"$top": "1", "$orderby": "id asc"}
    assert (first["status"], first["fault"]) == (200, None)
    assert (second["number"], second["status"], second["fault"]) == (2, 502, "status")
    assert cast("dict[str, str]", second["headers"])["user-agent"] == "refdesk-test"
    await emulator.forget_requests()
    assert await emulator.requests() == []


async def test_the_world_can_be_replaced_while_it_is_served(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    await emulator.set_world(day=2)
    assert await crawl(client) == sorted(load_world(2), key=lambda record: str(record["id"]))
    await emulator.set_world([{"id": "1", "title": 5}])
    assert await crawl(client) == [{"id": "1", "title": 5}]
    await emulator.set_world([])
    assert await crawl(client) == []


async def test_nonsense_on_the_control_side_is_refused_and_changes_nothing(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    with pytest.raises(EmulatorError, match="meteor"):
        await emulator.set_faults([{"fault": "meteor"}])
    with pytest.raises(EmulatorError, match="list of records"):
        await emulator.set_world(cast("list[Record]", ["no record"]))
    with pytest.raises(EmulatorError, match="days 1 and 2"):
        await emulator.set_world(day=3)
    assert (await get_page(client, count="true"))["@odata.count"] == len(load_world())


async def test_too_many_requests_say_when_to_come_back_in_seconds_or_as_a_date(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    rule = {"fault": "status", "status": 429, "retry_after": 90}
    await emulator.set_faults([{**rule, "at": [1]}, {**rule, "at": [2], "retry_after_form": "date"}])
    seconds, date, fine = [await client.get(FEED_PATH, params={"$top": "1"}) for _ in range(3)]
    assert (seconds.status_code, seconds.headers["retry-after"]) == (429, "90")
    wait = parsedate_to_datetime(date.headers["retry-after"]) - parsedate_to_datetime(date.headers["date"])
    assert date.status_code == 429
    assert 88 <= wait.total_seconds() <= 92
    assert fine.status_code == 200


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
async def test_a_failing_service_answers_with_a_page_of_html(
    emulator: RunningEmulator, client: httpx2.AsyncClient, status: int
) -> None:
    await emulator.set_faults([{"fault": "status", "status": status}])
    response = await client.get(FEED_PATH)
    assert response.status_code == status
    assert response.headers["content-type"].startswith("text/html")
    assert response.text.startswith("<!DOCTYPE html>")


async def test_a_reset_connection_gives_no_answer(emulator: RunningEmulator, client: httpx2.AsyncClient) -> None:
    await emulator.set_faults([{"fault": "reset", "times": 1}])
    with pytest.raises(httpx2.ReadError):
        await client.get(FEED_PATH)
    assert (await client.get(FEED_PATH, params={"$top": "1"})).status_code == 200
    assert [request["status"] for request in await emulator.requests()] == [None, 200]


async def test_a_truncated_body_ends_before_its_length(emulator: RunningEmulator, client: httpx2.AsyncClient) -> None:
    await emulator.set_faults([{"fault": "truncate"}])
    with pytest.raises(httpx2.RemoteProtocolError, match="without sending complete message body"):
        await client.get(FEED_PATH)


async def test_a_hanging_request_lasts_until_the_client_gives_up(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    await emulator.set_faults([{"fault": "hang", "at": [1]}])
    with pytest.raises(httpx2.ReadTimeout):
        await client.get(FEED_PATH, timeout=0.3)
    assert (await client.get(FEED_PATH, params={"$top": "1"})).status_code == 200


async def test_a_dripping_body_is_whole_in_the_end(emulator: RunningEmulator, client: httpx2.AsyncClient) -> None:
    plain = await client.get(FEED_PATH, params={"$top": "3"})
    await emulator.set_faults([{"fault": "drip", "chunk_bytes": 300, "delay_seconds": 0.002}])
    assert (await client.get(FEED_PATH, params={"$top": "3"})).content == plain.content


async def test_a_dripping_body_keeps_its_reader_waiting_for_each_piece(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    await emulator.set_faults([{"fault": "drip", "chunk_bytes": 300, "delay_seconds": 60}])
    async with client.stream("GET", FEED_PATH, timeout=httpx2.Timeout(20, read=1)) as response:
        pieces = response.aiter_raw()
        assert len(await anext(pieces)) == 300
        with pytest.raises(httpx2.ReadTimeout):
            await anext(pieces)


async def test_a_compressed_answer_is_the_same_once_opened(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    plain = await client.get(FEED_PATH, params={"$top": "3"})
    await emulator.set_faults([{"fault": "gzip"}])
    packed = await client.get(FEED_PATH, params={"$top": "3"}, headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == plain.content


@pytest.mark.parametrize("packed", [False, True])
async def test_a_huge_body_is_valid_and_at_least_as_large_as_asked(
    emulator: RunningEmulator, client: httpx2.AsyncClient, packed: bool
) -> None:
    plain = await get_page(client, top="1")
    await emulator.set_faults([{"fault": "huge", "size_bytes": 3_000_000, "gzip": packed}])
    response = await client.get(FEED_PATH, params={"$top": "1"})
    assert len(response.content) >= 3_000_000
    assert response.json() == plain
    assert (int(response.headers.get("content-length", "3000000")) < 50_000) == packed


async def test_invalid_json_comes_under_a_matching_length(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    await emulator.set_faults([{"fault": "invalid_json"}])
    response = await client.get(FEED_PATH)
    assert response.status_code == 200
    with pytest.raises(json.JSONDecodeError):
        response.json()


async def test_a_wrong_content_type_comes_with_status_200(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    await emulator.set_faults([{"fault": "wrong_content_type"}])
    response = await client.get(FEED_PATH)
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8")


async def test_a_redirect_names_another_host(emulator: RunningEmulator, client: httpx2.AsyncClient) -> None:
    await emulator.set_faults([{"fault": "redirect", "location": "http://trap.example/x"}])
    response = await client.get(FEED_PATH)
    assert (response.status_code, response.headers["location"]) == (302, "http://trap.example/x")


async def test_a_duplicate_page_repeats_the_page_before(emulator: RunningEmulator, client: httpx2.AsyncClient) -> None:
    first = get_ids(await get_page(client, orderby="id asc"))
    await emulator.set_faults([{"fault": "duplicate_page", "at": [1]}])
    assert get_ids(await get_page(client, orderby="id asc", skip="100")) == first
    assert not set(get_ids(await get_page(client, orderby="id asc", skip="100"))) & set(first)


async def test_an_empty_page_keeps_its_count_and_link(emulator: RunningEmulator, client: httpx2.AsyncClient) -> None:
    await emulator.set_faults([{"fault": "empty_page"}])
    page = await get_page(client, count="true")
    assert get_records(page) == []
    assert page["@odata.count"] == len(load_world())
    assert "@odata.nextLink" in page


async def test_a_wrong_count_is_off_by_what_was_asked(emulator: RunningEmulator, client: httpx2.AsyncClient) -> None:
    await emulator.set_faults([{"fault": "wrong_count", "count_error": -4}])
    assert (await get_page(client, count="true"))["@odata.count"] == len(load_world()) - 4
    assert "@odata.count" not in await get_page(client)


async def test_publishing_during_a_crawl_by_date_shifts_the_pages(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    await emulator.set_faults([{"fault": "page_shift", "at": [2], "publish": 3}])
    first = get_ids(await get_page(client))
    second = get_ids(await get_page(client, skip="100"))
    assert second[:3] == first[-3:]
    assert len(await crawl(client)) == len(load_world()) + 3


async def test_withdrawing_during_a_crawl_by_id_makes_the_next_page_skip_a_record(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    ids = [record["id"] for record in await crawl(client)]
    await emulator.set_faults([{"fault": "page_shift", "at": [2], "withdraw": [ids[0]]}])
    first = get_ids(await get_page(client, orderby="id asc"))
    second = get_ids(await get_page(client, orderby="id asc", skip="100"))
    assert first == ids[:100]
    assert second == ids[101:201]


async def test_given_records_are_published_during_a_crawl(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    news = {"id": "999999", "title": "News", "modified": "2026-11-09T00:00:00.0000000Z"}
    await emulator.set_faults([{"fault": "page_shift", "at": [1], "publish": [news]}])
    assert get_records(await get_page(client, top="1")) == [news]
