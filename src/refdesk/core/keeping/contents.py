"""What a store holds, in counts and one digest: two stores of any engine hold the same if these are equal."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from refdesk.core.writing.tombstones import is_erased

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.model import EmbeddedPassage, EmbeddingModel, Link, Metadata, Revision
    from refdesk.protocols import DocumentVectors

_DIGESTS = 2**128


@dataclass(frozen=True, slots=True)
class Contents:
    """How much there is of each kind, and a digest of all of it that does not depend on the order."""

    documents: int = 0
    versions: int = 0
    vectors: int = 0
    links: int = 0
    records: int = 0
    acts: int = 0
    digest: int = 0

    def add(self, other: Contents) -> Contents:
        """Return both together."""
        sums = {name: value + getattr(other, name) for name, value in asdict(self).items()}
        return Contents(**{**sums, "digest": sums["digest"] % _DIGESTS})


def summarise_document(history: Sequence[Revision], vectors: DocumentVectors) -> Contents:
    """Return what a document adds to the contents of a store."""
    document = history[-1].document
    place = [document.collection.org, document.collection.toolset]
    digest = sum(make_digest([*place, each.document.digest, each.document.version, _stamp(each)]) for each in history)
    digest += sum(make_digest([*place, document.id, *_write_vectors(*each)]) for each in vectors)
    return Contents(1, len(history), sum(len(passages) for _, passages in vectors), digest=digest)


def _stamp(revision: Revision) -> str:
    # A tombstone gets a new instant in the target; when it was erased is in its data.
    return "" if is_erased(revision.document) else revision.recorded_at.isoformat()


def _write_vectors(model: EmbeddingModel, passages: Sequence[EmbeddedPassage]) -> list[object]:
    pieces = [[each.start, each.end, each.vector.astype(np.float16).tobytes().hex()] for each in passages]
    return [model.name, model.dimensions, sorted(pieces, key=str)]


def write_link(link: Link) -> tuple[str, ...]:
    """Return the key of a link, followed by when it was made."""
    ends = (link.source.toolset, link.source.id, link.kind, link.target.toolset, link.target.id)
    return (link.org, *ends, link.created_at.isoformat())


def write_metadata(record: Metadata) -> list[object]:
    """Return a record in a form that can be compared."""
    key = record.key
    return [key.org, key.kind, key.name, record.value, None if record.due_at is None else record.due_at.isoformat()]


def make_digest(value: object) -> int:
    """Return the digest of a value; those of many are added up."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())


def tell(contents: Contents) -> str:
    """Return it as a message shows it."""
    numbers = {name: value for name, value in asdict(contents).items() if name != "digest"}
    return ", ".join(f"{value} {name}" for name, value in numbers.items()) + f" ({contents.digest:032x})"
