"""What an org has, over every transport: its keys without their secrets, and how much it keeps of what it may."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from refdesk.app import Desk
from tests.server.conftest import open_http
from tests.server.test_keys import bearer, make_key
from tests.server.test_on_record import FACES, call_as, open_own, store

AGENT = ("knowledge:read", "knowledge:write")


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with open_own(tmp_path, knowledge_org_quota=5) as opened:
        yield opened


@pytest.mark.parametrize("face", FACES)
async def test_an_org_sees_how_much_it_keeps_and_may_keep(desk: Desk, face: str) -> None:
    async with call_as(desk, face, "ann", *AGENT) as ann, call_as(desk, face, "root", "admin") as root:
        first, second = await store(ann, "First"), await store(ann, "Second")
        await ann("supersede_knowledge", {"oldId": first, "newId": second})
        shown = (await root("show_usage", {}))[1]
        [notes] = [each for each in shown["toolsets"] if each["toolset"] == "knowledge"]
        assert (notes["current"], notes["superseded"], notes["isShared"]) == (1, 1, False)
        [quota] = [each for each in shown["quotas"] if each["quota"] == "knowledge_stored"]
        assert (quota["orgUsed"], quota["orgLimit"], quota["agentUsed"]) == (2, 5, 0)
        assert (await ann("show_usage", {}))[0] == "PERMISSION_DENIED"


@pytest.mark.parametrize("face", FACES)
async def test_erasing_an_agent_leaves_the_count_of_one_whose_name_ends_like_its_own(desk: Desk, face: str) -> None:
    async with (
        call_as(desk, face, "a:agent:ann", *AGENT, "admin") as other,
        call_as(desk, face, "ann", *AGENT) as ann,
    ):
        await store(other, "Kept")
        await store(ann, "Erased")
        assert (await other("erase", {"agent": "ann"}))[0] == ""
        shown = (await other("show_usage", {}))[1]["quotas"]
        assert [each["agentUsed"] for each in shown if each["quota"] == "knowledge_stored"] == [1]


async def test_keys_are_listed_by_org_without_secrets_with_their_last_use(desk: Desk) -> None:
    admin = await make_key(desk, scopes=("admin",))
    other = await make_key(desk, org="other", scopes=("admin",))
    async with open_http(desk, None) as rest:
        answer = await rest.get("/keys", headers=bearer(admin))
        [key] = answer.json()["keys"]
        assert (key["agent"], key["scopes"], key["isValid"]) == ("ann", ["admin"], True)
        assert key["lastUsedAt"] >= key["createdAt"]
        assert admin not in answer.text
        [theirs] = (await rest.get("/keys", headers=bearer(other))).json()["keys"]
        assert theirs["id"] != key["id"]
