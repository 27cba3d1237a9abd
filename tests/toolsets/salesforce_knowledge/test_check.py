from __future__ import annotations

from typing import Any

import pytest

from refdesk.core.descriptors import Check
from refdesk.toolsets.salesforce_knowledge.check import check_connection
from refdesk.toolsets.salesforce_knowledge.configuration import SalesforceSettings
from sample_world.salesforce.process import RunningEmulator
from tests.toolsets.salesforce_knowledge.samples import get_requests, settings_for


def states(checks: list[Check]) -> dict[str, str]:
    return {check.name: check.status for check in checks}


async def test_a_connected_org_passes_every_step(lightning: RunningEmulator) -> None:
    checks = await check_connection(settings_for(lightning))
    assert states(checks) == dict.fromkeys(
        (
            *("salesforce", "sf sign-in", "sf knowledge", "sf articles", "sf published", "sf body"),
            "sf allowance",
        ),
        "ok",
    )
    found = {check.name: check.found for check in checks}
    assert "de, en_US" in found["sf knowledge"]
    assert "Symptoms__c" in found["sf body"]
    assert "15000" in found["sf allowance"]


async def test_a_classic_org_passes_too(classic: RunningEmulator) -> None:
    checks = await check_connection(settings_for(classic))
    assert set(states(checks).values()) == {"ok"}
    assert "ArticleBody" in {check.name: check.found for check in checks}["sf body"]


@pytest.mark.parametrize(
    ("given", "last"),
    [
        ({"api_version": "v99.0"}, "salesforce"),
        ({"client_secret": "canary-secret"}, "sf sign-in"),
    ],
)
async def test_the_step_that_fails_is_the_last_and_says_what_to_do(
    lightning: RunningEmulator, given: dict[str, Any], last: str
) -> None:
    checks = await check_connection(settings_for(lightning, **given))
    assert (checks[-1].name, checks[-1].status) == (last, "fail")
    assert {check.status for check in checks[:-1]} <= {"ok"}
    assert checks[-1].advice
    assert "canary" not in repr(checks)


async def test_knowledge_that_is_off_is_found(disabled: RunningEmulator) -> None:
    checks = await check_connection(settings_for(disabled))
    assert (checks[-1].name, checks[-1].status) == ("sf knowledge", "fail")


async def test_a_user_without_rights_is_found(lightning: RunningEmulator) -> None:
    await lightning.set_user(knowledge_user=False)
    checks = await check_connection(settings_for(lightning))
    assert (checks[-1].name, checks[-1].status) == ("sf articles", "fail")


async def test_a_body_field_that_is_not_visible_and_a_used_allowance_are_warned_of(lightning: RunningEmulator) -> None:
    await lightning.set_user(hidden_fields=["Cause__c"])
    await lightning.set_usage(14_000, 15_000)
    checks = await check_connection(settings_for(lightning, body_fields=("Cause__c", "Symptoms__c")))
    assert {name for name, state in states(checks).items() if state == "warn"} == {"sf body", "sf allowance"}
    assert "Cause__c" in {check.name: check.found for check in checks}["sf body"]


async def test_an_org_without_articles_is_warned_of(lightning: RunningEmulator) -> None:
    await lightning.set_articles([])
    assert states(await check_connection(settings_for(lightning)))["sf published"] == "warn"


async def test_nobody_listening_fails_at_the_first_step() -> None:
    settings = SalesforceSettings(instance_url="http://127.0.0.1:1", access_token="token", request_seconds=1)
    [check] = await check_connection(settings)
    assert (check.name, check.status) == ("salesforce", "fail")


async def test_checking_costs_few_requests(lightning: RunningEmulator) -> None:
    await check_connection(settings_for(lightning))
    assert len(await get_requests(lightning)) <= 8
