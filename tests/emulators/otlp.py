"""A receiver of OpenTelemetry's OTLP over HTTP, in a process of its own; it keeps every byte it is sent.

`/v1/traces` and `/v1/metrics` are taken, `/silent/…` is never answered, and any other address answers 404. What came,
headers included, is read at `GET /received`. Run as a program it prints its port.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.request import urlopen

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from tests.emulators import serving

_TAKEN = ("/v1/traces", "/v1/metrics")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    received: list[dict[str, Any]]
    stopped: threading.Event

    def do_GET(self) -> None:
        if self.path == "/received":
            self._answer(200, json.dumps(self.received).encode())
        else:
            self._keep()
            self._answer(404)

    def do_POST(self) -> None:
        self._keep()
        if self.path.startswith("/silent/"):
            self.stopped.wait()
        self._answer(200 if self.path in _TAKEN else 404)

    def _keep(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.received.append({"path": self.path, "headers": headers, "body": base64.b64encode(body).decode()})

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class SpanSeen:
    """A span as it was exported; ids in hexadecimal, `parent` empty for the first of a trace."""

    name: str
    kind: int
    trace: str
    id: str
    parent: str
    attributes: Mapping[str, str]
    status: int


def read_received(address: str) -> list[Received]:
    """Return every request but those that read this, oldest first."""
    with urlopen(f"{address}/received", timeout=120) as answer:
        return [Received(one["path"], one["headers"], base64.b64decode(one["body"])) for one in json.load(answer)]


def read_spans(received: list[Received]) -> list[SpanSeen]:
    """Return the spans in what was received, in their order."""
    requests = [ExportTraceServiceRequest.FromString(one.body) for one in received if one.path == "/v1/traces"]
    return [
        SpanSeen(
            span.name,
            span.kind,
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            _read_attributes(span.attributes),
            span.status.code,
        )
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def read_metrics(received: list[Received]) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return the last metrics that were received, by name and labels; of a histogram how many were counted."""
    bodies = [one.body for one in received if one.path == "/v1/metrics"]
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for resource in ExportMetricsServiceRequest.FromString(bodies[-1]).resource_metrics:
        for metric in (each for scope in resource.scope_metrics for each in scope.metrics):
            for point in (*metric.sum.data_points, *metric.gauge.data_points):
                found[metric.name, frozenset(_read_attributes(point.attributes).items())] = point.as_double
            for bars in metric.histogram.data_points:
                found[f"{metric.name}_count", frozenset(_read_attributes(bars.attributes).items())] = bars.count
                assert sum(bars.bucket_counts) == bars.count
                assert len(bars.bucket_counts) == len(bars.explicit_bounds) + 1
    return found


def _read_attributes(pairs: Any) -> dict[str, str]:  # noqa: ANN401 - protobuf's own container
    values: list[KeyValue] = list(pairs)
    return {pair.key: pair.value.string_value for pair in values}


def serve() -> None:
    """Serve until standard input is closed."""
    _Handler.received, _Handler.stopped = [], threading.Event()
    serving.serve(_Handler, _Handler.stopped.set)


@contextmanager
def receiving() -> Generator[str]:
    """Yield the address of a receiver."""
    with serving.running("tests.emulators.otlp") as address:
        yield address


if __name__ == "__main__":
    serve()
