"""Several orgs by settings: searched as one, each named, and one that fails costs nothing but its own articles."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from refdesk import errors
from refdesk.toolsets.salesforce_knowledge.descriptor import TOOLSET
from refdesk.toolsets.salesforce_knowledge.orgs import Orgs, open_orgs
from refdesk.toolsets.salesforce_knowledge.settings import SalesforceKnowledgeSettings, list_orgs
from sample_world.salesforce.process import RunningEmulator
from tests.toolsets.salesforce_knowledge.samples import version_id


def write_settings(path: Path, first: RunningEmulator, second: RunningEmulator) -> SalesforceKnowledgeSettings:
    file = path / "orgs.toml"
    file.write_text(
        f'[emea]\ninstance_url = "{second.url}"\nclient_id = "{second.client_id}"\n'
        f'client_secret = "{second.client_secret}"\n',
        encoding="utf-8-sig",  # as some editors write it
    )
    values = {
        "salesforce_instance_url": first.url,
        "salesforce_client_id": first.client_id,
        "salesforce_client_secret": first.client_secret,
        "salesforce_orgs": file,
    }
    return SalesforceKnowledgeSettings.model_validate(values)


@pytest.fixture
async def orgs(tmp_path: Path, lightning: RunningEmulator, classic: RunningEmulator) -> AsyncGenerator[Orgs]:
    async with open_orgs(list_orgs(write_settings(tmp_path, lightning, classic))) as opened:
        assert isinstance(opened, Orgs)
        yield opened


async def test_articles_of_all_orgs_come_in_turns_and_say_which(orgs: Orgs) -> None:
    answer = await orgs.search("password", limit=4)
    assert [article.org for article in answer.articles][:2] == ["main", "emea"]
    assert (answer.total_count, answer.notice) == (len(answer.articles), None)
    assert (await orgs.get_article(version_id(1))).article.org == "main"
    with pytest.raises(errors.NotFoundError):
        await orgs.get_article(version_id(999))


async def test_an_org_that_fails_costs_its_own_articles_and_is_named(orgs: Orgs, lightning: RunningEmulator) -> None:
    await lightning.set_faults([{"fault": "refuse", "error": "request_limit"}])
    answer = await orgs.search("password")
    assert {article.org for article in answer.articles} == {"emea"}
    assert "main did not answer" in (answer.notice or "")
    assert (orgs.problem or "").startswith("main: ")


async def test_sessions_are_named_by_org(orgs: Orgs, classic: RunningEmulator) -> None:
    await classic.set_users({"ann": {"knowledge_user": False}})
    async with orgs.acting_as("emea=ann") as ann:
        assert {article.org for article in (await ann.search("password")).articles} == {"main"}
    for wrong in ("ann", "apac=ann", "emea="):
        with pytest.raises(errors.RefdeskError, match="name=session"):
            async with orgs.acting_as(wrong):
                pass


async def test_doctor_looks_at_every_org(tmp_path: Path, lightning: RunningEmulator, classic: RunningEmulator) -> None:
    assert TOOLSET.check is not None
    checks = await TOOLSET.check(write_settings(tmp_path, lightning, classic))
    assert {"salesforce of main", "salesforce of emea"} <= {check.name for check in checks}
    assert {check.status for check in checks} <= {"ok", "warn"}


@pytest.mark.parametrize("text", ["", "[Emea]", "emea = 1", "[emea]", "[emea]\ninstance_url = 5", "not toml"])
def test_a_file_that_says_too_little_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "orgs.toml"
    file.write_text(text)
    with pytest.raises(errors.ConfigurationError, match="REFDESK_SALESFORCE_ORGS"):
        list_orgs(SalesforceKnowledgeSettings.model_validate({"salesforce_orgs": file}))
