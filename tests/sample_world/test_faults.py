"""Which requests a rule of any emulator hits."""

from __future__ import annotations

from sample_world.faults import FaultPlan, FaultRule


def test_a_rule_for_a_path_counts_and_hits_only_the_requests_whose_path_contains_it() -> None:
    plan = FaultPlan([FaultRule(fault="reset", path="/search", at=(2,))])
    paths = ["/search", "/query", "/query", "/search/", "/search"]
    hits = [plan.next(path) for path in paths]
    assert [fault is not None for fault in hits] == [False, False, False, True, False]
