"""What a change of the embedding model takes besides embedding everything anew.

Documents written during the change must be found as well as before, and vectors left by an abandoned change must go.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from refdesk import errors
from refdesk.core.background.due import Lookout
from refdesk.core.background.vectors import embed_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.core.background.leases import Lease
    from refdesk.core.background.vectors import Embedded
    from refdesk.core.search.semantics import Semantics
    from refdesk.model import Collection, Document
    from refdesk.protocols import Clock, Embedder, Store

logger = logging.getLogger(__name__)

MOST_DOCUMENTS = 16
"""Most documents of each collection that the former model embeds at a time, between those embedded anew."""

MOST_SECONDS = 30.0
"""How long the former model may take for them; documents it gives up on wait for the wanted model."""


@dataclass(slots=True)
class ModelChange:
    """Keeps search as good as it was during a change of model, and tidies up when there is none."""

    store: Store
    clock: Clock
    semantics: Semantics
    _lookout: Lookout = field(init=False, repr=False)
    _given_up: dict[Collection, frozenset[str]] = field(default_factory=dict["Collection", frozenset[str]])
    _is_tidy: bool = False

    def __post_init__(self) -> None:
        self._lookout = Lookout(self.store, self.clock)

    async def keep_up(self, lease: Lease) -> None:
        """Embed some of the documents written since the change began with the active model, too: until the change is
        complete, its vectors are the ones that are searched.
        """
        active = await self.semantics.get_active()
        if active is None or active.model == self.semantics.wanted.model:
            return
        due = await self._lookout.find(active.model.name, self._given_up, MOST_DOCUMENTS)
        for collection, ids in due.items():
            documents = [one for one in await self.store.get_documents(collection, ids) if one is not None]
            embedded = await _embed_what_can_be(active, documents)
            given_up = {*ids}.difference(document.id for document, _ in embedded)
            self._given_up[collection] = self._given_up.get(collection, frozenset[str]()).union(given_up)
            async with self.store.transaction() as transaction:
                if not await lease.renew(transaction):
                    return
                for document, own in embedded:
                    await transaction.put_vectors(collection, document.id, active.model, document.text_digest, own)

    async def tidy_up(self, lease: Lease) -> None:
        """Remove vectors of models that are neither active nor wanted; once, when nothing else is to be done.

        An abandoned change leaves them. A process that is changing the model at this time holds the lease.
        """
        if self._is_tidy:
            return
        left = [name for name in await self.store.list_models() if name != self.semantics.wanted.model.name]
        if left:
            if not await lease.acquire():
                return
            try:
                async with self.store.transaction() as transaction:
                    for name in left:
                        await transaction.remove_vectors(name)
            finally:
                with anyio.CancelScope(shield=True):
                    await lease.release()
            logger.info("vectors of former models removed", extra={"models": left})
        self._is_tidy = True


async def _embed_what_can_be(embedder: Embedder, documents: Sequence[Document]) -> list[Embedded]:
    done: list[Embedded] = []
    with anyio.move_on_after(MOST_SECONDS):
        try:
            return await embed_all(embedder, documents)
        except errors.RefdeskError as error:
            logger.info("not embedded", extra={"model": embedder.model.name, "reason": error.message})
        for document in documents:
            try:
                done += await embed_all(embedder, [document])
            except errors.RefdeskError:
                continue
    return done
