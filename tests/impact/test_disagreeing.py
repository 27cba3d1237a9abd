from __future__ import annotations

import pytest

from refdesk.impact.disagreeing import LONGEST_CLAUSE, MOST_COMPARED, compare, find_contradiction, read_text
from refdesk.impact.kinds import THRESHOLD
from refdesk.impact.quantities import find_values


def contradict(one: str, other: str) -> bool:
    found = find_contradiction(read_text(one), read_text(other))
    return found is not None and found.confidence >= THRESHOLD


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The import job runs every 20 minutes.", "Import job: scheduled once a day."),
        ("Vouchers of the shop expire after 24 months.", "A voucher of the shop expires after three years."),
        ("The proxy of the depot listens on port 8443.", "Port 9443 is where the depot's proxy listens."),
        ("Agents may see full account numbers.", "Full account numbers are not shown to agents."),
        (
            "The contract with the printer ends on 31 May 2027.",
            "The contract with the printer runs until 30 June 2027.",
        ),
        ("The parcel robot is enabled in hall 4.", "In hall 4 the parcel robot is disabled."),
    ],
)
def test_another_value_a_denial_or_another_state_is_a_contradiction_either_way(one: str, other: str) -> None:
    assert contradict(one, other)
    assert contradict(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The import job runs every 60 minutes.", "Import job: hourly."),
        ("The pod may use 2 GiB of memory.", "Memory limit of the pod: 2048 MiB."),
        ("Warehouse North closes at 18:00.", "Warehouse South closes at 20:00."),
        ("Dock 7 takes trucks up to 12 t.", "Dock 9 takes trucks up to 40 t."),
        ("In 2024 the refund limit was 300 EUR.", "Since January 2026 the refund limit is 500 EUR."),
        ("Gift cards expire after 24 months.", "The lease of the forklifts runs 24 months."),
        ("Visitors sign at the gate.", "Visitors park behind the hall."),
        ("", "The gate is open."),
    ],
)
def test_the_same_other_things_and_what_came_later_are_none(one: str, other: str) -> None:
    assert not contradict(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("half an hour", "30 min"),
        ("6 pm", "18:00"),
        ("1.8 m", "180 cm"),
        ("5 tonnes", "5,000 kg"),
        ("24 months", "2 years"),
    ],
)
def test_values_have_one_unit(one: str, other: str) -> None:
    [mine], [theirs] = find_values(one), find_values(other)
    assert mine.kinds & theirs.kinds
    assert mine.agrees(theirs)


@pytest.mark.parametrize("text", ["", "x" * 30_000, "not " * 5_000, "1, " * 5_000, "Tank 5. " * 3_000])
def test_any_text_can_be_compared(text: str) -> None:
    contradict(text, "Tank 5 holds ethanol, not 1 l.")
    contradict(text, text)


@pytest.mark.parametrize(
    "line", ["turbine maintenance paragraph {}. ", "{} turbine 12 EUR, ", "a {} b a c. " * 30 + "The end is b {}.\n"]
)
def test_what_a_comparison_may_cost_is_bounded_whatever_is_written(line: str) -> None:
    one, other = (read_text("Table\n" + line.replace("{}", str(number)) * 200) for number in (1, 2))
    clauses = (*one.clauses, *other.clauses)
    assert max((len(clause.text) for clause in clauses), default=0) <= LONGEST_CLAUSE
    pairs = {(mine, theirs) for _, _, mine, theirs in compare(one, other)}
    assert sum(len(mine.spoken) * len(theirs.spoken) for mine, theirs in pairs) <= MOST_COMPARED


def test_what_is_said_before_a_table_is_compared() -> None:
    table = ", ".join(f"sensor {number} at 20 bar" for number in range(300))
    one, other = (f"The refund limit is {limit} EUR. Readings: {table}." for limit in (300, 500))
    assert contradict(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Answer a call. On the incoming call screen, tap Answer to answer the call.",
            "Decline a call. On the incoming call screen, tap Decline to decline the call.",
        ),
        (
            "Easy mute. From Settings, tap Advanced features > Motions and gestures > Easy mute.",
            "Lift to wake. From Settings, tap Advanced features > Motions and gestures > Lift to wake.",
        ),
    ],
)
def test_instructions_for_different_things_contradict_nothing(one: str, other: str) -> None:
    assert not contradict(one, other)
