"""A small help desk of our own, and how a test reaches it."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, cast

from refdesk.toolsets.salesforce_knowledge.articles import SalesforceSource
from refdesk.toolsets.salesforce_knowledge.configuration import SalesforceSettings
from sample_world.salesforce.ids import make_id
from sample_world.salesforce.process import RunningEmulator

Json = dict[str, Any]


def version(title: str, **more: object) -> Json:
    at = "2025-03-01T08:00:00Z"
    return {
        "title": title,
        "url_name": "-".join(word for word in title.split() if word.isalnum()),
        "created": at,
        "published": at,
        **more,
    }


def article(number: int, *versions: Json, type: str = "FAQ") -> Json:
    return {"number": number, "type": type, "versions": list(versions)}


RESET = version(
    "Reset a forgotten password",
    summary="What to do when the password is lost.",
    published="2025-06-02T09:30:00Z",
    sections={
        "Symptoms__c": "<p>Sign-in says <b>wrong password</b>.</p>",
        "Environment__c": "Portal 4.2\nany browser",
        "Resolution__c": "<ol><li>Open <a href='https://portal.example/reset'>the reset page</a></li>"
        "<li>Follow it</li></ol><script>evil()</script><table><tr><td>Code</td><td>E17</td></tr></table>",
    },
)
RESET_GERMAN = version(
    "Vergessenes Passwort neu setzen", language="de", sections={"Resolution__c": "<p>Seite öffnen</p>"}
)
PRINTER_OLD = version(
    "Printer queue stuck", number=1, status="Archived", superseded=True, archived="2025-05-01T08:00:00Z"
)
PRINTER_NEW = version("Printer queue stuck again", number=2, sections={"Procedure__c": "<p>Restart the spooler</p>"})
DRAFT = version("Secret draft about passwords", status="Draft", published=None)
ARCHIVED = version("Password rules of 2019", status="Archived", archived="2025-02-01T08:00:00Z")
BARE = version("Empty password article", summary=None)

ARTICLES = [
    article(1, RESET, RESET_GERMAN, type="How_To"),
    article(2, PRINTER_OLD, PRINTER_NEW),
    article(3, DRAFT),
    article(4, ARCHIVED),
    article(5, BARE, type="Troubleshooting"),
    *(article(number, version(f"Holiday calendar {number}", summary="Days off.")) for number in range(10, 40)),
]


def version_id(number: int, language: int = 0, of: int = 1, family: int = 0) -> str:
    """The id that the emulator gives a version: language 0 is English, 1 German."""
    return make_id(f"ka{family}", number * 1000 + language * 100 + of)


def article_id(number: int) -> str:
    return make_id("kA0", number)


def write_articles(folder: Path) -> Path:
    path = folder / "articles.json"
    path.write_text(json.dumps(ARTICLES), encoding="utf-8")
    return path


def settings_for(emulator: RunningEmulator, **more: object) -> SalesforceSettings:
    given: Json = {
        "instance_url": emulator.url,
        "client_id": emulator.client_id,
        "client_secret": emulator.client_secret,
        "api_version": "v68.0",
    }
    return SalesforceSettings(**cast("Json", {**given, **more}))


async def no_wait(seconds: float) -> None:
    del seconds


@asynccontextmanager
async def open_source(
    emulator: RunningEmulator, *, now: Callable[[], float] = time.monotonic, **more: object
) -> AsyncGenerator[SalesforceSource]:
    """A source that does not wait between tries."""
    settings = settings_for(emulator, **more)
    async with SalesforceSource(settings, sleep=no_wait, chance=Random(1), now=now) as source:
        yield source


async def get_requests(emulator: RunningEmulator) -> list[Json]:
    """What the emulator was asked, oldest first."""
    return [cast("Json", dict(request)) for request in await emulator.requests()]


def get_resources(requests: list[Json]) -> list[str]:
    """The last part of each path."""
    return [str(request["path"]).rpartition("/")[2] for request in requests]


def counted(requests: list[Json], path: str) -> int:
    return sum(path in request["path"] for request in requests)
