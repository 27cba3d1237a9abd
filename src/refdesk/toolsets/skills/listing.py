"""Lists skills without a query, page by page, with their total and the counts by product area and issue type."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from refdesk.core.operations import READS, Operation, Route, Shortening
from refdesk.core.search import walking
from refdesk.core.search.retrieval import SearchRequest
from refdesk.kit.paging import CURSOR, Cursor, NextCursor, Notice, Paged, explain_end
from refdesk.kit.walks import read_page
from refdesk.model import And, Filter, HasAll, SortKey
from refdesk.toolsets.skills import records
from refdesk.toolsets.skills.models import Message
from refdesk.toolsets.skills.queries import get_queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refdesk.core.context import Context
    from refdesk.model import Collection, FacetCount
    from refdesk.protocols import Store
    from refdesk.toolsets.skills.records import Skill

REFINED_LAST_FIRST = (SortKey("modified", descending=True), SortKey("id"))

_FACETS = (records.PRODUCT_AREA, records.ISSUE_TYPE)

Value = Annotated[str, Field(max_length=200)] | SkipJsonSchema[None]


class ListInput(Message):
    """What `list_skills` takes."""

    product_area: Value = Field(None, description="Only skills of this product area.")
    issue_type: Value = Field(None, description="Only skills of this type of issue.")
    limit: int = Field(50, ge=1, le=200, description="At most this many.")
    offset: int = Field(0, ge=0, description="How many to skip: the next page starts at `offset` + `limit`.")
    cursor: Cursor = Field(None, description=CURSOR.replace("nextCursor", "next_cursor"))


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


class ListOutput(Paged, Message):
    """One page of the skills, those refined last first."""

    skills: list[SkillSummary]
    total: int = Field(description="How many there are in all.")
    offset: int = Field(description="How many came before.")
    has_more: bool
    next_cursor: NextCursor = None
    notice: Notice = None
    product_areas: list[Count] = Field(description="Most frequent first.")
    issue_types: list[Count] = Field(description="Most frequent first.")


async def list_skills(context: Context, asked: ListInput) -> ListOutput:
    """Return one page of the skills of the caller's org, most recently refined first, ties by id."""
    queries = get_queries(context)
    given = zip(_FACETS, (asked.product_area, asked.issue_type), strict=True)
    conditions: list[Filter] = [HasAll(facet, (value,)) for facet, value in given if value is not None]
    base, collection = context.knowledge_base, records.get_collection(context.principal.org)
    request = SearchRequest(
        collection,
        where=And(tuple(conditions)) if conditions else None,
        order=REFINED_LAST_FIRST,
        limit=asked.limit,
        facets=_FACETS,
    )
    find_moved = partial(_find_moved, base.store, collection)
    page, found = await read_page(
        base, request, asked, name="list_skills", ranges=records.UPDATED, find_moved=find_moved
    )
    skills = await queries.get_skills([document.id for document in page.items])
    areas, types = (_count(found.facets, facet) for facet in _FACETS)
    return ListOutput(
        skills=[_summarise(skill) for skill in skills],
        total=found.total,
        offset=page.offset,
        has_more=page.has_more,
        next_cursor=page.next_cursor,
        notice=explain_end(page, "skill", "skills", found.total),
        product_areas=areas,
        issue_types=types,
    ).going_on(page.cursors)


async def _find_moved(store: Store, collection: Collection, since: datetime) -> dict[str, datetime]:
    changed = await walking.list_changed(store, collection, records.UPDATED, since)
    return await walking.find_moved(store, collection, changed, lambda each: each.document.modified_at <= since)


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
