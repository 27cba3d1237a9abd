from __future__ import annotations

from datetime import UTC, datetime

import pytest

from refdesk.core.background.records import InvalidRecordError
from refdesk.model import DateRange
from refdesk.toolsets.azure_updates.models import COLLECTION
from refdesk.toolsets.azure_updates.records import to_document
from refdesk.toolsets.azure_updates.results import get_description
from tests.toolsets.azure_updates.samples import make_record


def test_a_record_becomes_a_document_with_facets_spans_and_everything_it_came_with() -> None:
    record = make_record("slug-1", newField={"kept": [1]})
    document = to_document(record)
    assert (document.collection, document.id) == (COLLECTION, "slug-1")
    assert document.body == "It is here.\n\nVirtual Machines (VM) (VMs)"
    assert get_description(document) == "It is here."
    assert document.facets == {
        "tags": ("Features",),
        "productCategories": ("Compute",),
        "products": ("Virtual Machines",),
        "status": ("Launched",),
        "availabilityRing": ("General Availability",),
    }
    modified = datetime(2026, 2, 28, 15, 0, 0, 123456, tzinfo=UTC)
    march = DateRange(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 31, 23, 59, 59, 999999, tzinfo=UTC))
    assert document.date_ranges == {
        "modified": (DateRange(modified, modified),),
        "availability": (march,),
        "availability:General Availability": (march,),
    }
    assert document.data["record"] == record


def test_equal_records_make_equal_documents_and_any_difference_shows_in_the_digest() -> None:
    digest = to_document(make_record()).digest
    assert to_document(make_record()).digest == digest
    assert to_document(make_record(tags=["Feature"])).digest != digest
    assert to_document(make_record(unknown=1)).digest != digest


@pytest.mark.parametrize("field", ["tags", "products", "productCategories", "availabilities"])
@pytest.mark.parametrize("value", [None, []])
def test_missing_lists_are_empty(field: str, value: object) -> None:
    document = to_document(make_record(**{field: value}))
    name = "availabilityRing" if field == "availabilities" else field
    assert document.facets[name] == ()


def test_missing_status_and_description_are_empty() -> None:
    document = to_document(make_record(status=None, description=None, products=[]))
    assert (document.facets["status"], document.body, get_description(document)) == ((), "", "")


def test_the_targets_of_links_are_shown_and_not_searched() -> None:
    html = '<p>See <a href="https://learn.microsoft.com/managed-identity_(x)">the docs</a>, https://aka.ms/secret.</p>'
    document = to_document(make_record(description=html, products=[]))
    assert document.body == "See the docs, "
    assert "(https://learn.microsoft.com/managed-identity" in get_description(document)


@pytest.mark.parametrize(
    ("title", "products"),
    [
        ("Retirement: Prompt Flow in Azure ML and Foundry", ("Azure Machine Learning", "Microsoft Foundry")),
        ("Retirement: NVv4-series VMs", ("Virtual Machines",)),
        (
            "Generally Available: Azure Kubernetes Service on Azure Local",
            ("Azure Kubernetes Service (AKS)", "Azure Local"),
        ),
        ("Update: Egress in the United Kingdom", ()),
    ],
)
def test_a_record_without_products_has_those_that_its_title_names(title: str, products: tuple[str, ...]) -> None:
    assert to_document(make_record(title=title, products=[])).facets["products"] == products
    assert to_document(make_record(title=title)).facets["products"] == ("Virtual Machines",)


@pytest.mark.parametrize(
    ("year", "month", "date"),
    [
        (2024, "February", "2024-02-01"),
        (2026, "december ", "2026-12-01"),
        (None, "March", None),
        (2026, None, None),
        (2026, "Marchember", None),
        (0, "March", None),
        (10000, "March", None),
    ],
)
def test_an_availability_is_dated_by_its_month_or_not_at_all(year: object, month: object, date: str | None) -> None:
    document = to_document(make_record(availabilities=[{"ring": "Effective", "year": year, "month": month}]))
    assert document.data["availabilities"] == [{"ring": "Effective", "date": date}]
    assert len(document.date_ranges["availability"]) == (date is not None)


def test_the_last_month_of_the_calendar_ends_within_it() -> None:
    document = to_document(make_record(availabilities=[{"ring": "Preview", "year": 9999, "month": "December"}]))
    assert document.date_ranges["availability"][0].end == datetime.max.replace(tzinfo=UTC)


def test_an_update_may_be_modified_before_it_was_created() -> None:
    to_document(make_record(created="2026-03-01T00:00:00Z", modified="2026-02-01T00:00:00Z"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": None}, "id"),
        ({"id": ""}, "id"),
        ({"id": 5}, "id"),
        ({"id": "a b"}, "id"),
        ({"id": "x" * 201}, "id"),
        ({"title": None}, "title"),
        ({"title": "\u200b "}, "title"),
        ({"description": 5}, "description"),
        ({"status": ["Launched"]}, "status"),
        ({"tags": "Features"}, "tags"),
        ({"tags": [None]}, r"tags\.0"),
        ({"availabilities": [{"year": 2026}]}, r"availabilities\.0\.ring"),
        ({"availabilities": ["March"]}, r"availabilities\.0"),
        ({"availabilities": [{"ring": "Preview", "year": "2026"}]}, r"availabilities\.0\.year"),
        ({"modified": None}, "modified"),
        ({"modified": "2026-02-30T09:00:00Z"}, "modified: is no instant"),
        ({"created": "yesterday"}, "created: is no instant"),
        ({"created": "0001-01-01T00:00:00+14:00"}, "created: is no instant"),
        ({"title": "a\x00b"}, "NUL"),
        ({"extra": {"deep": ["\x00"]}}, "NUL"),
        ({"extra": "\ud800"}, "surrogate"),
    ],
)
def test_a_bad_record_is_refused_with_its_reason(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidRecordError, match=reason):
        to_document(make_record(**changes))


def test_a_text_that_speaks_of_nul_is_no_nul() -> None:
    to_document(make_record(title="The escape \\u0000 in JSON"))
