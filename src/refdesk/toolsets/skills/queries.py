"""The contract's store functions for the skills of one org. Vectors are accepted, never returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

from refdesk.core import tracing
from refdesk.core.search import fusion
from refdesk.core.search.analysis import parse_query
from refdesk.core.writing import quotas
from refdesk.core.writing.quotas import Quota
from refdesk.errors import ConflictError
from refdesk.model import (
    EmbeddingModel,
    FindRequest,
    HasAll,
    Metadata,
    MetadataKey,
    State,
    VectorQuery,
)
from refdesk.toolsets.skills import TOOLSET_NAME, cases, counting, ledger, openings, outcomes, records, vectors
from refdesk.toolsets.skills.records import Counters, Skill, SkillUpdate

if TYPE_CHECKING:
    from random import Random

    from refdesk.core.context import Context
    from refdesk.core.writing.idempotency import Once
    from refdesk.model import (
        Candidate,
        Collection,
        Document,
        Filter,
        Revision,
    )
    from refdesk.playbooks import Case
    from refdesk.protocols import Clock, Embedder, Reader, Store, Transaction

DUPLICATE_SIMILARITY = 0.95
QUOTA_NAME = "skills_stored"
UNLIMITED = Quota(QUOTA_NAME)
DEPTH = 100
"""How many skills each list gives to the fusion."""

COUNTERS, SOURCE, GENERATION = "skill_counters", "skill_source", "skill_generation"
_GENERATION_NAME = "vectors"


class FoundSkill(TypedDict):
    """A skill found, with its score in [0, 1], and its cosine if vectors took part."""

    skill: Skill
    score: float
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Creation:
    """What became of a new skill.

    Attributes:
        skill: The new one, or the one that was there already.
        similarity: That of the one that was there already; `None` if the skill is new.
        is_known_source: Whether the very same conversation had been learned before.
    """

    skill: Skill
    similarity: float | None = None
    is_known_source: bool = False


@dataclass(frozen=True, slots=True)
class SkillQueries:
    """The skills of one org.

    Attributes:
        model: The one whose vectors are passed in; without one, search is keyword search only.
        quota: How many skills may be created.
        random: Draws how well skills work, so that those with few reports get tried; `None` ranks by what is sure.
    """

    store: Store
    clock: Clock
    org: str
    model: EmbeddingModel | None = None
    quota: Quota = UNLIMITED
    random: Random | None = None

    @tracing.spanned("search", toolset=TOOLSET_NAME)
    async def hybrid_search(
        self,
        query_embedding: Sequence[float],
        query_text: str,
        top_k: int = 5,
        min_score: float = 0.0,
        where: Filter | None = None,
        trust: float = 1.0,
    ) -> list[FoundSkill]:
        """Return at most `top_k` skills with at least `min_score`, best first, ties newest first, then by id.

        Words and vector are fused by `fusion.absolute`. Among skills that fit about equally well, the reports on their
        steps move the score, by a quarter at most; `min_score` applies to relevance alone. A question that says
        nothing, such as a greeting, finds the skills whose customers most often began like that, with scores of at
        most 0.1.

        Args:
            query_embedding: The question's vector by `model`; empty if there is none.
            query_text: The question's words; nothing in them is syntax.
            top_k: How many at most.
            min_score: In [0, 1].
            where: A condition on the skills, applied while candidates are collected.
            trust: How much the vector counts; see `VectorQuery`.
        """
        text, vector = parse_query(query_text), self._to_query(query_embedding)
        if vector is None and not text.terms:
            return []
        request = FindRequest(self._collection, text=text, vector=vector, where=where, depth=DEPTH, counts=False)
        found = await self.store.find(request)
        if openings.says_nothing(query_text):
            return [match for match in await self._find_likely(found.candidates) if match["score"] >= min_score][:top_k]
        weight = fusion.weigh_vector(found.candidates, text)
        scores = fusion.absolute(found.candidates, text, weight, trust)
        ranked = [pair for pair in zip(found.candidates, scores, strict=True) if pair[1] > 0.0]
        ranked.sort(key=lambda pair: -pair[1])
        # Skills below the page that fit less well than the best cannot move onto it: their records are not read.
        last = min(ranked[top_k - 1][1], outcomes.FITS * ranked[0][1]) if len(ranked) >= top_k else 0.0
        return await self._read_matches([pair for pair in ranked if pair[1] >= max(last, min_score)], top_k)

    async def create_skill(self, skill: Skill) -> Skill:
        """Store a new skill, however similar to others, and return it.

        Raises:
            ConflictError: There is one with its id.
            QuotaExceededError: The org or the skill's author may create no more.
        """
        async with self.store.transaction() as transaction:
            await self._insert(transaction, skill)
        return skill

    async def get_skill(self, skill_id: str) -> Skill | None:
        """Return the skill, or `None` if this org has none with that id."""
        return await self.read_skill(self.store, skill_id)

    async def update_skill(
        self,
        skill_id: str,
        updates: SkillUpdate,
        added: Sequence[Case] = (),
        agent: str = "",
        once: Once[Skill] | None = None,
    ) -> Skill:
        """Apply `updates` and increment the version; the version before is kept.

        Args:
            skill_id: Which skill.
            updates: What to change.
            added: Conversations to keep with it as evidence.
            agent: Who sent those.
            once: Tells whether this has been done before, and notes that it is done.

        Raises:
            ValueError: There is no such skill.
            AnsweredBefore: It is a repetition.
            ConflictError: The skill is no longer at the expected version; nothing is changed.
        """
        while True:
            # Unless others are given, its vectors stay. They are read outside the transaction, at a known version.
            known = await self._recall(skill_id) if updates.embedding is None else None
            async with self.store.transaction() as transaction:
                if once is not None:
                    await once.check(transaction)
                skill = await self._require(transaction, skill_id, updates.expected_version)
                if known is not None:
                    if known.version != skill.version:
                        continue
                    skill = replace(skill, embedding=known.embedding, opening_embeddings=known.opening_embeddings)
                changed = await self._change(transaction, skill, updates, added, agent)
                if once is not None:
                    await once.note(transaction, changed)
                return changed

    async def update_within(self, transaction: Transaction, skill_id: str, updates: SkillUpdate) -> Skill:
        """Change a skill, as `update_skill` does, within a transaction; the vectors must be given."""
        skill = await self._require(transaction, skill_id, updates.expected_version)
        return await self._change(transaction, skill, updates, (), "")

    async def insert_within(self, transaction: Transaction, skill: Skill) -> None:
        """Store a new skill within a transaction, and make concurrent creations look for the nearest skill again.

        Raises:
            QuotaExceededError: The org or the skill's author may create no more.
        """
        await self._insert(transaction, skill)
        await self._count_generation(transaction)

    async def _require(self, transaction: Transaction, skill_id: str, expected: int | None) -> Skill:
        skill = await self.read_skill(transaction, skill_id)
        if skill is None:
            raise ValueError(f"There is no skill {skill_id}.")
        if expected not in (None, skill.version):
            raise ConflictError(
                f"The skill is at version {skill.version}, not {expected}. Read it again.",
                details={"version": skill.version},
            )
        return skill

    async def _recall(self, skill_id: str) -> Skill | None:
        skill = await self.get_skill(skill_id)
        if skill is None or self.model is None:
            return skill
        return await vectors.recall(self.store, self.org, skill, self.model)

    async def _change(
        self, transaction: Transaction, skill: Skill, updates: SkillUpdate, added: Sequence[Case], agent: str
    ) -> Skill:
        changed = _apply(skill, updates, self)
        await self._write(transaction, changed)
        await self._put_cases(transaction, skill.skill_id, added, agent)
        if updates.confidence is not None:
            await self.put_counters(transaction, changed)
            await ledger.note_confidence(transaction, self.org, changed)
        return changed

    async def check_duplicate(
        self, embedding: Sequence[float], threshold: float = DUPLICATE_SIMILARITY
    ) -> Skill | None:
        """Return the nearest skill if its cosine to the vector is above `threshold`, on the scale from -1 to 1."""
        nearest = await self.find_nearest(embedding)
        return nearest[0] if nearest is not None and nearest[1] > threshold else None

    async def find_nearest(self, embedding: Sequence[float]) -> tuple[Skill, float] | None:
        """Return the skill nearest to a vector, with its cosine, ties by id."""
        vector = self._to_query(embedding)
        if vector is None:
            return None
        found = await self.store.find(FindRequest(self._collection, vector=vector, depth=1))
        if not found.candidates or found.candidates[0].cosine is None:
            return None
        skill = await self.get_skill(found.candidates[0].id)
        return (skill, round(min(1.0, found.candidates[0].cosine), 6)) if skill is not None else None

    async def create_if_new(self, skill: Skill, added: Sequence[Case], once: Once[Creation] | None = None) -> Creation:
        """Store a new skill unless the same conversation, or a skill nearer than the threshold, is there already.

        Check and insert are atomic across processes: the check is made outside the transaction at a known count of
        creations, and is valid inside it only if that count is unchanged; otherwise it is repeated. Updates do not
        change the count: they could keep a creation from ever finishing.

        Args:
            skill: With its vector, if there is a model.
            added: The conversations; the new skill, or the one that was there already, keeps them as evidence.
            once: Tells whether this has been done before, and notes that it is done.

        Raises:
            AnsweredBefore: It is a repetition.
            QuotaExceededError: It is new, and the org or its author may create no more.
        """
        while True:
            generation = await self._read_generation(self.store)
            nearest = await self.find_nearest(skill.embedding)
            async with self.store.transaction() as transaction:
                if once is not None:
                    await once.check(transaction)
                creation = await self._create(transaction, skill, added, nearest, generation)
                if creation is None:
                    continue
                if once is not None:
                    await once.note(transaction, creation)
                return creation

    async def _create(
        self,
        transaction: Transaction,
        skill: Skill,
        added: Sequence[Case],
        nearest: tuple[Skill, float] | None,
        generation: int,
    ) -> Creation | None:
        """Return what became of a new skill; `None` if others were created since the nearest one was looked up."""
        known = await self.find_by_source(added[0].id, transaction) if len(added) == 1 else None
        if known is not None:
            return Creation(known, 1.0, is_known_source=True)
        if await self._read_generation(transaction) != generation:
            return None
        if nearest is not None and nearest[1] > DUPLICATE_SIMILARITY:
            await self._put_cases(transaction, nearest[0].skill_id, added, skill.author)
            return Creation(*nearest)
        await self.insert_within(transaction, skill)
        await self._put_cases(transaction, skill.skill_id, added, skill.author)
        return Creation(skill)

    async def require_room(self, author: str) -> None:
        """Return if there is room for one more skill by this author.

        Raises:
            QuotaExceededError: There is none.
        """
        await quotas.require_room(self.store, self.quota, self.org, author)

    async def find_by_source(self, source: str, reader: Reader | None = None) -> Skill | None:
        """Return the skill that was learned from the conversation with this digest, or `None`."""
        reader = reader or self.store
        record = await reader.get_metadata(MetadataKey(self.org, SOURCE, source))
        return await self.read_skill(reader, str(record.value["skill_id"])) if record is not None else None

    async def get_history(self, skill_id: str, reader: Reader | None = None) -> list[Skill]:
        """Return every version of a skill, the present one last; empty if there is no such skill."""
        reader = reader or self.store
        revisions = await reader.get_revisions(self._collection, skill_id)
        [counters] = await self._read_counters(reader, [skill_id])
        return [records.to_skill(revision.document, counters) for revision in revisions if _is_read(revision)]

    async def list_skills(self) -> list[Skill]:
        """Return all skills of the org, by name."""
        ids = sorted(await self.store.get_digests(self._collection))
        documents = await self.store.get_documents(self._collection, ids)
        skills = await self._complete(self.store, [document for document in documents if document is not None])
        return sorted(skills, key=lambda skill: skill.name)

    async def get_by_name(self, name: str) -> Skill | None:
        """Return the skill of this name, or `None`."""
        where = HasAll(records.NAME, (name,))
        found = await self.store.find(FindRequest(self._collection, where=where, depth=1))
        return await self.get_skill(found.candidates[0].id) if found.candidates else None

    async def get_skills(self, skill_ids: Sequence[str]) -> list[Skill]:
        """Return the skills of these ids, in their order; ids that no skill has are left out."""
        documents = await self.store.get_documents(self._collection, skill_ids)
        there = [each for each in documents if each is not None and each.state is not State.WITHDRAWN]
        return await self._complete(self.store, there)

    async def list_ids(self, after: str = "") -> list[str]:
        """Return the ids of all skills of the org that come after the given one, in order."""
        return sorted(id for id in await self.store.get_digests(self._collection) if id > after)

    async def add_imported(self, skill: Skill, record: Metadata) -> bool:
        """Store a skill from elsewhere with the record of its import; return false, and do nothing, if one is there.

        Raises:
            QuotaExceededError: The org or the skill's author may create no more.
        """
        async with self.store.transaction() as transaction:
            [document] = await transaction.get_documents(self._collection, [skill.skill_id])
            if document is not None or await transaction.get_metadata(record.key) is not None:
                return False
            await self._insert(transaction, skill)
            await transaction.put_metadata([record])
        return True

    async def keep(self, record: Metadata) -> None:
        """Store a record."""
        async with self.store.transaction() as transaction:
            await transaction.put_metadata([record])

    async def count_use(self, skill_id: str) -> Skill | None:
        """Count that a skill was read whole, to be followed, and return it; a later report counts as the same use."""
        async with self.store.transaction() as transaction:
            skill = await self.read_skill(transaction, skill_id)
            if skill is None:
                return None
            used = replace(
                skill, times_used=skill.times_used + 1, unreported=skill.unreported + 1, reads=skill.reads + 1
            )
            await self.put_counters(transaction, used)
        return used

    @property
    def _collection(self) -> Collection:
        return records.get_collection(self.org)

    def _to_query(self, embedding: Sequence[float]) -> VectorQuery | None:
        if self.model is None or not len(embedding):
            return None
        return VectorQuery(vectors.to_vector(embedding), self.model.name)

    async def _find_likely(self, candidates: Sequence[Candidate]) -> list[FoundSkill]:
        """Return the skills, scored and ordered by how many customers began without saying what they want."""
        found = await self._read_matches([(candidate, openings.LOW_SCORE) for candidate in candidates], len(candidates))
        most = max((match["skill"].silent for match in found), default=0)
        for match in found:
            match["score"] = round(openings.LOW_SCORE * (1 + match["skill"].silent) / (1 + most), 6)
        return sorted(found, key=lambda match: -match["score"])

    async def _read_matches(self, ranked: Sequence[tuple[Candidate, float]], top_k: int) -> list[FoundSkill]:
        """Return the best of what was found, by relevance and by reports.

        The records of skills that are not among the best are read only if there are reports on them.
        """
        ids = [candidate.id for candidate, _ in ranked]
        counters = dict(zip(ids, await self._read_counters(self.store, ids), strict=True))
        known = await self._read_known([id for id in ids if counters[id].tallies], counters)
        scored = [(self._weigh(score, ranked[0][1], known.get(candidate.id)), candidate) for candidate, score in ranked]
        scored.sort(key=lambda pair: (-pair[0], -pair[1].modified_at.timestamp(), pair[1].id))
        best = scored[:top_k]
        known |= await self._read_known([candidate.id for _, candidate in best if candidate.id not in known], counters)
        return [
            {"skill": known[candidate.id], "score": round(min(1.0, score), 6), "cosine": candidate.cosine}
            for score, candidate in best
            if candidate.id in known
        ]

    def _weigh(self, score: float, best: float, skill: Skill | None) -> float:
        if score < outcomes.FITS * best:
            return score
        return outcomes.weigh(score, skill.tally if skill is not None else outcomes.UNKNOWN, self.random)

    async def _read_known(self, ids: Sequence[str], counters: Mapping[str, Counters]) -> dict[str, Skill]:
        documents = await self.store.get_documents(self._collection, ids) if ids else []
        return {each.id: records.to_skill(each, counters[each.id]) for each in documents if each is not None}

    async def read_skill(self, reader: Reader, skill_id: str) -> Skill | None:
        """Return the skill as the reader sees it, or `None` if this org has none with that id."""
        [document] = await reader.get_documents(self._collection, [skill_id])
        if document is None or document.state is State.WITHDRAWN:
            return None
        [skill] = await self._complete(reader, [document])
        return skill

    async def _complete(self, reader: Reader, documents: Sequence[Document]) -> list[Skill]:
        """Return the skills of documents, with their counters."""
        counters = await self._read_counters(reader, [document.id for document in documents])
        return [records.to_skill(document, own) for document, own in zip(documents, counters, strict=True)]

    async def _insert(self, transaction: Transaction, skill: Skill) -> None:
        await quotas.spend(transaction, self.quota, self.org, skill.author)
        await self._write(transaction, skill)
        await self.put_counters(transaction, skill)

    async def _write(self, transaction: Transaction, skill: Skill) -> None:
        document = records.to_document(skill, self.org)
        await transaction.put_documents([document])
        if self.model is not None and len(skill.embedding):
            passages = vectors.to_passages(skill)
            await transaction.put_vectors(self._collection, skill.skill_id, self.model, document.text_digest, passages)

    async def _count_generation(self, transaction: Transaction) -> None:
        number = await self._read_generation(transaction) + 1
        await transaction.put_metadata([Metadata(self._generation_key, {"number": number})])

    @property
    def _generation_key(self) -> MetadataKey:
        return MetadataKey(self.org, GENERATION, _GENERATION_NAME)

    async def _read_generation(self, reader: Reader) -> int:
        record = await reader.get_metadata(self._generation_key)
        return int(str(record.value["number"])) if record is not None else 0

    async def read_cases(self, skill_id: str) -> list[Case]:
        """Return the cases of a skill, oldest first; empty for one that was learned before cases were kept."""
        return await cases.read_cases(self.store, self.org, skill_id)

    async def _put_cases(self, transaction: Transaction, skill_id: str, added: Sequence[Case], agent: str) -> None:
        """Store cases of a skill, and note that their conversations are known."""
        now = self.clock.now()
        sources = [Metadata(MetadataKey(self.org, SOURCE, case.id), {"skill_id": skill_id}) for case in added]
        kept = [cases.to_record(case, self.org, skill_id, agent, now) for case in added]
        await transaction.put_metadata([*sources, *kept])

    async def _read_counters(self, reader: Reader, skill_ids: Sequence[str]) -> list[Counters]:
        found = await reader.get_many_metadata([MetadataKey(self.org, COUNTERS, skill_id) for skill_id in skill_ids])
        return [counting.to_counters(record) for record in found]

    async def put_counters(self, transaction: Transaction, skill: Skill) -> None:
        """Store how the skill has done."""
        value = counting.to_value(counting.get_counters(skill))
        await transaction.put_metadata([Metadata(MetadataKey(self.org, COUNTERS, skill.skill_id), value)])


def _is_read(revision: Revision) -> bool:
    return revision.document.state is not State.WITHDRAWN


def _apply(skill: Skill, updates: SkillUpdate, queries: SkillQueries) -> Skill:
    names = (
        *("title", "problem", "playbook", "conditions", "keywords", "openings", "silent", "instructions", "is_edited"),
        *("embedding", "opening_embeddings"),
        *("product_area", "issue_type", "confidence", "made_by"),
    )
    given: dict[str, Any] = {name: value for name in names if (value := getattr(updates, name)) is not None}
    version = skill.version + 1
    told = {"changes": updates.changes, "suggested": updates.suggested}
    return replace(skill, **given, **told, version=version, updated_at=queries.clock.now())


def get_queries(context: Context, embedder: Embedder | None = None) -> SkillQueries:
    """Return the queries over the caller's org, with the embedder given, else the wanted one."""
    base = context.knowledge_base
    if embedder is None and base.semantics is not None:
        embedder = base.semantics.wanted
    model = embedder.model if embedder is not None else None
    quota = base.quotas.get(QUOTA_NAME, UNLIMITED)
    return SkillQueries(base.store, base.clock, context.principal.org, model, quota)
