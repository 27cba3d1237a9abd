from __future__ import annotations

from datetime import UTC, datetime

import pytest

from refdesk import errors
from refdesk.toolsets.salesforce_knowledge.articles import SalesforceSource
from sample_world.salesforce.process import RunningEmulator, running_emulator
from tests.toolsets.salesforce_knowledge.samples import (
    ARTICLES,
    article_id,
    counted,
    get_requests,
    get_resources,
    open_source,
    version_id,
    write_articles,
)

PARAMETERIZED, SOSL, SOQL = "/parameterizedSearch", "/search", "/query"


async def test_published_articles_of_the_language_are_found_best_first(source: SalesforceSource) -> None:
    answer = await source.search("forgotten password")
    assert answer.articles[0].title == "Reset a forgotten password"
    assert {each.title for each in answer.articles} == {"Reset a forgotten password", "Empty password article"}
    assert (answer.total_count, answer.search_method) == (2, "sosl")
    first = answer.articles[0]
    assert first.id == version_id(1)
    assert first.summary == "What to do when the password is lost."
    assert first.url_name == "Reset-a-forgotten-password"
    assert first.last_published == datetime(2025, 6, 2, 9, 30, tzinfo=UTC)
    assert first.article_type == "How-To"


async def test_another_language_is_found_in_that_language_alone(source: SalesforceSource) -> None:
    answer = await source.search("Passwort", language="de")
    assert [each.title for each in answer.articles] == ["Vergessenes Passwort neu setzen"]
    assert (await source.search("Passwort")).articles == []


async def test_no_more_are_found_than_asked_for(source: SalesforceSource) -> None:
    answer = await source.search("holiday calendar", limit=25)
    assert (len(answer.articles), answer.total_count) == (25, 25)
    assert len((await source.search("holiday calendar", limit=3)).articles) == 3


async def test_a_search_is_one_request_once_the_org_is_known(
    source: SalesforceSource, lightning: RunningEmulator
) -> None:
    await source.search("password")
    await lightning.forget_requests()
    await source.search("password")
    assert get_resources(await get_requests(lightning)) == ["parameterizedSearch"]


async def test_sosl_is_used_where_parameterized_search_is_not_offered_and_that_is_remembered(
    source: SalesforceSource, lightning: RunningEmulator
) -> None:
    await lightning.set_faults([{"fault": "refuse", "error": "not_found", "path": PARAMETERIZED}])
    answer = await source.search("forgotten password")
    assert answer.articles[0].title == "Reset a forgotten password"
    assert answer.articles[0].article_type == "How-To"
    assert answer.search_method == "sosl"
    await source.search("forgotten password")
    requests = await get_requests(lightning)
    assert counted(requests, PARAMETERIZED) == 1
    assert counted(requests, SOSL) == 2


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "refuse", "error": "malformed_search"},
        {"fault": "status", "status": 503},
        {"fault": "wrong_content_type"},
        {"fault": "answer", "status": 200, "body": {"unexpected": []}},
    ],
    ids=["malformed", "unavailable", "page of HTML", "no records"],
)
async def test_titles_and_summaries_are_looked_through_when_search_does_not_work(
    source: SalesforceSource, lightning: RunningEmulator, fault: dict[str, object]
) -> None:
    await lightning.set_faults([{**fault, "path": PARAMETERIZED}])
    answer = await source.search("password")
    assert answer.search_method == "soql"
    assert [each.title for each in answer.articles] == ["Reset a forgotten password", "Empty password article"]
    assert answer.articles[0].article_type == "How-To"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("request_limit", "RATE_LIMIT_EXCEEDED"),
        ("insufficient_access", "PERMISSION_DENIED"),
        ("api_disabled_for_org", "PERMISSION_DENIED"),
        ("session_expired", "AUTH_ERROR"),
        ("session_not_for_rest", "AUTH_ERROR"),
        ("query_timeout", "SF_API_ERROR"),
    ],
)
async def test_nothing_else_is_tried_after_a_refusal_that_all_ways_share(
    source: SalesforceSource, lightning: RunningEmulator, error: str, code: str
) -> None:
    await lightning.set_faults([{"fault": "refuse", "error": error, "path": PARAMETERIZED}])
    with pytest.raises(errors.RefdeskError) as caught:
        await source.search("password")
    assert caught.value.code == code
    requests = await get_requests(lightning)
    assert counted(requests, SOSL) == counted(requests, SOQL) == 0


async def test_hostile_words_find_nothing_more_than_their_words(source: SalesforceSource) -> None:
    for text in ("' OR Title LIKE '%", "} RETURNING User(Id)", "zzzz\\", "AND", '"zzzz', "zzzz*", "a%' OR Id != '"):
        assert (await source.search(text)).total_count <= 2


async def test_a_whole_article_is_plain_text_under_its_labels(source: SalesforceSource) -> None:
    answer = await source.get_article(version_id(1))
    assert answer.article.model_dump() == {
        "id": version_id(1),
        "title": "Reset a forgotten password",
        "summary": "What to do when the password is lost.",
        "body": (
            "Symptoms:\nSign-in says wrong password.\n\n"
            "Resolution:\n1. Open the reset page (https://portal.example/reset)\n2. Follow it\n\nCode | E17"
        ),
        "url_name": "Reset-a-forgotten-password",
        "last_published": datetime(2025, 6, 2, 9, 30, tzinfo=UTC),
        "article_type": "How-To",
    }


async def test_configured_fields_make_the_body_in_their_order(lightning: RunningEmulator) -> None:
    fields = ("Symptoms__c", "Nowhere__c", "Environment__c")
    async with open_source(lightning, body_fields=fields) as source:
        body = (await source.get_article(version_id(1))).article.body
    assert body == "Symptoms:\nSign-in says wrong password.\n\nEnvironment:\nPortal 4.2\nany browser"


@pytest.mark.parametrize("id", [version_id(1), version_id(1)[:15], article_id(1), article_id(1)[:15]])
async def test_an_article_is_found_by_every_form_of_its_ids(source: SalesforceSource, id: str) -> None:
    assert (await source.get_article(id)).article.title == "Reset a forgotten password"


async def test_a_translation_is_found_by_its_own_id(source: SalesforceSource) -> None:
    assert (await source.get_article(version_id(1, language=1))).article.body == "Resolution:\nSeite öffnen"


async def test_a_replaced_version_leads_to_the_one_in_force(source: SalesforceSource) -> None:
    article = (await source.get_article(version_id(2, of=1))).article
    assert (article.id, article.title) == (version_id(2, of=2), "Printer queue stuck again")


@pytest.mark.parametrize(
    "id",
    [
        version_id(3),
        article_id(3),
        version_id(4),
        article_id(4),
        version_id(999),
        article_id(999),
        version_id(1, family=7),
    ],
    ids=["draft", "draft's article", "archived", "archived article", "absent", "absent article", "of no object"],
)
async def test_what_is_not_published_is_not_found(source: SalesforceSource, id: str) -> None:
    with pytest.raises(errors.NotFoundError):
        await source.get_article(id)


async def test_an_article_without_text_has_an_empty_body(source: SalesforceSource) -> None:
    article = (await source.get_article(version_id(5))).article
    assert (article.body, article.summary) == ("", None)


async def test_reading_is_one_request_once_the_org_is_known(
    source: SalesforceSource, lightning: RunningEmulator
) -> None:
    await source.get_article(version_id(1))
    await lightning.forget_requests()
    await source.get_article(version_id(5))
    assert get_resources(await get_requests(lightning)) == ["query"]


async def test_a_field_that_was_taken_away_is_asked_for_no_more(
    source: SalesforceSource, lightning: RunningEmulator
) -> None:
    await source.search("password")
    await source.get_article(version_id(1))
    await lightning.set_user(hidden_fields=["Symptoms__c", "Summary"])
    assert "Symptoms" not in (await source.get_article(version_id(1))).article.body
    answer = await source.search("password")
    assert answer.articles[0].summary is None


async def test_a_classic_org_has_types_of_article_each_with_one_body(classic: RunningEmulator) -> None:
    async with open_source(classic) as source:
        found = (await source.search("forgotten password")).articles[0]
        assert (found.id, found.article_type) == (version_id(1, family=1), "HowTo__kav")
        article = (await source.get_article(found.id)).article
        assert article.body.startswith("Environment\n\nPortal 4.2\nany browser")
        assert article.body.endswith("Code | E17")
        assert article.article_type == "HowTo__kav"
        assert (await source.get_article(version_id(2, of=1))).article.title == "Printer queue stuck again"
        with pytest.raises(errors.NotFoundError):
            await source.get_article(version_id(3))
        await classic.forget_requests()
        await source.get_article(found.id)
        assert len(await get_requests(classic)) == 1


async def test_a_renamed_object_is_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    articles = write_articles(tmp_path_factory.mktemp("renamed"))
    async with (
        running_emulator("lightning", article_object="Helpdesk__kav", articles=articles) as emulator,
        open_source(emulator) as source,
    ):
        assert (await source.get_article(version_id(5))).article.title == "Empty password article"


async def test_an_org_without_knowledge_says_so(disabled: RunningEmulator) -> None:
    async with open_source(disabled) as source:
        for ask in (source.search("password"), source.get_article(version_id(1)), source.get_article(article_id(1))):
            with pytest.raises(errors.WorldError, match="not enabled") as caught:
                await ask
            assert caught.value.code == "KNOWLEDGE_DISABLED"
            assert caught.value.details == {"knowledgeEnabled": False, "salesforceErrorCodes": ["INVALID_TYPE"]}
            assert source.problem == caught.value.message


async def test_a_user_who_may_not_read_articles_meets_the_same_code(
    source: SalesforceSource, lightning: RunningEmulator
) -> None:
    await lightning.set_user(knowledge_user=False)
    with pytest.raises(errors.RefdeskError) as caught:
        await source.search("password")
    assert caught.value.code == "KNOWLEDGE_DISABLED"
    assert caught.value.details is not None
    assert caught.value.details["knowledgeEnabled"] is True


@pytest.mark.parametrize("version", ["v28.0", "v99.0"])
async def test_an_api_version_that_is_not_served_is_the_operators_to_mend(
    lightning: RunningEmulator, version: str
) -> None:
    async with open_source(lightning, api_version=version) as source:
        with pytest.raises(errors.RefdeskError, match="REFDESK_SALESFORCE_API_VERSION") as caught:
            await source.search("password")
    assert caught.value.code == "SF_API_ERROR"


async def test_an_old_api_version_answers_too(lightning: RunningEmulator) -> None:
    async with open_source(lightning, api_version="v36.0") as source:
        await lightning.set_faults([{"fault": "refuse", "error": "not_found", "path": PARAMETERIZED}])
        assert (await source.search("forgotten password")).total_count == 2


async def test_a_warning_goes_beside_the_answer_when_the_allowance_runs_out(
    source: SalesforceSource, lightning: RunningEmulator
) -> None:
    assert (await source.search("password")).warnings == ()
    await lightning.set_usage(8000, 10_000)
    answer = await source.search("password")
    [warning] = answer.warnings
    assert warning["code"] == "RATE_LIMIT_WARNING"
    assert warning["details"] == {"used": 8001, "limit": 10_000}
    assert set(answer.model_dump()) == {"articles", "total_count", "search_method"}
    assert warning["message"] == "80 % of the Salesforce API requests allowed in 24 hours are used; ask sparingly."
    assert (await source.get_article(version_id(1))).meta["refdesk/warnings"]


async def test_a_used_up_allowance_is_not_asked_of_again_for_a_while(
    source: SalesforceSource, lightning: RunningEmulator
) -> None:
    await lightning.set_usage(100, 100)
    for _ in range(3):
        with pytest.raises(errors.LimitExceededError) as caught:
            await source.search("password")
        assert caught.value.code == "RATE_LIMIT_EXCEEDED"
        assert caught.value.retry_after_seconds is not None
    assert len(await get_requests(lightning)) == 2


def test_the_sample_articles_have_one_number_each() -> None:
    assert len({each["number"] for each in ARTICLES}) == len(ARTICLES)
