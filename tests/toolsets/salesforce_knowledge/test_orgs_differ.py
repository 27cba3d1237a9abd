"""Orgs differ: in the API versions they serve, in their languages, in their categories, and in what each user sees."""

from __future__ import annotations

import pytest

from refdesk import errors
from refdesk.core.search.providers import ProviderAnswer, Question
from refdesk.toolsets.salesforce_knowledge import provider
from refdesk.toolsets.salesforce_knowledge.articles import SalesforceSource
from refdesk.toolsets.salesforce_knowledge.models import SearchInput
from refdesk.toolsets.salesforce_knowledge.statements import CategoryFilter
from sample_world.salesforce.articles import load_articles
from sample_world.salesforce.process import RunningEmulator
from tests.toolsets.azure_updates.samples import make_context
from tests.toolsets.salesforce_knowledge.samples import counted, get_requests, open_source

GERMAN = "Passwort"
CLIMATE = CategoryFilter("Products__c", "BELOW", ("Climate__c",))


async def find_titles(source: SalesforceSource, text: str, *categories: CategoryFilter) -> list[str]:
    answer = await source.search(text, limit=25, categories=categories)
    return sorted(article.title for article in answer.articles)


def list_titles(products: set[str]) -> set[str]:
    """Titles of articles that are filed under one of these products, or under none."""
    filed = [(article, set(article.categories.get("Products__c", ()))) for article in load_articles()]
    return {version.title for article, under in filed if not under or under & products for version in article.versions}


async def use_the_sample_world(emulator: RunningEmulator) -> None:
    await emulator.set_articles([article.model_dump(mode="json") for article in load_articles()])


@pytest.mark.parametrize(("newest", "spoken"), [(66, "v66.0"), (68, "v68.0"), (99, "v68.0")])
async def test_the_newest_version_that_the_org_serves_and_refdesk_knows_is_spoken(
    lightning: RunningEmulator, newest: int, spoken: str
) -> None:
    await lightning.set_versions(40, newest)
    async with open_source(lightning, api_version=None) as source:
        assert (await source.search("password")).articles
        await source.search("password")
    asked = await get_requests(lightning)
    assert [
        request["path"] for request in asked if counted([request], "/services/data/") and "/v" not in request["path"]
    ]
    assert counted(asked, f"/services/data/{spoken}/") == counted(asked, "/services/data/v") > 1


async def test_a_version_that_is_set_is_spoken_whatever_the_org_serves(lightning: RunningEmulator) -> None:
    await lightning.set_versions(40, 66)
    async with open_source(lightning, api_version="v68.0") as source:
        with pytest.raises(errors.RefdeskError):
            await source.search("password")


async def test_where_no_language_is_named_it_is_that_of_the_contract_whatever_the_orgs_own_is(
    lightning: RunningEmulator,
) -> None:
    await use_the_sample_world(lightning)
    await lightning.set_languages("de", "en_US", "ja")
    async with open_source(lightning) as source:
        answer = await source.search("password")
        assert answer.articles
        assert answer == await source.search("password", language="en_US")
        assert not (await source.search(GERMAN)).articles


async def test_a_language_that_is_set_is_meant_where_none_is_named(lightning: RunningEmulator) -> None:
    await use_the_sample_world(lightning)
    async with open_source(lightning, language="de") as source:
        answer = await source.search(GERMAN)
        assert answer.articles
        assert answer.language == "de"
    assert counted(await get_requests(lightning), "knowledgeManagement/settings") == 0


async def test_the_orgs_own_language_is_meant_where_the_settings_say_so(lightning: RunningEmulator) -> None:
    await use_the_sample_world(lightning)
    await lightning.set_languages("de", "en_US", "ja")
    async with open_source(lightning, language="org") as source:
        answer = await source.search(GERMAN)
        assert answer.articles
        assert (answer.language, answer.notice) == ("de", None)
        assert (await source.search("password", language="en_US")).language is None
    asked = await get_requests(lightning)
    assert counted(asked, "knowledgeManagement/settings") == 1


async def test_languages_that_would_have_hits_are_named_with_how_many(lightning: RunningEmulator) -> None:
    await use_the_sample_world(lightning)
    async with open_source(lightning) as source:
        answer = await source.search(GERMAN)
        assert (answer.articles, answer.total_count) == ([], 0)
        number = len((await source.search(GERMAN, language="de", limit=25)).articles)
        assert f"in en_US, but in de ({number})" in (answer.notice or "")
        judged = await provider.judge(await make_context([]), GERMAN, answer)
        assert judged.notice == answer.notice
        assert (await source.search("zxqvw")).notice is None
        before = len(await get_requests(lightning))
        assert (await source.search("password")).articles
        assert len(await get_requests(lightning)) == before + 1


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "hang", "path": "knowledgeManagement/settings"},
        {"fault": "hang", "path": "/parameterizedSearch", "at": list(range(2, 50))},
        {"fault": "refuse", "error": "request_limit", "path": "knowledgeManagement/settings"},
        {"fault": "refuse", "error": "request_limit", "path": "/parameterizedSearch", "at": list(range(2, 50))},
        {"fault": "refuse", "error": "session_expired", "path": "knowledgeManagement/settings"},
    ],
    ids=lambda fault: "-".join(str(fault.get(name)) for name in ("fault", "error", "path")),
)
async def test_looking_into_other_languages_never_costs_the_answer(
    lightning: RunningEmulator, fault: dict[str, object]
) -> None:
    await use_the_sample_world(lightning)
    async with open_source(lightning, timeout_seconds=2.0) as source:
        assert (await source.search("password")).articles
        await lightning.set_faults([fault])
        answer = await source.search(GERMAN)
        assert (answer.articles, answer.notice, source.problem) == ([], None, None)


async def test_other_languages_are_not_looked_into_where_the_allowance_runs_out(lightning: RunningEmulator) -> None:
    await use_the_sample_world(lightning)
    async with open_source(lightning) as source:
        await source.search("password")
        await lightning.set_usage(8000, 10_000)
        before = len(await get_requests(lightning))
        answer = await source.search(GERMAN)
        assert (answer.articles, len(answer.warnings)) == ([], 1)
        assert len(await get_requests(lightning)) == before + 1


async def test_the_one_search_takes_a_language_and_names_others(lightning: RunningEmulator) -> None:
    await use_the_sample_world(lightning)
    context = await make_context([])
    async with open_source(lightning) as source:
        nothing = await provider.find(source, context, Question(GERMAN))
        assert isinstance(nothing, ProviderAnswer)
        assert not nothing.hits
        assert "in de (" in nothing.note
        found = await provider.find(source, context, Question(GERMAN, language="DE"))
        assert isinstance(found, ProviderAnswer)
        assert found.hits


@pytest.mark.parametrize("fault", ["", "/parameterizedSearch", "search"])
async def test_data_categories_narrow_every_way_of_searching(lightning: RunningEmulator, fault: str) -> None:
    await use_the_sample_world(lightning)
    broken = [{"fault": "refuse", "error": "not_found", "path": "/parameterizedSearch"}]
    if fault == "search":
        broken.append({"fault": "refuse", "error": "malformed_search", "path": "/search"})
    await lightning.set_faults(broken if fault else [])
    async with open_source(lightning) as source:
        below = await find_titles(source, "the", CLIMATE)
        at = await find_titles(source, "the", CategoryFilter("Products__c", "AT", ("Thermo__c", "Radiator__c")))
        assert set(at) <= set(below) <= list_titles({"Climate__c", "Thermo__c", "Radiator__c"})
        assert at
        region = CategoryFilter("Regions__c", "ABOVE_OR_BELOW", ("Europe__c",))
        assert set(await find_titles(source, "the", CLIMATE, region)) <= set(below)


async def test_a_category_that_the_org_does_not_have_is_answered_by_those_it_has(lightning: RunningEmulator) -> None:
    async with open_source(lightning) as source:
        for wrong, known in (
            (CategoryFilter("Product__c", "BELOW", ("Hub__c",)), "Products"),
            (CategoryFilter("Products__c", "BELOW", ("Climat__c",)), "Climate"),
        ):
            with pytest.raises(errors.InvalidInputError, match=f"use one of .*{known}"):
                await source.search("password", categories=(wrong,))


def test_names_of_categories_are_names_and_nothing_else() -> None:
    asked = {"query": "reset", "categories": [{"group": "Products", "categories": ["Hub", "App__c"]}]}
    [condition] = SearchInput.model_validate(asked).categories
    assert str(condition.to_filter()) == "Products__c BELOW (Hub__c, App__c)"
    for name in ("Hub) OR Title LIKE 'x", "", "__c", "Hub__d__", "Hüb"):
        with pytest.raises(ValueError, match=r"API name|at least 1"):
            SearchInput.model_validate(asked | {"categories": [{"group": "Products", "categories": [name]}]})


async def test_each_user_sees_what_the_own_session_may_see_and_nothing_is_left_for_the_next(
    lightning: RunningEmulator,
) -> None:
    await use_the_sample_world(lightning)
    await lightning.set_users(
        {"ann-session": {"products": ["Climate__c"]}, "bob-session": {"hidden_fields": ["Summary"]}, "eve": {}}
    )
    async with open_source(lightning) as source:
        everything = await find_titles(source, "the")
        assert set(everything) - list_titles({"Climate__c", "Thermo__c", "Radiator__c"})
        async with source.acting_as("ann-session") as ann:
            of_ann = await find_titles(ann, "the")
        async with source.acting_as("bob-session") as bob:
            of_bob = await bob.search("the", limit=25)
        async with source.acting_as("") as nobody:
            assert await find_titles(nobody, "the") == everything
        assert of_ann
        assert set(of_ann) <= list_titles({"Climate__c", "Thermo__c", "Radiator__c"})
        assert of_bob.articles
        assert {article.summary for article in of_bob.articles} == {None}
        with pytest.raises(errors.RefdeskError, match="X-Salesforce-Token") as refused:
            async with source.acting_as("stolen") as thief:
                await thief.search("the")
        assert refused.value.code == "AUTH_ERROR"
        assert "stolen" not in str(refused.value)
        assert source.problem is None
    sessions = {request["headers"].get("authorization") for request in await get_requests(lightning)}
    assert {"Bearer ann-session", "Bearer bob-session", "Bearer stolen"} <= sessions


async def test_where_sessions_are_required_nobody_is_answered_without_one(lightning: RunningEmulator) -> None:
    await lightning.set_users({"ann-session": {}})
    async with open_source(lightning, needs_session=True) as source:
        with pytest.raises(errors.RefdeskError, match="X-Salesforce-Token"):
            async with source.acting_as("") as nobody:
                await nobody.search("password")
        with pytest.raises(errors.RefdeskError, match="X-Salesforce-Token"):
            async with source.acting_as("a b\r\nX: y") as nobody:
                await nobody.search("password")
        async with source.acting_as("ann-session") as ann:
            assert (await ann.search("password")).articles
    assert counted(await get_requests(lightning), "oauth2/token") == 0
