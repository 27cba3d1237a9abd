"""Exchanges skills as folders: what is exported can be edited and imported again, here or at another desk.

A folder that refdesk wrote comes back as the skill it was, with its evidence, under its id. What somebody has edited
in its `SKILL.md` becomes a new version, unless the skill has changed since. A folder from elsewhere becomes a skill in
its own words. How a skill has done is not exchanged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, cast

import regex
from pydantic import TypeAdapter, ValidationError

from refdesk.core import visible
from refdesk.errors import CallerError, ConflictError, InvalidInputError
from refdesk.kit import front_matter
from refdesk.model import Metadata, MetadataKey, State
from refdesk.playbooks import Playbook, SkillDraft
from refdesk.toolsets.skills import changes, folders, learning, manifest, records, skill_text
from refdesk.toolsets.skills.queries import get_queries

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.model import JsonObject, JsonValue
    from refdesk.toolsets.skills.folders import Folder, ReadFolder
    from refdesk.toolsets.skills.learning import Learner
    from refdesk.toolsets.skills.models import Result
    from refdesk.toolsets.skills.queries import SkillQueries
    from refdesk.toolsets.skills.records import Skill

IMPORT = "skill_import"
IMPORTED = "Imported."
EDITED = "a person"
"""`made_by` of a version that somebody has edited."""

GONE = "It was erased here, or merged into another skill."
_ID = regex.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MAX_KEYWORDS = 24
MAX_METADATA = 20_000
"""Most characters of a skill's metadata as JSON."""

_DRAFT = TypeAdapter(SkillDraft)
_HEADINGS = regex.compile(r"^#{1,4} +(.+?) *#*$", regex.MULTILINE)
_DRAFT_FIELDS = tuple(name for name in SkillDraft.__dataclass_fields__ if name != "remarks")


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a folder.

    Attributes:
        name: The folder's.
        skill_id: Empty if there is none.
        notes: What was left out of it, in sentences.
        detail: Why it was not taken over.
    """

    name: str
    result: Result
    skill_id: str = ""
    title: str = ""
    notes: tuple[str, ...] = ()
    detail: str = ""


async def export_folders(queries: SkillQueries, ids: Sequence[str]) -> list[tuple[Skill, Folder]]:
    """Return the skills of these ids with their folders; ids that no skill has are left out."""
    skills = await queries.get_skills(ids)
    return [(skill, folders.write(skill)) for skill in skills]


async def import_folder(learner: Learner, context: Context, folder: Folder, dry_run: bool = False) -> Imported:
    """Take a folder over, or say why not; with `dry_run` only say what would become of it."""
    try:
        found = folders.read(folder)
        intake = _Intake(learner, context, get_queries(context), folder, found, dry_run)
        own, notes = intake.read_own()
        done = await (intake.take_foreign() if own is None else intake.take_own(own))
    except CallerError as error:
        return Imported(folder.name, "broken", detail=error.message)
    return replace(done, notes=(*found.notes, *notes, *done.notes))


@dataclass(frozen=True, slots=True)
class _Intake:
    """One folder on its way in."""

    learner: Learner
    context: Context
    queries: SkillQueries
    folder: Folder
    found: ReadFolder
    dry_run: bool

    def read_own(self) -> tuple[Skill | None, tuple[str, ...]]:
        """Return the skill that refdesk wrote into the folder, or `None`, and notes on what is damaged."""
        if not self.found.evidence:
            return None, ()
        try:
            return _to_skill(self.found, self.context), ()
        except (KeyError, TypeError, ValueError, ValidationError):
            return None, ("What refdesk kept beside it is damaged: only what SKILL.md says was taken over.",)

    async def take_own(self, written: Skill) -> Imported:
        _, text = front_matter.split(folders.write(written).files[manifest.FILE_NAME])
        draft = written.draft
        if text.strip() != self.found.instructions.text.strip():
            draft = learning.clean(skill_text.read_edited(self.found.instructions.text, draft))
        said = {name: getattr(draft, name) for name in _DRAFT_FIELDS}
        edited = replace(written, **said, is_edited=written.is_edited or draft != written.draft)
        if await self._is_gone(written.skill_id):
            return self._tell("kept", edited, GONE)
        present = await self.queries.get_skill(written.skill_id)
        if present is None:
            return await self._add(edited, written.skill_id)
        if _is_same(present, edited):
            return self._tell("unchanged", present)
        if draft == written.draft or not _is_same(present, written):
            return self._tell("kept", present, "The skill here has changed since the folder was written.")
        return await self._change(present, draft, None, ("Edited in a file.", *changes.describe(present.draft, draft)))

    async def take_foreign(self) -> Imported:
        digest = _digest(self.folder)
        known = await self.queries.store.get_metadata(MetadataKey(self.queries.org, IMPORT, digest))
        there = await self.queries.get_skill(str(known.value["skill_id"])) if known is not None else None
        if there is not None:
            return self._tell("unchanged", there)
        if known is not None:
            return Imported(self.folder.name, "kept", detail=GONE)
        said, draft = self.found.instructions, _to_draft(self.found)
        present = await self.queries.get_by_name(self.found.name) if self.found.name else None
        if present is not None and present.instructions is not None:
            if present.playbook.steps:
                draft = replace(draft, playbook=present.playbook, openings=present.openings)
            return await self._change(present, draft, said, ("Imported again: its own words have changed.",), digest)
        id, base = self.context.knowledge_base.identifiers.new(), self.context.knowledge_base
        agent, now = self.context.principal.agent, base.clock.now()
        skill = records.make_skill(draft, {}, id=id, author=agent, model="imported", now=now)
        return await self._add(replace(skill, instructions=said), digest)

    async def _is_gone(self, skill_id: str) -> bool:
        collection = records.get_collection(self.queries.org)
        [document] = await self.queries.store.get_documents(collection, [skill_id])
        return document is not None and document.state is State.WITHDRAWN

    async def _add(self, skill: Skill, source: str) -> Imported:
        name, notes = self.found.name or records.make_name(skill.title, skill.skill_id), tuple[str, ...]()
        if await self.queries.get_by_name(name) is not None:
            notes = (f"Another skill is called {name}: this one gets another name.",)
            name = records.make_name(skill.title, skill.skill_id)
        skill = replace(skill, name=name, changes=(IMPORTED,))
        if not self.dry_run:
            skill = await self._embed(skill)
            if not await self.queries.add_imported(skill, self._record(source, skill.skill_id)):
                return self._tell("kept", skill, "It has come from elsewhere meanwhile.")
        told = replace(self._tell("added", skill), notes=notes)
        return replace(told, skill_id="") if self.dry_run else told

    async def _change(
        self,
        present: Skill,
        draft: SkillDraft,
        said: records.Instructions | None,
        told: tuple[str, ...],
        source: str = "",
    ) -> Imported:
        if not self.dry_run:
            update = await self.learner.make_update(self.context, present, draft, told)
            if said is None:
                update = replace(update, is_edited=True, made_by=EDITED)
            update = replace(update, instructions=said)
            try:
                await self.queries.update_skill(present.skill_id, update)
            except ConflictError:
                return self._tell("kept", present, "The skill here has changed meanwhile; import it again.")
            if source:
                await self.queries.keep(self._record(source, present.skill_id))
        return self._tell("changed", replace(present, title=draft.title))

    async def _embed(self, skill: Skill) -> Skill:
        embedding, *openings = await self.learner.embed(self.context, skill.draft) or [()]
        return replace(skill, embedding=embedding, opening_embeddings=openings)

    def _record(self, source: str, skill_id: str) -> Metadata:
        return Metadata(MetadataKey(self.queries.org, IMPORT, source), {"skill_id": skill_id})

    def _tell(self, result: Result, skill: Skill, detail: str = "") -> Imported:
        return Imported(self.folder.name, result, skill.skill_id, skill.title, detail=detail)


def _to_skill(found: ReadFolder, context: Context) -> Skill:
    """Return the skill that refdesk wrote, fit to keep here: bounded, masked, with whoever imports it as author.

    Raises:
        ValueError: It is not a skill.
    """
    kept = found.evidence
    draft = learning.clean(_DRAFT.validate_python({name: kept[name] for name in _DRAFT_FIELDS}))
    metadata = cast("JsonObject", kept["metadata"])
    author, agent = str(kept["author"]), context.principal.agent
    if author != agent:
        metadata = {**metadata, manifest.IMPORTED_AUTHOR: author}
    if len(json.dumps(metadata, ensure_ascii=False)) > MAX_METADATA:
        raise ValueError("is too long")
    created, updated = (_read_instant(kept[name]) for name in ("created_at", "updated_at"))
    skill = records.make_skill(
        draft, metadata, id=_require_id(kept["skill_id"]), author=agent, model=str(kept["made_by"])[:200], now=created
    )
    said = records.to_instructions(kept.get("instructions"))
    if said is not None:
        said = replace(said, files=found.instructions.files)
    stated = {"is_edited": kept.get("edited") is True, "silent": max(0, int(str(kept.get("silent", 0))))}
    return replace(skill, updated_at=updated, instructions=said, name=found.name or skill.name, **stated)


def _require_id(value: JsonValue) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ValueError("is no id")
    return value


def _read_instant(value: JsonValue) -> datetime:
    instant = datetime.fromisoformat(str(value))
    if instant.tzinfo is None:
        raise ValueError("has no zone")
    return instant


def _to_draft(found: ReadFolder) -> SkillDraft:
    """Return what a folder from elsewhere is searched by; it has no steps, only its own words.

    Raises:
        InvalidInputError: It says nothing.
    """
    said = found.instructions
    if not visible.is_seen(said.text):
        raise InvalidInputError("SKILL.md says nothing below its front matter: write the steps there.")
    headings = tuple(str(each) for each in _HEADINGS.findall(said.text)[:MAX_KEYWORDS])
    goal = said.description
    return learning.clean(SkillDraft(found.title, said.description, Playbook(goal), keywords=headings))


def _is_same(skill: Skill, other: Skill) -> bool:
    """Return whether two skills say the same on the same evidence."""
    mine, others = (learning.clean(each.draft) for each in (skill, other))
    return mine == others and skill.instructions == other.instructions


def _digest(folder: Folder) -> str:
    said = json.dumps(asdict(folder), sort_keys=True)
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()
