"""Edits an entry: in one step, stores a new version that supersedes it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from refdesk.core.operations import Effects, Operation, Route
from refdesk.core.writing import idempotency, supersession
from refdesk.core.writing.idempotency import Token
from refdesk.core.writing.tombstones import is_erased
from refdesk.errors import ConflictError, InvalidInputError, NotFoundError
from refdesk.kit.wire import Message, Text, TokenUuid, Uuid
from refdesk.model import Reference, State
from refdesk.toolsets.knowledge import TOOLSET_NAME, models, versions
from refdesk.toolsets.knowledge.keeping import put_new
from refdesk.toolsets.knowledge.models import Instant, StoreInput, Tags
from refdesk.toolsets.knowledge.operations import (
    NAMING,
    NO_SUCH_ENTRY,
    NOT_AUTHOR,
    STORE_KNOWLEDGE,
    WRITE_SCOPE,
    require_owner,
)

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.model import Document, JsonObject, Principal
    from refdesk.protocols import Reader, Transaction

_KEPT = ("title", "body", "tags", "confidence")


class EditInput(Message):
    """What `edit_knowledge` takes: what is left out stays as it is."""

    id: Uuid = Field(description="The entry's.")
    title: Annotated[Text, Field(min_length=1, max_length=200)] | SkipJsonSchema[None] = Field(
        None, description="In one line."
    )
    body: Annotated[Text, Field(min_length=1, max_length=32000)] | SkipJsonSchema[None] = Field(
        None, description="In full, as text or Markdown."
    )
    tags: Tags | SkipJsonSchema[None] = Field(None, description="All it is to have; an empty list for none.")
    confidence: Annotated[int, Field(ge=0, le=100)] | SkipJsonSchema[None] = Field(None, description="In percent.")
    expires_at: Instant | SkipJsonSchema[None] = Field(None, description="When it ceases to hold; in the future.")
    never_expires: bool = Field(False, description="Take its expiry away.")
    client_token: TokenUuid | SkipJsonSchema[None] = Field(
        None, description="A new UUID for each edit: repeating the call with it within 60 s edits nothing twice."
    )


class EditOutput(Message):
    """What `edit_knowledge` answers: the new version is committed; its vector follows in the background."""

    id: str = Field(description="The new version's.")
    old_id: str = Field(description="The entry's that it supersedes.")
    head_id: str = Field(description="What holds now.")
    created_at: datetime
    replayed: bool = Field(description="Whether this is the first answer to the same `clientToken` again.")
    duplicate_of: str | SkipJsonSchema[None] = Field(None, description="Another entry that says the same; else absent.")


async def edit_knowledge(context: Context, asked: EditInput) -> EditOutput:
    """Store a new version of an entry and let it supersede the entry, or repeat the answer given for the same token."""
    base, token = context.knowledge_base, _get_token(context.principal, asked)
    answer = await idempotency.answer_once(base.scratchpad, token, base.clock, lambda: _edit(context, asked, token))
    return EditOutput.model_validate(answer)


async def _edit(context: Context, asked: EditInput, token: Token | None) -> JsonObject:
    base, principal = context.knowledge_base, context.principal
    now = base.clock.now()
    async with base.store.transaction() as transaction:
        answer = await idempotency.recall(transaction, token, context.asked_at or now) if token is not None else None
        if answer is not None:
            return {**answer, "replayed": True}
        old = await _read_current(transaction, context, asked.id)
        entry = _merge(old, asked)
        if entry.expires_at is not None and entry.expires_at <= now:
            raise InvalidInputError("expiresAt must be in the future; neverExpires takes away one that is over.")
        new = models.to_document(entry, id=base.identifiers.new(), org=principal.org, author=principal.agent, now=now)
        new = versions.mark(new, old)
        require_owner(context, old, new)
        same = await put_new(transaction, base, new, now)
        await _carry_links(transaction, old, new)
        head = await supersession.supersede(transaction, old, new, now)
        same = same if same != old.id else None  # only its tags, confidence or expiry changed
        output = EditOutput(
            id=new.id, old_id=old.id, head_id=head, created_at=now, replayed=False, duplicate_of=same
        ).model_dump(mode="json", by_alias=True, exclude_none=True)
        if token is not None:
            await idempotency.remember(transaction, token, output, now)
    base.note_change(new)
    return output


async def _read_current(reader: Reader, context: Context, id: str) -> Document:
    [document] = await reader.get_documents(models.get_collection(context.principal.org), [id])
    if document is None or is_erased(document):
        raise NotFoundError(supersession.NO_ENTRY.format(id=id), unknown=id)
    if document.state is State.WITHDRAWN:
        raise ConflictError(f"The entry {id} was withdrawn: restore_knowledge first.", details={"state": "withdrawn"})
    if document.state is State.SUPERSEDED:
        head = (await supersession.find_heads(reader, [document]))[id]
        raise ConflictError(f"{id} is superseded; what holds now is {head}. Edit that.", details={"headId": head})
    return document


def _merge(old: Document, asked: EditInput) -> StoreInput:
    """Return the entry as it should become.

    Raises:
        InvalidInputError: Nothing of it would change.
    """
    if asked.never_expires and asked.expires_at is not None:
        raise InvalidInputError("Give expiresAt or neverExpires, not both.")
    held = {
        "title": old.title,
        "body": old.body,
        "tags": models.get_tags(old),
        "confidence": models.get_confidence(old),
        "expires_at": models.get_expiry(old),
    }
    given = {name: value for name in (*_KEPT, "expires_at") if (value := getattr(asked, name)) is not None}
    wanted: dict[str, Any] = {**held, **given, **({"expires_at": None} if asked.never_expires else {})}
    if wanted == held:
        raise InvalidInputError("Nothing would change: give a title, body, tags, confidence or expiry that differs.")
    # Each field was validated as it came in, either now or when the entry was stored.
    return StoreInput.model_construct(**wanted, task_ref=None, client_token=None)


async def _carry_links(transaction: Transaction, old: Document, new: Document) -> None:
    """Copy the old version's links to tasks and other things to the new version."""
    source, target = Reference(TOOLSET_NAME, old.id), Reference(TOOLSET_NAME, new.id)
    links = await transaction.get_links(old.collection.org, source)
    carried = [
        replace(link, source=target) if link.source == source else replace(link, target=target)
        for link in links
        if link.kind != supersession.SUPERSEDES
    ]
    if carried:
        await transaction.put_links(carried)


def _get_token(principal: Principal, asked: EditInput) -> Token | None:
    if asked.client_token is None:
        return None
    payload = asked.model_dump(mode="json", exclude={"client_token"})
    return Token(principal.org, principal.agent, "k.edit", asked.client_token, payload)


EDIT_KNOWLEDGE = Operation(
    name="edit_knowledge",
    title="Edit knowledge",
    description=(
        "Store a new version of an entry and let it supersede the entry, in one step: what is left out stays as it "
        "was, links too. restore_knowledge of the old one undoes it."
    ),
    input=EditInput,
    output=EditOutput,
    handler=NAMING.offering(edit_knowledge),
    scopes=frozenset({WRITE_SCOPE}),
    effects=Effects(read_only=False, idempotent=False),
    route=Route("POST", "/knowledge/{id}/edit"),
    errors={
        **STORE_KNOWLEDGE.errors,
        "INVALID_INPUT": "An argument is malformed or out of range, nothing would change, or expiresAt is over.",
        "NOT_FOUND": NO_SUCH_ENTRY,
        "PERMISSION_DENIED": NOT_AUTHOR,
        "CONFLICT": (
            "The entry is superseded (details name the head) or withdrawn; or the clientToken was used for another "
            "request less than 60 seconds ago, or the first request with it is still being done."
        ),
    },
    examples=({"id": "01930000-0000-7000-8000-000000000001", "body": "Above that a director approves."},),
)
