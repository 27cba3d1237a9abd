"""What counts as use, what is done once though it is said twice, and what is taken back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio
import pytest

from refdesk.errors import ConflictError, NotFoundError, PermissionDeniedError
from refdesk.server import subscriptions
from refdesk.toolsets.skills.models import GetInput
from refdesk.toolsets.skills.operations import get_skill
from tests.toolsets.skills.conftest import INVOICE, Desk, ScriptedModel

UNKNOWN = "01930000-0000-7000-8000-000000000009"


async def test_searching_is_no_use_and_reading_or_reporting_is_one_each_time(desk: Desk) -> None:
    call = desk.serve()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    for _ in range(5):
        await call("search_skills", query="how do I prune an apple tree")
        await call("search_skills", query="invoice")
    uses = [(await call("get_skill", skill_id=id))["times_used"] for _ in range(2)]
    # Each of the first two reports is of what was read whole; the third follows what a search returned.
    uses += [(await call("report_outcome", skill_id=id, outcome="resolved"))["times_used"] for _ in range(3)]
    assert uses == [1, 2, 2, 2, 3]
    skill = await desk.queries().get_skill(id)
    assert skill is not None
    assert skill.version == 1


async def test_what_the_server_reads_for_itself_is_no_use(desk: Desk) -> None:
    created = await desk.serve()("create_skill", conversation=INVOICE)
    context = desk.context()
    watching = replace(context, principal=replace(context.principal, transport=subscriptions.WATCH))
    read = await get_skill(watching, GetInput(skill_id=created["skill_id"]))
    assert read.times_used == 0


TOKEN, OTHER_TOKEN = "bbbbbbbb-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"


async def test_what_is_said_twice_with_a_token_is_done_once(desk: Desk) -> None:
    call = desk.serve()
    created = [await call("create_skill", conversation=INVOICE, clientToken=TOKEN) for _ in range(2)]
    assert created[1] == {**created[0], "replayed": True}
    assert created[0]["created"] is True
    id = created[0]["skill_id"]
    talk = {"skill_id": id, "conversation": INVOICE.replace("4471", "4482"), "clientToken": TOKEN}
    updated = [await call("update_skill", **talk) for _ in range(2)]
    assert updated[1] == {**updated[0], "replayed": True}
    assert updated[0]["version"] == 2
    reported = [await call("report_outcome", skill_id=id, outcome="resolved", clientToken=TOKEN) for _ in range(2)]
    assert reported[1] == {**reported[0], "replayed": True}
    assert reported[0]["confidence"] == pytest.approx(0.6)
    assert len(await desk.base.store.list_metadata("skill_outcome", org="acme")) == 1
    anew = await call("report_outcome", skill_id=id, outcome="resolved", clientToken=OTHER_TOKEN)
    assert anew["confidence"] == pytest.approx(0.7)


async def test_a_token_is_for_one_request_of_one_agent_for_a_minute(desk: Desk) -> None:
    call, talk = desk.serve(), INVOICE.replace("4471", "4482")
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    report = {"skill_id": id, "outcome": "resolved", "clientToken": TOKEN}
    await call("report_outcome", **report)
    with pytest.raises(ConflictError, match="another request"):
        await call("report_outcome", **{**report, "outcome": "failed"})
    await call("update_skill", skill_id=id, conversation=talk, clientToken=TOKEN)
    with pytest.raises(ConflictError, match="another request"):
        await call("update_skill", skill_id=id, conversation=INVOICE, clientToken=TOKEN)
    assert "replayed" not in await desk.serve(agent="bob")("report_outcome", **report)
    desk.clock.advance(timedelta(seconds=61))
    assert (await call("report_outcome", **report))["confidence"] == pytest.approx(0.8)


async def test_repetitions_that_run_at_once_are_done_once(desk: Desk) -> None:
    model, answers = ScriptedModel(), list[dict[str, Any]]()
    id = (await desk.serve(model)("create_skill", conversation=INVOICE))["skill_id"]

    async def refine(place: int) -> None:
        # Each has its own locks, as if it were a process of its own.
        call = desk.serve(model) if place % 2 else desk.serve(ScriptedModel())
        answers.append(await call("update_skill", skill_id=id, conversation=INVOICE, clientToken=TOKEN))

    async with anyio.create_task_group() as group:
        for place in range(6):
            group.start_soon(refine, place)
    assert {answer["version"] for answer in answers} == {2}
    assert sum("replayed" not in answer for answer in answers) == 1


async def test_an_outcome_that_was_wrong_is_taken_back_with_all_it_did(desk: Desk) -> None:
    call, queries = desk.serve(), desk.queries()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    await call("report_outcome", skill_id=id, outcome="failed")
    before = await queries.get_skill(id)
    wrong = await call("report_outcome", skill_id=id, outcome="resolved")
    for _ in range(2):
        stands = await call("withdraw_outcome", skill_id=id, report_id=wrong["report_id"])
        assert stands["confidence"] == pytest.approx(0.4)
    assert await queries.get_skill(id) == before
    kept = await desk.base.store.list_metadata("skill_outcome", org="acme")
    assert sum("withdrawn_at" in each.value for each in kept) == 1


async def test_only_who_reported_takes_it_back(desk: Desk) -> None:
    call = desk.serve()
    id = (await call("create_skill", conversation=INVOICE))["skill_id"]
    report = (await call("report_outcome", skill_id=id, outcome="resolved"))["report_id"]
    with pytest.raises(PermissionDeniedError, match="Another agent"):
        await desk.serve(agent="bob")("withdraw_outcome", skill_id=id, report_id=report)
    with pytest.raises(NotFoundError, match="no skill"):
        await desk.serve(org="zenith")("withdraw_outcome", skill_id=id, report_id=report)
    with pytest.raises(NotFoundError, match="report_id of report_outcome"):
        await call("withdraw_outcome", skill_id=id, report_id=UNKNOWN)
