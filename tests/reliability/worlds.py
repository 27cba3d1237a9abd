"""Two worlds that differ in one thing: in one, another org has notes, tags, tokens, tasks and skills of its own.

What an org can see in both must be the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio

from refdesk.app import Desk
from refdesk.core.background.embedding import Indexer
from refdesk.core.clock import FixedClock, SystemClock
from refdesk.core.identifiers import SequentialIdentifiers, Uuid7Identifiers
from refdesk.core.keys import KeyRing
from refdesk.core.knowledge_base import KnowledgeBase
from refdesk.core.operations import Operation
from refdesk.core.search.semantics import Semantics
from refdesk.core.writing.quotas import Quota
from refdesk.discovery import list_scopes
from refdesk.embedders.hashing import HashingEmbedder
from refdesk.factories.bases import Base
from refdesk.factories.toolsets import join_toolsets, load_toolsets
from refdesk.model import Principal
from refdesk.protocols import Store
from refdesk.server.calls import Caller
from refdesk.stores.sqlite import open_store
from refdesk.toolsets.knowledge.keeping import QUOTA_NAME
from tests.core.fakes import NOW
from tests.server.echo import make_settings
from tests.toolsets.knowledge.conftest import Desk as Agent

OTHERS, OWN = "acme", "zenith"
ALL_SCOPES = tuple(sorted(set(list_scopes()) - {"admin"}))
QUOTA = 12
TOKEN = "bbbbbbbb-0000-4000-8000-000000000001"
SECRET_TITLE, SECRET_BODY, SECRET_TAG = "Vault code of the merger", "The zebra code is 4711.", "merger"
CONVERSATION = (
    "Customer: My parcel tracker shows a zebra instead of the map.\n"
    "Agent: Please clear the cache under Settings, then open the map again.\n"
    "Customer: That worked, thank you!"
)
KINDS = ("current", "old", "head", "expired", "skill")
"""The sorts of things of the others that have an id."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_VARYING = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|\+00:00)"
    r'|(?:search_time_ms|tookMs)\\?": ?[\d.e-]+'
    r"|-[0-9a-f]{12}(?=/SKILL\.md)"
)


@dataclass
class World:
    """A desk, and the ids of the others' things, which are there or not."""

    desk: Desk
    base: Base
    ids: dict[str, str]
    own: tuple[str, str]

    @property
    def operations(self) -> dict[str, Operation]:
        return {operation.name: operation for toolset in self.desk.toolsets for operation in toolset.operations}

    async def make_key(self, org: str, agent: str, *scopes: str) -> str:
        return (await self.base.keys.create(org=org, agent=agent, scopes=scopes or ALL_SCOPES))[1]

    def normalise(self, answer: object) -> str:
        """Return an answer without what must differ: ids, instants, durations."""
        text = json.dumps(answer, sort_keys=True, ensure_ascii=False)
        for kind, id in self.ids.items():
            text = text.replace(id, f"<{kind}>")
        text = _UUID.sub(lambda match: match[0] if match[0] in self.own else "<new>", text)
        return _VARYING.sub("<varies>", text)


def open_file(folder: Path) -> AbstractAsyncContextManager[Store]:
    return open_store(folder / "desk.sqlite3")


@asynccontextmanager
async def open_world(
    folder: Path,
    *,
    absent: Mapping[str, str] | None = None,
    wrap: Callable[[Store], Store] = lambda store: store,
    open_own: Callable[[Path], AbstractAsyncContextManager[Store]] = open_file,
) -> AsyncGenerator[World]:
    """Yield a world.

    Args:
        folder: Where its file is made.
        absent: Leaves the others out, so that nothing has these ids.
        wrap: Plants a fault in its store.
        open_own: Opens the store that stands for the folder.
    """
    settings = make_settings(folder, store=f"sqlite:///{folder / 'desk.sqlite3'}", embedder="hashing")

    @asynccontextmanager
    async def open_base() -> AsyncGenerator[Base]:
        async with open_own(folder) as real:
            store, clock = wrap(real), SystemClock()
            semantics = Semantics(store, HashingEmbedder())
            quotas = {QUOTA_NAME: Quota(QUOTA_NAME, per_org=QUOTA)}
            base = KnowledgeBase(store, semantics, clock, quotas=quotas)
            yield Base(base, semantics, Indexer(store, semantics, clock), KeyRing(store, clock, list_scopes()))

    async with anyio.create_task_group() as group:
        desk = Desk(settings, join_toolsets(load_toolsets(), group), open_base, in_background=False)
        group.start_soon(desk.run)
        base = await desk.get_base()
        own = await settle_own(base.knowledge_base)
        ids = dict(absent) if absent is not None else await settle_others(desk, base.knowledge_base)
        await base.indexer.run_once()
        yield World(desk, base, ids, own)
        group.cancel_scope.cancel()


def as_agent(base: KnowledgeBase, org: str, agent: str) -> Agent:
    return Agent(base, FixedClock(NOW)).as_agent(agent, org, *ALL_SCOPES)


async def settle_own(base: KnowledgeBase) -> tuple[str, str]:
    """Store two notes of one's own, under the same ids in every world."""
    settled = replace(base, clock=FixedClock(NOW), identifiers=SequentialIdentifiers())
    agent = as_agent(settled, OWN, "zoe")
    one = await agent.store("Opening hours", "We open at nine.", tags=["office"])
    other = await agent.store("Opening hours in winter", "We open at ten.", tags=["office"])
    return one.id, other.id


async def settle_others(desk: Desk, base: KnowledgeBase) -> dict[str, str]:
    settled = replace(base, clock=FixedClock(NOW), identifiers=Uuid7Identifiers())
    agent = as_agent(settled, OTHERS, "ann")
    task = {"taskId": "T-secret", "kind": "produced"}
    current = await agent.store(SECRET_TITLE, SECRET_BODY, tags=[SECRET_TAG, "office"], taskRef=task)
    old = await agent.store("Opening hours of the vault", "The vault opens at eight.")
    head = await agent.store("Vault hours", "It opens at nine, as everything does.")
    await agent.supersede(old.id, head.id)
    soon = (NOW + timedelta(hours=1)).isoformat()
    expired = await agent.store("Vault party", "Tonight only.", expiresAt=soon)
    await as_agent(base, OTHERS, "ann").store("With a token", "Once.", clientToken=TOKEN)
    principal = Principal(OTHERS, "ann", frozenset(ALL_SCOPES))
    [create] = [each for toolset in desk.toolsets for each in toolset.operations if each.name == "create_skill"]
    skill = await Caller(desk, principal, "test").run(create, {"conversation": CONVERSATION})
    ids = (current.id, old.id, head.id, expired.id, str(skill.value["skill_id"]))
    return dict(zip(KINDS, ids, strict=True))


def list_calls(ids: Mapping[str, str], own: tuple[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """Return calls that would touch the others' things: every operation with every sort of id, word, tag and token."""
    calls: list[tuple[str, dict[str, Any]]] = []
    for kind, id in ids.items():
        calls += [
            ("get_knowledge", {"id": id}),
            ("supersede_knowledge", {"oldId": id, "newId": own[0]}),
            ("supersede_knowledge", {"oldId": own[0], "newId": id}),
            ("supersede_knowledge", {"oldId": id, "newId": ids["head" if kind != "head" else "current"]}),
            ("search_knowledge", {"query": id, "includeSuperseded": True, "includeExpired": True}),
            ("update_skill", {"skill_id": id, "conversation": CONVERSATION}),
            ("report_outcome", {"skill_id": id, "outcome": "resolved"}),
            ("withdraw_outcome", {"skill_id": id, "report_id": own[0]}),
            ("get_skill", {"skill_id": id}),
            ("get_skill_history", {"skill_id": id}),
            ("get_skill_version", {"skill_id": id, "version": 1}),
            ("list_outcomes", {"skill_id": id}),
            ("merge_skills", {"skill_id": id, "other_id": own[0]}),
            ("unmerge_skills", {"skill_id": id}),
            ("split_skill", {"skill_id": id}),
            ("split_skill", {"skill_id": id, "dry_run": True}),
            ("export_skills", {"skill_ids": [id]}),
            ("export_skills", {"after": id}),
            ("import_skills", {"folders": [write_folder(id)]}),
            ("withdraw_knowledge", {"id": id}),
            ("restore_knowledge", {"id": id}),
            ("edit_knowledge", {"id": id, "body": "Taken over."}),
            ("erase", {"entry": id}),
            ("show_audit", {"record": id}),
            ("list_impacts", {"id": id}),
            ("list_cases", {"id": id}),
            ("create_watch", {"kind": "entry", "subject": id}),
            ("create_watch", {"kind": "skill", "subject": id}),
            ("pause_watch", {"id": id}),
            ("delete_watch", {"id": id}),
            ("list_news", {"watch": id, "after": 0}),
            ("settle_case", {"oneId": id, "otherId": own[0], "verdict": "dismiss"}),
            ("judge_impact", {"announcement": id, "toolset": "knowledge", "id": id, "verdict": "confirm"}),
            ("list_gaps", {"status": "all"}),
            ("judge_gap", {"id": id, "verdict": "dismiss"}),
            ("judge_gap", {"id": id, "verdict": "answer", "toolset": "knowledge", "answerId": id}),
            ("search_azure_updates", {"id": id}),
            ("get_azure_update_history", {"id": id}),
            ("search_skills", {"query": id}),
            ("get_article_by_id", {"article_id": id}),
            ("search_everything", {"deadlineMs": 10_000, "query": id, "limit": 50}),
        ]
    imports = [("import_knowledge", {"format": "jsonl", "text": write_export(id)}) for id in ids.values()]
    return calls + imports + list_word_calls()


def write_export(id: str) -> str:
    """Return an export of one entry, which has this id."""
    header = {"format": "refdesk-knowledge", "version": 1, "entries": 1}
    entry = {"id": id, "title": "Taken", "author": "zoe", "createdAt": NOW.isoformat(), "body": "An id is taken."}
    return f"{json.dumps(header)}\n{json.dumps(entry)}\n"


def write_folder(name: str) -> dict[str, Any]:
    """Return a skill's folder of this name, which may be an id."""
    text = f"---\nname: {name}\ndescription: A name is taken.\n---\nTaken.\n"
    return {"name": name, "files": [{"path": "SKILL.md", "text": text}]}


def list_word_calls() -> list[tuple[str, dict[str, Any]]]:
    words = (SECRET_TITLE, SECRET_BODY, "opening hours", "vault party", '"vault code"', "T-secret", "ann", OTHERS)
    searches = [
        {"query": query, "limit": 50, "includeSuperseded": is_wide, "includeExpired": is_wide, **tags}
        for query in words
        for is_wide in (False, True)
        for tags in ({}, {"tags": [SECRET_TAG]}, {"tags": ["office"]})
    ]
    stores: list[dict[str, Any]] = [
        {"title": "With a token", "body": "Once.", "clientToken": TOKEN},
        {"title": "With a token", "body": "Something else.", "clientToken": TOKEN},
        {"title": "A task", "body": "Of the same name.", "taskRef": {"taskId": "T-secret", "kind": "produced"}},
        *({"title": f"Note {number}", "body": "Until the quota is full."} for number in range(QUOTA)),
    ]
    lists: list[dict[str, Any]] = [
        {"includeSuperseded": True, "includeExpired": True, "limit": 200},
        *({"tags": [tag]} for tag in (SECRET_TAG, "office", f"{SECRET_TAG}s")),
        *({"author": author} for author in ("ann", OTHERS)),
    ]
    return [
        *(("search_knowledge", search) for search in searches),
        *(("list_knowledge", each) for each in lists),
        ("list_tags", {}),
        ("list_authors", {}),
        ("list_skills", {"limit": 200}),
        ("create_watch", {"kind": "search", "subject": SECRET_TITLE}),
        ("create_watch", {"kind": "product", "subject": SECRET_TAG}),
        ("list_watches", {}),
        ("list_news", {}),
        *(
            ("search_everything", {"deadlineMs": 10_000, "query": word, "limit": 50, "filters": {"tags": [tag]}})
            for word in words
            for tag in (SECRET_TAG, "office")
        ),
        *(
            ("search_everything", {"deadlineMs": 10_000, "query": word, "toolsets": ["knowledge", "skills"]})
            for word in words
        ),
        *(("store_knowledge", store) for store in stores),
        ("search_skills", {"query": "parcel tracker zebra map", "top_k": 50}),
        ("create_skill", {"conversation": CONVERSATION}),
        ("search_skills", {"query": "parcel tracker zebra map", "top_k": 50}),
        ("search_azure_updates", {"query": SECRET_TITLE}),
        ("list_azure_changes", {"products": [SECRET_TAG]}),
        ("list_azure_changes", {"dateFrom": "2020-01-01"}),
        ("search_articles", {"query": SECRET_TITLE}),
        ("erase", {"agent": "ann"}),
        ("erase", {"org": OTHERS}),
        ("export_audit", {}),
        ("show_syncs", {}),
        ("list_keys", {}),
        ("show_usage", {}),
        ("sync_toolset", {"toolset": "azure-updates"}),
        ("show_embeddings", {}),
        ("retry_embeddings", {}),
        ("verify_audit", {}),
        ("search_everything", {"deadlineMs": 10_000, "query": "parcel tracker zebra map", "limit": 50}),
    ]
