"""The record of a skill and its mapping to and from a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import cast

import regex
from pydantic import TypeAdapter

from refdesk.core.search.folding import fold
from refdesk.model import Collection, DateRange, Document, JsonObject, JsonValue
from refdesk.playbooks import Playbook, SkillDraft
from refdesk.toolsets.skills import TOOLSET_NAME, outcomes, rendering
from refdesk.toolsets.skills.outcomes import Tally

FIRST_CONFIDENCE = 0.5
NAME, PRODUCT_AREA, ISSUE_TYPE = "name", "product_area", "issue_type"
"""Facets, and the keys of metadata that win over what a model infers."""

UPDATED = "updated"
MERGED_INTO = "merged_into"
"""Key in the data of a withdrawn skill's document: the id of the skill that its cases moved to."""

MAX_SLUG = 50
_PLAYBOOK = TypeAdapter(Playbook)
_NOT_IN_A_SLUG = regex.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Instructions:
    """What an imported skill says in its own words; what conversations teach later is kept beside it.

    Attributes:
        description: As its file had it.
        text: Markdown: all of the file below its front matter.
        fields: The other fields of the front matter that the format knows.
        files: The folder's other files, by path.
    """

    description: str
    text: str
    fields: JsonObject = field(default_factory=dict[str, JsonValue])
    files: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A playbook learned from conversations.

    Attributes:
        name: What it is called where skills are files: stable over its versions, unique in its org.
        version: 1 for the first; each refinement adds one.
        confidence: In [0, 1]; moved by reported outcomes, not by refinements. This and all counts and tallies of use
            are the current ones, whichever version this is.
        tallies: Of reports, by the steps that were followed.
        weeks: Of reports, by the week in which they came and the version that was followed; see `outcomes.name_week`.
        rejected: Steps that it went back from, because they worked worse.
        unreported: How many of the times it was read whole have no report yet.
        reads: How often it has been read whole since reads have been counted.
        changes: What this version changed.
        suggested: The steps that its cases suggest, if it keeps others because those worked worse; else empty. See
            `outcomes.identify`.
        made_by: The language model that wrote this version.
        openings: How customers began, and what they said in all: what it is found by, besides its problem.
        silent: In how many of its cases the customer began without saying what they wanted.
        instructions: Those of a skill that was imported, not learned; such a skill may have no steps.
        is_edited: Whether a person wrote its steps; conversations do not change those.
        embedding: Unit length; empty if the skill was read from the store, whose documents come without vectors.
        opening_embeddings: One for each opening; empty likewise.
    """

    skill_id: str
    title: str
    problem: str
    playbook: Playbook
    conditions: tuple[str, ...]
    keywords: tuple[str, ...]
    made_by: str
    author: str
    created_at: datetime
    updated_at: datetime
    name: str
    version: int = 1
    product_area: str = ""
    issue_type: str = ""
    confidence: float = FIRST_CONFIDENCE
    times_used: int = 0
    times_confirmed: int = 0
    tallies: Mapping[str, Tally] = field(default_factory=dict[str, Tally])
    weeks: Mapping[str, Tally] = field(default_factory=dict[str, Tally])
    rejected: tuple[str, ...] = ()
    unreported: int = 0
    reads: int = 0
    metadata: JsonObject = field(default_factory=dict[str, JsonValue])
    changes: tuple[str, ...] = ()
    suggested: str = ""
    openings: tuple[str, ...] = ()
    silent: int = 0
    instructions: Instructions | None = None
    is_edited: bool = False
    embedding: Sequence[float] = field(default=(), repr=False, compare=False)
    opening_embeddings: Sequence[Sequence[float]] = field(default=(), repr=False, compare=False)

    @property
    def tally(self) -> Tally:
        """The reports of its present steps."""
        return self.tallies.get(outcomes.identify(self.playbook), outcomes.UNKNOWN)

    @property
    def body(self) -> str:
        """The text that is searched and embedded along with the title."""
        return write_body(self.problem, self.conditions, self.keywords, self.openings)

    @property
    def resolution(self) -> str:
        """The playbook as Markdown, below a status line with the current state of the skill."""
        standing = rendering.Standing(
            self.version,
            self.confidence,
            self.times_used,
            self.times_confirmed,
            self.product_area,
            self.issue_type,
            self.made_by,
        )
        text = self.instructions.text if self.instructions is not None else ""
        return rendering.render_resolution(self.title, self.playbook, standing, text)

    @property
    def draft(self) -> SkillDraft:
        """What a language model is shown of it."""
        return SkillDraft(
            self.title,
            self.problem,
            self.playbook,
            self.conditions,
            self.keywords,
            self.product_area,
            self.issue_type,
            self.openings,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillUpdate:
    """What to change in a skill; `None` leaves a field as it is.

    Attributes:
        expected_version: The version this was made from; if another one is stored, nothing is changed.
        changes: What changed, kept with the new version.
        suggested: As in `Skill`, for the new version.
    """

    title: str | None = None
    problem: str | None = None
    playbook: Playbook | None = None
    conditions: tuple[str, ...] | None = None
    keywords: tuple[str, ...] | None = None
    openings: tuple[str, ...] | None = None
    silent: int | None = None
    instructions: Instructions | None = None
    is_edited: bool | None = None
    embedding: Sequence[float] | None = field(default=None, repr=False)
    opening_embeddings: Sequence[Sequence[float]] | None = field(default=None, repr=False)
    product_area: str | None = None
    issue_type: str | None = None
    confidence: float | None = None
    made_by: str | None = None
    changes: tuple[str, ...] = ()
    suggested: str = ""
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class Counters:
    """How a skill has done, apart from its text, so that being found makes no new version.

    Attributes:
        tallies: Of reports, by the steps that were followed; see `outcomes.identify`.
        weeks: Of reports, by week and version; see `outcomes.name_week`.
        rejected: Steps that it went back from.
        unreported: How many of the times it was read whole have no report yet.
        reads: How often it has been read whole since reads have been counted.
    """

    confidence: float = FIRST_CONFIDENCE
    times_used: int = 0
    times_confirmed: int = 0
    tallies: Mapping[str, Tally] = field(default_factory=dict[str, Tally])
    weeks: Mapping[str, Tally] = field(default_factory=dict[str, Tally])
    rejected: tuple[str, ...] = ()
    unreported: int = 0
    reads: int = 0


def get_collection(org: str) -> Collection:
    """Return the collection of an org's skills."""
    return Collection(org, TOOLSET_NAME)


def make_skill(draft: SkillDraft, metadata: JsonObject, *, id: str, author: str, model: str, now: datetime) -> Skill:
    """Return a new skill made from a draft; product area and issue type in the metadata win over the draft's."""
    return Skill(
        skill_id=id,
        title=draft.title,
        problem=draft.problem,
        playbook=draft.playbook,
        conditions=draft.conditions,
        keywords=draft.keywords,
        openings=draft.openings,
        product_area=get_text(metadata, PRODUCT_AREA) or draft.product_area,
        issue_type=get_text(metadata, ISSUE_TYPE) or draft.issue_type,
        metadata=metadata,
        made_by=model,
        author=author,
        created_at=now,
        updated_at=now,
        name=make_name(draft.title, id),
        changes=("Created.",),
    )


def get_text(metadata: JsonObject, key: str) -> str:
    """Return a text of the metadata, empty where there is none."""
    value = metadata.get(key)
    return value.strip() if isinstance(value, str) else ""


def make_name(title: str, id: str) -> str:
    """Return a name of lower-case letters, digits and hyphens, at most 64 long, with the end of the id in it."""
    slug = _NOT_IN_A_SLUG.sub("-", fold(title))[:MAX_SLUG].strip("-")
    return f"{slug or 'skill'}-{id.replace('-', '')[-12:]}"


def write_body(problem: str, conditions: Sequence[str], keywords: Sequence[str], openings: Sequence[str] = ()) -> str:
    """Return what is searched and embedded along with the title: people search by problem.

    The openings come last, each on a line of its own, after a blank line.
    """
    lead = write_lead(problem, conditions, keywords)
    return "\n\n".join(part for part in (lead, "\n".join(openings)) if part)


def write_lead(problem: str, conditions: Sequence[str], keywords: Sequence[str]) -> str:
    """Return the part of the body before the openings."""
    return "\n".join(part for part in (problem, *conditions, ", ".join(keywords)) if part)


def to_document(skill: Skill, org: str) -> Document:
    """Return the document of a skill; its counters and its vector are kept elsewhere."""
    data: dict[str, JsonValue] = {
        "problem": skill.problem,
        "conditions": list(skill.conditions),
        "keywords": list(skill.keywords),
        "playbook": asdict(skill.playbook),
        "metadata": skill.metadata,
        "openings": list(skill.openings),
        "silent": skill.silent,
        "made_by": skill.made_by,
        "changes": list(skill.changes),
    }
    if skill.instructions is not None:
        data["instructions"] = asdict(skill.instructions)
    if skill.is_edited:
        data["edited"] = True
    if skill.suggested:
        data["suggested"] = skill.suggested
    named = {NAME: skill.name, PRODUCT_AREA: skill.product_area, ISSUE_TYPE: skill.issue_type}
    return Document(
        collection=get_collection(org),
        id=skill.skill_id,
        title=skill.title,
        body=skill.body,
        author=skill.author,
        created_at=skill.created_at,
        modified_at=skill.updated_at,
        facets={facet: (value,) for facet, value in named.items() if value},
        date_ranges={UPDATED: (DateRange(skill.updated_at, skill.updated_at),)},
        version=skill.version,
        data=data,
    )


def to_skill(document: Document, counters: Counters) -> Skill:
    """Return the skill of a document."""
    data = document.data
    return Skill(
        skill_id=document.id,
        title=document.title,
        version=document.version,
        problem=str(data["problem"]),
        playbook=_PLAYBOOK.validate_python(data["playbook"]),
        conditions=_texts(data["conditions"]),
        keywords=_texts(data["keywords"]),
        openings=_texts(data.get("openings", [])),
        silent=int(str(data.get("silent", 0))),
        instructions=to_instructions(data.get("instructions")),
        is_edited=bool(data.get("edited", False)),
        product_area=_first(document.facets, PRODUCT_AREA),
        issue_type=_first(document.facets, ISSUE_TYPE),
        confidence=counters.confidence,
        times_used=counters.times_used,
        times_confirmed=counters.times_confirmed,
        tallies=counters.tallies,
        weeks=counters.weeks,
        rejected=counters.rejected,
        unreported=counters.unreported,
        reads=counters.reads,
        metadata=cast("JsonObject", data["metadata"]),
        made_by=str(data["made_by"]),
        author=document.author,
        created_at=document.created_at,
        updated_at=document.modified_at,
        name=_first(document.facets, NAME),
        changes=_texts(data["changes"]),
        suggested=str(data.get("suggested", "")),
    )


def to_instructions(value: JsonValue) -> Instructions | None:
    """Return the instructions of a record; `None` where it has none."""
    if not isinstance(value, Mapping):
        return None
    fields, files = (cast("JsonObject", value.get(name, {})) for name in ("fields", "files"))
    texts = {path: str(text) for path, text in files.items()}
    return Instructions(str(value["description"]), str(value["text"]), fields, texts)


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(str(item) for item in cast("Sequence[JsonValue]", value))


def _first(facets: Mapping[str, tuple[str, ...]], name: str) -> str:
    values = facets.get(name, ())
    return values[0] if values else ""
