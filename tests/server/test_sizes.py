"""How much an org may keep and how many skills it may make, as callers and operators meet it."""

from __future__ import annotations

import json
from pathlib import Path

from refdesk.app import Desk, open_desk
from refdesk.factories.toolsets import load_toolsets
from refdesk.model import Principal
from tests.acceptance.processes import run
from tests.server.conftest import open_http
from tests.server.echo import make_settings

ANN = Principal("acme", "ann", frozenset({"knowledge:read", "knowledge:write", "skills:read", "skills:write"}))
TALK = "Customer: My parcel tracker shows nothing.\nAgent: Please clear the cache under Settings.\nCustomer: Thanks!"


async def store(desk: Desk, body: str) -> tuple[int, str]:
    async with open_http(desk, ANN) as client:
        answer = await client.post("/knowledge", json={"title": "A note", "body": body})
    return answer.status_code, answer.text


async def test_a_note_that_does_not_fit_is_refused_with_what_to_do_and_the_doctor_tells(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'refdesk.sqlite3'}"
    settings = make_settings(tmp_path, store=url, embedder="hashing", max_org_bytes=2000)
    async with open_desk(settings, load_toolsets(), in_background=False) as desk:
        assert (await store(desk, "x" * 1900))[0] == 200
        status, text = await store(desk, "y" * 100)
    assert status == 429
    error = json.loads(text)["error"]
    assert error["code"] == "QUOTA_EXCEEDED"
    assert "Nothing was written" in error["message"]
    assert "REFDESK_MAX_ORG_BYTES" in error["message"]
    assert error["details"] | {"used": 0} == {"quota": "org_bytes", "scope": "org", "used": 0, "limit": 2000}
    done = run(["doctor", "--json"], tmp_path, REFDESK_EMBEDDER="hashing", REFDESK_MAX_ORG_BYTES="2000")
    [check] = [each for each in json.loads(done.stdout)["checks"] if each["name"] == "store size"]
    assert check["status"] == "warn"
    assert f"acme {error['details']['used']} bytes" in check["found"]


async def test_skills_that_are_kept_apart_have_their_quota_and_their_size_too(tmp_path: Path) -> None:
    own = f"sqlite:///{tmp_path / 'skills.sqlite3'}"
    for chosen in ({"skills_org_quota": 0}, {"max_org_bytes": 10}):
        settings = make_settings(tmp_path, embedder="hashing", skills_store=own, **chosen)
        async with open_desk(settings, load_toolsets(), in_background=False) as desk, open_http(desk, ANN) as client:
            answer = await client.post("/create", json={"conversation": TALK})
        assert (answer.status_code, answer.json()["error"]) == (429, "QUOTA_EXCEEDED")
