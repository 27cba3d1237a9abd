from __future__ import annotations

from datetime import UTC, datetime

import pytest

from refdesk.toolsets.salesforce_knowledge.failures import UnreachableError
from refdesk.toolsets.salesforce_knowledge.objects import (
    BodyField,
    ObjectDescription,
    read_article_objects,
    read_description,
)
from refdesk.toolsets.salesforce_knowledge.rows import (
    BODY_CHARACTERS,
    join_body,
    read_found,
    read_queried,
    show_article,
    show_summaries,
)


def text_area(name: str, *, rich: bool = True, **more: object) -> dict[str, object]:
    extra = "richtextarea" if rich else "plaintextarea"
    return {"name": name, "label": name[:-3], "type": "textarea", "extraTypeInfo": extra, "htmlFormatted": rich, **more}


def describe(*fields: dict[str, object], name: str = "Knowledge__kav") -> ObjectDescription:
    standard = [{"name": each, "type": "string", "filterable": True} for each in ("Id", "Title", "Summary")]
    description = read_description({"name": name, "keyPrefix": "ka0", "fields": [*standard, *fields]})
    assert description is not None
    return description


def names(fields: tuple[BodyField, ...]) -> list[str]:
    return [field.name for field in fields]


def test_the_body_is_the_custom_rich_text_in_the_orgs_order() -> None:
    line: dict[str, object] = {"name": "Line__c", "label": "Line", "type": "string"}
    described = describe(
        text_area("B__c"), line, text_area("P__c", rich=False), text_area("A__c"), text_area("Summary")
    )
    fields = described.choose_body_fields(())
    assert [(field.name, field.is_html) for field in fields] == [("B__c", True), ("A__c", True)]


def test_plain_text_areas_are_the_body_where_none_is_rich() -> None:
    described = describe(text_area("P__c", rich=False), text_area("Summary", rich=False), text_area("Q__c", rich=False))
    assert names(described.choose_body_fields(())) == ["P__c", "Q__c"]


def test_the_standard_body_of_classic_stands_alone() -> None:
    described = describe(text_area("A__c"), text_area("ArticleBody"))
    assert names(described.choose_body_fields(())) == ["ArticleBody"]


def test_a_configured_body_has_its_own_order_and_passes_over_what_is_not_there() -> None:
    described = describe(text_area("A__c"), text_area("B__c"))
    fields = described.choose_body_fields(("B__c", "Gone__c", "Title", "A__c"))
    assert names(fields) == ["B__c", "Title", "A__c"]
    assert [field.is_html for field in fields] == [True, False, True]


def test_what_is_no_description_is_none() -> None:
    odd: list[object] = [None, [], {"name": "X"}, {"fields": []}, {"name": 1, "fields": []}, "x"]
    for data in odd:
        assert read_description(data) is None


def test_objects_of_articles_are_known_by_the_beginning_of_their_ids() -> None:
    listed: list[object] = [
        {"name": "FAQ__kav", "keyPrefix": "ka1"},
        {"name": "FAQ__ka", "keyPrefix": "kA1"},
        {"name": "Account", "keyPrefix": "001"},
        {"name": "Odd__kav", "keyPrefix": None},
        "nonsense",
    ]
    assert read_article_objects({"sobjects": listed}) == {"ka1": "FAQ__kav"}
    assert read_article_objects(None) == {}


def test_a_body_of_several_fields_stands_under_their_labels_without_the_empty_ones() -> None:
    fields = (BodyField("A__c", "Symptoms", True), BodyField("B__c", "Cause", True), BodyField("C__c", "Notes", False))
    row = {"A__c": "<p>It <b>drops</b></p>", "B__c": None, "C__c": "Call <us>\r\nnow"}
    assert join_body(row, fields) == "Symptoms:\nIt drops\n\nNotes:\nCall <us>\nnow"


def test_a_body_of_one_field_needs_no_label_and_may_be_empty() -> None:
    field = BodyField("Body__c", "Body", True)
    assert join_body({"Body__c": "<p>Do it</p>"}, (field,)) == "Do it"
    assert join_body({}, (field,)) == ""


def test_an_overlong_body_is_cut() -> None:
    body = join_body({"A__c": "x" * (BODY_CHARACTERS + 5)}, (BodyField("A__c", "A", False),))
    assert len(body) == BODY_CHARACTERS + 1
    assert body.endswith("…")


def test_rows_are_read_in_both_forms_of_a_search_answer() -> None:
    row = {"Id": "x"}
    assert read_found({"searchRecords": [row, 5]}) == [row]
    assert read_found([row]) == [row]
    assert read_queried({"records": []}) == []
    odd: list[object] = [None, {}, {"searchRecords": None}, "x", {"searchRecords": {}}]
    for data in odd:
        with pytest.raises(UnreachableError):
            read_found(data)


def test_only_published_articles_with_id_and_title_are_shown_each_once() -> None:
    rows: list[dict[str, object]] = [
        {"Id": "1", "Title": "One", "PublishStatus": "Online", "LastPublishedDate": "2024-12-01T10:00:00.000+0000"},
        {"Id": "2", "Title": "Two", "PublishStatus": "Draft"},
        {"Id": "1", "Title": "One again", "PublishStatus": "Online"},
        {"Id": "3", "Title": None},
        {"Title": "No id"},
        {"Id": "4", "Title": "Four", "Summary": " ", "ArticleType": "FAQ__kav", "LastPublishedDate": "soon"},
        {"Id": "5", "Title": "Five", "RecordType": {"Name": "How-To"}},
    ]
    shown = show_summaries(rows, 10)
    assert [each.id for each in shown] == ["1", "4", "5"]
    assert shown[0].last_published == datetime(2024, 12, 1, 10, tzinfo=UTC)
    assert (shown[1].summary, shown[1].last_published, shown[1].article_type) == (None, None, "FAQ__kav")
    assert shown[2].article_type == "How-To"
    assert len(show_summaries(rows, 2)) == 2


def test_an_articles_type_is_its_record_type_or_its_classic_object() -> None:
    row = {"Id": "1", "Title": "One"}
    assert show_article(row, describe(name="FAQ__kav"), ()).article_type == "FAQ__kav"
    assert show_article(row, describe(), ()).article_type is None
    assert show_article({**row, "RecordType": {"Name": "FAQ"}}, describe(), ()).article_type == "FAQ"
    with pytest.raises(UnreachableError):
        show_article({}, describe(), ())


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-1200", "0001-01-01T00:00:00.000+0100", "99999-01-01", ""])
def test_a_date_that_no_calendar_has_is_none(text: str) -> None:
    [shown] = show_summaries([{"Id": "1", "Title": "One", "LastPublishedDate": text}], 10)
    assert shown.last_published is None
