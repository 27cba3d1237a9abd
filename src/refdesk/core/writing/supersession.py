"""Supersession: one document replaces another, and every member of a chain knows its head.

The direct edge is a link, `new supersedes old`, and each superseded document holds in `data` the id that replaced it.
A superseded document keeps its text, its vectors and its history.

Which document heads a chain is kept beside the documents, in metadata of the kind `chain`, so that a correction costs
the same however long its chain is. This is a disjoint-set forest with union by size (Galler and Fischer 1964; Tarjan
1975): each member points towards the root of its chain, in at most as many steps as the size has binary digits, and
the root knows the head. A document without such a record stands alone, or was superseded before such records existed:
then its `data` names its head of that time, which is treated as what it points to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from refdesk.core.writing.tombstones import is_erased
from refdesk.errors import ConflictError, InvalidInputError, NotFoundError, StoreError
from refdesk.model import Link, Metadata, MetadataKey, Reference, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from refdesk.model import Collection, Document, JsonValue
    from refdesk.protocols import Reader, Transaction

SUPERSEDES = "supersedes"
SUPERSEDED_BY = "superseded_by"
HEAD = "head"
KIND = "chain"
_EVERY = 1_000_000
NO_ENTRY = "There is no entry {id}. Use an id that a search or a store returned."


@dataclass(frozen=True, slots=True)
class _Chain:
    """A chain: the document that its members point to, the one at its head, and how many it holds, as far as known."""

    root: str
    head: str
    size: int


def get_successor_id(document: Document) -> str | None:
    """Return the id of the document that directly superseded this one."""
    successor = document.data.get(SUPERSEDED_BY)
    return str(successor) if successor is not None else None


def find_head_id(document: Document) -> str | None:
    """Return the head of the chain that a superseded document holds in its data; its own id if it holds none.

    `None` for a document that is not superseded. See `Candidate.head_id`.
    """
    return str(document.data.get(HEAD) or document.id) if document.state is State.SUPERSEDED else None


async def find_heads(reader: Reader, documents: Iterable[Document]) -> dict[str, str]:
    """Return, by id, the head that stands for each document of one collection now: itself if it was not superseded."""
    every = list(documents)
    noted = {each.id: head for each in every if (head := find_head_id(each)) is not None}
    heads = await find_heads_of(reader, every[0].collection, noted) if noted else {}
    return {each.id: heads.get(each.id, each.id) for each in every}


async def find_heads_of(reader: Reader, collection: Collection, noted: Mapping[str, str]) -> dict[str, str]:
    """Return the same for superseded documents, given the head that each of them holds; see `find_head_id`."""
    return {id: chain.head for id, chain in (await _find_chains(reader, collection, noted)).items()}


async def read_pair(reader: Reader, collection: Collection, old_id: str, new_id: str) -> tuple[Document, Document]:
    """Return both documents.

    Raises:
        InvalidInputError: They are one and the same.
        NotFoundError: One was withdrawn, or is unknown in this collection; ids of other orgs look the same.
    """
    if old_id == new_id:
        raise InvalidInputError("An entry cannot supersede itself: oldId and newId must differ.")
    old, new = await reader.get_documents(collection, [old_id, new_id])
    for id, document in ((old_id, old), (new_id, new)):
        if document is None or is_erased(document):
            raise NotFoundError(NO_ENTRY.format(id=id), unknown=id)
        if document.state is State.WITHDRAWN:
            raise NotFoundError(f"The entry {id} was withdrawn: restore it first.", details={"state": "withdrawn"})
    assert old is not None
    assert new is not None
    return old, new


async def supersede(transaction: Transaction, old: Document, new: Document, now: datetime) -> str:
    """Let `new` take the place of `old`, and return the id of the chain's head. Doing it again changes nothing.

    Raises:
        ConflictError: `old` is already superseded by another one, or `new` is itself superseded, directly or not, by
            `old`, so that a circle would be closed.
    """
    noted = {each.id: find_head_id(each) or each.id for each in (old, new)}
    chains = await _find_chains(transaction, old.collection, noted)
    successor, head = get_successor_id(old), chains[new.id].head
    if successor == new.id:
        return head
    if successor is not None and not await _is_gone(transaction, old.collection, successor):
        raise ConflictError(
            f"{old.id} is already superseded by {successor}; its current entry is {chains[old.id].head}. "
            "Supersede that one instead.",
            details={"headId": chains[old.id].head},
        )
    own = await _list_below(transaction, old) if successor is not None else [old.id]
    if head == old.id or new.id in own:
        raise ConflictError(
            f"{new.id} is itself superseded by {old.id}: undo that first, or a circle would be closed.",
            details={"headId": old.id},
        )
    if successor is not None:
        await _part_chain(transaction, old, successor, own)
        chains = await _find_chains(transaction, old.collection, {old.id: old.id, new.id: noted[new.id]})
        head = chains[new.id].head
    await transaction.put_documents([_retire(old, new.id)])
    await transaction.put_metadata(_unite(old.collection, chains[old.id], chains[new.id]))
    source, target = _refer(old.collection, new.id), _refer(old.collection, old.id)
    await transaction.put_links([Link(old.collection.org, source, SUPERSEDES, target, now)])
    return head


async def undo(transaction: Transaction, document: Document) -> Document:
    """Detach a superseded document, and what it superseded, from its successor; return it as it is now.

    The cost grows with the length of the chain: the records of both parts are written anew.
    """
    own = await _list_below(transaction, document)
    await _part_chain(transaction, document, str(get_successor_id(document)), own)
    data = {name: value for name, value in document.data.items() if name not in (SUPERSEDED_BY, HEAD)}
    restored = replace(document, state=State.CURRENT, version=document.version + 1, data=data)
    await transaction.put_documents([restored])
    return restored


async def _part_chain(transaction: Transaction, document: Document, successor_id: str, own: Sequence[str]) -> None:
    """Split a superseded document and what it superseded (`own`, beginning with it) off into a chain of its own."""
    collection = document.collection
    head = (await find_heads(transaction, [document]))[document.id]
    every, _ = await list_chain(transaction, collection, head, 0, _EVERY)
    rest = [id for id in every if id not in set(own)]
    source, target = _refer(collection, successor_id), _refer(collection, document.id)
    links = await transaction.get_links(collection.org, target)
    await transaction.remove_links([link for link in links if (link.source, link.kind) == (source, SUPERSEDES)])
    await transaction.put_metadata([*_make_chain(collection, own), *_make_chain(collection, rest)])


async def _list_below(reader: Reader, document: Document) -> list[str]:
    """Return the ids of a document and of all that it superseded, directly or not."""
    return (await list_chain(reader, document.collection, document.id, 0, _EVERY))[0]


def _make_chain(collection: Collection, ids: Sequence[str]) -> list[Metadata]:
    """Return the records of a chain whose members are given from its head on."""
    if not ids:
        return []
    value: dict[str, JsonValue] = {"head": ids[0], "size": len(ids)}
    return [Metadata(_key(collection, ids[0]), value), *(point(collection, id, ids[0]) for id in ids[1:])]


async def _is_gone(reader: Reader, collection: Collection, id: str) -> bool:
    """Return whether an entry was withdrawn or erased, so that what it superseded can be superseded anew."""
    [document] = await reader.get_documents(collection, [id])
    return document is None or document.state is State.WITHDRAWN


def point(collection: Collection, id: str, newer_id: str) -> Metadata:
    """Return the record that puts a document, not yet in any chain, into the chain of a newer one."""
    return Metadata(_key(collection, id), {"parent": newer_id})


async def list_chain(
    reader: Reader, collection: Collection, head_id: str, offset: int, limit: int
) -> tuple[list[str], bool]:
    """Return ids of a chain's members from its head on, newer before older, and whether more follow.

    Args:
        offset: How many members to leave out, counted from the head, 0 or more.
        limit: At most this many, 1 or more.
    """
    members, read = [head_id], 0
    while read < len(members) and len(members) <= offset + limit:
        older = await list_superseded(reader, collection, members[read])
        members += [id for id in older if id not in members]
        read += 1
    return members[offset : offset + limit], len(members) > offset + limit


async def list_superseded(reader: Reader, collection: Collection, id: str) -> list[str]:
    """Return the ids of the documents that a document superseded directly, the latest first."""
    own = _refer(collection, id)
    links = await reader.get_links(collection.org, own)
    return [link.target.id for link in reversed(links) if link.kind == SUPERSEDES and link.source == own]


async def _find_chains(reader: Reader, collection: Collection, noted: Mapping[str, str]) -> dict[str, _Chain]:
    """Return the chain of each document; the next step of all documents is read in one round trip."""
    at = {id: id for id in noted}
    known: dict[str, str | _Chain] = {}
    while unread := sorted({id for id in at.values() if id not in known}):
        records = await reader.get_many_metadata([_key(collection, id) for id in unread])
        for id, record in zip(unread, records, strict=True):
            known[id] = _read(id, record, noted.get(id, id))
        at = {start: _follow(id, known) for start, id in at.items()}
    chains = {start: known[id] for start, id in at.items()}
    return {start: chain for start, chain in chains.items() if isinstance(chain, _Chain)}


def _read(id: str, record: Metadata | None, noted: str) -> str | _Chain:
    """Return what a document points to, or the chain if it is a root."""
    if record is None:
        return noted if noted != id else _Chain(id, id, 1)
    if "parent" in record.value:
        return str(record.value["parent"])
    return _Chain(id, str(record.value["head"]), int(str(record.value["size"])))


def _follow(id: str, known: Mapping[str, str | _Chain]) -> str:
    for _ in range(len(known) + 1):
        target = known.get(id)
        if not isinstance(target, str):
            return id
        id = target
    raise StoreError("A chain of supersessions points in a circle: the store is damaged. Restore it from a backup.")


def _unite(collection: Collection, old: _Chain, new: _Chain) -> list[Metadata]:
    large, small = (old, new) if old.size >= new.size else (new, old)
    value: dict[str, JsonValue] = {"head": new.head, "size": old.size + new.size}
    return [point(collection, small.root, large.root), Metadata(_key(collection, large.root), value)]


def _retire(old: Document, new_id: str) -> Document:
    kept = {name: value for name, value in old.data.items() if name != HEAD}
    data: dict[str, JsonValue] = {**kept, SUPERSEDED_BY: new_id}
    return replace(old, state=State.SUPERSEDED, version=old.version + 1, data=data)


def _refer(collection: Collection, id: str) -> Reference:
    return Reference(collection.toolset, id)


def _key(collection: Collection, id: str) -> MetadataKey:
    return MetadataKey(collection.org, KIND, f"{collection.toolset}/{id}")
