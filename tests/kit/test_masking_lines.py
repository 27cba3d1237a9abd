"""How much of the personal data in 300 lines of ours is masked, and how much of what is masked is personal.

`masking_lines.txt` has a line of a conversation each, its personal data between double braces; what is invented in it
belongs to nobody. `masking_lines_abroad.txt` was written apart from the patterns, in three portions that were each
measured before anything was mended for them. A piece of data counts as found where nothing of it longer than three
characters is left.
"""

from __future__ import annotations

from pathlib import Path

import regex

from refdesk.kit.masking import mask

LINES = (Path(__file__).parent / "masking_lines.txt").read_text(encoding="utf-8").splitlines()
ABROAD = (Path(__file__).parent / "masking_lines_abroad.txt").read_text(encoding="utf-8").splitlines()
LEAST_RECALL, LEAST_PRECISION = 0.95, 0.97

_MARKED = regex.compile(r"\{\{(.+?)\}\}")
_PLACEHOLDER = regex.compile(r"\[[\p{L} -]+\d*\]")


def judge(lines: list[str]) -> tuple[list[str], list[str], int]:
    """Return what was missed, what was masked without reason, and how much personal data there is."""
    missed: list[str] = []
    wrong: list[str] = []
    count = 0
    for line in lines:
        personal = _MARKED.findall(line)
        masked = mask(_MARKED.sub(r"\1", line))
        count += len(personal)
        missed += [f"{one}: {masked}" for one in personal if one in masked]
        excess = len(_PLACEHOLDER.findall(masked)) - len(personal)
        rest = _MARKED.sub("", line)
        wrong += [masked] * (excess > 0 or (not personal and masked != rest))
    return missed, wrong, count


def test_the_lines_are_three_hundred_and_a_quarter_holds_nothing_personal() -> None:
    assert len(LINES) == len(set(LINES)) == 300
    assert sum("{{" not in line for line in LINES) >= 75


def test_nearly_all_personal_data_is_masked_and_hardly_anything_else() -> None:
    missed, wrong, count = judge(LINES)
    found = count - len(missed)
    assert found / count >= LEAST_RECALL, missed
    assert found / (found + len(wrong)) >= LEAST_PRECISION, wrong


def test_so_is_what_other_countries_services_and_languages_write() -> None:
    assert len(ABROAD) == len(set(ABROAD)) >= 300
    assert sum("{{" not in line for line in ABROAD) >= 75
    missed, wrong, count = judge(ABROAD)
    found = count - len(missed)
    assert found / count >= LEAST_RECALL, missed
    assert found / (found + len(wrong)) >= LEAST_PRECISION, wrong


def test_a_masker_that_leaves_everything_or_masks_too_much_would_be_noticed() -> None:
    missed, _, count = judge(["Call {{nobody at all}}."])
    assert (len(missed), count) == (1, 1)
    _, wrong, _ = judge(["My account number is 351531510."])
    assert len(wrong) == 1


def test_masking_again_changes_nothing() -> None:
    for line in [*LINES, *ABROAD]:
        once = mask(_MARKED.sub(r"\1", line))
        assert mask(once) == once
