from __future__ import annotations

from datetime import timedelta

from tests.toolsets.skills.conftest import INVOICE, Desk

AREAS = ("billing", "heating", "billing")


async def test_pages_hold_every_skill_once_refined_last_first_with_counts(desk: Desk) -> None:
    call, ids = desk.serve(), list[str]()
    for number, area in enumerate(AREAS):
        desk.clock.advance(timedelta(minutes=1))
        talk = f"Customer: Thing {area} {number} is broken in way {number}.\nAgent: Press button {number}.\n"
        created = await call("create_skill", conversation=talk, metadata={"product_area": area})
        ids.append(created["skill_id"])
    desk.clock.advance(timedelta(minutes=1))
    await call("update_skill", skill_id=ids[0], conversation=INVOICE)
    pages = [await call("list_skills", limit=2, offset=offset) for offset in (0, 2, 4)]
    assert [skill["skill_id"] for page in pages for skill in page["skills"]] == [ids[0], ids[2], ids[1]]
    assert [(page["total"], page["has_more"]) for page in pages] == [(3, True), (3, False), (3, False)]
    assert pages[0]["product_areas"] == [{"value": "billing", "skills": 2}, {"value": "heating", "skills": 1}]
    narrowed = await call("list_skills", product_area="heating")
    assert [(skill["product_area"], skill["version"]) for skill in narrowed["skills"]] == [("heating", 1)]
    assert (await desk.serve(org="other")("list_skills"))["total"] == 0


async def test_a_skill_refined_between_two_pages_is_shown_once(desk: Desk) -> None:
    call, ids = desk.serve(), list[str]()
    for number in range(6):
        desk.clock.advance(timedelta(minutes=1))
        talk = f"Customer: Thing {number} is broken in way {number}.\nAgent: Press button {number}.\n"
        ids.append((await call("create_skill", conversation=talk))["skill_id"])
    page = await call("list_skills", limit=2)
    shown = [skill["skill_id"] for skill in page["skills"]]
    desk.clock.advance(timedelta(minutes=1))
    for id in (ids[0], ids[5]):  # the last one and the first: one is not shown yet, one is
        await call("update_skill", skill_id=id, conversation=INVOICE)
    while "next_cursor" in page:
        page = await call("list_skills", limit=2, cursor=page["next_cursor"])
        shown += [skill["skill_id"] for skill in page["skills"]]
    assert shown == ids[::-1]
