"""Learns skills from conversations: parse, mask, induce from all cases, validate, store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from refdesk.core import visible
from refdesk.core.search.passages import embedding_text
from refdesk.errors import ConflictError, InvalidInputError, LanguageModelError
from refdesk.kit import masking
from refdesk.playbooks import Playbook, SkillDraft
from refdesk.toolsets.skills import (
    cases,
    changes,
    limits,
    missing,
    openings,
    outcomes,
    records,
    reports,
    transcripts,
    vectors,
)
from refdesk.toolsets.skills.giving_way import Precedence
from refdesk.toolsets.skills.queries import Creation, SkillQueries, get_queries
from refdesk.toolsets.skills.records import SkillUpdate

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.core.writing.idempotency import Once
    from refdesk.model import JsonObject, Vector
    from refdesk.playbooks import Case, EmbedTexts, Inducer, Step, Turn
    from refdesk.protocols import Embedder
    from refdesk.toolsets.skills.records import Skill

MAX_ROUNDS = 8
"""How often a refinement is tried if other processes keep changing the skill first."""

LEARNING_STEPS = 3
"""Steps of which a client is told: reading, writing, storing."""

MAX_TITLE = 200
MAX_TEXT = 4000
MAX_STEP = 600
MAX_KEYWORD = 100
MAX_VECTORS = 8192
"""Most vectors of utterances kept in memory: refining mostly compares what it has compared before."""

TEXTS_OF_PART = 8
"""How many texts a refinement embeds before it gives way."""

MAX_MASKED = 4096
"""Most texts of skills whose masked form is kept in memory."""

CONFIRMATION = 0.10


@dataclass(slots=True)
class Learner:
    """Learns skills by induction over their cases; within a process, work on the same thing is done in turn."""

    language_model: Inducer
    _vectors: OrderedDict[tuple[str, str], Vector] = field(default_factory=OrderedDict["tuple[str, str]", "Vector"])
    _locks: WeakValueDictionary[tuple[str, str], anyio.Lock] = field(
        default_factory=WeakValueDictionary["tuple[str, str]", anyio.Lock]
    )
    _precedence: Precedence = field(default_factory=Precedence)

    async def create(
        self,
        context: Context,
        conversation: str,
        confirmed: bool,
        metadata: JsonObject,
        once: Once[Creation] | None = None,
    ) -> Creation:
        """Learn a skill from a conversation, or return the one that is there already.

        Raises:
            InvalidInputError: The conversation teaches nothing.
            AnsweredBefore: It is a repetition.
            QuotaExceededError: The org or the agent may create no more, and the conversation is new.
            LanguageModelError: The model failed.
            EmbedderError: The vector could not be made.
        """
        with self._precedence.going_first():
            creation = await self._create(context, conversation, confirmed, metadata, once)
        if confirmed and creation.similarity is not None and not creation.is_known_source:
            return await _confirm(context, get_queries(context), creation)
        return creation

    async def _create(
        self,
        context: Context,
        conversation: str,
        confirmed: bool,
        metadata: JsonObject,
        once: Once[Creation] | None,
    ) -> Creation:
        context.report(0, LEARNING_STEPS, "Reading the conversation")
        turns = await anyio.to_thread.run_sync(prepare, conversation)
        case, queries = cases.make_case(turns, confirmed), get_queries(context)
        source = case.id
        async with self._lock(context.principal.org, source):
            if once is not None:
                await once.check(queries.store)
            known = await queries.find_by_source(source)
            if known is not None:
                return Creation(known, 1.0, is_known_source=True)
            # Checked before the model is paid for, and again with the insert.
            await queries.require_room(context.principal.agent)
            context.report(1, LEARNING_STEPS, "Writing the playbook")
            written = await self.language_model.induce([case], self.get_embed(context))
            draft = require_whole(await anyio.to_thread.run_sync(clean, written))
            context.report(2, LEARNING_STEPS, f"Storing: {draft.title}")
            skill = await self._build(context, draft, confirmed, metadata)
            skill = replace(skill, changes=(*skill.changes, *draft.remarks), silent=openings.count_silent([case]))
            async with self._lock(context.principal.org, ""):
                return await queries.create_if_new(skill, [case], once)

    async def extend(self, context: Context, skill_id: str, added: Sequence[Case]) -> Skill:
        """Refine a skill with several cases at once and return its new version; errors as in `update`."""
        async with self._lock(context.principal.org, skill_id):
            for _ in range(MAX_ROUNDS):
                try:
                    return await self._refine(context, skill_id, added)
                except ConflictError:
                    continue
        raise ConflictError("The skill is being changed by others all the time; try again in a moment.")

    async def update(
        self, context: Context, skill_id: str, conversation: str, feedback: str, once: Once[Skill] | None = None
    ) -> Skill:
        """Refine a skill with a conversation and return its new version.

        Raises:
            NotFoundError: There is no such skill.
            AnsweredBefore: It is a repetition.
            ConflictError: Other processes changed it again and again meanwhile.
            LanguageModelError: The model failed.
            EmbedderError: The vector could not be made.
        """
        context.report(0, LEARNING_STEPS, "Reading the conversation")
        since = await self._precedence.give_way(perf_counter())
        turns = await anyio.to_thread.run_sync(prepare, conversation)
        await self._precedence.give_way(since)
        feedback = masking.mask(feedback)
        async with self._lock(context.principal.org, skill_id):
            if once is not None:
                await once.check(context.knowledge_base.store)
            for _ in range(MAX_ROUNDS):
                try:
                    case = cases.make_case(turns, note=feedback)
                    return await self._refine(context, skill_id, [case], once)
                except ConflictError:
                    continue
        raise ConflictError("The skill is being changed by others all the time; try again in a moment.")

    async def _refine(
        self,
        context: Context,
        skill_id: str,
        added: Sequence[Case],
        once: Once[Skill] | None = None,
    ) -> Skill:
        queries = get_queries(context)
        if once is not None:
            await once.check(queries.store)
        skill = await queries.get_skill(skill_id)
        if skill is None:
            raise await missing.explain(queries.store, queries.org, skill_id)
        context.report(1, LEARNING_STEPS, f"Refining: {skill.title}")
        new = {case.id for case in added}
        kept = await queries.read_cases(skill_id)
        known = [case for case in kept if case.id not in new]
        if not kept and skill.playbook.steps:
            # It was learned before cases were kept: what it says is evidence too.
            added = [cases.make_earlier(skill), *added]
        silent = openings.count_silent([*known, *added])
        draft = await self.induce(context, [*known, *added], skill)
        told = (*changes.describe(skill.draft, draft), *draft.remarks)
        suggested = outcomes.identify(draft.playbook)
        if suggested in skill.rejected:
            draft, told = _keep_steps(skill, draft)
        context.report(2, LEARNING_STEPS, f"Storing: {draft.title}")
        update = replace(await self.make_update(context, skill, draft, told), silent=silent)
        if suggested in skill.rejected:
            update = replace(update, suggested=suggested)
        return await queries.update_skill(skill_id, update, added, context.principal.agent, once)

    async def make_update(self, context: Context, skill: Skill, draft: SkillDraft, told: Sequence[str]) -> SkillUpdate:
        """Return the update that makes a skill say what a draft says, with its vectors and with its changes masked."""
        embedding, *others = await self.embed(context, draft) or [()]
        masked = await anyio.to_thread.run_sync(lambda: tuple(map(_mask, told)))
        return SkillUpdate(
            title=draft.title,
            problem=draft.problem,
            playbook=draft.playbook,
            conditions=draft.conditions,
            keywords=draft.keywords,
            openings=draft.openings,
            product_area=draft.product_area,
            issue_type=draft.issue_type,
            embedding=embedding,
            opening_embeddings=others,
            made_by=self.language_model.name,
            changes=masked,
            expected_version=skill.version,
        )

    async def induce(self, context: Context, known: Sequence[Case], skill: Skill) -> SkillDraft:
        """Return the skill as induced from its cases; what its metadata settles and what a person wrote stays.

        Errors as in `update`.
        """
        since = perf_counter()
        draft = await self.language_model.induce(known, self._embed_in_parts(context))
        await self._precedence.give_way(since)
        draft = await anyio.to_thread.run_sync(clean, draft)
        draft = replace(draft, playbook=_keep_wording(skill.playbook, draft.playbook))
        areas = {
            name: getattr(skill if records.get_text(skill.metadata, name) else draft, name) or getattr(skill, name)
            for name in (records.PRODUCT_AREA, records.ISSUE_TYPE)
        }
        return _keep_written(skill, require_whole(replace(draft, **areas)))

    async def embed(self, context: Context, draft: SkillDraft) -> list[Sequence[float]]:
        """Return the vectors of a skill's searched texts: what it is about, then each opening; empty without a model.

        They are remembered, because few of them change from one refinement to the next.
        """
        embed = self.get_embed(context)
        if embed is None:
            return []
        lead = records.write_lead(draft.problem, draft.conditions, draft.keywords)
        texts = [embedding_text(draft.title, lead, (0, len(lead))), *draft.openings]
        found = await embed(texts)
        about, *began = [found[text] for text in texts]
        return [vector.tolist() for vector in (about, *vectors.draw_together(began))]

    def get_embed(self, context: Context) -> EmbedTexts | None:
        """Return a function that embeds utterances and remembers their vectors; `None` without a model."""
        semantics = context.knowledge_base.semantics
        return self._remember(semantics.wanted) if semantics is not None else None

    def _embed_in_parts(self, context: Context) -> EmbedTexts | None:
        """Return the same as `get_embed`, for a refinement: it gives way to creations between parts of the texts."""
        embed = self.get_embed(context)
        if embed is None:
            return None

        async def embed_in_parts(texts: Sequence[str]) -> Mapping[str, Vector]:
            found, since = dict[str, "Vector"](), perf_counter()
            for start in range(0, len(texts), TEXTS_OF_PART):
                found.update(await embed(texts[start : start + TEXTS_OF_PART]))
                since = await self._precedence.give_way(since)
            return found

        return embed_in_parts

    def _remember(self, embedder: Embedder) -> Callable[[Sequence[str]], Awaitable[Mapping[str, Vector]]]:
        async def embed_texts(texts: Sequence[str]) -> Mapping[str, Vector]:
            name = embedder.model.name
            missing = [text for text in dict.fromkeys(texts) if (name, text) not in self._vectors]
            new = dict(zip(missing, await embedder.embed_passages(missing) if missing else [], strict=True))
            found = {text: new[text] if text in new else self._vectors[name, text] for text in texts}
            for text, vector in found.items():
                self._vectors[name, text] = vector
                self._vectors.move_to_end((name, text))
            while len(self._vectors) > MAX_VECTORS:
                self._vectors.popitem(last=False)
            return found

        return embed_texts

    async def _build(self, context: Context, draft: SkillDraft, confirmed: bool, metadata: JsonObject) -> Skill:
        base = context.knowledge_base
        masked = masking.mask_value(dict(metadata))
        assert isinstance(masked, dict)
        skill = records.make_skill(
            draft,
            masked,
            id=base.identifiers.new(),
            author=context.principal.agent,
            model=self.language_model.name,
            now=base.clock.now(),
        )
        if confirmed:
            skill = replace(skill, times_confirmed=1, confidence=skill.confidence + CONFIRMATION)
        embedding, *others = await self.embed(context, draft) or [()]
        return replace(skill, embedding=embedding, opening_embeddings=others)

    def _lock(self, org: str, key: str) -> anyio.Lock:
        return self._locks.setdefault((org, key), anyio.Lock())


_mask = lru_cache(MAX_MASKED)(masking.mask)
"""Remembers what it has masked: the skill has already said most of what a refinement says."""


def prepare(conversation: str) -> tuple[Turn, ...]:
    """Return the masked turns of a transcript.

    Raises:
        InvalidInputError: It holds no word.
    """
    turns = masking.mask_turns(transcripts.read(conversation))
    if not turns:
        raise InvalidInputError("conversation holds no words: send the transcript of a support conversation.")
    return turns


def clean(draft: SkillDraft) -> SkillDraft:
    """Return a model's draft fit to keep: masked, each text on one line and of bounded length, blank ones left out.

    What exceeds the limits of a skill is left out too, and the remarks say so.
    """
    playbook = draft.playbook
    return SkillDraft(
        title=_clean(draft.title, MAX_TITLE),
        problem=_clean(draft.problem),
        playbook=Playbook(
            goal=_clean(playbook.goal),
            prerequisites=_clean_all(playbook.prerequisites, limits.MAX_NOTES),
            steps=_clean_steps(playbook.steps),
            edge_cases=_clean_all(playbook.edge_cases, limits.MAX_NOTES),
            escalation=_clean(playbook.escalation),
            notes=_clean_all(playbook.notes, limits.MAX_NOTES),
            seldom=_clean_steps(playbook.seldom),
            cases=playbook.cases,
        ),
        conditions=_clean_all(draft.conditions, limits.MAX_CONDITIONS),
        keywords=_clean_all(draft.keywords, limits.MAX_KEYWORDS, MAX_KEYWORD),
        product_area=_clean(draft.product_area, MAX_TITLE),
        issue_type=_clean(draft.issue_type, MAX_TITLE),
        openings=_clean_all(draft.openings, limits.MAX_KEYWORDS),
        remarks=_clean_all((*changes.describe_cut(draft), *draft.remarks), limits.MAX_STEPS),
    )


def _clean_steps(steps: Sequence[Step]) -> tuple[Step, ...]:
    names = ("do", "check", "say", "induced")
    cleaned = (
        replace(step, **{name: _clean(getattr(step, name), MAX_STEP) for name in names})
        for step in steps[: limits.MAX_STEPS]
    )
    return tuple(step for step in cleaned if step.do)


def require_whole(draft: SkillDraft) -> SkillDraft:
    """Return the draft.

    Raises:
        LanguageModelError: It has no title, problem or step.
    """
    if not draft.title or not draft.problem or not draft.playbook.steps:
        raise LanguageModelError("The language model answered a skill without a title, a problem or a step; try again.")
    return draft


def _clean(text: str, length: int = MAX_TEXT) -> str:
    if not visible.is_seen(text):
        return ""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return _mask(" ".join(printable.split()))[:length].rstrip()


def _clean_all(texts: Sequence[str], most: int, length: int = MAX_STEP) -> tuple[str, ...]:
    """Return at most `most` of the texts, cleaned, each once, without those that say nothing."""
    cleaned = dict.fromkeys(cleaned for text in texts if (cleaned := _clean(text, length)))
    return tuple(cleaned)[:most]


def _keep_written(skill: Skill, draft: SkillDraft) -> SkillDraft:
    """Return the draft with those parts of the skill that a person wrote.

    For a skill that was imported in its own words, these are its title and problem; for one that was edited, its
    conditions and playbook too, where other steps that the cases teach are kept as seldom done.
    """
    if skill.instructions is None and not skill.is_edited:
        return draft
    draft = replace(draft, title=skill.title, problem=skill.problem)
    if not skill.is_edited:
        return draft
    said = {" ".join(step.do.split()) for step in skill.playbook.steps}
    ids = {step.id for step in skill.playbook.steps if step.id}
    new = draft.playbook
    other = tuple(
        step for step in (*new.steps, *new.seldom) if step.id not in ids and " ".join(step.do.split()) not in said
    )
    playbook = replace(skill.playbook, cases=new.cases, notes=new.notes, seldom=other[: limits.MAX_STEPS])
    return replace(draft, conditions=skill.conditions, playbook=playbook)


def _keep_wording(old: Playbook, new: Playbook) -> Playbook:
    """Return the new playbook; steps that are induced the same as before keep the wording that a model gave them.

    A model words a step differently each time; people who know a playbook should recognise it.
    """
    known = {(step.id, step.induced): step for step in old.steps if step.induced}
    kept = ((step, known.get((step.id, step.induced))) for step in new.steps)
    steps = tuple(replace(step, do=same.do, say=same.say) if same is not None else step for step, same in kept)
    return replace(new, steps=steps)


def _keep_steps(skill: Skill, draft: SkillDraft) -> tuple[SkillDraft, tuple[str, ...]]:
    """Return the draft with the skill's present steps, and what to say: those that the cases suggest worked worse."""
    kept = replace(skill.playbook, cases=draft.playbook.cases, notes=draft.playbook.notes)
    told = "The steps stay as they are: those that most cases suggest were followed before and worked worse."
    return replace(draft, playbook=kept), (told,)


async def _confirm(context: Context, queries: SkillQueries, creation: Creation) -> Creation:
    id = context.knowledge_base.identifiers.new()
    report = reports.Report(id, context.principal.agent, "resolved", evidence="Confirmed in another conversation.")
    return replace(creation, skill=await reports.record(queries, creation.skill.skill_id, report))
