"""The real feed as it was captured: conversion, syncing and the drift between captures."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from refdesk.kit.markdown import to_markdown
from refdesk.model import Document, State
from refdesk.toolsets.azure_updates.models import COLLECTION
from refdesk.toolsets.azure_updates.records import BASE_URL, to_document
from sample_world.azure_updates.process import RunningEmulator
from tests.toolsets.azure_updates.samples import Desk

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
    for tag in ("Retirements", "Features", "Feature"):
        answer = await desk.ask(filters={"tags": [tag]}, limit=100)
        assert answer["total"] == sum(tag in record["tags"] for record in archive)
        assert all(tag in result["tags"] for result in answer["results"])
    assert (await desk.ask(query="OAuth authentication"))["total"] > 0


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


async def test_daily_captures_replay_to_the_last_one(
    desk: Desk, emulator: RunningEmulator, archive: Records, folder: Path
) -> None:
    steps: list[dict[str, Any]] = json.loads((folder / "timeline.json").read_text(encoding="utf-8"))
    final = {record["id"]: record for record in archive}
    [edit] = [change for step in steps[1:] for change in step["changed"]]
    id = edit["id"]
    state = {known: final[known] for known in steps[0]["ids"] if known in final}
    for step in steps[1:]:
        state |= {added: final[added] for added in step["added"] if added in final}
        is_edited = any(change["id"] == id for change in step["changed"])
        if id in step["added"] or is_edited:
            state[id] = final[id] | edit["after" if is_edited else "before"]
            await emulator.set_world(list(state.values()))
            await desk.syncer.sync(full=True)
            desk.clock.advance(timedelta(days=1))
    digests = await desk.knowledge_base.store.get_digests(COLLECTION)
    documents = {document.id: document for document in await get_documents(desk, digests)}
    assert {known: document.data["record"] for known, document in documents.items()} == state
    history = await desk.knowledge_base.get_history(COLLECTION, id)
    texts = [cast("dict[str, Any]", revision.document.data["record"])["description"] for revision in history]
    assert texts == [edit["before"]["description"], edit["after"]["description"]]
    assert history[1].recorded_at - history[0].recorded_at == timedelta(days=1)
    assert {document.version for known, document in documents.items() if known != id} == {1}
