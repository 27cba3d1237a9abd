"""The server's metrics, in the text format of Prometheus.

Labels are names fixed by the operation table, never a caller's words, an org or an agent: so they stay few, and a page
of metrics reveals nothing about what anybody asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, GCCollector, Histogram, Info, ProcessCollector
from prometheus_client.exposition import generate_latest

from refdesk import __version__

if TYPE_CHECKING:
    from prometheus_client import Metric

    from refdesk.core.background.health import Health
    from refdesk.core.operations import Call

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds in seconds: from a read by id to the longest request."""

STATUSES = ("ok", "degraded", "failing")


class Metrics:
    """Counters of this process since its start, and the current health of the desk."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        Info("refdesk", "What runs.", registry=self.registry).info({"version": __version__})
        self._calls = Counter(
            "refdesk_calls",
            "Calls of operations and reads of resources that ended; outcome is ok or an error's code.",
            ["target", "transport", "outcome"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "refdesk_call_seconds",
            "How long calls took.",
            ["target", "transport"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._status = self._gauge("refdesk_health", "1 for the present status of the server.", "status")
        self._documents = self._gauge("refdesk_documents", "Documents that can be found.", "toolset")
        self._age = self._gauge("refdesk_data_age_seconds", "Time since the last successful sync.", "toolset")
        self._backup = self._gauge("refdesk_backup_age_seconds", "Time since the last backup was made.", "of")
        self._backlog = self._gauge("refdesk_embedding_backlog", "Documents that wait for their embedding.", "state")
        self._breaker = self._gauge(
            "refdesk_embedding_breaker_open", "1 while searches go by keywords, since the embedding service is away."
        )
        self._oldest = self._gauge("refdesk_embedding_oldest_seconds", "Age of the document that waits longest.")

    def _gauge(self, name: str, help: str, *labels: str) -> Gauge:
        return Gauge(name, help, labels, registry=self.registry)

    def count(self, call: Call) -> None:
        """Count a call that has ended."""
        self._calls.labels(call.target, call.transport, call.outcome).inc()
        self._seconds.labels(call.target, call.transport).observe(call.seconds)

    def render(self, health: Health) -> bytes:
        """Return all metrics in the text format."""
        self._note(health)
        return generate_latest(self.registry)

    def collect(self, health: Health) -> list[Metric]:
        """Return all metrics with their current values."""
        self._note(health)
        return list(self.registry.collect())

    def _note(self, health: Health) -> None:
        for status in STATUSES:
            self._status.labels(status).set(status == health.status)
        for name, toolset in health.toolsets.items():
            if toolset.documents is not None:
                self._documents.labels(name).set(toolset.documents)
            if toolset.as_of is not None:
                self._age.labels(name).set((health.at - toolset.as_of).total_seconds())
        self._breaker.set(health.is_breaker_open)
        if health.backed_up_at is not None:
            self._backup.labels("store").set((health.at - health.backed_up_at).total_seconds())
        if (backlog := health.backlog) is not None:
            self._backlog.labels("waiting").set(backlog.waiting)
            self._backlog.labels("failing").set(backlog.failing)
            self._backlog.labels("set_aside").set(backlog.set_aside)
            self._oldest.set((health.at - backlog.oldest).total_seconds() if backlog.oldest is not None else 0.0)
