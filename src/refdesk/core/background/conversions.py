"""Which document each record of a source became, so that an unchanged record is not converted again.

If the source recognises an unchanged page, its records are not even read: which records it holds is remembered too.

All of this is derived, like an index: it may be lost or out of date. A remembered conversion is valid only for the same
version of the converter, and only while the store holds exactly the document that it produced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, cast

from refdesk.model import SHARED_ORG, Metadata, MetadataKey

if TYPE_CHECKING:
    from refdesk.model import Document, JsonObject, JsonValue
    from refdesk.protocols import Reader, Transaction
    from refdesk.sources import SourcePage

KIND = "sync_conversions"


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a sync must know of the document that a record is converted to.

    Attributes:
        digest: The document's own, which leaves out its version.
    """

    id: str
    digest: str
    modified_at: datetime

    @classmethod
    def of(cls, document: Document) -> Conversion:
        """Return what is remembered of a document just converted."""
        return cls(document.id, document.digest, document.modified_at)


@dataclass(frozen=True, slots=True)
class KnownPage:
    """A page whose records were converted.

    Attributes:
        outline: What its source wants to be told about it at the next reading.
        records: The digests of its records, in their order.
    """

    outline: JsonValue
    records: tuple[str, ...]


@dataclass(slots=True)
class Conversions:
    """The conversions by one version of a converter, by `digest_record` of the record.

    Attributes:
        version: Of the converter; with `None` nothing is remembered.
        pages: The pages of the last complete reading, by name.
        seen: Those of the present reading.
    """

    version: str | None
    known: dict[str, Conversion] = field(default_factory=dict[str, Conversion])
    pages: dict[str, KnownPage] = field(default_factory=dict[str, KnownPage])
    seen: dict[str, KnownPage] = field(default_factory=dict[str, KnownPage])
    is_changed: bool = False

    @property
    def outlines(self) -> dict[str, JsonValue]:
        """What the source wants to be told about the remembered pages, by name."""
        return {name: page.outline for name, page in self.pages.items()}

    def find(self, record: str, digests: Mapping[str, str]) -> Conversion | None:
        """Return the conversion of a record if the store still holds its document.

        Args:
            record: Digest of the record.
            digests: Of the documents in the store, by id.
        """
        conversion = self.known.get(record)
        return conversion if conversion is not None and digests.get(conversion.id) == conversion.digest else None

    def find_page(self, name: str | None, digests: Mapping[str, str]) -> KnownPage | None:
        """Return a page if the store still holds the document of each of its records; see `find`."""
        page = self.pages.get(name) if name is not None else None
        is_current = page is not None and all(self.find(record, digests) is not None for record in page.records)
        return page if is_current else None

    def note_page(self, page: SourcePage, records: Sequence[str]) -> None:
        """Remember a page by the digests of its records, if each of them was converted."""
        if page.name is not None and all(each in self.known for each in records):
            self.seen[page.name] = KnownPage(page.outline, tuple(records))

    def note(self, found: Mapping[str, Conversion]) -> None:
        """Remember further conversions, by the digest of the record."""
        if self.version is not None and found:
            self.known |= found
            self.is_changed = True

    def keep_only(self, digests: Mapping[str, str]) -> None:
        """Forget conversions whose document the store no longer holds."""
        current = {name: each for name, each in self.known.items() if digests.get(each.id) == each.digest}
        self.is_changed |= len(current) < len(self.known)
        self.known = current

    def keep_seen_pages(self) -> None:
        """Remember the pages of this reading, which was complete, in place of the earlier ones."""
        self.is_changed |= self.seen != self.pages
        self.pages = self.seen


def digest_record(record: JsonObject) -> str:
    """Return the hex digest of a record with its fields in the order they came."""
    return hashlib.blake2b(json.dumps(record).encode(), digest_size=16).hexdigest()


async def read_conversions(reader: Reader, toolset: str, version: str | None) -> Conversions:
    """Return what is remembered of this version of the converter."""
    record = await reader.get_metadata(_key(toolset)) if version is not None else None
    if record is None or record.value["version"] != version:
        return Conversions(version)
    known = cast("Mapping[str, tuple[str, str, str]]", record.value["known"])
    pages = cast("Mapping[str, tuple[JsonValue, list[str]]]", record.value.get("pages", {}))
    return Conversions(
        version,
        {name: Conversion(id, digest, datetime.fromisoformat(when)) for name, (id, digest, when) in known.items()},
        {name: KnownPage(outline, tuple(records)) for name, (outline, records) in pages.items()},
    )


async def write_conversions(transaction: Transaction, toolset: str, conversions: Conversions) -> None:
    """Keep them for the next sync, unless nothing has changed."""
    if conversions.version is None or not conversions.is_changed:
        return
    known: dict[str, JsonValue] = {
        name: [each.id, each.digest, each.modified_at.isoformat()] for name, each in conversions.known.items()
    }
    pages: dict[str, JsonValue] = {name: [each.outline, each.records] for name, each in conversions.pages.items()}
    value: dict[str, JsonValue] = {"version": conversions.version, "known": known, "pages": pages}
    await transaction.put_metadata([Metadata(_key(toolset), value)])


def _key(toolset: str) -> MetadataKey:
    return MetadataKey(SHARED_ORG, KIND, toolset)
