"""Help articles say what announcements change of them, when they are found and when they are read."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr

from refdesk.toolsets.azure_updates.records import to_document
from sample_world.salesforce.process import RunningEmulator
from tests.server.conftest import open_http
from tests.server.test_console_cautions import find_cautions
from tests.server.test_console_pages import read
from tests.server.test_keys import bearer, make_key
from tests.server.test_on_record import open_own
from tests.toolsets.impact.test_operations import RECORD, examine

TOLD = "An announcement retires what this relies on from 2027-05-31 on: announcement 499."


def make_article(number: int, title: str, summary: str) -> dict[str, object]:
    version = {"created": "2026-01-01T00:00:00Z", "published": "2026-01-02T00:00:00Z", "url_name": f"Article-{number}"}
    return {"number": number, "versions": [{**version, "title": title, "summary": summary}]}


async def test_an_article_that_an_announcement_makes_wrong_says_so(tmp_path: Path, emulator: RunningEmulator) -> None:
    await emulator.set_articles(
        [
            make_article(1, "Sizing the crawlers", "The crawlers run on twelve Standard_D4s_v3 virtual machines."),
            make_article(2, "Restarting the crawlers", "Press the button of the crawlers for ten seconds."),
        ]
    )
    async with open_own(
        tmp_path,
        salesforce_instance_url=emulator.url,
        salesforce_client_id=emulator.client_id,
        salesforce_client_secret=SecretStr(emulator.client_secret),
    ) as desk:
        async with (await desk.get_base()).knowledge_base.store.transaction() as transaction:
            await transaction.put_documents([to_document(RECORD)])
        await examine(desk)
        key = await make_key(desk, "ann", "acme", ("articles:read", "updates:read"))
        async with open_http(desk, None) as browser:
            browser.headers.update(bearer(key))
            found = (await browser.post("/articles/search", json={"query": "crawlers"})).json()["articles"]
            assert {each["title"]: each.get("caution") for each in found} == {
                "Sizing the crawlers": TOLD,
                "Restarting the crawlers": None,
            }
            id = next(each["id"] for each in found if "caution" in each)
            page = await read(browser, f"/console/read/get_article_by_id?article_id={id}")
            [(said, led)] = find_cautions(page)
            assert said.startswith("An announcement retires what this relies on from 2027-05-31 on.")
            assert led == ["/console/read/search_azure_updates?id=499"]
