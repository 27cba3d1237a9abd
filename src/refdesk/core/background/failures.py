"""Records of documents that could not be embedded: by which model, why, how often tried, and when to try again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.model import Collection, MetadataKey, State

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from refdesk.model import Document, Metadata
    from refdesk.protocols import Store

FAILURE_KIND = "embedding_failure"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a document has no vectors of a model; a document that one model refuses may be accepted by another."""

    collection: Collection
    id: str
    model: str
    reason: str
    attempts: int
    text_digest: str
    retry_at: datetime | None

    @property
    def is_final(self) -> bool:
        """Whether it is set aside until somebody retries or its text changes."""
        return self.retry_at is None

    def is_of(self, document: Document, model: str) -> bool:
        """Whether it is the present text of the document that failed, by this model."""
        return (self.text_digest, self.model) == (document.text_digest, model)


def make_key(collection: Collection, id: str) -> MetadataKey:
    """Return the key under which the failure of a document is stored."""
    return MetadataKey(collection.org, FAILURE_KIND, f"{collection.toolset}/{id}")


def read_failure(record: Metadata) -> Failure:
    """Return the failure that a record holds."""
    value = record.value
    return Failure(
        collection=Collection(record.key.org, str(value["toolset"])),
        id=str(value["id"]),
        model=str(value.get("model", "")),
        reason=str(value["reason"]),
        attempts=int(str(value["attempts"])),
        text_digest=str(value["text_digest"]),
        retry_at=record.due_at,
    )


async def keep_current(store: Store, failures: Iterable[Failure], model: str) -> list[Failure]:
    """Return the failures of documents that are not withdrawn, and still have the text that the model refused."""
    by_collection: dict[Collection, list[Failure]] = {}
    for failure in failures:
        by_collection.setdefault(failure.collection, []).append(failure)
    current: list[Failure] = []
    for collection, own in by_collection.items():
        documents = await store.get_documents(collection, [failure.id for failure in own])
        for failure, document in zip(own, documents, strict=True):
            if document is not None and document.state is not State.WITHDRAWN and failure.is_of(document, model):
                current.append(failure)
    return current
