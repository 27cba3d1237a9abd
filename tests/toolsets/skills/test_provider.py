"""How skills take part in a search over everything, on every engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from refdesk.core.search.providers import Period, ProviderAnswer, Question
from refdesk.toolsets.skills.provider import find
from tests.toolsets.skills.conftest import NOW, Desk
from tests.toolsets.skills.test_queries import make_skill


async def ask(desk: Desk, org: str = "acme", **more: object) -> list[str]:
    found = await find(desk.context(org), Question("the heating stays cold", **more))  # pyright: ignore[reportArgumentType]
    assert isinstance(found, ProviderAnswer)
    return [hit.id for hit in found.hits]


async def test_a_skill_comes_with_its_problem_its_author_and_how_to_read_it(desk: Desk) -> None:
    skill = await desk.queries().create_skill(make_skill())
    found = await find(desk.context(), Question("the heating stays cold"))
    assert isinstance(found, ProviderAnswer)
    [hit] = found.hits
    assert (hit.id, hit.title, hit.author, hit.freshness) == (skill.skill_id, skill.title, "ann", NOW)
    assert "stays cold" in hit.snippet
    assert 0.5 < hit.relevance <= 1.0
    assert (hit.reference.operation, hit.reference.uri) == ("get_skill", f"skill://{skill.skill_id}")
    kept = await desk.queries().get_skill(skill.skill_id)
    assert kept is not None
    assert kept.times_used == 0


@pytest.mark.parametrize(
    ("tags", "numbers"),
    [(("heating",), [1, 2]), (("How_To",), [2]), (("heating", "how-to"), [2]), (("billing",), list[int]())],
)
async def test_a_tag_is_a_product_area_or_an_issue_type(desk: Desk, tags: tuple[str, ...], numbers: list[int]) -> None:
    for number, kind in ((1, "bug"), (2, "how-to")):
        skill = replace(make_skill(number), product_area="Heating", issue_type=kind)
        await desk.queries().create_skill(skill)
    assert sorted(await ask(desk, tags=tags)) == [make_skill(number).skill_id for number in numbers]


async def test_the_period_is_that_of_the_last_refinement_with_both_ends(desk: Desk) -> None:
    later = NOW + timedelta(days=2)
    await desk.queries().create_skill(make_skill(1))
    await desk.queries().create_skill(replace(make_skill(2), updated_at=later))
    assert await ask(desk, period=Period(later, later), limit=1) == [make_skill(2).skill_id]
    assert await ask(desk, period=Period(until=NOW), limit=1) == [make_skill(1).skill_id]
    assert await ask(desk, period=Period(later + timedelta(microseconds=1))) == []


async def test_another_orgs_skills_are_not_found(desk: Desk) -> None:
    await desk.queries("other").create_skill(make_skill())
    assert await ask(desk) == []
