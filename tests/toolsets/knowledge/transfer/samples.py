"""Entries in one line, and an export, import and comparison in one more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

from refdesk.core.clock import FixedClock
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.writing import supersession
from refdesk.model import Document, Link, Reference, State
from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.knowledge import models
from refdesk.toolsets.knowledge.transfer.entries import Entry, EntryLink, refer, to_document, to_links
from refdesk.toolsets.knowledge.transfer.files import export_entries, import_entries
from refdesk.toolsets.knowledge.transfer.reports import ExportFormat, ImportFormat, ImportReport, ProblemKind
from tests.core.fakes import NOW

FORMATS: Sequence[ExportFormat] = ("jsonl", "markdown")


def make_id(number: int) -> str:
    return f"00000000-0000-7000-9000-{number:012x}"


def make_entry(number: int, **changes: object) -> Entry:
    at = NOW + timedelta(seconds=number)
    values: dict[str, object] = {
        "id": make_id(number),
        "title": f"Entry {number}",
        "body": f"Text of {number}.",
        "author": "ann",
        "created_at": at,
        "modified_at": at,
    }
    successor = changes.pop("superseded_by", None)
    if successor is not None:
        values |= {"superseded_by": make_id(cast("int", successor)), "superseded_at": at, "state": State.SUPERSEDED}
    return Entry(**(values | changes))  # pyright: ignore[reportArgumentType]


def link_to(number: int, kind: str = "references", at: datetime = NOW) -> EntryLink:
    return EntryLink(kind, refer(make_id(number)), is_incoming=False, created_at=at)


def link_from_task(task: str, kind: str = "produced", at: datetime = NOW) -> EntryLink:
    return EntryLink(kind, Reference("task", task), is_incoming=True, created_at=at)


def make_base() -> KnowledgeBase:
    clock = FixedClock(NOW)
    return KnowledgeBase(MemoryStore(clock), clock=clock)


async def put(base: KnowledgeBase, org: str, entries: Sequence[Entry]) -> None:
    """Store entries as if each had been stored and superseded by a caller."""
    async with base.store.transaction() as transaction:
        for entry in entries:
            await transaction.put_documents([to_document(entry, org)])
            await transaction.put_links(to_links(entry, org))
            if entry.superseded_by is not None:
                record = supersession.point(models.get_collection(org), entry.id, entry.superseded_by)
                await transaction.put_metadata([record])
            if entry.superseded_by is not None and entry.superseded_at is not None:
                ends = refer(entry.superseded_by), refer(entry.id)
                await transaction.put_links([Link(org, ends[0], "supersedes", ends[1], entry.superseded_at)])


async def read_all(base: KnowledgeBase, org: str, numbers: Iterable[int]) -> list[Document]:
    documents = await base.store.get_documents(models.get_collection(org), [make_id(number) for number in numbers])
    return [document for document in documents if document is not None]


async def export(base: KnowledgeBase, org: str, target: Path, format: ExportFormat) -> dict[str, bytes]:
    """Export and return what was written, by file name."""
    await export_entries(base, org, target, format)
    return read_files(target)


def read_files(path: Path) -> dict[str, bytes]:
    """Return what is in a file, or in each file of a folder, by name."""
    return (
        {"": path.read_bytes()} if path.is_file() else {each.name: each.read_bytes() for each in sorted(path.iterdir())}
    )


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def bring_in(
    base: KnowledgeBase,
    source: Path,
    format: ImportFormat,
    *,
    org: str = "acme",
    author: str = "ivo",
    dry: bool = False,
) -> ImportReport:
    return await import_entries(base, org, author, source, format, dry)


def list_messages(report: ImportReport, kind: ProblemKind) -> list[str]:
    return [f"{problem.place}: {problem.message}" for problem in report.problems if problem.kind == kind]


async def read_heads(base: KnowledgeBase, org: str, numbers: Iterable[int]) -> list[str]:
    """Return the id of what holds now for each entry."""
    documents = await read_all(base, org, numbers)
    heads = await supersession.find_heads(base.store, documents)
    return [heads[document.id] for document in documents]
