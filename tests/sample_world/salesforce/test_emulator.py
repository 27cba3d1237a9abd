"""The emulator over HTTP: what a client of the REST API sees."""

from __future__ import annotations

import gzip
import time
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any, cast

import httpx2
import jwt
import pytest

from sample_world.salesforce.articles import Record, load_articles
from sample_world.salesforce.process import EmulatorError, RunningEmulator, running_emulator
from sample_world.salesforce.schema import BODY_FIELDS

DATA = "/services/data/v68.0"
ONLINE = "PublishStatus = 'Online' AND Language = 'en_US'"
TITLES = (
    "SELECT Id, KnowledgeArticleId, Title FROM Knowledge__kav WHERE PublishStatus = 'Online' AND Language = 'en_US'"
    " ORDER BY Title"
)


async def query(client: httpx2.AsyncClient, statement: str) -> list[Record]:
    response = await client.get(f"{DATA}/query", params={"q": statement})
    assert response.status_code == 200, response.text
    return cast("list[Record]", response.json()["records"])


def expect_error(response: httpx2.Response, status: int, code: str, message: str = "") -> None:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json;charset=UTF-8"
    (error,) = response.json()
    assert error.keys() == {"message", "errorCode"}
    assert error["errorCode"] == code
    assert message in error["message"]


async def test_the_versions_are_told_to_everybody_and_not_counted(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    for path in ("/services/data", "/services/data/"):
        response = await client.get(path, headers={"Authorization": ""})
        assert response.status_code == 200
        assert "sforce-limit-info" not in response.headers
        versions = response.json()
    assert versions[-1] == {"label": "Winter '27", "url": "/services/data/v68.0", "version": "68.0"}
    assert versions[0]["version"] == "31.0"
    assert [version["label"] for version in versions[-4:-1]] == ["Winter '26", "Spring '26", "Summer '26"]


async def test_a_token_from_credentials_opens_a_session(emulator: RunningEmulator, client: httpx2.AsyncClient) -> None:
    form = {
        "grant_type": "client_credentials",
        "client_id": emulator.client_id,
        "client_secret": emulator.client_secret,
    }
    granted = await client.post("/services/oauth2/token", data=form, headers={"Authorization": ""})
    assert granted.status_code == 200
    assert granted.json()["instance_url"] == emulator.url
    headers = {"Authorization": f"Bearer {granted.json()['access_token']}"}
    assert (await client.get(f"{DATA}/limits", headers=headers)).status_code == 200
    refused = await client.post("/services/oauth2/token", data={**form, "client_secret": "x"})
    assert refused.status_code == 400
    assert refused.json() == {"error": "invalid_client", "error_description": "invalid client credentials"}
    assert (await client.get("/services/oauth2/token")).json()["error"] == "invalid_request"


async def test_a_token_from_an_assertion_opens_a_session(emulator: RunningEmulator, client: httpx2.AsyncClient) -> None:
    claims = {
        "iss": emulator.client_id,
        "sub": emulator.username,
        "aud": emulator.url,
        "exp": int(time.time()) + 120,
    }
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": jwt.encode(claims, emulator.private_key, algorithm="RS256"),
    }
    granted = await client.post("/services/oauth2/token", data=form)
    headers = {"Authorization": f"Bearer {granted.json()['access_token']}"}
    assert (await client.get(f"{DATA}/limits", headers=headers)).status_code == 200


async def test_without_a_session_nothing_is_told(emulator: RunningEmulator, client: httpx2.AsyncClient) -> None:
    for authorization in ("", "Bearer wrong"):
        response = await client.get(f"{DATA}/limits", headers={"Authorization": authorization})
        expect_error(response, 401, "INVALID_SESSION_ID", "Session expired or invalid")
        assert response.headers["www-authenticate"] == "Token"
        assert "sforce-limit-info" not in response.headers
    await emulator.expire_sessions()
    expect_error(await client.get(f"{DATA}/limits"), 401, "INVALID_SESSION_ID")
    await emulator.reset()
    assert (await client.get(f"{DATA}/limits")).status_code == 200


async def test_every_call_counts_and_says_so_and_at_the_limit_all_are_refused(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    await emulator.set_usage(97, 100, per_app=(17, 250, "refdesk"))
    first = await client.get(f"{DATA}/limits")
    assert first.headers["sforce-limit-info"] == "api-usage=98/100; per-app-api-usage=17/250(appName=refdesk)"
    assert first.json()["DailyApiRequests"] == {"Max": 100, "Remaining": 2}
    wrong = await client.get(f"{DATA}/query", params={"q": "SELECT"})
    assert wrong.headers["sforce-limit-info"].startswith("api-usage=99/100")
    assert (await client.get(f"{DATA}/limits")).status_code == 200
    refused = await client.get(f"{DATA}/limits")
    expect_error(refused, 403, "REQUEST_LIMIT_EXCEEDED", "TotalRequests Limit exceeded.")
    assert refused.headers["sforce-limit-info"].startswith("api-usage=100/100")


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/services/data/v30.0/limits", 410, "GONE"),
        ("/services/data/v21.0", 410, "GONE"),
        ("/services/data/v20.0/limits", 404, "NOT_FOUND"),
        ("/services/data/v69.0/limits", 404, "NOT_FOUND"),
        ("/services/data/v68.1/limits", 404, "NOT_FOUND"),
        ("/services/data/68.0/limits", 404, "NOT_FOUND"),
        (f"{DATA}/nothing", 404, "NOT_FOUND"),
        ("/services/nothing", 404, "NOT_FOUND"),
        (f"{DATA}/sobjects/Nothing__kav", 404, "NOT_FOUND"),
        (f"{DATA}/sobjects/Nothing__kav/describe", 404, "NOT_FOUND"),
        (f"{DATA}/sobjects/Knowledge__kav/describe/more", 404, "NOT_FOUND"),
        ("/services/data/v35.0/parameterizedSearch?q=hub", 404, "NOT_FOUND"),
        (f"{DATA}/query", 400, "MALFORMED_QUERY"),
        (f"{DATA}/search", 400, "MALFORMED_SEARCH"),
    ],
)
async def test_addresses_that_lead_nowhere(client: httpx2.AsyncClient, path: str, status: int, code: str) -> None:
    expect_error(await client.get(path), status, code)


async def test_methods_that_a_resource_lacks_are_refused(client: httpx2.AsyncClient) -> None:
    expect_error(await client.post(f"{DATA}/query"), 405, "METHOD_NOT_ALLOWED", "Allowed are GET,HEAD")
    expect_error(await client.delete(f"{DATA}/parameterizedSearch"), 405, "METHOD_NOT_ALLOWED")


async def test_long_addresses_and_headers_are_refused(client: httpx2.AsyncClient) -> None:
    path = f"{DATA}/query?q="
    fitting = await client.get(path + "x" * (16_000 - len(path)))
    expect_error(fitting, 400, "MALFORMED_QUERY")
    expect_error(await client.get(path + "x" * (16_385 - len(path))), 414, "URI_TOO_LONG")
    long = {"X-Padding": "x" * 400}
    expect_error(
        await client.get(path + "x" * (16_000 - len(path)), headers=long), 431, "REQUEST_HEADER_FIELDS_TOO_LARGE"
    )


async def test_articles_are_queried_searched_and_read(client: httpx2.AsyncClient) -> None:
    rows = await query(client, TITLES)
    assert len(rows) == 58
    statement = f"FIND {{forgotten password}} RETURNING Knowledge__kav(Id, Title WHERE {ONLINE} LIMIT 1)"
    by_statement = (await client.get(f"{DATA}/search/", params={"q": statement})).json()["searchRecords"]
    body = {
        "q": "forgotten password",
        "sobjects": [{"name": "Knowledge__kav", "fields": ["Id", "Title"], "where": ONLINE}],
    }
    by_body = (await client.post(f"{DATA}/parameterizedSearch", json={**body, "overallLimit": 1})).json()[
        "searchRecords"
    ]
    params = {
        "q": "forgotten password",
        "sobject": "Knowledge__kav",
        "Knowledge__kav.fields": "Id,Title",
        "Knowledge__kav.where": ONLINE,
        "overallLimit": "1",
    }
    by_address = (await client.get(f"{DATA}/parameterizedSearch", params=params)).json()["searchRecords"]
    assert by_statement == by_body == by_address
    (row,) = by_statement
    assert row["Title"] == "Reset a forgotten password"
    record = (await client.get(row["attributes"]["url"])).json()
    assert record["Title"] == row["Title"]
    assert record["LastPublishedDate"] == "2025-03-02T08:30:00.000+0000"
    assert set(BODY_FIELDS) <= set(record)
    some = (await client.get(row["attributes"]["url"], params={"fields": "Title,procedure__c"})).json()
    assert list(some) == ["attributes", "Title", "Procedure__c"]


@pytest.mark.parametrize(
    ("id", "status", "code", "message"),
    [
        ("nothing", 404, "NOT_FOUND", "Provided external ID field does not exist"),
        ("001D000000IqhSLIAZ", 400, "MALFORMED_ID", "Knowledge__kav ID: id value of incorrect type"),
        ("ka05g0000004CPBAA3", 400, "MALFORMED_ID", "malformed id"),
        ("ka05g00000zzzzz", 404, "NOT_FOUND", "The requested resource does not exist"),
    ],
)
async def test_ids_that_name_no_article(
    client: httpx2.AsyncClient, id: str, status: int, code: str, message: str
) -> None:
    expect_error(await client.get(f"{DATA}/sobjects/Knowledge__kav/{id}"), status, code, message)


async def test_a_record_is_read_by_15_characters_too_and_by_no_unknown_field(client: httpx2.AsyncClient) -> None:
    row = (await query(client, TITLES + " LIMIT 1"))[0]
    short = f"{DATA}/sobjects/KnowledgeArticleVersion/{str(row['Id'])[:15]}"
    assert (await client.get(short)).json()["Title"] == row["Title"]
    expect_error(
        await client.get(short, params={"fields": "Body__c"}), 400, "INVALID_FIELD", "No such column 'Body__c'"
    )


async def test_a_replaced_version_leads_to_the_one_in_force(client: httpx2.AsyncClient) -> None:
    statement = "SELECT Id, KnowledgeArticleId FROM Knowledge__kav WHERE {} AND PublishStatus = '{}'"
    current = (await query(client, f"{TITLES.partition(' ORDER')[0]} AND Title LIKE 'Marrowby Plus%'"))[0]
    article = f"KnowledgeArticleId = '{current['KnowledgeArticleId']}'"
    (old,) = await query(client, statement.format(f"{article} AND IsLatestVersion = false", "Archived"))
    record = (await client.get(f"{DATA}/sobjects/Knowledge__kav/{old['Id']}")).json()
    assert (record["PublishStatus"], record["Summary"]) == ("Archived", "2.99 € a month.")
    found = await query(client, statement.format(f"{article} AND Language = 'en_US'", "Online"))
    assert [row["Id"] for row in found] == [current["Id"]] != [old["Id"]]


async def test_the_describe_tells_body_fields_apart(client: httpx2.AsyncClient) -> None:
    described = (await client.get(f"{DATA}/sobjects/knowledge__kav/describe")).json()
    fields: dict[str, Any] = {field["name"]: field for field in described["fields"]}
    long = {name: field for name, field in fields.items() if field["custom"] and field["type"] == "textarea"}
    assert list(long) == list(BODY_FIELDS)
    assert {field["extraTypeInfo"] for field in long.values()} == {"richtextarea", "plaintextarea"}
    assert all(field["htmlFormatted"] == (field["extraTypeInfo"] == "richtextarea") for field in long.values())
    assert not any(field["filterable"] for field in long.values())
    assert fields["Language"]["picklistValues"][0]["value"] == "en_US"
    assert len({frozenset(field) for field in fields.values()}) == 1
    assert len(fields["Id"]) > 55


async def test_a_describe_that_did_not_change_is_not_sent_again(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    path = f"{DATA}/sobjects/Knowledge__kav/describe"
    first = await client.get(path)
    for header in (
        {"If-Modified-Since": first.headers["last-modified"]},
        {"If-Modified-Since": format_datetime(parsedate_to_datetime("Wed, 02 Sep 2026 00:00:00 GMT"), usegmt=True)},
        {"If-None-Match": first.headers["etag"]},
    ):
        again = await client.get(path, headers=header)
        assert (again.status_code, again.content) == (304, b"")
        assert "sforce-limit-info" in again.headers
    for header in (
        {"If-Modified-Since": "Mon, 01 Jan 2024 00:00:00 GMT"},
        {"If-Modified-Since": "yesterday"},
        {"If-None-Match": '"other"'},
    ):
        assert (await client.get(path, headers=header)).content == first.content
    await emulator.set_user(hidden_fields=["Cause__c"])
    changed = await client.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200
    assert "Cause__c" not in [field["name"] for field in changed.json()["fields"]]


async def test_objects_of_articles_are_found_by_their_ending(client: httpx2.AsyncClient) -> None:
    listed = (await client.get(f"{DATA}/sobjects")).json()["sobjects"]
    names = [object["name"] for object in listed]
    assert [name for name in names if name.endswith("__kav")] == ["Knowledge__kav"]
    assert {"KnowledgeArticleVersion", "RecordType", "Account"} <= set(names)
    assert (await client.get(listed[-1]["urls"]["describe"])).json()["name"] == names[-1]
    assert (await client.get(f"{DATA}/sobjects/Account")).json()["objectDescribe"]["keyPrefix"] == "001"
    assert (await client.get(DATA)).json()["parameterizedSearch"] == f"{DATA}/parameterizedSearch"


async def test_settings_name_the_languages(client: httpx2.AsyncClient) -> None:
    assert (await client.get(f"{DATA}/knowledgeManagement/settings")).json() == {
        "defaultLanguage": "en_US",
        "knowledgeEnabled": True,
        "languages": [{"active": True, "name": name} for name in ("en_US", "de", "ja")],
    }


async def test_a_user_without_knowledge_sees_an_org_without_articles_whose_settings_say_otherwise(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    await emulator.set_user(knowledge_user=False)
    response = await client.get(f"{DATA}/query", params={"q": TITLES})
    expect_error(response, 400, "INVALID_TYPE", "sObject type 'Knowledge__kav' is not supported.")
    expect_error(await client.get(f"{DATA}/sobjects/Knowledge__kav/describe"), 404, "NOT_FOUND")
    body = {"q": "hub", "sobjects": [{"name": "KnowledgeArticleVersion"}]}
    expect_error(await client.post(f"{DATA}/parameterizedSearch", json=body), 400, "INVALID_TYPE")
    assert (await client.get(f"{DATA}/knowledgeManagement/settings")).json()["knowledgeEnabled"] is True


async def test_a_user_whom_the_api_does_not_let_in_is_refused(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    await emulator.set_user(api_enabled=False)
    message = "The REST API is not enabled for this Organization."
    expect_error(await client.get(f"{DATA}/limits"), 403, "API_DISABLED_FOR_ORG", message)


async def test_pages_are_followed_by_their_address(emulator: RunningEmulator, client: httpx2.AsyncClient) -> None:
    whole = await query(client, TITLES)
    await emulator.set_page_size(7)
    page = (await client.get(f"{DATA}/query", params={"q": TITLES})).json()
    records = page["records"]
    while not page["done"]:
        assert page["totalSize"] == 58
        page = (await client.get(page["nextRecordsUrl"])).json()
        records += page["records"]
    assert records == whole
    expect_error(await client.get(f"{DATA}/query/01g-7"), 400, "INVALID_QUERY_LOCATOR")


async def test_other_articles_take_the_place_of_the_sample(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    article = load_articles()[0].model_dump(mode="json")
    article["versions"][0]["title"] = "' OR Title != ''"
    await emulator.set_articles([article])
    assert [row["Title"] for row in await query(client, TITLES)] == ["' OR Title != ''"]
    assert len(await query(client, TITLES.replace("WHERE", "WHERE Title = '\\' OR Title != \\'\\'' AND"))) == 1
    with pytest.raises(EmulatorError, match="validation error"):
        await emulator.set_articles([{"number": 1}])
    await emulator.reset()
    assert len(await query(client, TITLES)) == 58


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b"{", {"Content-Type": "application/json"}, 400, "JSON_PARSER_ERROR"),
        (b"\xff", {"Content-Type": "application/json"}, 400, "JSON_PARSER_ERROR"),
        (b"[1]", {"Content-Type": "application/json"}, 400, "JSON_PARSER_ERROR"),
        (b'{"q": "hub"}', {"Content-Type": "text/plain"}, 415, "UNSUPPORTED_MEDIA_TYPE"),
    ],
)
async def test_a_body_that_is_none_is_refused(
    client: httpx2.AsyncClient, content: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    response = await client.post(f"{DATA}/parameterizedSearch", content=content, headers=headers)
    expect_error(response, status, code)


@pytest.mark.parametrize(
    ("name", "status", "code", "message"),
    [
        ("session_not_for_rest", 401, "INVALID_SESSION_ID", "This session is not valid for use with the REST API"),
        ("concurrent_limit", 403, "REQUEST_LIMIT_EXCEEDED", "ConcurrentRequests (Concurrent API Requests) Limit"),
        ("insufficient_access", 403, "INSUFFICIENT_ACCESS_OR_READONLY", "insufficient access rights on object id"),
        ("server_unavailable", 503, "SERVER_UNAVAILABLE", ""),
        ("unknown_exception", 500, "UNKNOWN_EXCEPTION", ""),
    ],
)
async def test_refusals_can_be_ordered(
    emulator: RunningEmulator, client: httpx2.AsyncClient, name: str, status: int, code: str, message: str
) -> None:
    await emulator.set_faults([{"fault": "refuse", "error": name, "path": "/limits", "at": [2]}])
    assert (await client.get(f"{DATA}/limits")).status_code == 200
    assert (await client.get(f"{DATA}/sobjects")).status_code == 200
    expect_error(await client.get(f"{DATA}/limits"), status, code, message)
    assert (await client.get(f"{DATA}/limits")).status_code == 200


async def test_any_answer_can_be_ordered_also_at_the_token_endpoint(
    emulator: RunningEmulator, client: httpx2.AsyncClient
) -> None:
    body = {"error": "invalid_grant", "error_description": "app_not_found"}
    await emulator.set_faults([{"fault": "answer", "status": 400, "body": body, "path": "/oauth2/token"}])
    response = await client.post("/services/oauth2/token", data={"grant_type": "client_credentials"})
    assert (response.status_code, response.json()) == (400, body)
    await emulator.set_faults([{"fault": "answer", "status": 200, "body": None}])
    assert (await client.get(f"{DATA}/limits")).json() is None


async def test_transport_faults_spoil_right_answers(emulator: RunningEmulator, client: httpx2.AsyncClient) -> None:
    await emulator.set_faults([{"fault": "status", "status": 503, "retry_after": 2}])
    maintenance = await client.get(f"{DATA}/limits")
    assert (maintenance.status_code, maintenance.headers["retry-after"]) == (503, "2")
    assert maintenance.headers["content-type"].startswith("text/html")
    for fault in ("reset", "truncate"):
        await emulator.set_faults([{"fault": fault}])
        with pytest.raises(httpx2.TransportError):
            await client.get(f"{DATA}/limits")
    await emulator.set_faults([{"fault": "hang"}])
    with pytest.raises(httpx2.ReadTimeout):
        await client.get(f"{DATA}/limits", timeout=0.2)
    await emulator.set_faults([{"fault": "gzip"}])
    async with client.stream("GET", f"{DATA}/limits") as response:
        raw = b"".join([chunk async for chunk in response.aiter_raw()])
    assert b"DailyApiRequests" in gzip.decompress(raw)
    assert response.headers["sforce-limit-info"].startswith("api-usage=")
    with pytest.raises(EmulatorError, match="validation error"):
        await emulator.set_faults([{"fault": "duplicate_page"}])


async def test_the_log_tells_what_was_asked(emulator: RunningEmulator, client: httpx2.AsyncClient) -> None:
    await client.post(f"{DATA}/parameterizedSearch", json={"q": "hub"})
    await client.get(f"{DATA}/query", params={"q": TITLES})
    first, second = await emulator.requests()
    assert (first["method"], first["path"], first["status"]) == ("POST", f"{DATA}/parameterizedSearch", 200)
    assert first["body"] == '{"q":"hub"}'
    assert second["options"] == {"q": TITLES}
    assert cast("dict[str, str]", second["headers"])["authorization"] == f"Bearer {emulator.access_token}"


async def test_a_disabled_org_says_so_in_its_settings() -> None:
    async with running_emulator("disabled") as emulator:
        headers = {"Authorization": f"Bearer {emulator.access_token}"}
        async with httpx2.AsyncClient(base_url=emulator.url, headers=headers, trust_env=False, verify=False) as client:
            settings = (await client.get(f"{DATA}/knowledgeManagement/settings")).json()
            assert settings == {"defaultLanguage": None, "knowledgeEnabled": False, "languages": []}
            expect_error(await client.get(f"{DATA}/query", params={"q": TITLES}), 400, "INVALID_TYPE")
            statement = "FIND {hub} RETURNING KnowledgeArticleVersion(Id)"
            expect_error(await client.get(f"{DATA}/search", params={"q": statement}), 400, "INVALID_TYPE")


async def test_the_object_of_the_articles_may_have_another_name() -> None:
    async with running_emulator(article_object="Handbook__kav") as emulator:
        headers = {"Authorization": f"Bearer {emulator.access_token}"}
        async with httpx2.AsyncClient(base_url=emulator.url, headers=headers, trust_env=False, verify=False) as client:
            assert len(await query(client, TITLES.replace("Knowledge__kav", "Handbook__kav"))) == 58
            expect_error(await client.get(f"{DATA}/query", params={"q": TITLES}), 400, "INVALID_TYPE")
