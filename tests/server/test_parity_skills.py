"""Skills answer alike on every transport. They are learned again for each, as most of what is asked changes them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from refdesk.app import Desk, open_desk
from refdesk.cli import invocation
from refdesk.core.operations import FLAT, Operation
from refdesk.errors import RefdeskError
from refdesk.factories.toolsets import load_toolsets
from refdesk.server import answers
from refdesk.server.principals import local_principal
from tests.server.conftest import open_http
from tests.server.echo import make_settings
from tests.server.test_parity import ERAS, ask_mcp, ask_rest

TRANSPORTS = ("rest", *ERAS, "command line")
[TOOLSET] = load_toolsets(["skills"])
[CREATE] = [operation for operation in TOOLSET.operations if operation.name == "create_skill"]
[REPORT] = [operation for operation in TOOLSET.operations if operation.name == "report_outcome"]
[MERGE] = [operation for operation in TOOLSET.operations if operation.name == "merge_skills"]
[UNMERGE] = [operation for operation in TOOLSET.operations if operation.name == "unmerge_skills"]
[UPDATE] = [operation for operation in TOOLSET.operations if operation.name == "update_skill"]
[HISTORY] = [operation for operation in TOOLSET.operations if operation.name == "get_skill_history"]
[EXAMPLE] = CREATE.examples
WRONG: tuple[dict[str, Any], ...] = ({}, {"nonsense": True}, {"query": "\x00"})
ADDRESSED = {"skill_id": "x", "version": 1}

OTHER = {
    "conversation": "Customer: The desk lamp flickers.\nAgent: Please screw the bulb in tighter.\nCustomer: Great!"
}
MOVING = re.compile(
    r'"(?:search_time_ms|created_at|updated_at|report_id)":(?:"[^"]*"|[\d.e-]+)'
    r"|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)"
)
"""What differs each time; instants stand in the files of a skill, too."""


async def ask(desk: Desk, transport: str, operation: Operation, arguments: dict[str, Any]) -> dict[str, Any]:
    if transport in ERAS:
        return await ask_mcp(desk, transport, operation, arguments)
    principal = local_principal(desk.settings, desk.toolsets, "tester")
    if transport == "rest":
        async with open_http(desk, principal) as rest:
            return await ask_rest(rest, operation, arguments)
    try:
        return await invocation.run(desk, operation, arguments)
    except RefdeskError as error:
        return answers.error_to_json(error, FLAT)


async def learn_and_ask(home: Path, transport: str, operation: Operation, arguments: dict[str, Any]) -> dict[str, Any]:
    """The answer at a new desk that has learned the example, without what differs each time."""
    settings = make_settings(home, agent="tester", tools="all")
    async with open_desk(settings, load_toolsets(["skills"]), in_background=False) as desk:
        skill_id = (await ask(desk, transport, CREATE, dict(EXAMPLE)))["skill_id"]
        if "skill_id" in arguments:
            arguments = {**arguments, "skill_id": skill_id}
        if "report_id" in arguments:
            made = await ask(desk, transport, REPORT, {"skill_id": skill_id, "outcome": "resolved"})
            arguments = {**arguments, "report_id": made["report_id"]}
        other_id = ""
        if operation.name in ("merge_skills", "unmerge_skills") and "skill_id" in arguments:
            other_id = (await ask(desk, transport, CREATE, OTHER))["skill_id"]
            both = {"skill_id": skill_id, "other_id": other_id}
            if operation is UNMERGE:
                await ask(desk, transport, MERGE, both)
            arguments = {**arguments, **both} if operation is MERGE else {**arguments, "skill_id": other_id}
        if operation.name == "split_skill" and "skill_id" in arguments:
            await ask(desk, transport, UPDATE, {"skill_id": skill_id, **OTHER})
            cases = (await ask(desk, transport, HISTORY, {"skill_id": skill_id}))["cases"]
            arguments = {**arguments, "cases": [sorted(case["id"] for case in cases)[0]]}
        answer = await ask(desk, transport, operation, arguments)
        other_id = other_id or str(answer.get("other_id", ""))
    text = answers.to_text(answer)
    for id in filter(None, (skill_id, other_id)):
        text = text.replace(id, "the id").replace(id.replace("-", "")[-12:], "its end")
    return json.loads(MOVING.sub(lambda found: '"moving":0' if found[0].startswith('"') else "moving", text))


@pytest.mark.parametrize("operation", TOOLSET.operations, ids=lambda operation: operation.name)
async def test_an_operation_answers_alike_on_every_face(tmp_path: Path, operation: Operation) -> None:
    # What is in the address cannot be left out over REST.
    named = {name: value for name, value in ADDRESSED.items() if f"{{{name}}}" in operation.route.path}
    wrong = WRONG if operation.route.method == "POST" else ({**named, "nonsense": "true"},)
    for arguments in (*operation.examples, *wrong):
        found = [await learn_and_ask(tmp_path, transport, operation, dict(arguments)) for transport in TRANSPORTS]
        assert all(answer == found[0] for answer in found)
        # Nothing but an export has no argument that it needs.
        assert ("error" in found[0]) is (
            arguments in wrong and not (operation.name == "export_skills" and not arguments)
        )


async def test_the_example_of_a_search_finds_the_example_of_a_create(tmp_path: Path) -> None:
    [search] = [operation for operation in TOOLSET.operations if operation.name == "search_skills"]
    found = await learn_and_ask(tmp_path, "rest", search, dict(search.examples[0]))
    assert [match["skill_id"] for match in found["matches"]] == ["the id"]
