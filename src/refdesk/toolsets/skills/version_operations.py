"""Reads what a skill said in any of its versions, and how following it went, report by report."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from refdesk.core.operations import READS, Operation, Route, Shortening
from refdesk.errors import NotFoundError
from refdesk.toolsets.skills import missing, models, reports
from refdesk.toolsets.skills.models import Message, Outcome, SkillDocument, SkillId
from refdesk.toolsets.skills.queries import get_queries

if TYPE_CHECKING:
    from refdesk.core.context import Context
    from refdesk.model import Metadata

_SCOPES = frozenset({"skills:read"})
_ID = "01930000-0000-7000-8000-000000000001"
_INVALID = "An argument is missing, malformed or blank."
_UNKNOWN = "No skill has this id, as far as the caller may know."


class VersionInput(Message):
    """What `get_skill_version` takes."""

    skill_id: SkillId
    version: int = Field(ge=1, le=1_000_000, description="Its number; get_skill_history lists them.")


class OutcomesInput(Message):
    """What `list_outcomes` takes."""

    skill_id: SkillId
    limit: int = Field(200, ge=1, le=1000, description="At most this many, the newest.")


class ReportedOutcome(Message):
    """A report of how following a skill went."""

    report_id: str
    outcome: Outcome
    version: int = Field(description="The one that was followed.")
    agent: str = Field(description="Who reported it.")
    at: datetime
    evidence: str = Field(description="What shows it, masked; empty where nothing was said.")
    withdrawn_at: (
        Annotated[datetime, Field(description="When it was taken back; else absent.")] | SkipJsonSchema[None]
    ) = None


class OutcomesOutput(Message):
    """The reports of a skill, oldest first."""

    outcomes: list[ReportedOutcome]
    total: int = Field(description="How many there are of the skill.")


async def get_skill_version(context: Context, asked: VersionInput) -> SkillDocument:
    """Return a skill as it was in one version."""
    queries = get_queries(context)
    versions = {skill.version: skill for skill in await queries.get_history(asked.skill_id)}
    if not versions:
        raise await missing.explain(queries.store, queries.org, asked.skill_id)
    if asked.version not in versions:
        raise NotFoundError(f"There is no version {asked.version}; there are {min(versions)} to {max(versions)}.")
    return models.to_skill_document(versions[asked.version])


async def list_outcomes(context: Context, asked: OutcomesInput) -> OutcomesOutput:
    """Return the reports of a skill."""
    queries = get_queries(context)
    skill = await queries.get_skill(asked.skill_id)
    if skill is None:
        raise await missing.explain(queries.store, queries.org, asked.skill_id)
    kept = await reports.read(queries, skill)
    return OutcomesOutput(outcomes=[_to_outcome(record) for record in kept[-asked.limit :]], total=len(kept))


def _to_outcome(record: Metadata) -> ReportedOutcome:
    shown = {name: record.value[name] for name in ("outcome", "version", "agent", "at", "evidence")}
    withdrawn = {"withdrawn_at": record.value["withdrawn_at"]} if "withdrawn_at" in record.value else {}
    return ReportedOutcome.model_validate({"report_id": record.key.name.rpartition("/")[2], **shown, **withdrawn})


VERSION = Operation(
    name="get_skill_version",
    title="Get a version of a skill",
    description="Read a skill as it was in one of its versions. To follow it, get_skill reads the present one.",
    input=VersionInput,
    output=SkillDocument,
    handler=get_skill_version,
    scopes=_SCOPES,
    effects=READS,
    route=Route("GET", "/skills/{skill_id}/versions/{version}"),
    errors={"INVALID_INPUT": _INVALID, "NOT_FOUND": "There is no such skill, or no such version of it."},
    shortening=Shortening("", ("resolution",), "REST and the command line have all of it."),
    examples=({"skill_id": _ID, "version": 1},),
)

OUTCOMES = Operation(
    name="list_outcomes",
    title="List outcomes of a skill",
    description="List the reports of how following a skill went, oldest first: who reported what of which version.",
    input=OutcomesInput,
    output=OutcomesOutput,
    handler=list_outcomes,
    scopes=_SCOPES,
    effects=READS,
    route=Route("GET", "/skills/{skill_id}/outcomes"),
    errors={"INVALID_INPUT": _INVALID, "NOT_FOUND": _UNKNOWN},
    shortening=Shortening("outcomes", ("evidence",), "Ask for fewer at once."),
    examples=({"skill_id": _ID},),
)
