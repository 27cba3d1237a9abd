"""Supersession: one document replaces another, and every member of a chain knows its head.

The direct edge is a link, `new supersedes old`. Each superseded document also holds, in `data`, the id that replaced it
(`superseded_by`) and the head of its chain (`head`): a cache, kept true in the transaction that changes the chain.
Whatever is superseded keeps its text, its vectors and its history.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from refdesk.errors import ConflictError, InvalidInputError, NotFoundError
from refdesk.model import Link, Reference, State

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from refdesk.model import Collection, Document, JsonValue
    from refdesk.protocols import Reader, Transaction

SUPERSEDES = "supersedes"
SUPERSEDED_BY = "superseded_by"
HEAD = "head"


def get_head_id(document: Document) -> str:
    """Return the id of the head of a document's chain: its own while nothing supersedes it."""
    return str(document.data.get(HEAD) or document.id)


def find_head_id(document: Document) -> str | None:
    """Return the head of its chain as a superseded document holds it, `None` for any other; see `Candidate.head_id`."""
    return get_head_id(document) if document.state is State.SUPERSEDED else None


def get_successor_id(document: Document) -> str | None:
    """Return the id of the document that directly superseded this one."""
    successor = document.data.get(SUPERSEDED_BY)
    return str(successor) if successor is not None else None


async def read_pair(reader: Reader, collection: Collection, old_id: str, new_id: str) -> tuple[Document, Document]:
    """Return both documents.

    Raises:
        InvalidInputError: They are one and the same.
        NotFoundError: One is unknown in this collection; ids of other orgs look the same.
    """
    if old_id == new_id:
        raise InvalidInputError("An entry cannot supersede itself: oldId and newId must differ.")
    old, new = await reader.get_documents(collection, [old_id, new_id])
    for id, document in ((old_id, old), (new_id, new)):
        if document is None or document.state is State.WITHDRAWN:
            raise NotFoundError(f"There is no entry {id}. Use an id that a search or a store returned.")
    assert old is not None
    assert new is not None
    return old, new


async def supersede(transaction: Transaction, old: Document, new: Document, now: datetime) -> str:
    """Let `new` take the place of `old`, and return the id of the chain's head. Doing it again changes nothing.

    Raises:
        ConflictError: `old` is superseded by another one already, or `new` is itself superseded, directly or not,
            by `old`, which would close a circle.
    """
    successor = get_successor_id(old)
    if successor == new.id:
        return get_head_id(old)
    if successor is not None:
        raise ConflictError(
            f"{old.id} is already superseded by {successor}; its current entry is {get_head_id(old)}. "
            "Supersede that one instead.",
            details={"headId": get_head_id(old)},
        )
    head = get_head_id(new)
    if head == old.id:
        raise ConflictError(
            f"{new.id} is itself superseded by {old.id}: superseding it the other way round would close a circle.",
            details={"headId": old.id},
        )
    older = await find_older(transaction, old)
    await transaction.put_documents([_retire(old, new.id, head), *(_point(member, head) for member in older)])
    source, target = _reference(new), _reference(old)
    await transaction.put_links([Link(old.collection.org, source, SUPERSEDES, target, now)])
    return head


async def find_older(reader: Reader, document: Document) -> list[Document]:
    """Return everything that `document` supersedes, directly or not, nearest first, each once."""
    found: dict[str, Document] = {}
    edge: Sequence[Document] = [document]
    while edge:
        ids = [id for member in edge for id in await _list_superseded(reader, member) if id not in found]
        members = await reader.get_documents(document.collection, list(dict.fromkeys(ids)))
        edge = [member for member in members if member is not None]
        found.update({member.id: member for member in edge})
    return list(found.values())


async def find_newer(reader: Reader, document: Document) -> list[Document]:
    """Return what superseded `document`, and what superseded that, up to the head."""
    found: list[Document] = []
    while (successor := get_successor_id(document)) is not None:
        [member] = await reader.get_documents(document.collection, [successor])
        if member is None:
            break
        found.append(member)
        document = member
    return found


async def _list_superseded(reader: Reader, document: Document) -> list[str]:
    links = await reader.get_links(document.collection.org, _reference(document))
    return [link.target.id for link in links if link.kind == SUPERSEDES and link.source == _reference(document)]


def _retire(old: Document, new_id: str, head: str) -> Document:
    data: dict[str, JsonValue] = {**old.data, SUPERSEDED_BY: new_id, HEAD: head}
    return replace(old, state=State.SUPERSEDED, version=old.version + 1, data=data)


def _point(member: Document, head: str) -> Document:
    return replace(member, version=member.version + 1, data={**member.data, HEAD: head})


def _reference(document: Document) -> Reference:
    return Reference(document.collection.toolset, document.id)
