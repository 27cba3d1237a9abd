"""Which document each record of a source became, so that an unchanged record is not converted again.

Derived, like an index: it may be lost or out of date. A remembered conversion counts only for the same version of the
converter, and while the store holds the very document that it gave.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, cast

from refdesk.model import SHARED_ORG, Metadata, MetadataKey

if TYPE_CHECKING:
    from refdesk.model import Document, JsonObject, JsonValue
    from refdesk.protocols import Reader, Transaction

KIND = "sync_conversions"


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a sync must know of the document that a record gives.

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


@dataclass(slots=True)
class Conversions:
    """The conversions by one version of a converter, by `digest_record` of the record.

    Attributes:
        version: Of the converter; `None` remembers nothing.
    """

    version: str | None
    known: dict[str, Conversion] = field(default_factory=dict[str, Conversion])
    is_changed: bool = False

    def find(self, record: str, digests: Mapping[str, str]) -> Conversion | None:
        """Return the conversion of a record if the store still holds what it gave.

        Args:
            record: Digest of the record.
            digests: Of the documents in the store, by id.
        """
        conversion = self.known.get(record)
        return conversion if conversion is not None and digests.get(conversion.id) == conversion.digest else None

    def note(self, found: Mapping[str, Conversion]) -> None:
        """Remember further conversions, by the digest of the record."""
        if self.version is not None and found:
            self.known |= found
            self.is_changed = True

    def keep_only(self, digests: Mapping[str, str]) -> None:
        """Forget conversions to what the store no longer holds."""
        current = {name: each for name, each in self.known.items() if digests.get(each.id) == each.digest}
        self.is_changed |= len(current) < len(self.known)
        self.known = current


def digest_record(record: JsonObject) -> str:
    """Return the hex digest of a record with its fields in the order they came."""
    return hashlib.blake2b(json.dumps(record).encode(), digest_size=16).hexdigest()


async def read_conversions(reader: Reader, toolset: str, version: str | None) -> Conversions:
    """Return what is remembered of this version of the converter."""
    record = await reader.get_metadata(_key(toolset)) if version is not None else None
    if record is None or record.value["version"] != version:
        return Conversions(version)
    known = cast("Mapping[str, tuple[str, str, str]]", record.value["known"])
    return Conversions(
        version,
        {name: Conversion(id, digest, datetime.fromisoformat(when)) for name, (id, digest, when) in known.items()},
    )


async def write_conversions(transaction: Transaction, toolset: str, conversions: Conversions) -> None:
    """Remember them for the next sync, unless nothing is new."""
    if conversions.version is None or not conversions.is_changed:
        return
    known: dict[str, JsonValue] = {
        name: [each.id, each.digest, each.modified_at.isoformat()] for name, each in conversions.known.items()
    }
    await transaction.put_metadata([Metadata(_key(toolset), {"version": conversions.version, "known": known})])


def _key(toolset: str) -> MetadataKey:
    return MetadataKey(SHARED_ORG, KIND, toolset)
