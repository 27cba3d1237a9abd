"""The metrics of `/metrics` in OpenTelemetry's model: the same names, labels and numbers."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, cast

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from refdesk import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opentelemetry.sdk.resources import Resource
    from prometheus_client import Metric as Family
    from prometheus_client.samples import Sample

_CUMULATIVE = AggregationTemporality.CUMULATIVE
_STARTED = time.time_ns()
"""Start of all counters: approximately when the process began."""


def convert(families: Iterable[Family], resource: Resource) -> MetricsData:
    """Return the current contents of a Prometheus registry."""
    at = time.time_ns()
    metrics = [metric for family in families for metric in _convert(family, at)]
    scope = ScopeMetrics(InstrumentationScope("refdesk", __version__), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _convert(family: Family, at: int) -> list[Metric]:
    if family.type == "histogram":
        points = [_gather(samples, at) for samples in _by_labels(family.samples).values()]
        return [Metric(family.name, family.documentation, family.unit, Histogram(points, _CUMULATIVE))]
    by_name: dict[str, list[Sample]] = defaultdict(list)
    for sample in family.samples:
        by_name[sample.name].append(sample)
    return [
        Metric(name, family.documentation, family.unit, _count(samples, at, is_sum=name.endswith("_total")))
        for name, samples in by_name.items()
        if not name.endswith("_created")
    ]


def _count(samples: Sequence[Sample], at: int, *, is_sum: bool) -> Sum | Gauge:
    points = [NumberDataPoint(sample.labels, _STARTED if is_sum else 0, at, sample.value) for sample in samples]
    return Sum(points, _CUMULATIVE, is_monotonic=True) if is_sum else Gauge(points)


def _by_labels(samples: Iterable[Sample]) -> Mapping[tuple[tuple[str, str], ...], list[Sample]]:
    groups: dict[tuple[tuple[str, str], ...], list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))].append(sample)
    return groups


def _gather(samples: Sequence[Sample], at: int) -> HistogramDataPoint:
    """Return one point of a histogram; in Prometheus, each bucket also counts what is in those below it."""
    buckets = sorted((float(each.labels["le"]), each.value) for each in samples if each.name.endswith("_bucket"))
    total = next(each.value for each in samples if each.name.endswith("_sum"))
    up_to = [int(count) for _, count in buckets]
    counts = [count - before for count, before in zip(up_to, [0, *up_to], strict=False)]
    labels = {name: value for name, value in samples[0].labels.items() if name != "le"}
    unknown = cast("float", None)  # the minimum and the maximum, which Prometheus does not keep
    bounds = [bound for bound, _ in buckets[:-1]]
    return HistogramDataPoint(labels, _STARTED, at, up_to[-1], total, counts, bounds, unknown, unknown)
