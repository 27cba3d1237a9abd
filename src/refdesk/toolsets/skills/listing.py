"""Lists skills without a query: page by page, with their number, and how many there are of each product area."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from refdesk.core.operations import READS, Operation, Route, Shortening
from refdesk.core.search.retrieval import SearchRequest
from refdesk.model import And, Filter, HasAll, SortKey
from refdesk.toolsets.skills import records
from refdesk.toolsets.skills.models import Message
from refdesk.toolsets.skills.queries import get_queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.core.context import Context
    from refdesk.model import FacetCount
    from refdesk.toolsets.skills.records import Skill

REFINED_LAST_FIRST = (SortKey("modified", descending=True), SortKey("id"))
FARTHEST = 10**9
"""The largest offset that is looked at; beyond it every page is empty anyway."""

_FACETS = (records.PRODUCT_AREA, records.ISSUE_TYPE)

Value = Annotated[str, Field(max_length=200)] | SkipJsonSchema[None]


class ListInput(Message):
    """What `list_skills` takes."""

    product_area: Value = Field(None, description="Only skills of this product area.")
    issue_type: Value = Field(None, description="Only skills of this type of issue.")
    limit: int = Field(50, ge=1, le=200, description="At most this many.")
    offset: int = Field(0, ge=0, description="How many to skip: the next page starts at `offset` + `limit`.")


class SkillSummary(Message):
    """A skill, without its playbook."""

    skill_id: str
    title: str
    version: int
    problem: str
    product_area: str
    issue_type: str
    confidence: float = Field(description="In [0, 1]; below 0.3 distrust it, above 0.7 follow it closely.")
    times_used: int
    times_confirmed: int
    author: str = Field(description="The agent whose conversation began it.")
    created_at: datetime
    updated_at: datetime


class Count(Message):
    """A value, and how many of the skills listed have it."""

    value: str
    skills: int


class ListOutput(Message):
    """One page of the skills, those refined last first."""

    skills: list[SkillSummary]
    total: int = Field(description="How many there are in all.")
    offset: int
    has_more: bool
    product_areas: list[Count] = Field(description="Most frequent first.")
    issue_types: list[Count] = Field(description="Most frequent first.")


async def list_skills(context: Context, asked: ListInput) -> ListOutput:
    """Return one page of the caller's org's skills, those refined last first, ties by id."""
    queries = get_queries(context)
    given = zip(_FACETS, (asked.product_area, asked.issue_type), strict=True)
    conditions: list[Filter] = [HasAll(facet, (value,)) for facet, value in given if value is not None]
    found = await context.knowledge_base.search(
        SearchRequest(
            records.get_collection(context.principal.org),
            where=And(tuple(conditions)) if conditions else None,
            order=REFINED_LAST_FIRST,
            offset=min(asked.offset, FARTHEST),
            limit=asked.limit,
            facets=_FACETS,
        )
    )
    skills = await queries.get_skills([hit.document.id for hit in found.hits])
    areas, types = (_count(found.facets, facet) for facet in _FACETS)
    return ListOutput(
        skills=[_summarise(skill) for skill in skills],
        total=found.total,
        offset=asked.offset,
        has_more=asked.offset + asked.limit < found.total,
        product_areas=areas,
        issue_types=types,
    )


def _summarise(skill: Skill) -> SkillSummary:
    return SkillSummary(
        skill_id=skill.skill_id,
        title=skill.title,
        version=skill.version,
        problem=skill.problem,
        product_area=skill.product_area,
        issue_type=skill.issue_type,
        confidence=skill.confidence,
        times_used=skill.times_used,
        times_confirmed=skill.times_confirmed,
        author=skill.author,
        created_at=skill.created_at,
        updated_at=skill.updated_at,
    )


def _count(facets: Mapping[str, Sequence[FacetCount]], name: str) -> list[Count]:
    return [Count(value=each.value, skills=each.count) for each in facets.get(name, ())]


LIST = Operation(
    name="list_skills",
    title="List skills",
    description="List skills without a query, those refined last first, page by page: all, or of a product area.",
    input=ListInput,
    output=ListOutput,
    handler=list_skills,
    scopes=frozenset({"skills:read"}),
    effects=READS,
    route=Route("GET", "/skills"),
    errors={"INVALID_INPUT": "An argument is malformed or out of range."},
    shortening=Shortening("skills", pages=True),
    examples=({}, {"product_area": "billing", "limit": 20}),
)
