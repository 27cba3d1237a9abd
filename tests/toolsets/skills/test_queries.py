"""The store functions of the contract, under their names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import cast

import pytest

from refdesk.core.clock import FixedClock
from refdesk.embedders.hashing import embed
from refdesk.errors import ConflictError
from refdesk.model import FindRequest, Metadata, MetadataKey
from refdesk.playbooks import Playbook, Step
from refdesk.protocols import Store
from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.skills.queries import SkillQueries
from refdesk.toolsets.skills.records import Skill, SkillUpdate
from tests.toolsets.skills.conftest import INVOICE, NOW, Desk


def make_skill(number: int = 1, problem: str = "The heating stays cold.") -> Skill:
    return Skill(
        skill_id=f"01930000-0000-7000-8000-{number:012}",
        title="Cold heating",
        problem=problem,
        playbook=Playbook("Warm.", steps=(Step("Open the valve."),)),
        conditions=("Winter.",),
        keywords=("cold",),
        made_by="hand",
        author="ann",
        created_at=NOW,
        updated_at=NOW,
        name=f"cold-heating-{number}",
        embedding=embed(problem).tolist(),
    )


async def test_a_skill_is_read_as_it_was_kept(desk: Desk) -> None:
    queries, skill = desk.queries(), make_skill()
    assert await queries.create_skill(skill) == skill
    assert await queries.get_skill(skill.skill_id) == skill
    assert await queries.get_skill("unknown") is None
    read = await queries.get_skill(skill.skill_id)
    assert read is not None
    assert read.embedding == ()


async def test_a_skill_is_found_by_words_by_vector_and_by_both(desk: Desk) -> None:
    queries, skill = desk.queries(), make_skill()
    await queries.create_skill(skill)
    vector = embed("heating cold").tolist()
    for embedding, text in (((), "heating"), (vector, ""), (vector, "heating")):
        [found] = await queries.hybrid_search(embedding, text)
        assert found["skill"] == skill
        assert 0 < found["score"] <= 1
    assert await queries.hybrid_search((), "") == []
    assert await queries.hybrid_search(vector, "heating", min_score=1.0) == []


async def test_at_most_top_k_are_returned_best_first(desk: Desk) -> None:
    queries = desk.queries()
    for number in range(1, 8):
        await queries.create_skill(make_skill(number, f"The heating stays cold in room {number}."))
    found = await queries.hybrid_search(embed("cold heating in room 3").tolist(), "cold heating in room 3", top_k=4)
    scores = [match["score"] for match in found]
    assert found[0]["skill"].skill_id.endswith("3")
    assert len(found) == 4
    assert scores == sorted(scores, reverse=True)


async def test_updating_changes_what_is_given_and_counts_the_version_up(desk: Desk) -> None:
    queries, skill = desk.queries(), make_skill()
    await queries.create_skill(skill)
    vector = embed("The cellar is wet.").tolist()
    changed = await queries.update_skill(
        skill.skill_id, SkillUpdate(problem="The cellar is wet.", embedding=vector, confidence=0.9)
    )
    assert (changed.version, changed.problem, changed.title) == (2, "The cellar is wet.", "Cold heating")
    read = await queries.get_skill(skill.skill_id)
    assert read == changed
    assert await queries.check_duplicate(vector) == changed


async def test_a_new_title_leaves_the_skill_where_its_vectors_find_it(desk: Desk) -> None:
    opening = embed("My radiator is like ice.").tolist()
    skill = replace(make_skill(), openings=("My radiator is like ice.",), opening_embeddings=[opening])
    queries = desk.queries()
    await queries.create_skill(skill)
    await queries.update_skill(skill.skill_id, SkillUpdate(title="Heating without heat"))
    await queries.update_skill(skill.skill_id, SkillUpdate(conditions=("Winter.", "The boiler runs.")))
    for vector in (skill.embedding, opening):
        nearest = await queries.find_nearest(vector)
        assert nearest is not None
        assert (nearest[0].title, nearest[1]) == ("Heating without heat", pytest.approx(1.0, abs=1e-4))


async def test_updating_what_is_not_there_is_a_value_error(desk: Desk) -> None:
    with pytest.raises(ValueError, match="no skill unknown"):
        await desk.queries().update_skill("unknown", SkillUpdate(title="x"))


async def test_updating_another_version_than_expected_changes_nothing(desk: Desk) -> None:
    queries, skill = desk.queries(), make_skill()
    await queries.create_skill(skill)
    await queries.update_skill(skill.skill_id, SkillUpdate(title="Second", expected_version=1))
    with pytest.raises(ConflictError, match="version 2"):
        await queries.update_skill(skill.skill_id, SkillUpdate(title="Third", expected_version=1))
    read = await queries.get_skill(skill.skill_id)
    assert read is not None
    assert (read.title, read.version) == ("Second", 2)


async def test_a_duplicate_is_nearer_than_the_threshold_on_the_scale_of_the_cosine(desk: Desk) -> None:
    queries = desk.queries()
    await queries.create_skill(replace(make_skill(), embedding=[1.0, *[0.0] * 255]))
    near, far = [0.96, 0.28, *[0.0] * 254], [0.94, 0.3411744, *[0.0] * 254]
    assert (await queries.check_duplicate(near)) == make_skill()
    assert (await queries.check_duplicate(far)) is None
    assert (await queries.check_duplicate(far, threshold=0.9)) == make_skill()
    assert (await queries.check_duplicate([0.0, 1.0, *[0.0] * 254])) is None


async def test_no_query_crosses_an_org(desk: Desk) -> None:
    skill = make_skill()
    await desk.queries().create_skill(skill)
    other = desk.queries("globex")
    assert await other.get_skill(skill.skill_id) is None
    assert await other.hybrid_search(skill.embedding, "heating") == []
    assert await other.check_duplicate(skill.embedding) is None
    assert await other.get_history(skill.skill_id) == []
    assert await other.get_by_name(skill.name) is None
    with pytest.raises(ValueError):
        await other.update_skill(skill.skill_id, SkillUpdate(title="x"))


class CountingStore(MemoryStore):
    """Counts the reads of metadata."""

    reads = 0

    async def get_metadata(self, key: MetadataKey) -> Metadata | None:
        self.reads += 1
        return await super().get_metadata(key)

    async def get_many_metadata(self, keys: Sequence[MetadataKey]) -> list[Metadata | None]:
        self.reads += 1
        return await super().get_many_metadata(keys)


async def test_the_counters_of_all_that_is_found_are_read_at_once() -> None:
    store = CountingStore(FixedClock(NOW))
    queries = SkillQueries(store, FixedClock(NOW), "acme")
    for number in range(1, 8):
        await queries.create_skill(make_skill(number))
    for number in (2, 5):
        await queries.count_use(make_skill(number).skill_id)
    store.reads = 0
    found = await queries.hybrid_search((), "heating", top_k=7)
    assert store.reads == 1
    assert {match["skill"].skill_id[-1]: match["skill"].times_used for match in found} == {
        str(number): int(number in (2, 5)) for number in range(1, 8)
    }
    assert len(await queries.list_skills()) == 7
    assert store.reads == 2


class BusyStore:
    """A store in which somebody changes another skill whenever a near one is looked for."""

    def __init__(self, store: Store, meanwhile: Callable[[], Awaitable[object]], most: int) -> None:
        self.store, self.meanwhile, self.left = store, meanwhile, most

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)

    async def find(self, request: FindRequest) -> object:
        self.left -= 1
        assert self.left >= 0, "it is looked for again and again"
        await self.meanwhile()
        return await self.store.find(request)


async def test_updates_of_others_do_not_keep_a_creation_from_its_end(desk: Desk) -> None:
    call = desk.serve()
    other = (await call("create_skill", conversation=INVOICE))["skill_id"]

    async def meanwhile() -> object:
        return await desk.queries().update_skill(other, SkillUpdate(changes=("meanwhile",)))

    busy = cast("Store", BusyStore(desk.base.store, meanwhile, most=2))
    served = Desk(replace(desk.base, store=busy), desk.clock).serve()
    created = await served("create_skill", conversation="Customer: The lamp is dark.\nAgent: Please change the bulb.")
    assert created["created"] is True
