"""What a skill was made of and judged by is gone with it, on every engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from refdesk.core.background.embedding import Indexer
from refdesk.core.keeping import erasing
from refdesk.core.writing import audit
from refdesk.errors import NotFoundError
from refdesk.model import Metadata, MetadataKey
from refdesk.toolsets.skills.records import get_collection
from tests.stores.traces import find_traces, make_canary
from tests.toolsets.skills.conftest import Desk

ADMIN = audit.Actor("acme", "root", "cli")


def talk(canary: str, symptom: str) -> str:
    return (
        f"Customer: My {canary} printer {symptom}.\n"
        f"Agent: Open the {canary} panel and clean the sensor with a dry cloth.\n"
        "Customer: That worked, thank you!"
    )


@pytest.mark.parametrize("of", ["entry", "agent", "org"])
async def test_no_version_vector_outcome_or_source_of_a_skill_is_left(desk: Desk, tmp_path: Path, of: str) -> None:
    canary, store = make_canary(), desk.base.store
    call, by_other = desk.serve(), desk.serve(agent="bob")
    created = await call("create_skill", conversation=talk(canary, "feeds two labels"), metadata={"note": canary})
    skill_id = str(created["skill_id"])
    await call("update_skill", skill_id=skill_id, conversation=talk(canary, "smears"), feedback=f"Mind the {canary}.")
    await by_other("report_outcome", skill_id=skill_id, outcome="resolved", evidence=f"The {canary} works.")
    assert desk.base.semantics is not None
    await Indexer(store, desk.base.semantics, desk.clock).run_once()
    other = await by_other("create_skill", conversation=talk("other", "is offline"))
    assert len(await store.get_revisions(get_collection("acme"), skill_id)) >= 2
    assert await find_traces(store, tmp_path, canary)
    wanted = {
        "entry": erasing.Erasable("acme", skill_id),
        "agent": erasing.Erasable("acme", agent="ann"),
        "org": erasing.Erasable("acme"),
    }[of]
    await erasing.erase(store, desk.clock, ADMIN, wanted)
    assert await find_traces(store, tmp_path, canary) == []
    with pytest.raises(NotFoundError):
        await call("get_skill", skill_id=skill_id)
    found = await call("search_skills", query=f"{canary} printer is offline")
    assert [match["skill_id"] for match in found["matches"]] == ([other["skill_id"]] if of != "org" else [])
    # The same conversation is new again.
    if of == "entry":
        assert (await call("create_skill", conversation=talk(canary, "feeds two labels")))["created"]


async def test_what_came_with_a_kill_half_way_goes_when_it_is_done_again(desk: Desk) -> None:
    created = await desk.serve()("create_skill", conversation=talk("label", "feeds two labels"))
    skill_id, store = str(created["skill_id"]), desk.base.store
    await erasing.erase(store, desk.clock, ADMIN, erasing.Erasable("acme", skill_id))
    left = MetadataKey("acme", "skill_outcome", f"{skill_id}/late")
    async with store.transaction() as transaction:
        await transaction.put_metadata([Metadata(left, {"evidence": "Something private."})])
    await erasing.erase(store, desk.clock, ADMIN, erasing.Erasable("acme", skill_id))
    assert await store.get_metadata(left) is None
    with pytest.raises(NotFoundError):
        await erasing.erase(store, desk.clock, ADMIN, erasing.Erasable("acme", skill_id))
