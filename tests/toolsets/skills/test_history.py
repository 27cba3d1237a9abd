"""What is behind a skill is shown: versions, how they worked, the evidence of steps; two are merged and parted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from refdesk.cli.views_of_skills import render_history
from refdesk.core.keeping import erasing
from refdesk.core.writing import audit
from refdesk.core.writing.quotas import Quota
from refdesk.errors import InvalidInputError, NotFoundError, QuotaExceededError
from refdesk.stores.memory import MemoryStore
from refdesk.toolsets.skills.queries import QUOTA_NAME
from tests.toolsets.skills.conftest import INVOICE, Call, Desk, make_desk


def refund(number: int) -> str:
    return (
        f"Customer: I was charged twice for order {number}.\nAgent: May I have your order number, please?\n"
        f"Customer: It is {number}.\nAgent: I have refunded the second payment.\n"
        f"Customer: It worked, thanks {number}!\n"
    )


def deposit(number: int) -> str:
    return (
        f"Customer: A second payment for order {number} was taken.\nAgent: What is your e-mail address, please?\n"
        f"Customer: a{number}@example.org\nAgent: May I have your order number, please?\nCustomer: It is {number}.\n"
        f"Agent: I have refunded the second payment.\nCustomer: Great {number}!\n"
    )


async def learn(call: Call, talks: list[str], desk: Desk | None = None) -> str:
    created = await call("create_skill", conversation=talks[0])
    for talk in talks[1:]:
        if desk is not None:
            desk.clock.advance(timedelta(minutes=1))
        await call("update_skill", skill_id=created["skill_id"], conversation=talk)
    return str(created["skill_id"])


async def show(call: Call, skill_id: str) -> dict[str, Any]:
    return await call("get_skill_history", skill_id=skill_id)


async def test_each_step_shows_its_id_the_cases_that_support_it_and_how_often_it_led_on(desk: Desk) -> None:
    call = desk.serve()
    skill_id = await learn(call, [refund(number) for number in range(4471, 4475)])
    history = await show(call, skill_id)
    assert [version["version"] for version in history["versions"]] == [4, 3, 2, 1]
    assert [version["kind"] for version in history["versions"]] == ["refined", "refined", "refined", "created"]
    asked, *_ = history["steps"]
    assert (asked["support"], asked["of"], asked["led_on"]) == (4, 4, 4)
    assert len(asked["id"]) == 8
    assert sorted(asked["cases"]) == sorted(case["id"] for case in history["cases"])
    assert {(case["agent"], case["turns"], case["outcome"]) for case in history["cases"]} == {
        ("ann", 5, "likely_resolved")
    }
    with pytest.raises(NotFoundError):
        await show(desk.serve(org="globex"), skill_id)


async def test_reports_count_for_the_steps_that_were_followed_and_going_back_is_told(desk: Desk) -> None:
    call = desk.serve()
    skill_id = await learn(call, [refund(4471)])
    for _ in range(12):
        await call("report_outcome", skill_id=skill_id, outcome="resolved")
    desk.clock.advance(timedelta(days=1))
    await call("update_skill", skill_id=skill_id, conversation=deposit(1234))
    for _ in range(12):
        await call("report_outcome", skill_id=skill_id, outcome="failed", version=2)
    history = await show(call, skill_id)
    back, worse, first = history["versions"]
    assert [version["kind"] for version in history["versions"]] == ["rolled back", "refined", "created"]
    assert (first["worked"], first["failed"], first["verdict"]) == (12, 0, "")
    assert worse["verdict"] == "It surely works worse than version 1."
    assert worse["failed"] >= 5
    assert back["worked"] == 12
    assert 0 <= worse["least"] < worse["rate"] < worse["most"] < first["rate"] <= first["most"] <= 1
    assert back["verdict"] == "Promoted: it surely works better than version 2."
    shown = render_history(history, 100, "utf-8")
    assert "rolled back 2026-03-02" in shown
    assert "Promoted" in shown


async def test_reports_are_shown_by_week_and_version_with_what_was_rolled_back(desk: Desk) -> None:
    call = desk.serve()
    skill_id = await learn(call, [refund(4471)])
    for outcome in [*["resolved"] * 11, "likely_resolved"]:
        await call("report_outcome", skill_id=skill_id, outcome=outcome)
    desk.clock.advance(timedelta(days=7))
    await call("update_skill", skill_id=skill_id, conversation=deposit(1234))
    mistaken = (await call("report_outcome", skill_id=skill_id, outcome="resolved"))["report_id"]
    late = (await call("report_outcome", skill_id=skill_id, outcome="resolved", version=1))["report_id"]
    await call("withdraw_outcome", skill_id=skill_id, report_id=mistaken)
    while len((history := await show(call, skill_id))["versions"]) == 2:
        await call("report_outcome", skill_id=skill_id, outcome="failed", version=2)
    failed = history["versions"][1]["failed"]
    # The clock began on a Sunday.
    assert history["weeks"] == [
        {"week": "2026-02-23", "version": 1, "worked": 11.5, "failed": 0.0},
        {"week": "2026-03-02", "version": 1, "worked": 1.0, "failed": 0.0},
        {"week": "2026-03-02", "version": 2, "worked": 0.0, "failed": failed},
    ]
    shown = render_history(history, 100, "utf-8")
    assert "2026-02-23  v1   ████████████████████  11.5 worked, 0 failed" in shown
    assert f"{' ' * 2}0 worked, {failed:g} failed" in shown
    assert "2026-03-02  v3   rolled back on 2026-03-08: the steps before are back" in shown
    desk.clock.advance(timedelta(days=14))
    await call("withdraw_outcome", skill_id=skill_id, report_id=late)
    assert [week["version"] for week in (await show(call, skill_id))["weeks"]] == [1, 2]


async def test_two_skills_become_one_and_two_again(desk: Desk) -> None:
    call, other_agent = desk.serve(), desk.serve(agent="bob")
    one = await learn(call, [refund(number) for number in range(4471, 4475)], desk)
    other = await learn(other_agent, [deposit(number) for number in range(1231, 1234)], desk)
    before = (await call("get_skill", skill_id=one), await call("get_skill", skill_id=other))
    merged = await call("merge_skills", skill_id=one, other_id=other)
    assert (merged["skill_id"], merged["version"], merged["other_id"]) == (one, 5, other)
    assert merged["changes"][0].endswith(f"({other}): 3 of its conversations are evidence now.")
    history = await show(call, one)
    assert (history["versions"][0]["kind"], history["merged_from"]) == ("merged", [other])
    assert sorted(case["agent"] for case in history["cases"]) == ["ann"] * 4 + ["bob"] * 3
    assert max(step["support"] for step in history["steps"]) == 7
    found = await call("search_skills", query="A second payment was taken", top_k=50)
    assert [match["skill_id"] for match in found["matches"]] == [one]
    for name in ("get_skill", "report_outcome"):
        with pytest.raises(NotFoundError, match=f"was merged into {one}"):
            await call(name, skill_id=other, **({"outcome": "failed"} if name == "report_outcome" else {}))
    # The conversations are known where they are now.
    assert (await call("create_skill", conversation=deposit(1231)))["skill_id"] == one
    parted = await call("unmerge_skills", skill_id=other)
    assert (parted["skill_id"], parted["other_id"]) == (other, one)
    after = (await call("get_skill", skill_id=one), await call("get_skill", skill_id=other))
    for old, new in zip(before, after, strict=True):
        for name in ("title", "problem", "conditions", "keywords"):
            assert new[name] == old[name]
        assert new["resolution"].partition("## Goal")[2] == old["resolution"].partition("## Goal")[2]
    assert (await call("create_skill", conversation=deposit(1231)))["skill_id"] == other
    # Meaning finds it again, too.
    assert (await desk.queries().find_nearest(await embed(desk, after[1]))) is not None
    history = await show(call, one)
    assert (history["versions"][0]["kind"], history["merged_from"], len(history["cases"])) == ("unmerged", [], 4)
    assert (await show(call, other))["versions"][0]["kind"] == "unmerged"


async def embed(desk: Desk, skill: dict[str, Any]) -> list[float]:
    assert desk.base.semantics is not None
    return (await desk.base.semantics.wanted.embed_query(skill["problem"])).tolist()


async def test_what_cannot_be_merged_or_parted_is_said_and_changes_nothing() -> None:
    desk = make_desk(MemoryStore())
    call = desk.serve()
    one, other = await learn(call, [refund(1)]), await learn(call, [INVOICE])
    with pytest.raises(InvalidInputError, match="with itself"):
        await call("merge_skills", skill_id=one, other_id=one)
    for pair in ({"skill_id": one, "other_id": "unknown"}, {"skill_id": "unknown", "other_id": one}):
        with pytest.raises(NotFoundError):
            await call("merge_skills", **pair)
    with pytest.raises(NotFoundError):
        await desk.serve(org="globex")("merge_skills", skill_id=one, other_id=other)
    with pytest.raises(InvalidInputError, match="was not merged"):
        await call("unmerge_skills", skill_id=one)
    assert [skill.version for skill in await desk.queries().list_skills()] == [1, 1]


async def test_a_merge_of_a_merged_skill_is_undone_in_turn() -> None:
    desk = make_desk(MemoryStore())
    call = desk.serve()
    first, second, third = await learn(call, [refund(1)]), await learn(call, [INVOICE]), await learn(call, [deposit(2)])
    await call("merge_skills", skill_id=second, other_id=first)
    await call("merge_skills", skill_id=third, other_id=second)
    with pytest.raises(NotFoundError):
        await call("unmerge_skills", skill_id=first)
    await call("unmerge_skills", skill_id=second)
    await call("unmerge_skills", skill_id=first)
    assert len(await desk.queries().list_skills()) == 3
    for skill_id in (first, second, third):
        assert len((await show(call, skill_id))["cases"]) == 1


async def test_what_an_agent_sent_is_erased_from_the_skill_that_it_was_merged_into() -> None:
    desk = make_desk(MemoryStore())
    one = await learn(desk.serve(), [refund(1)])
    other = await learn(desk.serve(agent="bob"), [deposit(2)])
    await desk.serve()("merge_skills", skill_id=one, other_id=other)
    actor = audit.Actor("acme", "root", "cli")
    await erasing.erase(desk.base.store, desk.clock, actor, erasing.Erasable("acme", agent="bob"))
    assert [case["agent"] for case in (await show(desk.serve(), one))["cases"]] == ["ann"]


async def test_the_view_is_plain_text_as_wide_as_the_terminal() -> None:
    call = make_desk(MemoryStore()).serve()
    skill_id = await learn(call, [refund(number) for number in range(1, 20)])
    for outcome in ("resolved", "resolved", "failed"):
        await call("report_outcome", skill_id=skill_id, outcome=outcome)
    history = await show(call, skill_id)
    history["title"] = history["versions"][0]["changes"][0] = "\x1b[31mred"
    for width in (20, 40, 79, 120, 400):
        shown = render_history(history, width, "utf-8")
        assert "\x1b" not in shown
        assert max(map(len, shown.splitlines())) <= min(120, max(40, width))
        assert ("█" in shown) == (width >= 70)
        assert "2 of 3 worked" in " ".join(shown.split())
    plain = render_history(history, 100, "ascii")
    assert plain.isascii() or "█" not in plain
    assert "#" * 5 in plain
    assert "in 19 of 19 conversations" in plain


def locked(number: int) -> str:
    return (
        f"Customer: My account is locked and I cannot sign in, case {number}.\nAgent: Have you changed the password?\n"
        f"Customer: No, case {number}.\nAgent: Please open the recovery page and follow the link.\n"
        f"Customer: I am in again, thanks {number}!\n"
    )


async def test_a_skill_about_two_problems_becomes_two_and_one_again(desk: Desk) -> None:
    call = desk.serve()
    both = await learn(call, [refund(number) for number in range(4471, 4475)], desk)
    alone = (await call("get_skill", skill_id=both))["resolution"].partition("## Goal")[2]
    for number in (1, 2, 3):
        desk.clock.advance(timedelta(minutes=1))
        await desk.serve(agent="bob" if number == 1 else "ann")(
            "update_skill", skill_id=both, conversation=locked(number)
        )
    mixed = (await call("get_skill", skill_id=both))["resolution"].partition("## Goal")[2]
    for outcome in ("resolved", "resolved", "failed"):
        await call("report_outcome", skill_id=both, outcome=outcome)
    planned = await call("split_skill", skill_id=both, dry_run=True)
    assert (planned["version"], planned["changes"], planned["other_id"], len(planned["cases"])) == (7, [], "", 3)
    assert (await call("get_skill", skill_id=both))["version"] == 7
    done = await call("split_skill", skill_id=both)
    assert (done["version"], done["cases"], done["other_title"]) == (8, planned["cases"], planned["other_title"])
    new = done["other_id"]
    assert [change for change in done["changes"] if "went with the conversations that support it" in change]
    assert done["changes"][0] == f"Split: 3 of its conversations are “{done['other_title']}” now ({new})."
    assert (await call("get_skill", skill_id=both))["resolution"].partition("## Goal")[2] == alone
    found = await call("search_skills", query="my account is locked")
    assert found["matches"][0]["skill_id"] == new
    # Conversations are known where they are now, and what was reported stays with the version that earned it.
    assert (await call("create_skill", conversation=locked(2)))["skill_id"] == new
    kept, split = await show(call, both), await show(call, new)
    assert (len(kept["cases"]), len(split["cases"])) == (4, 3)
    assert sorted(case["agent"] for case in split["cases"]) == ["ann", "ann", "bob"]
    assert (kept["versions"][0]["kind"], split["versions"][0]["kind"]) == ("split", "split")
    assert [(version["worked"], version["failed"]) for version in kept["versions"][:2]] == [(0, 0), (2, 1)]
    assert (split["versions"][0]["worked"], split["weeks"], split["times_used"]) == (0, [], 0)
    # Undone.
    await call("merge_skills", skill_id=both, other_id=new)
    again = await show(call, both)
    assert len(again["cases"]) == 7
    assert (again["versions"][0]["worked"], again["versions"][0]["failed"]) == (2, 1)
    assert (await call("get_skill", skill_id=both))["resolution"].partition("## Goal")[2] == mixed
    assert (await call("create_skill", conversation=locked(2)))["skill_id"] == both


async def test_named_conversations_become_a_skill_of_their_own(desk: Desk) -> None:
    call = desk.serve()
    skill_id = await learn(call, [refund(number) for number in range(4471, 4475)], desk)
    first = (await show(call, skill_id))["cases"][0]["id"]
    done = await call("split_skill", skill_id=skill_id, cases=[first])
    assert done["cases"] == [first]
    assert [case["id"] for case in (await show(call, done["other_id"]))["cases"]] == [first]
    assert len((await show(call, skill_id))["cases"]) == 3


async def test_what_cannot_be_split_is_said_and_changes_nothing() -> None:
    desk = make_desk(MemoryStore())
    call = desk.serve()
    skill_id = await learn(call, [refund(number) for number in range(4471, 4475)])
    every = [case["id"] for case in (await show(call, skill_id))["cases"]]
    for arguments, said in (
        ({}, "about one problem"),
        ({"cases": ["nonsense"]}, "has no conversation 'nonsense'"),
        ({"cases": every}, "must stay with it"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            await call("split_skill", skill_id=skill_id, **arguments)
    with pytest.raises(NotFoundError):
        await desk.serve(org="globex")("split_skill", skill_id=skill_id)
    full = Desk(replace(desk.base, quotas={QUOTA_NAME: Quota(QUOTA_NAME, 1)}), desk.clock)
    with pytest.raises(QuotaExceededError):
        await full.serve()("split_skill", skill_id=skill_id, cases=every[:1])
    assert [skill.version for skill in await desk.queries().list_skills()] == [4]
    assert len((await show(call, skill_id))["cases"]) == 4
