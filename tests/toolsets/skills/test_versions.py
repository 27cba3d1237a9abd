"""What a skill said in each version, and how following it went, report by report."""

from __future__ import annotations

from datetime import timedelta

import pytest

from refdesk.errors import NotFoundError
from tests.toolsets.skills.conftest import Desk
from tests.toolsets.skills.test_history import learn, refund


async def test_every_version_is_read_as_it_was(desk: Desk) -> None:
    call = desk.serve()
    skill_id = await learn(call, [refund(number) for number in range(4471, 4474)])
    versions = [await call("get_skill_version", skill_id=skill_id, version=number) for number in (1, 2, 3)]
    assert [each["version"] for each in versions] == [1, 2, 3]
    present = await call("get_skill", skill_id=skill_id)
    steps = [each["resolution"].partition("## ")[2] for each in (*versions, present)]
    assert steps[2] == steps[3] != steps[0]
    for wrong in ({"skill_id": skill_id, "version": 4}, {"skill_id": "nothing", "version": 1}):
        with pytest.raises(NotFoundError):
            await call("get_skill_version", **wrong)


async def test_reports_are_listed_in_order_with_those_that_were_taken_back(desk: Desk) -> None:
    call = desk.serve()
    skill_id = await learn(call, [refund(4471)])
    ids = list[str]()
    for outcome in ("resolved", "failed", "likely_resolved"):
        desk.clock.advance(timedelta(minutes=1))
        reported = await call("report_outcome", skill_id=skill_id, outcome=outcome, evidence="ann@example.org said so")
        ids.append(reported["report_id"])
    await call("withdraw_outcome", skill_id=skill_id, report_id=ids[1])
    told = await call("list_outcomes", skill_id=skill_id)
    assert [(each["report_id"], each["outcome"]) for each in told["outcomes"]] == list(
        zip(ids, ("resolved", "failed", "likely_resolved"), strict=True)
    )
    assert ["withdrawn_at" in each for each in told["outcomes"]] == [False, True, False]
    assert "ann@example.org" not in str(told)
    last = await call("list_outcomes", skill_id=skill_id, limit=1)
    assert ([each["report_id"] for each in last["outcomes"]], last["total"]) == (ids[2:], 3)
    with pytest.raises(NotFoundError):
        await call("list_outcomes", skill_id="nothing")
