"""The invented announcements hold every kind of record that a client must live with."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import cast

import pytest

from sample_world.azure_updates import Record, load_world
from sample_world.azure_updates.filters import parse_filter
from sample_world.azure_updates.instants import to_ticks
from sample_world.azure_updates.world import FOLDER, Change, apply_changes, load_changes

WIRE_FIELDS = {
    "id",
    "productCategories",
    "tags",
    "products",
    "generalAvailabilityDate",
    "previewAvailabilityDate",
    "privatePreviewAvailabilityDate",
    "title",
    "description",
    "status",
    "created",
    "modified",
    "locale",
    "availabilities",
}
RINGS = {"General Availability", "Preview", "Private Preview", "Retirement", "Effective"}
LONGEST_SHARED_RUN = 8


def is_bad(record: Record) -> bool:
    return "title" not in record


def good(day: int = 1) -> list[Record]:
    return [record for record in load_world(day) if not is_bad(record)]


def get_strings(record: Record, field: str) -> list[str]:
    return cast("list[str]", record[field])


def by_id(day: int) -> dict[object, Record]:
    return {record["id"]: record for record in load_world(day)}


def test_there_are_about_three_hundred_records_in_a_small_file() -> None:
    assert 290 <= len(load_world()) <= 320
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 600_000


def test_ids_are_distinct_text_on_both_days() -> None:
    for day in (1, 2):
        ids = [record["id"] for record in load_world(day)]
        assert all(isinstance(id, str) and id for id in ids)
        assert len(set(ids)) == len(ids)


def test_every_good_record_has_the_fields_and_types_of_the_wire() -> None:
    for record in good(1) + good(2):
        assert record.keys() >= WIRE_FIELDS
        assert all(isinstance(record[field], str) and record[field] for field in ("title", "description"))
        assert all(isinstance(get_strings(record, field), list) for field in ("tags", "products", "productCategories"))
        assert record["status"] in ("Launched", "In preview", "In development", None)
        assert record["locale"] is None
        for availability in cast("list[Record]", record["availabilities"]):
            assert availability["ring"] in RINGS
            assert isinstance(availability["year"], int)


def test_every_good_instant_has_seven_digits_and_none_is_modified_before_it_was_created() -> None:
    for record in good(1) + good(2):
        created, modified = str(record["created"]), str(record["modified"])
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z", text) for text in (created, modified))
        assert (to_ticks(created) or 0) <= (to_ticks(modified) or 0)


def test_the_month_fields_repeat_the_availabilities() -> None:
    fields = {
        "generalAvailabilityDate": "General Availability",
        "previewAvailabilityDate": "Preview",
        "privatePreviewAvailabilityDate": "Private Preview",
    }
    for record in good(1) + good(2):
        years = {item["ring"]: item["year"] for item in cast("list[Record]", record["availabilities"])}
        for field, ring in fields.items():
            month = cast("str | None", record[field])
            assert (month is None) == (ring not in years), record["id"]
            assert month is None or month.startswith(str(years[ring]))


def test_titles_of_good_records_are_distinct() -> None:
    for day in (1, 2):
        titles = Counter(record["title"] for record in good(day))
        assert titles.most_common(1)[0][1] == 1


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        ("availabilities/any(a: a/ring eq 'General Availability')", 100),
        ("availabilities/any(a: a/ring eq 'Preview')", 60),
        ("availabilities/any(a: a/ring eq 'Private Preview')", 5),
        ("availabilities/any(a: a/ring eq 'Retirement')", 60),
        ("availabilities/any(a: a/ring eq 'Retirement' and a/year eq 2027)", 20),
        ("availabilities/any(a: a/ring eq 'Effective')", 5),
        ("not availabilities/any()", 1),
        ("generalAvailabilityDate ne null and previewAvailabilityDate ne null", 2),
        ("status eq null", 60),
        ("status eq 'In development'", 3),
        ("not tags/any()", 15),
        ("not productCategories/any()", 5),
        ("not products/any()", 5),
        ("tags/any(t: t eq 'Feature')", 40),
        ("tags/any(t: t eq 'Features')", 60),
        ("tags/any(t: t eq 'Security')", 30),
        ("tags/any(t: t eq 'Pricing & Offerings')", 8),
        ("productCategories/any(c: c eq 'Networking')", 30),
        ("productCategories/any(c: c eq 'Databases')", 30),
        ("productCategories/any(c: c eq 'AI + machine learning')", 30),
        ("products/any(p: p eq 'Azure Kubernetes Service (AKS)')", 15),
        ("created lt 2024-01-01T00:00:00Z", 4),
    ],
)
def test_each_kind_of_record_occurs(kind: str, least: int) -> None:
    condition = parse_filter(kind)
    assert sum(condition(record) for record in good()) >= least


def test_some_ids_are_old_slugs_and_some_numbers_are_short() -> None:
    ids = [str(record["id"]) for record in good()]
    assert sum(not id.isdigit() for id in ids) == 3
    assert any(id.isdigit() and len(id) < 6 for id in ids)


def test_some_records_have_fields_that_nobody_knows() -> None:
    assert sum(bool(record.keys() - WIRE_FIELDS) for record in good()) >= 3


def test_some_records_were_revised_after_they_came_out() -> None:
    assert sum(record["modified"] != record["created"] for record in good()) >= 8


def test_some_titles_are_untidy() -> None:
    titles = [str(record["title"]) for record in good()]
    assert any(title != title.strip() for title in titles)
    assert any("\u200b" in title for title in titles)
    assert any("\u00a0" in title for title in titles)
    assert any(title.startswith("Generally Availabe") for title in titles)
    assert any("Preview" in str(record["title"]) and record["status"] == "Launched" for record in good())


@pytest.mark.parametrize(
    "mess",
    [
        r'style="[^"]*&quot;',
        r"<span[^>]*><span",
        r"<ul",
        r"<ol",
        r"<table.*<colgroup",
        r'href="https://learn\.microsoft\.com/',
        r'href="/en-us/',
        r"safelinks\.protection\.outlook\.com/\?url=https%3A",
        r'href="mailto:',
        r"<a>",
        r"url\(&quot;data:image/png;base64,",
        r'<img [^>]*src="data:',
        r"&nbsp;",
        r"&rsquo;",
        r"&#8203;",
        r"&amp;",
        "\u200b",
        r"<pre[^>]*><code",
        r"<!--",
        r"display: ?none",
        r"<br><br>",
        r"[a-z]</span></span><span[^>]*><span[^>]*>[a-z]",
        r"\w\n\w",
    ],
)
def test_each_mess_of_real_descriptions_occurs(mess: str) -> None:
    assert any(re.search(mess, str(record["description"]), re.DOTALL) for record in good())


def test_records_that_share_their_modified_lie_across_page_borders() -> None:
    instants = sorted((str(record["modified"]) for record in load_world()), reverse=True)
    assert instants[99] == instants[100]
    assert instants[199] == instants[200]


def test_one_record_is_bad_on_day_one_and_repaired_on_day_two() -> None:
    bad = [record for record in load_world() if is_bad(record)]
    assert len(bad) == 1
    assert to_ticks(bad[0]["modified"]) is None
    assert len(good(2)) == len(load_world(2))


def test_changes_of_every_kind_happen_between_the_days() -> None:
    kinds = Counter(change["kind"] for change in load_changes())
    assert kinds["silently_retagged"] >= 20
    assert all(kinds[kind] >= 5 for kind in ("revised", "silently_edited", "published"))
    assert (kinds["vanished"], kinds["repaired"]) == (3, 1)


def test_each_change_does_what_its_kind_says() -> None:
    before, after = by_id(1), by_id(2)
    for change in load_changes():
        id = change["id"]
        if change["kind"] == "vanished":
            assert id not in after
        elif change["kind"] == "published":
            assert id not in before
            assert after[id] == change["set"]
        else:
            assert after[id] != before[id]
            assert (after[id]["modified"] == before[id]["modified"]) == change["kind"].startswith("silently")


def test_records_without_a_change_are_the_same_on_both_days() -> None:
    changed = {change["id"] for change in load_changes()}
    before, after = by_id(1), by_id(2)
    assert {id: record for id, record in before.items() if id not in changed} == {
        id: record for id, record in after.items() if id not in changed
    }


def test_a_watermark_alone_would_miss_the_silent_changes() -> None:
    newest = max(to_ticks(record["modified"]) or 0 for record in load_world())
    delivered = {record["id"] for record in load_world(2) if (to_ticks(record["modified"]) or 0) >= newest}
    silent = {change["id"] for change in load_changes() if change["kind"].startswith("silently")}
    assert silent
    assert not silent & delivered


def test_a_revision_is_newer_than_everything_of_the_day_before() -> None:
    newest = max(to_ticks(record["modified"]) or 0 for record in load_world())
    after = by_id(2)
    moved = [change["id"] for change in load_changes() if change["kind"] in ("revised", "repaired", "published")]
    assert all((to_ticks(after[id]["modified"]) or 0) > newest for id in moved)


def test_a_change_that_does_not_fit_is_refused() -> None:
    vanished: Change = {"kind": "vanished", "id": "unknown", "set": {}}
    with pytest.raises(ValueError, match="does not fit"):
        apply_changes(load_world(), [vanished])
    with pytest.raises(ValueError, match="days 1 and 2"):
        load_world(3)


def test_no_run_of_words_is_taken_from_the_real_feed(shared_data: Path) -> None:
    folder = shared_data / "azure-updates"
    real = {run for name in ("archive.json", "page-2025-12-16.json") for run in read_runs(folder / name)}
    assert real
    assert not [run for record in good(1) + good(2) for run in get_runs(record) if run in real]


def read_runs(path: Path) -> set[tuple[str, ...]]:
    envelope = cast("dict[str, list[Record]]", json.loads(path.read_text(encoding="utf-8")))
    records = envelope.get("items") or envelope["value"]
    return {run for record in records for run in get_runs(record)}


def get_runs(record: Record) -> set[tuple[str, ...]]:
    length = LONGEST_SHARED_RUN + 1
    text = f"{record['title']} . {record['description']}"
    words = re.findall(r"\w+", re.sub(r"<[^>]*>|&\w+;", " ", text).lower())
    return {tuple(words[start : start + length]) for start in range(len(words) - length + 1)}
