"""What queries answer: against SQLite for conditions, and by hand for the rules of Knowledge."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import cast

import pytest

from sample_world.salesforce.articles import Record, build_records, load_articles
from sample_world.salesforce.errors import ApiError
from sample_world.salesforce.org import Org, User
from sample_world.salesforce.queries import Queries
from sample_world.salesforce.schema import OrgKind

ARTICLES = load_articles()
RECORDS = build_records(ARTICLES, "lightning")
SHARED = Org("lightning", ARTICLES)
NOW = "68.0"


def run(statement: str, *, org: Org | None = None, version: str = NOW) -> list[Record]:
    queries = Queries(org or SHARED)
    return cast("list[Record]", queries.run(statement, version, 2000)["records"])


def build(fields: str, where: str = "", tail: str = "", *, source: str = "Knowledge__kav") -> str:
    parts = ["SELECT", fields, "FROM", source, *(["WHERE", where] if where else []), tail]
    return " ".join(part for part in parts if part)


def select(where: str, *, org: Org | None = None, version: str = NOW) -> list[str]:
    return [str(row["Id"]) for row in run(build("Id", where), org=org, version=version)]


def expect(test: Callable[[Record], bool]) -> list[str]:
    return [str(record["Id"]) for record in RECORDS if not record["IsSuperseded"] and test(record)]


def refuse(statement: str, *, org: Org | None = None, version: str = NOW) -> ApiError:
    with pytest.raises(ApiError) as caught:
        run(statement, org=org, version=version)
    assert caught.value.status == 400
    return caught.value


# Each column, how SQL compares it, and literals of SOQL. SQLite folds ASCII alone, so only such records take part.
COLUMNS = {
    "Title": ("TEXT", [r"'Restart the hub without losing schedules'", r"'m'", "'T%'"]),
    "Summary": ("TEXT", [r"'The offer has ended.'", "'s'", "null"]),
    "VersionNumber": ("INTEGER", ["1", "2", "-1", "null"]),
    "Language": ("TEXT", ["'en_us'", "'DE'", "'x'"]),
    "LastPublishedDate": (
        "TEXT",
        ["2025-05-12T08:30:00Z", "2025-04-10T10:30:00+02:00", "2026-01-01T00:00:00.000+0000"],
    ),
    "IsMasterLanguage": ("INTEGER", ["true", "false"]),
}
PATTERNS = ["'%hub%'", "'A%'", r"'%\%%'", r"'%\_id%'", "'%_d %'", r"'%isn\'t'", "''", "'T__ %'", r"'%C:\\\\%'"]


def make_pair(chance: random.Random, depth: int = 2) -> tuple[str, str]:
    if depth and chance.random() < 0.5:
        word = chance.choice(["AND", "OR"])
        parts = [make_pair(chance, depth - 1) for _ in range(chance.randint(2, 3))]
        return tuple("(" + f" {word} ".join(side) + ")" for side in zip(*parts, strict=True))  # pyright: ignore[reportReturnType]
    if depth and chance.random() < 0.2:
        soql, sql = make_pair(chance, depth - 1)
        return f"(NOT {soql})", f"(NOT {sql})"
    return make_comparison_pair(chance)


def make_comparison_pair(chance: random.Random) -> tuple[str, str]:
    column = chance.choice(list(COLUMNS))
    values = COLUMNS[column][1]
    if column in ("Title", "Summary") and chance.random() < 0.5:
        pattern = chance.choice(PATTERNS)
        return f"{column} LIKE {pattern}", f"ifnull({column} LIKE {to_sql(pattern)} ESCAPE '\\', 0)"
    if chance.random() < 0.3:
        listed = chance.sample(values, 2)
        tests = " OR ".join(f"{column} IS {to_sql(value)} COLLATE NOCASE" for value in listed)
        word, negated = chance.choice([("IN", ""), ("NOT IN", "NOT ")])
        return f"{column} {word} ({', '.join(listed)})", f"({negated}({tests}))"
    value = chance.choice(values)
    if value == "null" or column == "IsMasterLanguage" or chance.random() < 0.5:
        sign, sql = chance.choice([("=", "IS"), ("!=", "IS NOT"), ("<>", "IS NOT")])
        return f"{column} {sign} {value}", f"({column} {sql} {to_sql(value)} COLLATE NOCASE)"
    sign = chance.choice(["<", "<=", ">", ">="])
    return f"{column} {sign} {value}", f"ifnull({column} {sign} {to_sql(value)} COLLATE NOCASE, 0)"


def to_sql(value: str) -> str:
    if value.startswith("'"):
        inner = value[1:-1].replace("\\'", "'").replace("\\\\", "\\")
        return "'" + inner.replace("'", "''") + "'"
    if value[:2] == "20":
        instant = datetime.fromisoformat(value.replace("Z", "+00:00").replace("+0000", "+00:00"))
        return f"'{to_text(instant)}'"
    return {"true": "1", "false": "0"}.get(value, value)


def to_text(value: object) -> object:
    return int(value.timestamp()) if isinstance(value, datetime) else value


@pytest.fixture
def sql() -> Iterator[sqlite3.Connection]:
    with sqlite3.connect(":memory:") as connection:
        kinds = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
        connection.execute(f"CREATE TABLE article (Id TEXT, {kinds})")
        for record in RECORDS:
            if not record["IsSuperseded"] and f"{record['Title']}{record['Summary']}".isascii():
                row = [record["Id"], *(to_text(record[name]) for name in COLUMNS)]
                connection.execute(f"INSERT INTO article VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
        yield connection
    connection.close()


def test_conditions_hold_for_the_records_that_sqlite_finds(sql: sqlite3.Connection) -> None:
    known = {row[0] for row in sql.execute("SELECT Id FROM article")}
    assert len(known) > 30
    chance = random.Random(5)
    sizes: list[int] = []
    for _ in range(400):
        soql, condition = make_pair(chance)
        found = set(select(soql)) & known
        sizes.append(len(found))
        assert found == {row[0] for row in sql.execute(f"SELECT Id FROM article WHERE {condition}")}, soql  # noqa: S608
    assert sum(0 < size < len(known) for size in sizes) > 100


def test_titles_are_found_by_patterns_whatever_characters_they_have() -> None:
    for record in RECORDS:
        title = str(record["Title"])
        text = "".join(f"\\{character}" if character in "\\'%_" else character for character in title)
        assert select(f"Title LIKE '{text}'") == expect(lambda other, title=title: other["Title"] == title)
    assert select("Title LIKE '%größe%' OR Title LIKE '%MÜSSEN%' OR Title LIKE '%weiß%'") == expect(
        lambda record: "weiß" in str(record["Title"])
    )


def test_a_wildcard_matches_any_character_and_an_escaped_one_only_itself() -> None:
    assert select(r"Title LIKE '%\%%'") == expect(lambda record: "%" in str(record["Title"]))
    assert select(r"Title LIKE '%\_%'") == expect(lambda record: "_" in str(record["Title"]))
    assert len(select("Title LIKE '%%'")) == len(select(""))


def test_ids_are_found_in_both_lengths_and_nothing_else_is_taken_for_one() -> None:
    record = RECORDS[7]
    long = str(record["Id"])
    assert select(f"Id = '{long}'") == select(f"Id = '{long[:15]}'") == [long]
    assert select(f"Id = '{long[:15].swapcase()}'") == []
    assert refuse("SELECT Id FROM Knowledge__kav WHERE Id = 'x'").code == "INVALID_QUERY_FILTER_OPERATOR"


def test_an_order_is_kept_with_nulls_first_unless_last_is_said() -> None:
    rows = run("SELECT Summary FROM Knowledge__kav WHERE PublishStatus = 'Online' ORDER BY Summary")
    values = [cast("str | None", row["Summary"]) for row in rows]
    nulls = values.count(None)
    assert nulls > 1
    assert values[:nulls] == [None] * nulls
    assert values[nulls:] == sorted((str(value) for value in values[nulls:]), key=str.casefold)
    rows = run("SELECT Summary FROM Knowledge__kav WHERE PublishStatus = 'Online' ORDER BY Summary DESC NULLS LAST")
    assert [row["Summary"] for row in rows] == [*reversed(values[nulls:]), *values[:nulls]]


def test_limit_and_offset_cut_what_the_order_made() -> None:
    everything = run("SELECT Title FROM Knowledge__kav ORDER BY Title")
    assert run("SELECT Title FROM Knowledge__kav ORDER BY Title LIMIT 3 OFFSET 2") == everything[2:5]


def test_a_related_record_comes_as_an_object_of_its_own() -> None:
    (row,) = run(build("RecordType.Name, RecordType.DeveloperName", f"Id = '{RECORDS[1]['Id']}'"))
    related = cast("Record", row["RecordType"])
    assert (related["Name"], related["DeveloperName"]) == ("How-To", "How_To")
    assert cast("Record", related["attributes"])["type"] == "RecordType"
    assert select("RecordType.DeveloperName = 'how_to'") == expect(
        lambda record: cast("Record", record["RecordType"])["DeveloperName"] == "How_To"
    )


def test_a_count_is_the_total_without_records() -> None:
    answer = Queries(Org("lightning", ARTICLES)).run(
        "SELECT COUNT() FROM Knowledge__kav WHERE PublishStatus = 'Draft'", NOW, 2000
    )
    assert (answer["records"], answer["done"]) == ([], True)
    assert answer["totalSize"] == len(expect(lambda record: record["PublishStatus"] == "Draft")) > 0


def test_from_version_47_on_drafts_and_archived_articles_come_without_a_status() -> None:
    assert select("", version="47.0") == expect(lambda _record: True)
    assert select("", version="46.0") == expect(lambda record: record["PublishStatus"] == "Online")
    assert {"Draft", "Archived", "Online"} == {
        str(row["PublishStatus"]) for row in run("SELECT PublishStatus FROM Knowledge__kav")
    }


def test_a_user_without_the_right_sees_no_drafts_and_no_archived_articles() -> None:
    org = Org("lightning", ARTICLES)
    org.set_user(User(view_drafts=False, view_archived=False))
    assert select("", org=org) == expect(lambda record: record["PublishStatus"] == "Online")
    assert select("PublishStatus = 'Draft'", org=org) == []


def test_replaced_versions_are_found_by_their_article_alone() -> None:
    replaced = next(record for record in RECORDS if record["IsSuperseded"])
    article = f"KnowledgeArticleId = '{replaced['KnowledgeArticleId']}'"
    assert select("PublishStatus = 'Archived' AND IsLatestVersion = false") == []
    assert select(f"{article} AND PublishStatus = 'Archived' AND IsLatestVersion = false") == [replaced["Id"]]
    assert select(f"{article} AND PublishStatus = 'Archived'") == []
    assert replaced["Id"] in select(article)
    (online,) = select(f"{article} AND PublishStatus = 'Online' AND Language = 'en_US'")
    assert online != replaced["Id"]


@pytest.mark.parametrize("condition", ["", "Title LIKE '%a%'", "(PublishStatus = 'Online' OR Title = 'x')"])
def test_a_classic_org_demands_a_status_or_ids_at_the_top(condition: str) -> None:
    error = refuse(build("Id", condition, source="FAQ__kav"), org=Org("classic", ARTICLES))
    assert error.code == "MALFORMED_QUERY"
    assert "When querying or searching the FAQ__kav object, you must filter" in error.message


def test_a_classic_org_has_a_body_and_a_type_for_each_kind_of_article() -> None:
    org = Org("classic", ARTICLES)
    where = "PublishStatus = 'Online' AND Language = 'en_US'"
    faqs = run(build("Title, ArticleBody", where, source="FAQ__kav"), org=org)
    how_tos = run(build("Title, ArticleBody", where, source="HowTo__kav"), org=org)
    everything = run(build("Title, ArticleType", where, source="KnowledgeArticleVersion"), org=org)
    assert len(faqs) + len(how_tos) == len(everything) == 58
    assert "<h2>Procedure</h2>" in str(how_tos[0]["ArticleBody"])
    assert refuse(build("ArticleBody", where, source="KnowledgeArticleVersion"), org=org).code == "INVALID_FIELD"
    assert refuse(build("Id", where), org=org).code == "INVALID_TYPE"


@pytest.mark.parametrize("kind", ["disabled", "lightning"])
def test_without_knowledge_or_without_the_right_the_object_is_not_supported(kind: OrgKind) -> None:
    org = Org(kind, ARTICLES)
    org.set_user(User(knowledge_user=False))
    error = refuse("SELECT Id FROM Knowledge__kav", org=org)
    assert error.code == "INVALID_TYPE"
    assert "sObject type 'Knowledge__kav' is not supported." in error.message
    assert len(run("SELECT Name FROM Account", org=org)) == 2


def test_before_version_39_there_is_no_lightning_object() -> None:
    assert refuse("SELECT Id FROM Knowledge__kav", version="38.0").code == "INVALID_TYPE"


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        ("SELECT Body__c FROM Knowledge__kav", "INVALID_FIELD", "No such column 'Body__c' on entity 'Knowledge__kav'"),
        ("SELECT Author.Name FROM Knowledge__kav", "INVALID_FIELD", "Didn't understand relationship 'Author'"),
        ("SELECT Id, id FROM Knowledge__kav", "MALFORMED_QUERY", "duplicate field selected: Id"),
        ("SELECT Id FROM Knowledge__kav WHERE Cause__c LIKE 'x'", "INVALID_FIELD", "can not be filtered"),
        ("SELECT Id FROM Knowledge__kav ORDER BY Cause__c", "INVALID_FIELD", "can not be sorted"),
        ("SELECT Id FROM Knowledge__kav WHERE Title = 5", "INVALID_FIELD", "must be of type string and should be"),
        (
            "SELECT Id FROM Knowledge__kav WHERE VersionNumber = '1'",
            "INVALID_FIELD",
            "should not be enclosed in quotes",
        ),
        ("SELECT Id FROM Knowledge__kav WHERE CreatedDate = '2026-01-01'", "INVALID_FIELD", "of type dateTime"),
        ("SELECT Id FROM Knowledge__kav WHERE CreatedDate > 2026-01-01", "INVALID_FIELD", "of type dateTime"),
        ("SELECT Id FROM Knowledge__kav WHERE IsLatestVersion = '0'", "INVALID_FIELD", "of type boolean"),
        ("SELECT Id FROM Knowledge__kav WHERE Title INCLUDES ('x')", "INVALID_QUERY_FILTER_OPERATOR", "multipicklist"),
        ("SELECT Id FROM Knowledge__kav WHERE Id LIKE 'x'", "INVALID_QUERY_FILTER_OPERATOR", "invalid operator"),
        ("SELECT Id FROM Knowledge__kav WHERE Title LIKE null", "MALFORMED_QUERY", "unexpected token"),
        ("SELECT Id FROM Knowledge__kav WITH DATA CATEGORY Products__c AT Hub__c", "MALFORMED_QUERY", "PublishStatus"),
        (
            "SELECT Id FROM Knowledge__kav WHERE PublishStatus = 'Online' WITH DATA CATEGORY Colours__c AT Red__c",
            "MALFORMED_QUERY",
            "Colours__c is unknown",
        ),
        ("SELECT Id FROM Nothing__kav", "INVALID_TYPE", "sObject type 'Nothing__kav' is not supported"),
    ],
)
def test_what_cannot_be_asked_is_refused_as_documented(statement: str, code: str, message: str) -> None:
    error = refuse(statement)
    assert error.code == code
    assert message in error.message


def test_a_hidden_field_is_as_one_that_is_absent() -> None:
    org = Org("lightning", ARTICLES)
    org.set_user(User(hidden_fields=("cause__c",)))
    error = refuse("SELECT Cause__c FROM Knowledge__kav", org=org)
    assert "No such column 'Cause__c' on entity 'Knowledge__kav'" in error.message
    rows = run("SELECT FIELDS(CUSTOM) FROM Knowledge__kav LIMIT 1", org=org)
    assert "Cause__c" not in rows[0]
    assert "Resolution__c" in rows[0]


def test_categories_let_through_what_is_filed_in_them_above_them_or_below_them() -> None:
    def count(selector: str) -> int:
        where = "PublishStatus = 'Online' AND Language = 'en_US'"
        return len(run(build("Id", where, f"WITH DATA CATEGORY {selector}")))

    def filed(*categories: str) -> int:
        return len(
            expect(
                lambda record: (
                    record["PublishStatus"] == "Online"
                    and record["Language"] == "en_US"
                    and not set(cast("dict[str, list[str]]", record["DataCategories"])["Products__c"]).isdisjoint(
                        categories
                    )
                )
            )
        )

    assert count("Products__c AT Climate__c") == filed("Climate__c")
    assert count("Products__c BELOW Climate__c") == filed("Climate__c", "Thermo__c", "Radiator__c")
    assert count("Products__c ABOVE Thermo__c") == filed("Thermo__c", "Climate__c", "All__c")
    assert count("Products__c ABOVE_OR_BELOW All__c") == 58
    assert count("Products__c AT (Hub__c, App__c)") == filed("Hub__c", "App__c")
    assert 0 < count("Products__c BELOW Account__c AND Regions__c BELOW Europe__c") < filed("Account__c", "Billing__c")


def test_an_update_of_statistics_counts_views_of_all_versions_of_an_article() -> None:
    org = Org("lightning", ARTICLES)
    id = RECORDS[1]["KnowledgeArticleId"]
    statement = build("ArticleTotalViewCount", f"KnowledgeArticleId = '{id}'")
    assert {row["ArticleTotalViewCount"] for row in run(statement, org=org)} == {0}
    run(f"{statement} UPDATE VIEWSTAT", org=org)
    run(f"{statement} FOR VIEW UPDATE TRACKING", org=org)
    assert {row["ArticleTotalViewCount"] for row in run(statement, org=org)} == {1}


def test_pages_follow_one_another_to_the_end() -> None:
    queries = Queries(Org("lightning", ARTICLES))
    statement = "SELECT Id FROM Knowledge__kav"
    whole = queries.run(statement, NOW, 2000)
    assert "nextRecordsUrl" not in whole
    page = queries.run(statement, NOW, 30)
    records = cast("list[Record]", page["records"])
    while not page["done"]:
        address = str(page["nextRecordsUrl"])
        assert address.startswith("/services/data/v68.0/query/01g")
        page = queries.more(address.rpartition("/")[2], NOW, 30)
        assert page["totalSize"] == whole["totalSize"]
        records = [*records, *cast("list[Record]", page["records"])]
    assert records == whole["records"]


@pytest.mark.parametrize("locator", ["x", "01g5g0000000001AAA-x", "01g5g0000000001AAA-999", "01g5g0000000009AAA-30"])
def test_a_locator_that_is_none_is_refused(locator: str) -> None:
    queries = Queries(Org("lightning", ARTICLES))
    queries.run("SELECT Id FROM Knowledge__kav", NOW, 30)
    with pytest.raises(ApiError) as caught:
        queries.more(locator, NOW, 30)
    assert caught.value.code == "INVALID_QUERY_LOCATOR"
