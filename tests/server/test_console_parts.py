"""What the console's pages are made of: differences word by word, chains and links as drawings."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from refdesk.server.console.arranging import break_lines, strip_head
from refdesk.server.console.differences import CONTEXT, MOST_COMPARED, Piece, compare
from refdesk.server.console.drawings import LANE, MOST_LANES, ROW, draw_months, draw_rail, draw_rates, draw_star
from refdesk.server.console.rendering import mark_words, show_brief

WORDS = ("refund", "limit", "500", "EUR", ".", " ", "\n", "\n\n", "ä", "  ")


def rebuild(pieces: list[Piece], *kinds: str) -> str:
    return "".join(piece.text for piece in pieces if piece.kind in ("same", *kinds))


def test_words_that_changed_are_told_apart_from_those_that_stayed() -> None:
    found = compare("Support may refund up to 500 EUR.", "Support may refund up to 200 EUR, Plus too.")
    assert [piece.text for piece in found if piece.kind == "removed"] == ["500"]
    assert [piece.text for piece in found if piece.kind == "added"] == ["200", ", Plus too"]


def test_both_texts_can_be_read_from_their_difference() -> None:
    random = Random(7)
    for _ in range(300):
        before, after = ("".join(random.choices(WORDS, k=random.randrange(30))) for _ in range(2))
        found = compare(before, after)
        if any(piece.kind == "skipped" for piece in found):
            continue
        assert (found == []) == (before == after)
        if found:
            assert (rebuild(found, "removed"), rebuild(found, "added")) == (before, after)
        assert all(first.kind != second.kind for first, second in pairwise(found))


def test_what_stayed_far_from_a_change_is_left_out_and_counted() -> None:
    lines = [f"Line {number}.\n" for number in range(40)]
    found = compare("".join(lines), "".join([*lines[:20], "New.\n", *lines[21:]]))
    skipped = [piece.text for piece in found if piece.kind == "skipped"]
    assert skipped == [str(20 - CONTEXT), str(19 - CONTEXT)]


def test_texts_that_have_little_in_common_or_are_very_long_stand_one_after_the_other() -> None:
    assert compare("One two three four", "Five six seven eight") == [
        Piece("removed", "One two three four"),
        Piece("added", "Five six seven eight"),
    ]
    long = "x\n" * (MOST_COMPARED + 1)
    assert [piece.kind for piece in compare(long, f"{long}y")] == ["removed", "added"]


def test_a_chain_is_drawn_with_each_line_ending_at_what_replaced_it() -> None:
    ids = ["head", "second", "aside", "first"]
    rail = draw_rail(ids, {"second": "head", "aside": "head", "first": "second"})
    places = [(dot.x, dot.y) for dot in rail.dots]
    assert len(set(places)) == 4
    assert rail.height == 4 * ROW
    assert rail.dots[0].line == ""
    assert (rail.dots[1].x, rail.dots[3].x) == (rail.dots[0].x, rail.dots[0].x)
    assert rail.dots[2].x == rail.dots[0].x + LANE
    for dot, successor in zip(rail.dots[1:], (0, 0, 1), strict=True):
        assert dot.line.startswith(f"M{dot.x} {dot.y}")
        assert dot.line.endswith(
            f"{rail.dots[successor].x} {rail.dots[successor].y + ROW / 4}V{rail.dots[successor].y}"
        )


def test_a_chain_with_many_branches_stays_narrow() -> None:
    ids = ["head", *(f"n{number}" for number in range(40))]
    assert draw_rail(ids, dict.fromkeys(ids[1:], "head")).width <= MOST_LANES * LANE


def test_links_stand_on_their_side_within_the_drawing() -> None:
    links = [{"direction": "in", "id": str(n)} for n in range(20)] + [{"direction": "out", "id": "x"}]
    star = draw_star(links)
    assert [end.link["id"] for end in star.incoming] == [str(n) for n in range(12, 20)]
    heights = [end.y for end in star.incoming]
    assert heights == sorted(heights)
    assert 0 < heights[0] < heights[-1] < star.height
    assert star.outgoing[0].y == star.middle


def test_words_of_the_question_are_marked_and_nothing_becomes_markup() -> None:
    assert mark_words("<b>Refunds & refund</b> of", "refund of") == (
        "&lt;b&gt;<mark>Refunds</mark> &amp; <mark>refund</mark>&lt;/b&gt; of"
    )
    assert mark_words("Limits", "limit <script>") == "<mark>Limits</mark>"
    assert mark_words("no question", "") == "no question"


def test_snippets_lose_the_signs_of_markdown_only() -> None:
    assert show_brief("## Above **500** `EUR` - 2 * 3 snake_case #5") == " Above 500 EUR - 2 * 3 snake_case #5"


def test_rates_rise_with_what_solved_and_fall_with_what_failed_version_by_version() -> None:
    rates = draw_rates([(1, "resolved"), (1, "failed"), (2, "likely_resolved")], width=300, height=100)
    assert [(version, path.count("L")) for version, path, _, _ in rates.lines] == [(1, 1), (2, 0)]
    first, second, third = rates.marks
    assert first.y < 50 == second.y > third.y
    assert 0 < first.x < second.x < third.x < 300
    assert rates.last == 1.5 / 2.5


def test_a_time_line_has_every_month_also_across_years() -> None:
    line = draw_months({"2027-01": [{"id": "a"}, {"id": "b"}], "2030-01": [{"id": "c"}]}, "2026-11", 4)
    assert [(month.name, len(month.things)) for month in line.months] == [
        ("2026-11", 0),
        ("2026-12", 0),
        ("2027-01", 2),
        ("2027-02", 0),
    ]
    assert line.most == 2
    assert all(0 < month.x < line.width for month in line.months)


def test_a_playbook_is_shown_without_what_its_page_has_elsewhere_and_keeps_its_lines() -> None:
    playbook = "# Title\n\nVersion 2 · made by rules\n\n## Steps\n\n1. **Do:** This.\n   **Check:** That.\n"
    assert strip_head(playbook) == "## Steps\n\n1. **Do:** This.\n   **Check:** That.\n"
    assert break_lines("1. **Do:** This.\n   **Check:** That.\n") == "1. **Do:** This.  \n   **Check:** That.\n"
    assert strip_head("Anything else") == "Anything else"
