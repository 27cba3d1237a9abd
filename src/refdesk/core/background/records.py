"""The records of a page, converted or set aside."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from refdesk import errors
from refdesk.core.background.conversions import Conversion
from refdesk.core.background.sync_log import DeadLetter
from refdesk.model import Document

if TYPE_CHECKING:
    from refdesk.model import JsonObject

EXCERPT_CHARACTERS = 2000

NAMELESS = "#"
"""Prefix of the names of set-aside records that have no usable id."""

REPEATED = f"{NAMELESS}again:"
"""Prefix of the names of set-aside records whose id another record has, too; the id follows."""


class InvalidRecordError(errors.SourceError):
    """One record of a source cannot be read; the message says why. It is set aside, and the others are still read."""


ToDocument: TypeAlias = "Callable[[JsonObject], Document]"


@dataclass(slots=True)
class PageRecords:
    """What the records of a page are converted to.

    Attributes:
        last: Conversions by the document's id. Of records that share an id, the last one counts, or the newest if the
            source reported the id as repeated.
        documents: Those of `last` that were converted now.
        by_record: What was converted now, by the digest of the record.
        names: The digests of all records, in their order.
        bad: The records that cannot be read.
    """

    last: dict[str, Conversion] = field(default_factory=dict[str, Conversion])
    documents: dict[str, Document] = field(default_factory=dict[str, Document])
    by_record: dict[str, Conversion] = field(default_factory=dict[str, Conversion])
    names: list[str] = field(default_factory=list[str])
    bad: list[DeadLetter] = field(default_factory=list[DeadLetter])

    def add_known(self, conversion: Conversion) -> None:
        """Add a record whose document the store holds."""
        self.last[conversion.id] = conversion
        self.documents.pop(conversion.id, None)

    def add(self, to_document: ToDocument, record: JsonObject, digest: str, repeated: Set[str]) -> None:
        """Convert a record, or set it aside.

        Args:
            to_document: See `Syncer`.
            record: The record.
            digest: Of the record.
            repeated: See `SourcePage`.
        """
        try:
            document = to_document(record)
        except InvalidRecordError as error:
            self.bad.append(DeadLetter(_name_record(record), error.message, json.dumps(record)[:EXCERPT_CHARACTERS]))
        else:
            self.by_record[digest] = conversion = Conversion.of(document)
            kept = self.last.get(document.id)
            if kept is None or document.id not in repeated or kept.modified_at < document.modified_at:
                self.documents[document.id] = document
                self.last[document.id] = conversion


def tell_repeated(id: str) -> DeadLetter:
    """Return the entry that reports an id that several records of a source have."""
    return DeadLetter(REPEATED + id, "The source gives several records of this id; the newest of them counts.", id)


def is_name(id: str) -> bool:
    """Return whether a set-aside record can be named by its id."""
    return 0 < len(id) <= 200 and id.isprintable() and not id.startswith(NAMELESS)


def _name_record(record: JsonObject) -> str:
    id = record.get("id")
    if isinstance(id, str) and is_name(id):
        return id
    return NAMELESS + hashlib.blake2b(json.dumps(record, sort_keys=True).encode(), digest_size=8).hexdigest()
