"""Whether chains of supersessions are sound: edges and caches agree, and nothing runs in a circle."""

from __future__ import annotations

from collections.abc import Mapping

from refdesk.core.writing import supersession
from refdesk.model import Collection, Document, Reference
from refdesk.protocols import Store
from refdesk.toolsets.knowledge import TOOLSET_NAME


async def find_broken_chains(store: Store, org: str) -> list[str]:
    """Return the ids whose link is not the one noted, or whose edges do not lead to the head that is noted."""
    collection = Collection(org, TOOLSET_NAME)
    found = await store.get_documents(collection, sorted(await store.get_digests(collection)))
    documents = {document.id: document for document in found if document is not None}
    heads = await supersession.find_heads(store, documents.values())
    broken: list[str] = []
    for document in documents.values():
        links = await store.get_links(org, Reference(TOOLSET_NAME, document.id))
        newer = [link.source.id for link in links if link.kind == "supersedes" and link.target.id == document.id]
        noted = document.data.get("superseded_by")
        is_true = walk(documents, document) == heads[document.id]
        if newer != ([noted] if noted else []) or not is_true:
            broken.append(document.id)
    return broken


def walk(documents: Mapping[str, Document], document: Document) -> str | None:
    """Return the id at the end of the direct edges, or `None` when they run in a circle."""
    seen = {document.id}
    while (newer := document.data.get("superseded_by")) is not None:
        document = documents[str(newer)]
        if document.id in seen:
            return None
        seen.add(document.id)
    return document.id
