from __future__ import annotations

from pathlib import Path

from benchmarks.impact import contradictions, impacts
from benchmarks.impact.measuring import Share, fit, measure
from benchmarks.impact.reading import read_contradictions, read_impacts


def test_the_halves_share_no_announcement() -> None:
    assert not {pair.one for pair in read_impacts("dev")} & {pair.one for pair in read_impacts("test")}


def test_there_are_enough_pairs() -> None:
    assert len(read_impacts("dev")) + len(read_impacts("test")) >= 300
    assert len(read_contradictions("dev")) + len(read_contradictions("test")) >= 300


def test_precision_counts_what_was_told_and_recall_what_holds() -> None:
    figures = measure([True, True, False, False], [True, False, True, False])
    assert (figures.precision, figures.recall) == (Share(1, 2), Share(1, 2))
    assert 0.0 < Share(1, 2).interval[0] < 0.5 < Share(1, 2).interval[1] < 1.0


def test_a_fit_weighs_what_tells_apart() -> None:
    evidence = [{"tells": 1.0, "noise": 1.0}, {"tells": 1.0}, {"noise": 1.0}, {}] * 5
    weights = fit(evidence, [True, True, False, False] * 5)
    assert weights["tells"] > 2 > abs(weights["noise"])


def test_impacts_are_right_as_often_as_promised(shared_data: Path) -> None:
    figures = impacts.run(shared_data, "test")
    assert figures.precision.value >= 0.85
    assert figures.recall.value >= 0.70
    assert impacts.run_by_products(shared_data, "test").precision.value < 0.6


def test_contradictions_are_right_as_often_as_promised() -> None:
    figures = contradictions.run("test")
    assert figures.precision.value >= 0.80
    assert figures.recall.value >= 0.70
    assert contradictions.run_strangers("test").value < 0.02


def test_the_weights_are_those_that_the_development_half_gives(shared_data: Path) -> None:
    from refdesk.impact.matching import WEIGHTS

    fitted = impacts.fit_weights(shared_data)
    assert max(abs(fitted[name] - weight) for name, weight in WEIGHTS.items()) < 0.1
