"""Tracks the embedding model in use and the one to change to, so that a change never interrupts semantic search.

The store remembers the model whose vectors are searched (the active one). When the settings name another, documents are
embedded again in the background while questions are still embedded by the active one; once nothing is missing, the
wanted model becomes the active one and the old vectors are removed.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio

from refdesk import errors
from refdesk.core.doorbell import Doorbell
from refdesk.core.search import cosines
from refdesk.core.search.analysis import analyse
from refdesk.core.search.breaker import Breaker
from refdesk.core.search.languages import recognise
from refdesk.core.search.question_vectors import QuestionVectors
from refdesk.model import SHARED_ORG, CosineScale, EmbeddingModel, Metadata, MetadataKey, Vector, VectorQuery

if TYPE_CHECKING:
    from refdesk.model import JsonValue
    from refdesk.protocols import Embedder, Reader, Store

logger = logging.getLogger(__name__)

SemanticStatus: TypeAlias = Literal["off", "used", "loading", "missing", "foreign", "wordless", "unavailable"]
"""Whether vectors took part in a search, and if not, why: `missing` if nothing that was found has one yet, `foreign` if
the question is in a script that the model cannot read, `wordless` if it has neither letters, digits nor emoji."""

MISSING_MEANING: Mapping[SemanticStatus, str] = {
    "loading": "The embedding model is still loading, so these are keyword matches: search again in some seconds.",
    "missing": "The documents have no embeddings yet, so these are keyword matches: search again a little later.",
    "foreign": "The embedding model does not support this script, so these are keyword matches.",
    "wordless": "The query holds no words: say in words what you are looking for.",
    "unavailable": "Semantic search is unavailable, so these are keyword matches.",
}
"""What to say, by `SemanticStatus`, about an answer in which vectors took no part although they should have."""

GONE = "The model whose vectors are searched is not available: check the settings that it needs."

LOAD_SECONDS = 3.0
"""How long a search that needs a model waits for it to load; after that it is answered by keywords."""

QUESTION_SECONDS = 3.0
"""How long a search waits for the embedding of its question; then keyword search must do."""

TRUST_OF_UNKNOWN = 0.6
"""How much a model's vectors count in languages that it does not know but whose script it reads. Measured on two of
them: up to the weight of words, the fused order improves the more they count; this value gains most of that, while
words still decide."""

_ACTIVE = MetadataKey(SHARED_ORG, "embedding_model", "active")
_SCALE = "cosine_scale"


@dataclass(slots=True)
class Semantics:
    """Turns questions into vectors of the active model.

    Attributes:
        wanted: The embedder that the settings name.
        reopen: Returns the embedder of another model, or `None` when it is no longer available.
        doorbell: Rung when a model should be loaded in the background.
        questions: The vectors of recent questions; stores whose embedder is the same can share it.
        question_seconds: How long a search waits for an embedding; half of the time that it has is the most.
        breaker: Keeps questions from a service that answers none; stores whose embedder is the same share it.
    """

    store: Store
    wanted: Embedder
    reopen: Callable[[EmbeddingModel], Embedder | None] = lambda _: None
    doorbell: Doorbell = field(default_factory=Doorbell)
    questions: QuestionVectors = field(default_factory=QuestionVectors)
    question_seconds: float = QUESTION_SECONDS
    breaker: Breaker = field(default_factory=Breaker)
    _asked: bool = False
    _has_failed: bool = False
    _was_active: EmbeddingModel | None = None
    _is_overtaken: bool = False
    _old: Embedder | None = None
    _scales: dict[str, CosineScale | None] = field(default_factory=lambda: dict(cosines.KNOWN))
    _unmeasured: Embedder | None = None

    async def embed_query(self, text: str, asker: str) -> tuple[VectorQuery | None, SemanticStatus]:
        """Return the vector of an org's question, or `None` and why.

        Never waits for a model to load, nor for a slow service longer than keyword search can wait for, nor at all for
        one that has not answered lately.
        """
        if not analyse(text):
            return None, "wordless"
        embedder = await self.get_active()
        if embedder is None:
            return None, "unavailable"
        if not embedder.reads(text):
            return None, "foreign"
        if not embedder.is_ready:
            self._asked = True
            self.doorbell.ring()
            return None, "unavailable" if self._has_failed else "loading"
        vector = self.questions.find(embedder, text, asker)
        if vector is None and (vector := await self._ask(embedder, text, asker)) is None:
            return None, "unavailable"
        scale = await self._get_scale(embedder)
        if embedder.knows(recognise(text)):
            return VectorQuery(vector, embedder.model.name, scale=scale), "used"
        return VectorQuery(vector, embedder.model.name, TRUST_OF_UNKNOWN), "used"

    async def _ask(self, embedder: Embedder, text: str, asker: str) -> Vector | None:
        """Return the embedding of a question that is not cached; `None` if it cannot be made in time.

        The log says why. While the breaker is open, nobody waits and nothing is logged: that was done when it opened.
        """
        if self.breaker.is_open_for(embedder):
            return None
        try:
            async with self._in_time():
                vector = await self.questions.get(embedder, text, asker)
        except errors.EmbedderError as error:
            logger.warning("question not embedded", extra={"reason": error.message})
            self.breaker.note_failure(embedder)
            return None
        self.breaker.note_answer()
        return vector

    async def embed_found(self, texts: Sequence[str], asker: str) -> list[Vector]:
        """Return the vectors of texts that a source without vectors found for an org, in order.

        Raises:
            EmbedderError: They could not be embedded in the time that a search has for it.
        """
        embedder = await self.get_active()
        if embedder is None:
            raise errors.EmbedderError(GONE)
        if self.breaker.is_open_for(embedder):
            raise errors.EmbedderError(self.breaker.trouble or GONE)
        try:
            async with self._in_time():
                return await self.questions.get_passages(embedder, texts, asker)
        except errors.EmbedderError:
            self.breaker.note_failure(embedder)
            raise

    @asynccontextmanager
    async def _in_time(self) -> AsyncGenerator[None]:
        left = anyio.current_effective_deadline() - anyio.current_time()
        seconds = min(self.question_seconds, left / 2)
        try:
            with anyio.fail_after(seconds):
                yield
        except TimeoutError as error:
            raise errors.EmbedderError(
                f"The embedding model gave no answer within {seconds:.1f} s; try again."
            ) from error

    async def get_active(self) -> Embedder | None:
        """Return the embedder of the active model; the wanted one if none is active yet."""
        active = await read_active(self.store)
        if active is None or active == self.wanted.model:
            return self.wanted
        if self._old is None or self._old.model != active:
            self._old = self.reopen(active)
        return self._old

    async def get_ready(self) -> Embedder | None:
        """Return the active embedder once its model is in memory, or after `LOAD_SECONDS` as it is."""
        with anyio.move_on_after(LOAD_SECONDS):
            await self.load()
        return await self.get_active()

    async def load(self) -> None:
        """Return once the active model is in memory or has failed to load, which the log says: words must do then."""
        embedder = await self.get_active()
        if embedder is not None and not embedder.is_ready:
            try:
                await self._load(embedder)
            except errors.RefdeskError as error:
                logger.warning("model not loaded", extra={"reason": error.message})

    async def load_if_asked(self) -> None:
        """Load the active model if a query has needed it since the last call."""
        if self._asked:
            self._asked = False
            embedder = await self.get_active()
            if embedder is not None:
                await self._load(embedder)

    async def _load(self, embedder: Embedder) -> None:
        try:
            await embedder.load()
        except errors.RefdeskError:
            self._has_failed = True
            raise
        self._has_failed = False

    async def measure_if_asked(self) -> None:
        """Measure the cosine scale of the model of the last query, if it was not known, and store it for everybody."""
        embedder, self._unmeasured = self._unmeasured, None
        if embedder is None:
            return
        try:
            scale = self._scales[embedder.model.name] = await cosines.measure(embedder)
            async with self.store.transaction() as transaction:
                await transaction.put_metadata([_write_scale(embedder.model, scale)])
        except errors.RefdeskError as error:
            # Until it is known, hits are judged by their words; a process that may not write measures for itself.
            logger.info("scale of cosines not kept", extra={"model": embedder.model.name, "reason": error.message})

    async def _get_scale(self, embedder: Embedder) -> CosineScale | None:
        """Return the scale of a model's cosines; if it has not been measured yet, request that and return `None`."""
        name = embedder.model.name
        if name not in self._scales:
            record = await self.store.get_metadata(_name_scale(embedder.model))
            if record is None:
                self._unmeasured = embedder
                self.doorbell.ring()
                return None
            self._scales[name] = _read_scale(record)
        return self._scales[name]

    async def follow(self) -> bool:
        """Return whether this process may embed by the wanted model; where that was the active one and another process
        has changed it since, the newer one becomes the wanted one here, too.

        So processes whose settings differ do not change the model back and forth for ever: who started last decides.
        Where the settings do not provide the newer model, this process embeds nothing.
        """
        active = await read_active(self.store)
        if active is None or active == self.wanted.model:
            self._was_active, self._is_overtaken = active, False
            return True
        if self._was_active != self.wanted.model:
            return True
        newer = await self.get_active()
        if not self._is_overtaken:
            logger.warning("another process has changed the embedding model", extra={"model": active.name})
        self._is_overtaken = newer is None
        self.wanted = newer or self.wanted
        return newer is not None

    async def is_outdated(self) -> bool:
        """Return whether the active model is to be changed to the wanted one."""
        return not self._is_overtaken and await read_active(self.store) != self.wanted.model

    async def find_missing(self) -> EmbeddingModel | None:
        """Return the active model where these settings do not provide it, so that search goes by words; else `None`."""
        return await read_active(self.store) if await self.get_active() is None else None

    async def adopt_wanted(self) -> EmbeddingModel | None:
        """Make the wanted model the active one and drop the old one's vectors; return the old one if there was any.

        Call it only when every document has vectors of the wanted model, or when there is no active model.
        """
        async with self.store.transaction() as transaction:
            active = await read_active(transaction)
            if active == self.wanted.model:
                return None
            value = {"name": self.wanted.model.name, "dimensions": self.wanted.model.dimensions}
            await transaction.put_metadata([Metadata(_ACTIVE, value)])
            if active is not None:
                await transaction.remove_vectors(active.name)
        self._was_active, self._old = self.wanted.model, None
        return active


async def read_active(reader: Reader) -> EmbeddingModel | None:
    """Return the model whose vectors are searched in a store, or `None` if there is none yet."""
    record = await reader.get_metadata(_ACTIVE)
    if record is None:
        return None
    return EmbeddingModel(str(record.value["name"]), int(str(record.value["dimensions"])))


def _name_scale(model: EmbeddingModel) -> MetadataKey:
    return MetadataKey(SHARED_ORG, _SCALE, model.name)


def _write_scale(model: EmbeddingModel, scale: CosineScale | None) -> Metadata:
    value: dict[str, JsonValue] = {} if scale is None else {"unrelated": scale.unrelated, "related": scale.related}
    return Metadata(_name_scale(model), value)


def _read_scale(record: Metadata) -> CosineScale | None:
    value = record.value
    if not value:
        return None
    return CosineScale(float(str(value["unrelated"])), float(str(value["related"])))
