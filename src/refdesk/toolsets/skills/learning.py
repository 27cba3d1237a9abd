"""Learns and refines skills from conversations: parse, mask, prompt the model, validate, store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from refdesk.core.search.passages import embedding_text
from refdesk.errors import ConflictError, InvalidInputError, LanguageModelError, NotFoundError
from refdesk.model import Playbook, SkillDraft, Step
from refdesk.toolsets.skills import masking, records, refining, transcripts
from refdesk.toolsets.skills.queries import QUOTA_NAME, UNLIMITED, Creation, SkillQueries
from refdesk.toolsets.skills.records import SkillUpdate

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.model import JsonObject, Turn
    from refdesk.protocols import Embedder, LanguageModel
    from refdesk.toolsets.skills.records import Skill

MAX_ROUNDS = 8
"""How often a refinement is made anew because another process was faster."""

LEARNING_STEPS = 3
"""Of which a client hears: reading, writing, storing."""

MAX_TITLE = 200
MAX_TEXT = 4000
CONFIRMATION = 0.10


@dataclass(slots=True)
class Learner:
    """Learns skills with a language model. What is the same work is done one after another within a process."""

    language_model: LanguageModel
    _locks: WeakValueDictionary[tuple[str, str], anyio.Lock] = field(
        default_factory=WeakValueDictionary["tuple[str, str]", anyio.Lock]
    )

    async def create(self, context: Context, conversation: str, confirmed: bool, metadata: JsonObject) -> Creation:
        """Learn a skill from a conversation, or return the one that is there already.

        Raises:
            InvalidInputError: The conversation teaches nothing.
            QuotaExceededError: The org or the agent may create no more, and the conversation is new.
            LanguageModelError: The model failed.
            EmbedderError: The vector could not be made.
        """
        context.report(0, LEARNING_STEPS, "Reading the conversation")
        turns = await anyio.to_thread.run_sync(prepare, conversation)
        source, queries = _digest(turns), get_queries(context)
        async with self._lock(context.principal.org, source):
            known = await queries.find_by_source(source)
            if known is not None:
                return Creation(known, 1.0, is_known_source=True)
            # Before the model is paid for; it is checked again with the insert.
            await queries.require_room(context.principal.agent)
            context.report(1, LEARNING_STEPS, "Writing the playbook")
            draft = require_whole(clean(await self.language_model.extract(turns)))
            context.report(2, LEARNING_STEPS, f"Storing: {draft.title}")
            skill = await self._build(context, draft, confirmed, metadata)
            async with self._lock(context.principal.org, ""):
                creation = await queries.create_if_new(skill, source)
        if confirmed and creation.similarity is not None and not creation.is_known_source:
            return await _confirm(context, queries, creation)
        return creation

    async def update(self, context: Context, skill_id: str, conversation: str, feedback: str) -> Skill:
        """Refine a skill with a conversation and return its new version.

        Raises:
            NotFoundError: There is no such skill.
            ConflictError: Other processes changed it again and again meanwhile.
            LanguageModelError: The model failed.
            EmbedderError: The vector could not be made.
        """
        context.report(0, LEARNING_STEPS, "Reading the conversation")
        turns = await anyio.to_thread.run_sync(prepare, conversation)
        feedback = masking.mask(feedback)
        async with self._lock(context.principal.org, skill_id):
            for _ in range(MAX_ROUNDS):
                try:
                    return await self._refine(context, skill_id, turns, feedback)
                except ConflictError:
                    continue
        raise ConflictError("The skill is being changed by others all the time; try again in a moment.")

    async def _refine(self, context: Context, skill_id: str, turns: Sequence[Turn], feedback: str) -> Skill:
        queries = get_queries(context)
        skill = await queries.get_skill(skill_id)
        if skill is None:
            raise NotFoundError(f"There is no skill {skill_id}. Use an id that a search or a create returned.")
        context.report(1, LEARNING_STEPS, f"Refining: {skill.title}")
        refinement = await self.language_model.refine(skill.draft, turns, feedback)
        proposed = replace(clean(refinement.draft), **_get_settled(skill))
        refined = refining.refine(skill.draft, replace(refinement, draft=proposed), turns, feedback)
        draft = refined.draft
        context.report(2, LEARNING_STEPS, f"Storing: {draft.title}")
        update = SkillUpdate(
            title=draft.title,
            problem=draft.problem,
            playbook=draft.playbook,
            conditions=draft.conditions,
            keywords=draft.keywords,
            product_area=draft.product_area,
            issue_type=draft.issue_type,
            embedding=await embed(context, draft),
            made_by=self.language_model.name,
            changes=tuple(masking.mask(change) for change in refined.changes),
            expected_version=skill.version,
        )
        return await queries.update_skill(skill_id, update)

    async def _build(self, context: Context, draft: SkillDraft, confirmed: bool, metadata: JsonObject) -> Skill:
        base = context.knowledge_base
        masked = masking.mask_value(dict(metadata))
        assert isinstance(masked, dict)
        skill = records.make_skill(
            draft,
            masked,
            id=base.identifiers.new(),
            author=context.principal.agent,
            model=self.language_model,
            now=base.clock.now(),
        )
        if confirmed:
            skill = replace(skill, times_confirmed=1, confidence=skill.confidence + CONFIRMATION)
        return replace(skill, embedding=await embed(context, draft))

    def _lock(self, org: str, key: str) -> anyio.Lock:
        return self._locks.setdefault((org, key), anyio.Lock())


def prepare(conversation: str) -> tuple[Turn, ...]:
    """Return the masked turns of a transcript.

    Raises:
        InvalidInputError: It holds no word.
    """
    turns = masking.mask_turns(transcripts.read(conversation))
    if not turns:
        raise InvalidInputError("conversation holds no words: send the transcript of a support conversation.")
    return turns


def get_queries(context: Context, embedder: Embedder | None = None) -> SkillQueries:
    """Return the queries over the caller's org, with the embedder given, else the wanted one."""
    base = context.knowledge_base
    if embedder is None and base.semantics is not None:
        embedder = base.semantics.wanted
    model = embedder.model if embedder is not None else None
    quota = base.quotas.get(QUOTA_NAME, UNLIMITED)
    return SkillQueries(base.store, base.clock, context.principal.org, model, quota)


async def embed(context: Context, draft: SkillDraft) -> Sequence[float]:
    """Return the vector of what is searched of a skill; empty where there is no model."""
    semantics = context.knowledge_base.semantics
    if semantics is None:
        return ()
    body = records.write_body(draft.problem, draft.conditions, draft.keywords)
    [vector] = await semantics.wanted.embed_passages([embedding_text(draft.title, body, (0, len(body)))])
    return vector.tolist()


def clean(draft: SkillDraft) -> SkillDraft:
    """Return a model's draft fit to keep: masked, each text on one line and of bounded length, blank ones left out."""
    playbook = draft.playbook
    return SkillDraft(
        title=_clean(draft.title, MAX_TITLE),
        problem=_clean(draft.problem),
        playbook=Playbook(
            goal=_clean(playbook.goal),
            prerequisites=_clean_all(playbook.prerequisites),
            steps=tuple(Step(do, _clean(s.check), _clean(s.say)) for s in playbook.steps if (do := _clean(s.do))),
            edge_cases=_clean_all(playbook.edge_cases),
            escalation=_clean(playbook.escalation),
        ),
        conditions=_clean_all(draft.conditions),
        keywords=_clean_all(draft.keywords),
        product_area=_clean(draft.product_area, MAX_TITLE),
        issue_type=_clean(draft.issue_type, MAX_TITLE),
    )


def require_whole(draft: SkillDraft) -> SkillDraft:
    """Return the draft.

    Raises:
        LanguageModelError: It has no title, problem or step.
    """
    if not draft.title or not draft.problem or not draft.playbook.steps:
        raise LanguageModelError("The language model answered a skill without a title, a problem or a step; try again.")
    return draft


def _clean(text: str, length: int = MAX_TEXT) -> str:
    printable = "".join(c if c.isprintable() else " " for c in text)
    return masking.mask(" ".join(printable.split()))[:length].rstrip()


def _clean_all(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cleaned for text in texts if (cleaned := _clean(text))))


def _get_settled(skill: Skill) -> dict[str, str]:
    """Return blanks for what the caller's metadata has settled, so that no model's answer replaces it."""
    return {name: "" for name in (records.PRODUCT_AREA, records.ISSUE_TYPE) if records.get_text(skill.metadata, name)}


async def _confirm(context: Context, queries: SkillQueries, creation: Creation) -> Creation:
    report = {"outcome": "resolved", "evidence": "Confirmed in another conversation.", "agent": context.principal.agent}
    id = context.knowledge_base.identifiers.new()
    skill = await queries.record_outcome(creation.skill.skill_id, id, {**report}, CONFIRMATION)
    return replace(creation, skill=skill)


def _digest(turns: Sequence[Turn]) -> str:
    text = json.dumps([[turn.speaker, turn.text] for turn in turns], ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
