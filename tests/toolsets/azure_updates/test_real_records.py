"""The real feed as it was captured: conversion, syncing and the drift between captures."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.tokens import count_tokens
from refdesk.core.context import Context
from refdesk.kit.markdown import to_markdown
from refdesk.model import Document, State
from refdesk.server import ceiling
from refdesk.server.answers import to_text
from refdesk.toolsets.azure_updates.change_models import ChangesInput
from refdesk.toolsets.azure_updates.changes import list_changes
from refdesk.toolsets.azure_updates.models import COLLECTION
from refdesk.toolsets.azure_updates.operations import SEARCH_UPDATES
from refdesk.toolsets.azure_updates.products import find_products
from refdesk.toolsets.azure_updates.records import BASE_URL, to_document
from sample_world.azure_updates.process import RunningEmulator
from tests.toolsets.azure_updates.conftest import NOW
from tests.toolsets.azure_updates.samples import Desk, ask, make_context

Records = list[dict[str, Any]]


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    return shared_data / "azure-updates"


@pytest.fixture(scope="module")
def archive(folder: Path) -> Records:
    return json.loads((folder / "archive.json").read_text(encoding="utf-8"))["items"]


@pytest.fixture(scope="module")
def december(folder: Path) -> Records:
    return json.loads((folder / "page-2025-12-16.json").read_text(encoding="utf-8"))["value"]


async def get_documents(desk: Desk, ids: Iterable[str]) -> list[Document]:
    found = await desk.knowledge_base.store.get_documents(COLLECTION, list(ids))
    return [document for document in found if document is not None]


def test_every_description_becomes_markdown_without_a_stray_tag(archive: Records) -> None:
    for record in archive:
        text = to_markdown(record["description"], BASE_URL)
        assert text
        assert not re.search(r"</?[a-zA-Z][^>]*>|<!--|&nbsp;|\n{3}|[\u200b-\u200d\ufeff]", text)
        assert not re.search(r"\]\((?!https?://|mailto:|tel:)", text)
        assert not re.search(r"[^ ] \n|[ \t]+$", text)
        assert "data:image" not in text


def test_every_description_keeps_its_words(archive: Records) -> None:
    for record in archive:
        plain = re.sub(r"<[^>]*>", " ", record["description"])
        words = set(re.findall(r"[a-z]{4,}", re.sub(r"&[a-z]+;", " ", plain).lower()))
        missing = words - set(re.findall(r"[a-z]{4,}", to_markdown(record["description"], BASE_URL).lower()))
        # Tags inside a word tear it apart in the plain reading.
        assert len(missing) <= max(8, len(words) // 3)


def test_all_records_are_converted_within_seconds_of_cpu(archive: Records) -> None:
    start = time.process_time()
    for record in archive:
        to_document(record)
    assert time.process_time() - start < 6


async def test_all_records_sync_and_a_second_sync_writes_nothing(
    desk: Desk, emulator: RunningEmulator, archive: Records
) -> None:
    await emulator.set_world(archive)
    assert (await desk.syncer.sync()).added == len(archive) == 961
    assert (await desk.syncer.sync(full=True)).written == 0
    answer = await desk.ask(filters={"tags": ["Retirements"]}, limit=100)
    assert answer["total"] == sum("Retirements" in record["tags"] for record in archive)
    assert all("Retirements" in result["tags"] for result in answer["results"])
    assert (await desk.ask(query="OAuth authentication"))["total"] > 0


@pytest.fixture(scope="module")
async def real_updates(archive: Records, anyio_backend: str) -> Context:
    """A desk that holds the real records, for tests that only read."""
    assert anyio_backend == "asyncio"
    return await make_context(archive)


async def test_what_engineers_ask_the_real_records(real_updates: Context, archive: Records) -> None:
    features = [record["id"] for record in archive if {"Feature", "Features"} & set(record["tags"])]
    for tag in ("Feature", "Features"):
        assert (await ask(real_updates, filters={"tags": [tag]}, limit=1))["total"] == len(features)
    by_name = (await ask(real_updates, query="API Management", semantic=False))["results"][:10]
    assert len([each for each in by_name if "API Management" in each["products"]]) >= 9
    assert (await ask(real_updates, query="APIM", limit=1))["total"] >= 19
    answer = await ask(real_updates, query="kuber", limit=50)
    assert answer["understood"]["kuber"].split()[0] == "kubernetes"
    held = (f"{record['title']} {record['description']} {record['products']}".lower() for record in archive)
    assert answer["total"] >= sum("kubernetes" in text for text in held) - 2
    either = {"products": ["Azure Functions", "API Management"], "matchAny": ["products"]}
    assert (await ask(real_updates, filters=either, limit=1))["total"] == sum(
        bool({"Azure Functions", "API Management"} & set(record["products"])) for record in archive
    )


async def test_the_real_retirements_have_products_days_and_an_order(real_updates: Context) -> None:
    answer = await ask(real_updates, filters={"availabilityRing": "Retirement"}, sortBy="retirement:asc", limit=100)
    found = answer["results"]
    assert answer["total"] == len(found) == 93
    assert all(result["products"] for result in found)
    assert sum("titleDate" in result for result in found) >= 49
    assert {result["id"] for result in found if "datesDiffer" in result} == {"569535", "501174"}
    months = [
        min(each["date"] for each in result["availabilities"] if each["ring"] == "Retirement") for result in found
    ]
    assert months == sorted(months)
    first = await ask(real_updates, sortBy="retirement:asc", limit=93)
    assert [result["id"] for result in first["results"]] == [result["id"] for result in found]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"query": "AKS"}, {"sortBy": "retirement:asc"}, {"limit": 100}],
    ids=["browsing", "a word", "retirements", "as many as may be"],
)
async def test_an_answer_of_real_records_stays_below_the_ceiling_and_says_how_to_read_on(
    real_updates: Context, arguments: dict[str, Any]
) -> None:
    whole = await ask(real_updates, **arguments)
    shown = ceiling.shorten(whole, SEARCH_UPDATES.shortening, arguments)
    assert count_tokens(to_text(whole)) > ceiling.MOST_TOKENS > count_tokens(to_text(shown))
    assert "Fetch an update by `id` to read it whole." in shown["truncated"]["message"]
    left = len(shown["results"])
    assert left == len(whole["results"]) or shown["truncated"]["next"] == {"offset": left}


def test_words_of_real_titles_name_products_as_the_feed_does(archive: Records) -> None:
    pairs = [(set(find_products(record["title"])), set(record["products"])) for record in archive if record["products"]]
    right, named = sum(len(found & given) for found, given in pairs), sum(len(found) for found, _ in pairs)
    assert right / named > 0.8
    assert right / sum(len(given) for _, given in pairs) > 0.68


async def test_the_silent_edits_since_december_are_found_with_every_earlier_version_kept(
    desk: Desk, emulator: RunningEmulator, archive: Records, december: Records
) -> None:
    later = {record["id"]: record for record in archive}
    await emulator.set_world(december)
    assert (await desk.syncer.sync()).added == len(december)
    # What the later capture does not hold was withdrawn or is older than it: it stays out of this replay.
    now = [later[record["id"]] for record in december if record["id"] in later]
    await emulator.set_world(now)
    report = await desk.syncer.sync(full=True)
    edited = [record["id"] for record in december if record["id"] in later and later[record["id"]] != record]
    retagged = [record for record in december if record["tags"] != later.get(record["id"], record)["tags"]]
    assert len(retagged) >= 40
    assert (report.changed, report.withdrawn) == (len(edited), len(december) - len(now))
    documents = await get_documents(desk, [record["id"] for record in december])
    assert [each.data["record"] for each in documents if each.state is State.CURRENT] == [
        later[record["id"]] for record in december if record["id"] in later
    ]
    for record in december:
        [first, *_] = await desk.knowledge_base.get_history(COLLECTION, record["id"])
        assert first.document.data["record"] == record


async def test_after_every_full_sync_of_the_timeline_the_desk_holds_what_the_feed_does(
    desk: Desk, emulator: RunningEmulator, archive: Records, folder: Path
) -> None:
    steps: list[dict[str, Any]] = json.loads((folder / "timeline.json").read_text(encoding="utf-8"))
    final = {record["id"]: record for record in archive}
    [edit] = [change for step in steps[1:] for change in step["changed"]]
    syncer = replace(desk.syncer, converter_version="one")
    state: dict[str, dict[str, Any]] = {known: final[known] for known in steps[0]["ids"] if known in final}
    changes = 0
    for number, step in enumerate(steps):
        if number:
            added = {known: final[known] for known in step["added"] if known in final}
            changed = {each["id"]: final[each["id"]] | each["after"] for each in step["changed"]}
            if not (added or changed or step["removed"]):
                continue
            state |= added | changed
            state = {known: record for known, record in state.items() if known not in step["removed"]}
            if edit["id"] in added:
                state[edit["id"]] = final[edit["id"]] | edit["before"]
            changes += len(added) + len(changed)
        await emulator.set_world(list(state.values()))
        report = await syncer.sync(full=True)
        assert (report.withheld, report.missing, report.quarantined) == (0, 0, 0)
        documents = await get_documents(desk, await desk.knowledge_base.store.get_digests(COLLECTION))
        assert {each.id: each.data["record"] for each in documents} == state
        desk.clock.advance(timedelta(days=1))
    history = await desk.knowledge_base.get_history(COLLECTION, edit["id"])
    texts = [cast("dict[str, Any]", revision.document.data["record"])["description"] for revision in history]
    assert texts == [edit["before"]["description"], edit["after"]["description"]]
    told = await list_changes(
        desk.context, ChangesInput.model_validate({"dateFrom": f"{NOW + timedelta(days=1):%Y-%m-%d}"})
    )
    assert told.total == changes
