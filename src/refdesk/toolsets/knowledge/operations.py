"""The knowledge toolset's operations: store, search, supersede, get."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from refdesk.core.context import Context
from refdesk.core.operations import READS, Effects, Operation, Route, Shortening, Unanswered
from refdesk.core.writing import idempotency, supersession
from refdesk.core.writing.idempotency import Token
from refdesk.core.writing.tombstones import is_erased
from refdesk.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    PermissionDeniedError,
)
from refdesk.kit.paging import explain_end_of_text
from refdesk.kit.unanswered import tell_unanswered
from refdesk.kit.unknown_ids import Naming
from refdesk.model import Link, Reference, State
from refdesk.protocols import OutdatedError
from refdesk.toolsets.knowledge import READ_SCOPE, TOOLSET_NAME, basis, models, replacing, versions
from refdesk.toolsets.knowledge.keeping import list_read, put_new
from refdesk.toolsets.knowledge.models import (
    GetInput,
    KnowledgeEntry,
    LifeInput,
    LifeOutput,
    SearchInput,
    SearchOutput,
    StoreInput,
    StoreOutput,
    SupersedeInput,
    SupersedeOutput,
    TaskReference,
)
from refdesk.toolsets.knowledge.options import get_options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.model import Collection, Document, JsonObject, Principal
    from refdesk.protocols import Reader, Transaction

WRITE_SCOPE = "knowledge:write"
WRITE_OTHERS_SCOPE = "knowledge:write_others"
SUPERSEDE_OWN_SCOPE = "knowledge:supersede_own"
TASK = "task"
NAMING = Naming(models.get_collection, READ_SCOPE)


async def store_knowledge(context: Context, entry: StoreInput) -> StoreOutput:
    """Store an entry, or repeat the answer for the one that the same `clientToken` stored."""
    base, token = context.knowledge_base, _get_token(context.principal, entry)
    if token is None:
        return await _store(context, entry, token)

    async def act() -> JsonObject:
        return _dump(await _store(context, entry, token))

    return StoreOutput.model_validate(await idempotency.answer_once(base.scratchpad, token, base.clock, act))


async def _store(context: Context, entry: StoreInput, token: Token | None) -> StoreOutput:
    base, principal = context.knowledge_base, context.principal
    now = base.clock.now()
    document = models.to_document(entry, id=base.identifiers.new(), org=principal.org, author=principal.agent, now=now)
    while True:
        with suppress(OutdatedError):
            return await _put(context, entry, token, document, now)


async def _put(
    context: Context, entry: StoreInput, token: Token | None, document: Document, now: datetime
) -> StoreOutput:
    base = context.knowledge_base
    async with base.store.transaction() as transaction:
        answer, read = None, list_read(base, document)
        await transaction.expect([document], read if token is None else [token.key, *read])
        if token is not None:
            answer = await idempotency.recall(transaction, token, context.asked_at or now)
        if answer is not None:
            return StoreOutput.model_validate({**answer, "replayed": True})
        if entry.expires_at is not None and entry.expires_at <= now:
            raise InvalidInputError("expiresAt must be in the future: leave it out for what does not expire.")
        output = _to_stored(document, await put_new(transaction, base, document, now, read))
        if entry.task_ref is not None:
            await transaction.put_links([_link_task(entry.task_ref, document, now)])
        if token is not None:
            await idempotency.remember(transaction, token, _dump(output), now)
    base.note_change(document)
    return output


def _to_stored(document: Document, same: str | None) -> StoreOutput:
    return StoreOutput(
        id=document.id,
        embedding_status="pending",
        created_at=document.created_at,
        replayed=False,
        duplicate_of=same,
    )


async def search_knowledge(context: Context, asked: SearchInput) -> SearchOutput:
    """Find entries by hybrid search."""
    from refdesk.core.search import matching  # not at the start
    from refdesk.toolsets.knowledge import counting, search

    base, collection = context.knowledge_base, models.get_collection(context.principal.org)
    results, semantic = await search.search(base, collection, asked)
    notice = matching.get_notice([result.match for result in results], semantic)
    unknown = None if results else await counting.find_unknown_tags(context, asked.tags)
    return SearchOutput(notice=notice, results=results, query=asked.query, unknown_tags=unknown)


async def supersede_knowledge(context: Context, pair: SupersedeInput) -> SupersedeOutput:
    """Let one entry supersede another."""
    base, principal = context.knowledge_base, context.principal
    async with base.store.transaction() as transaction:
        old, new = await supersession.read_pair(
            transaction, models.get_collection(principal.org), pair.old_id, pair.new_id
        )
        require_owner(context, old, new)
        try:
            head = await supersession.supersede(transaction, old, new, base.clock.now())
        except ConflictError as error:
            raise await replacing.offer_head(transaction, context, pair, error) from None
        note = await replacing.tell_expired(transaction, new, head, base.clock.now())
    return SupersedeOutput(old_id=pair.old_id, new_id=pair.new_id, head_id=head, note=note)


async def withdraw_knowledge(context: Context, asked: LifeInput) -> LifeOutput:
    """Withdraw an entry from view; it can be restored until it is erased."""
    base, collection = context.knowledge_base, models.get_collection(context.principal.org)
    async with base.store.transaction() as transaction:
        document = await _read_whatever_its_state(transaction, collection, asked.id)
        _require_author(context, document)
        if document.state is not State.WITHDRAWN:
            document = replace(document, state=State.WITHDRAWN, version=document.version + 1)
            await transaction.put_documents([document])
        output = await _tell_life(transaction, document)
        if replaced := await _list_hidden(transaction, document):
            output = output.model_copy(update={"note": _STILL_HIDDEN.format(", ".join(replaced))})
    base.note_change(document)
    return output


async def _list_hidden(reader: Reader, document: Document) -> list[str]:
    """Return the entries that this one replaced directly, which nobody finds now that this one is withdrawn too."""
    ids = await supersession.list_superseded(reader, document.collection, document.id)
    found = await reader.get_documents(document.collection, ids)
    return [each.id for each in found if each is not None and each.state is State.SUPERSEDED]


async def restore_knowledge(context: Context, asked: LifeInput) -> LifeOutput:
    """Bring a withdrawn entry back, or let a superseded one hold again. Doing it again changes nothing.

    Of the versions of an entry that edits made, only one holds: restoring one withdraws the later one that held, or the
    one of another edit, and supersedes the earlier one.
    """
    base, collection = context.knowledge_base, models.get_collection(context.principal.org)
    async with base.store.transaction() as transaction:
        document, edit = await _read_whatever_its_state(transaction, collection, asked.id), None
        if document.state is State.WITHDRAWN:
            document, edit = await _bring_back(transaction, context, document)
        elif document.state is State.SUPERSEDED:
            successor_id = supersession.get_successor_id(document) or document.id
            [successor] = await transaction.get_documents(collection, [successor_id])
            require_owner(context, document, successor or document)
            edit = await versions.withdraw_later(transaction, document)
            document = await supersession.undo(transaction, document)
            edit = await _take_place(transaction, context, document) or edit
        output = await _tell_life(transaction, document)
    base.note_change(document)
    if edit is None:
        return output
    base.note_change(edit)
    return output.model_copy(update={"withdrawn_edit": edit.id})


async def _bring_back(
    transaction: Transaction, context: Context, document: Document
) -> tuple[Document, Document | None]:
    _require_author(context, document)
    superseded = supersession.get_successor_id(document) is not None
    document = replace(document, state=State.SUPERSEDED if superseded else State.CURRENT, version=document.version + 1)
    await transaction.put_documents([document])
    return document, None if superseded else await _take_place(transaction, context, document)


async def _take_place(transaction: Transaction, context: Context, document: Document) -> Document | None:
    now = context.knowledge_base.clock.now()
    return await versions.take_place(transaction, document, now, lambda old, new: require_owner(context, old, new))


async def _read_whatever_its_state(reader: Reader, collection: Collection, id: str) -> Document:
    [document] = await reader.get_documents(collection, [id])
    if document is None:
        raise NotFoundError(supersession.NO_ENTRY.format(id=id), unknown=id)
    if is_erased(document):
        raise NotFoundError(f"The entry {id} was erased, for good: search_knowledge finds what there is.")
    return document


async def _tell_life(reader: Reader, document: Document) -> LifeOutput:
    head = (await supersession.find_heads(reader, [document]))[document.id]
    return LifeOutput.model_validate({"id": document.id, "state": document.state.value, "headId": head})


def _require_author(context: Context, document: Document) -> None:
    principal = context.principal
    if principal.agent != document.author and WRITE_OTHERS_SCOPE not in principal.scopes:
        raise PermissionDeniedError(f"You did not write this entry; ask for the scope {WRITE_OTHERS_SCOPE}.")


def require_owner(context: Context, old: Document, new: Document) -> None:
    """Refuse unless the caller may let one entry replace the other, or undo that."""
    principal = context.principal
    if get_options(context.knowledge_base).protects_authors or SUPERSEDE_OWN_SCOPE in principal.scopes:
        _require_author(context, old)
    elif principal.agent not in {old.author, new.author} and WRITE_OTHERS_SCOPE not in principal.scopes:
        raise PermissionDeniedError(
            "You wrote neither of these entries. Store your own replacement and supersede with that, "
            f"or ask for the scope {WRITE_OTHERS_SCOPE}."
        )


async def get_knowledge(context: Context, asked: GetInput) -> KnowledgeEntry:
    """Read a whole entry, its chain and its links."""
    from refdesk.kit.cautions import get_cautions  # not at the start

    base, org = context.knowledge_base, context.principal.org
    collection = models.get_collection(org)
    [document] = await base.store.get_documents(collection, [asked.id])
    if document is None:
        raise NotFoundError(supersession.NO_ENTRY.format(id=asked.id), unknown=asked.id)
    if document.state is State.WITHDRAWN:
        raise _explain_withdrawn(document)
    expiry = models.get_expiry(document)
    history = await base.get_history(collection, document.id)
    heads = await supersession.find_heads(base.store, [document])
    members, has_older = await _read_chain(base, collection, heads[document.id], asked)
    links = await base.store.get_links(org, _reference(document))
    cautions = await get_cautions(base.store, org, TOOLSET_NAME, [document.id])
    cautions.append(await basis.find_gone_head(base.store, document, heads[document.id]))
    cautions.append(await basis.find_outdated(base.store, document, base.clock.now()))
    return KnowledgeEntry(
        id=document.id,
        title=document.title,
        body=document.body[asked.offset :],
        notice=explain_end_of_text(document.body, asked.offset),
        tags=models.get_tags(document),
        confidence=models.get_confidence(document),
        author=document.author,
        source=str(document.data["source"]),
        created_at=document.created_at,
        updated_at=history[-1].recorded_at,
        expires_at=expiry,
        is_expired=expiry is not None and expiry <= base.clock.now(),
        superseded_by=supersession.get_successor_id(document),
        head_id=heads[document.id],
        chain=[models.to_chain_member(member) for member in members],
        next_chain_offset=asked.chain_offset + models.CHAIN_PAGE if has_older else None,
        task_refs=_list_tasks(links),
        links=[models.to_entry_link(link, document) for link in links[-models.MOST_LINKS :]],
        omitted_links=len(links) - models.MOST_LINKS if len(links) > models.MOST_LINKS else None,
        caution=" ".join(filter(None, cautions)) or None,
        embedding_status=(await base.get_embedding_statuses(collection, [document.id]))[0],
    )


def _explain_withdrawn(document: Document) -> NotFoundError:
    if is_erased(document):
        message = f"The entry {document.id} was erased, for good: search_knowledge finds what there is."
        return NotFoundError(message, details={"state": "erased"})
    message = f"The entry {document.id} was withdrawn; restore_knowledge brings it back."
    return NotFoundError(message, details={"state": "withdrawn"})


async def _read_chain(
    base: KnowledgeBase, collection: Collection, head_id: str, asked: GetInput
) -> tuple[list[Document], bool]:
    """Return the requested part of the chain, the first superseded entry first, and whether there are older ones."""
    ids, has_older = await supersession.list_chain(
        base.store, collection, head_id, asked.chain_offset, models.CHAIN_PAGE
    )
    members = await base.get(collection, ids[::-1])
    return [member for member in members if member is not None], has_older


def _list_tasks(links: Sequence[Link]) -> list[TaskReference]:
    return [
        TaskReference.model_validate({"taskId": link.source.id, "kind": link.kind})
        for link in links
        if link.source.toolset == TASK
    ]


def _link_task(task: TaskReference, document: Document, now: datetime) -> Link:
    return Link(document.collection.org, Reference(TASK, task.task_id), task.kind, _reference(document), now)


def _reference(document: Document) -> Reference:
    return Reference(TOOLSET_NAME, document.id)


def _get_token(principal: Principal, entry: StoreInput) -> Token | None:
    if entry.client_token is None:
        return None
    payload = entry.model_dump(mode="json", exclude={"client_token"})
    return Token(principal.org, principal.agent, "k.store", entry.client_token, payload)


def _dump(output: StoreOutput) -> JsonObject:
    return output.model_dump(mode="json", by_alias=True, exclude_none=True)


_STILL_HIDDEN = "What it replaced stays out of sight; to let that hold again, restore_knowledge: {}."
NO_SUCH_ENTRY = "No entry has this id, as far as the caller may know."
_UNANSWERED = {
    "UNAUTHENTICATED": "The request carries no valid credential.",
    "STORE_UNAVAILABLE": "The storage engine failed; try again, a store with the same clientToken.",
}
_LACKS_READ = {"PERMISSION_DENIED": f"The credential lacks the scope {READ_SCOPE}.", **_UNANSWERED}
_LACKS_WRITE = {"PERMISSION_DENIED": f"The credential lacks the scope {WRITE_SCOPE}.", **_UNANSWERED}

STORE_KNOWLEDGE = Operation(
    name="store_knowledge",
    title="Store knowledge",
    description=(
        "Write down what was learned. Search first: if an entry is out of date, store the new one, then "
        "supersede_knowledge. `duplicateOf` says which entry says the same: withdraw_knowledge one of them. Send a "
        "clientToken whenever you might have to repeat the call."
    ),
    input=StoreInput,
    output=StoreOutput,
    handler=store_knowledge,
    scopes=frozenset({WRITE_SCOPE}),
    effects=Effects(read_only=False, idempotent=False),
    route=Route("POST", "/knowledge"),
    errors={
        "INVALID_INPUT": "An argument is missing, malformed or out of range, or expiresAt is not in the future.",
        "CONFLICT": (
            "The clientToken was used for another request less than 60 seconds ago, or the first request with it is "
            "still being done."
        ),
        "QUOTA_EXCEEDED": "The org or the agent may store no more; details say how much is used.",
        **_LACKS_WRITE,
    },
    examples=(
        {"title": "Card payments fail on Sundays 02:00 UTC", "body": "The bank's gateway is down for maintenance."},
        {
            "title": "Refund limit is 500 EUR",
            "body": "Above that a team lead must approve. Source: policy of March.",
            "tags": ["refunds", "policy"],
            "confidence": 95,
            "taskRef": {"taskId": "T-1042", "kind": "produced"},
        },
    ),
)


def _find_unanswered(asked: SearchInput, answer: SearchOutput) -> Unanswered | None:
    if asked.tags or asked.min_score:
        return None
    return tell_unanswered(asked.query, [TOOLSET_NAME], ((TOOLSET_NAME, each.match) for each in answer.results))


SEARCH_KNOWLEDGE = Operation(
    name="search_knowledge",
    title="Search knowledge",
    description=(
        "Find what agents wrote, by keyword and meaning, before you answer or store; get_knowledge reads it whole."
    ),
    input=SearchInput,
    output=SearchOutput,
    handler=search_knowledge,
    find_unanswered=_find_unanswered,
    scopes=frozenset({READ_SCOPE}),
    effects=READS,
    route=Route("POST", "/knowledge/search"),
    errors={"INVALID_INPUT": "An argument is missing, malformed or out of range.", **_LACKS_READ},
    shortening=Shortening(
        "results", ("snippet",), "get_knowledge reads an entry whole; a lower `limit` keeps snippets."
    ),
    examples=({"query": "why do card payments fail at night"}, {"query": "refund limit", "tags": ["policy"]}),
)

SUPERSEDE_KNOWLEDGE = Operation(
    name="supersede_knowledge",
    title="Supersede knowledge",
    description=(
        "Let a new entry replace an old one, which is kept: searches in its words find the new. "
        "restore_knowledge undoes it."
    ),
    input=SupersedeInput,
    output=SupersedeOutput,
    handler=NAMING.offering(supersede_knowledge),
    scopes=frozenset({WRITE_SCOPE}),
    effects=Effects(read_only=False, idempotent=True),
    route=Route("POST", "/knowledge/{oldId}/supersede"),
    errors={
        "INVALID_INPUT": "An id is no UUID, or both are the same.",
        "NOT_FOUND": NO_SUCH_ENTRY,
        **_LACKS_WRITE,
        "PERMISSION_DENIED": f"The caller wrote neither entry and lacks {WRITE_OTHERS_SCOPE}, or lacks {WRITE_SCOPE}.",
        "CONFLICT": "The old entry is superseded by another one (details name the head), or a circle would close.",
    },
    examples=({"oldId": "01930000-0000-7000-8000-000000000001", "newId": "01930000-0000-7000-8000-000000000002"},),
    may_offer=lambda _: True,
)

NOT_AUTHOR = f"The caller did not write the entry and lacks {WRITE_OTHERS_SCOPE}, or lacks {WRITE_SCOPE}."

WITHDRAW_KNOWLEDGE = Operation(
    name="withdraw_knowledge",
    title="Withdraw knowledge",
    description=(
        "Take back an entry of yours that is a mistake or says what another does. restore_knowledge undoes it."
    ),
    input=LifeInput,
    output=LifeOutput,
    handler=NAMING.offering(withdraw_knowledge),
    scopes=frozenset({WRITE_SCOPE}),
    effects=Effects(read_only=False, idempotent=True, destructive=True),
    route=Route("POST", "/knowledge/{id}/withdraw"),
    errors={
        "INVALID_INPUT": "The id is no UUID.",
        "NOT_FOUND": NO_SUCH_ENTRY,
        **_LACKS_WRITE,
        "PERMISSION_DENIED": NOT_AUTHOR,
    },
    examples=({"id": "01930000-0000-7000-8000-000000000001"},),
)

RESTORE_KNOWLEDGE = Operation(
    name="restore_knowledge",
    title="Restore knowledge",
    description=(
        "Let a withdrawn or a superseded entry hold again: undoes either. Of an entry that was edited, the version "
        "restored holds alone: `withdrawnEdit` is the later one, withdrawn for it; restoring that undoes it."
    ),
    input=LifeInput,
    output=LifeOutput,
    handler=NAMING.offering(restore_knowledge),
    scopes=frozenset({WRITE_SCOPE}),
    effects=Effects(read_only=False, idempotent=True),
    route=Route("POST", "/knowledge/{id}/restore"),
    errors={
        "INVALID_INPUT": "The id is no UUID.",
        "NOT_FOUND": NO_SUCH_ENTRY,
        **_LACKS_WRITE,
        "PERMISSION_DENIED": "The caller may not supersede the entry, or did not write what was withdrawn.",
    },
    examples=({"id": "01930000-0000-7000-8000-000000000001"},),
)

GET_KNOWLEDGE = Operation(
    name="get_knowledge",
    title="Get knowledge",
    description="Read an entry whole, with its history and links.",
    input=GetInput,
    output=KnowledgeEntry,
    handler=NAMING.offering(get_knowledge),
    scopes=frozenset({READ_SCOPE}),
    effects=READS,
    route=Route("GET", "/knowledge/{id}"),
    errors={"INVALID_INPUT": "The id is no UUID.", "NOT_FOUND": NO_SUCH_ENTRY, **_LACKS_READ},
    shortening=Shortening("", ("body",), pages=True, rest="The body goes on."),
    examples=({"id": "01930000-0000-7000-8000-000000000001"},),
)

LISTED = (
    STORE_KNOWLEDGE,
    SEARCH_KNOWLEDGE,
    SUPERSEDE_KNOWLEDGE,
    GET_KNOWLEDGE,
    WITHDRAW_KNOWLEDGE,
    RESTORE_KNOWLEDGE,
)
