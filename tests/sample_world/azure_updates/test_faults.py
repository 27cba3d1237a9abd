"""Which requests a rule hits."""

from __future__ import annotations

import pytest

from sample_world.azure_updates.faults import FaultPlan, FaultRule, parse_rules


def run(rules: list[FaultRule], requests: int) -> list[str | None]:
    plan = FaultPlan(rules)
    faults = (plan.next() for _ in range(requests))
    return [fault.fault if fault else None for fault in faults]


def test_a_rule_hits_the_requests_that_it_names() -> None:
    assert run([FaultRule(fault="reset", at=(2, 4))], 5) == [None, "reset", None, "reset", None]


def test_a_rule_that_names_no_request_hits_all_as_often_as_it_may() -> None:
    assert run([FaultRule(fault="gzip")], 3) == ["gzip"] * 3
    assert run([FaultRule(fault="gzip", times=2)], 3) == ["gzip", "gzip", None]


def test_the_first_rule_that_hits_wins_and_the_others_are_not_used_up() -> None:
    rules = [FaultRule(fault="reset", at=(1,)), FaultRule(fault="hang", times=1)]
    assert run(rules, 3) == ["reset", "hang", None]


def test_chance_repeats_with_its_seed_and_comes_near_its_probability() -> None:
    hits = run([FaultRule(fault="status", probability=0.3, seed=5)], 2_000)
    assert hits == run([FaultRule(fault="status", probability=0.3, seed=5)], 2_000)
    assert hits != run([FaultRule(fault="status", probability=0.3, seed=6)], 2_000)
    assert 500 < hits.count("status") < 700


@pytest.mark.parametrize(
    "value",
    [
        {"fault": "reset"},
        [{"fault": "meteor"}],
        [{"fault": "reset", "att": [1]}],
        [{"fault": "reset", "at": [0]}],
        [{"fault": "status", "status": 200}],
        [{"fault": "reset", "probability": 1.5}],
    ],
)
def test_a_rule_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="validation error"):
        parse_rules(value)
