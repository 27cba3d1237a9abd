"""OpenTelemetry: traces and metrics go to a receiver that the settings name, as OTLP over HTTP.

No global provider is set: so libraries that would trace by themselves, as the MCP SDK does with names and ids that
callers chose, find none and trace nothing.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import MetricExportResult
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from refdesk import __version__
from refdesk.telemetry.metrics import convert
from refdesk.telemetry.traces import OtlpTracer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opentelemetry.sdk.trace import ReadableSpan
    from prometheus_client import Metric

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 1.0
"""How long a process that ends waits for unsent data: clients kill one that takes more than two seconds."""

_NAMELESS = "unknown_service"


class Outage:
    """Whether the receiver accepts what it is sent: logs one line when it stops accepting, and one when it accepts
    again."""

    def __init__(self) -> None:
        self._is_out = False

    def note(self, is_sent: bool, what: str) -> None:
        """Note the outcome of an attempt."""
        if self._is_out == is_sent:
            self._is_out = not is_sent
            if is_sent:
                logger.info("telemetry is sent again")
            else:
                logger.warning("telemetry not sent", extra={"what": what, "reason": "the receiver does not take it"})


class _Noting(SpanExporter):
    def __init__(self, exporter: SpanExporter, outage: Outage) -> None:
        self._exporter, self._outage = exporter, outage

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        self._outage.note(result is SpanExportResult.SUCCESS, "traces")
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class Telemetry:
    """Sends traces and metrics in threads of its own, so that no call waits for it.

    Args:
        endpoint: The receiver's base URL; `None` to follow OpenTelemetry's standard environment variables.
        instance: Distinguishes this process from others of the service.
        has_traces: Whether traces are sent.
        has_metrics: Whether metrics are sent.
        interval_seconds: How often metrics are sent.
    """

    def __init__(
        self,
        endpoint: str | None,
        instance: str,
        *,
        has_traces: bool = True,
        has_metrics: bool = True,
        interval_seconds: float = 60.0,
    ) -> None:
        # The library would log at length, at every attempt, what `Outage` logs once in one line.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self.interval_seconds = interval_seconds
        self._resource = _make_resource(instance)
        self._outage = Outage()
        self._provider: TracerProvider | None = None
        self._metrics = OTLPMetricExporter(endpoint=_join(endpoint, "v1/metrics")) if has_metrics else None
        self.tracer: OtlpTracer | None = None
        if has_traces:
            self._provider = TracerProvider(resource=self._resource, shutdown_on_exit=False)
            exporter = OTLPSpanExporter(endpoint=_join(endpoint, "v1/traces"))
            self._provider.add_span_processor(BatchSpanProcessor(_Noting(exporter, self._outage)))
            self.tracer = OtlpTracer(self._provider.get_tracer("refdesk", __version__))

    @property
    def sends_metrics(self) -> bool:
        """Whether metrics are sent."""
        return self._metrics is not None

    def send_metrics(self, families: Iterable[Metric]) -> None:
        """Send metrics; return when the receiver has accepted or refused them. Never raises."""
        if self._metrics is None:
            return
        try:
            result = self._metrics.export(  # pyright: ignore[reportUnknownMemberType] - untyped further options
                convert(families, self._resource)
            )
        except Exception as error:
            result = MetricExportResult.FAILURE
            logger.debug("metrics not sent", extra={"error": type(error).__name__})
        self._outage.note(result is MetricExportResult.SUCCESS, "metrics")

    def close(self, seconds: float = FLUSH_SECONDS) -> None:
        """Send what is not sent yet, waiting for at most this many seconds."""
        ending = threading.Thread(target=self._shut_down, daemon=True)
        ending.start()
        ending.join(seconds)

    def _shut_down(self) -> None:
        if self._provider is not None:
            self._provider.shutdown()
        if self._metrics is not None:
            self._metrics.shutdown()  # pyright: ignore[reportUnknownMemberType] - untyped further options


def _join(endpoint: str | None, path: str) -> str | None:
    return f"{endpoint.rstrip('/')}/{path}" if endpoint is not None else None


def _make_resource(instance: str) -> Resource:
    """Return the resource that identifies this process as the source; the standard variables take precedence."""
    found = Resource.create({})
    own = {SERVICE_VERSION: __version__, SERVICE_INSTANCE_ID: instance}
    if str(found.attributes.get(SERVICE_NAME, _NAMELESS)).startswith(_NAMELESS):
        own[SERVICE_NAME] = "refdesk"
    return Resource({**found.attributes, **{name: own[name] for name in own if _is_free(found, name)}})


def _is_free(found: Resource, name: str) -> bool:
    return name == SERVICE_NAME or name not in found.attributes
