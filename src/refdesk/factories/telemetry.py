"""Opens what sends traces and metrics, if the settings name a receiver; otherwise none of it is imported."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from refdesk import errors

if TYPE_CHECKING:
    from refdesk.settings import Settings
    from refdesk.telemetry import Telemetry

logger = logging.getLogger(__name__)

EXTRA = "refdesk[otel]"


@asynccontextmanager
async def open_telemetry(settings: Settings) -> AsyncGenerator[Telemetry | None]:
    """Yield what sends traces and metrics, or `None`; after the block, the rest has been sent, or time was up.

    The standard variables are often meant for other programs, such as the client that started this one: if they ask for
    something that is not available, that is logged, and nothing is sent.

    Raises:
        ConfigurationError: refdesk's own setting asks for something that is not supported.
        MissingDependencyError: It names a receiver, but the extra is not installed.
    """
    try:
        telemetry = _choose(settings)
    except errors.OperatorError as error:
        if settings.otlp_endpoint is not None:
            raise
        logger.warning("telemetry not sent", extra={"reason": error.message})
        telemetry = None
    try:
        yield telemetry
    finally:
        if telemetry is not None:
            import anyio.to_thread

            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(telemetry.close)


def _choose(settings: Settings) -> Telemetry | None:
    from refdesk.settings import find_receiver

    receiver = find_receiver(settings)
    if receiver is None:
        return None
    from uuid import uuid4

    try:
        from refdesk.telemetry import Telemetry
    except ModuleNotFoundError:
        raise errors.MissingDependencyError(
            f"{receiver.variable} names where traces go, which needs OpenTelemetry: pip install '{EXTRA}'. To do "
            "without, set REFDESK_OTLP_ENDPOINT=none."
        ) from None
    return Telemetry(
        receiver.endpoint,
        str(uuid4()),
        has_traces="traces" in receiver.sends,
        has_metrics="metrics" in receiver.sends,
        interval_seconds=receiver.interval_seconds,
    )
