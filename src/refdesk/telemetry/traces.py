"""The spans of `core.tracing` as OpenTelemetry spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from refdesk.core.tracing import OK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry import trace

    from refdesk.core.tracing import Ending, Kind

PREFIX = "refdesk."

_KINDS = {"internal": SpanKind.INTERNAL, "server": SpanKind.SERVER, "client": SpanKind.CLIENT}
_PROPAGATOR = TraceContextTextMapPropagator()
_HEADER = "traceparent"
"""`tracestate` is neither read nor passed on: it is text that a caller chose."""


class OtlpTracer:
    """A `Tracer` that passes spans to OpenTelemetry's SDK."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer

    def begin(self, name: str, kind: Kind, attributes: Mapping[str, str], traceparent: str | None = None) -> OtlpSpan:
        """Begin a trace, or continue the caller's."""
        carrier = {_HEADER: traceparent} if traceparent is not None else {}
        # A new context, so that what other libraries put into the current one is not picked up.
        return OtlpSpan(self._tracer, name, kind, attributes, _PROPAGATOR.extract(carrier, Context()))


class OtlpSpan:
    """A `Span` that passes its parts to OpenTelemetry's SDK."""

    def __init__(
        self, tracer: trace.Tracer, name: str, kind: Kind, attributes: Mapping[str, str], parent: Context
    ) -> None:
        self._tracer = tracer
        named = {PREFIX + attribute: value for attribute, value in attributes.items()}
        self._span = tracer.start_span(name, parent, _KINDS[kind], named)

    def begin(self, name: str, kind: Kind, attributes: Mapping[str, str]) -> OtlpSpan:
        """Begin a span within this one."""
        return OtlpSpan(self._tracer, name, kind, attributes, set_span_in_context(self._span, Context()))

    def end(self, ending: Ending) -> None:
        """End the span now."""
        self._span.set_attribute(f"{PREFIX}outcome", ending.outcome)
        if ending.outcome != OK:
            self._span.set_attribute("error.type", ending.error_type or ending.outcome)
        if ending.is_failure:
            self._span.set_status(StatusCode.ERROR)
        self._span.end()

    def get_headers(self) -> dict[str, str]:
        """Return the `traceparent` that names this span."""
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, set_span_in_context(self._span, Context()))
        return {_HEADER: carrier[_HEADER]} if _HEADER in carrier else {}
