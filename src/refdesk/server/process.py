"""Runs a desk as a process: over stdio, or over HTTP, or as a worker, until it is stopped."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from refdesk import errors
from refdesk.app import open_desk
from refdesk.factories.bases import check_opening
from refdesk.factories.toolsets import join_toolsets
from refdesk.kit import memory
from refdesk.server import logs, mcp, stdio
from refdesk.server.descriptions import choose_tools
from refdesk.server.principals import local_principal
from refdesk.server.telemetry import sending_own_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    import uvicorn

    from refdesk.app import Desk
    from refdesk.core.operations import Toolset
    from refdesk.settings import Settings

logger = logging.getLogger(__name__)

LOOPBACK_ADDRESSES = frozenset({"127.0.0.1", "::1", "localhost"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})
MORE_HOSTS = "REFDESK_ALLOWED_HOSTS=desk.example.com, several separated by commas"
MAKE_A_KEY = "refdesk keys create --agent NAME --scope knowledge:read --scope knowledge:write"
SWITCH_SECONDS = 0.001
"""How long a thread computes before it makes room for another; Python's default is five times that."""

CHOOSE_A_MODEL = "REFDESK_LANGUAGE_MODEL=gemini and REFDESK_GEMINI_API_KEY, or openai; rules ends this line"


def check_before_serving(settings: Settings, toolsets: Sequence[Toolset]) -> None:
    """Check that what the settings ask for can be served, as far as that can be told without a store.

    Raises:
        ConfigurationError: They name an unknown tool, or see `refdesk.factories.bases.check_opening`.
    """
    choose_tools(join_toolsets(toolsets, None), settings.tools)
    check_opening(settings)


def serve_stdio(settings: Settings, toolsets: Sequence[Toolset], reason: str) -> None:
    """Serve one client over stdin and stdout until stdin ends or a signal arrives; `reason`, why no shared desk does,
    is logged.

    Raises:
        ConfigurationError: See `check_before_serving`.
    """
    check_before_serving(settings, toolsets)
    logs.configure(settings.log_level)
    logger.warning("served in this process", extra={"reason": reason})
    let_threads_alternate()
    anyio.run(_serve_stdio, settings, toolsets)
    leave()


async def _serve_stdio(settings: Settings, toolsets: Sequence[Toolset]) -> None:
    principal = local_principal(settings, toolsets, "stdio")
    identify = mcp.identify_local(principal, is_agent_known=settings.agent is not None)
    tell_what_learns(settings, toolsets)
    async with (
        open_desk(settings, toolsets) as desk,
        sending_own_metrics(desk),
        anyio.create_task_group() as group,
    ):
        group.start_soon(_cancel_at_signal, group.cancel_scope)
        server = mcp.build_server(desk, identify)
        memory.keep_what_is_loaded()
        await stdio.serve(server, settings.stdio_era, mcp.MESSAGE_BYTES)
        group.cancel_scope.cancel()


def let_threads_alternate() -> None:
    """Make a computing thread give way to another one after a millisecond.

    A call moves between threads a dozen times, and each time it waits for whichever thread is computing just then.
    """
    sys.setswitchinterval(SWITCH_SECONDS)


def leave() -> None:
    """End the process at once if a thread still works on something that nobody waits for, such as loading a model.

    Call it once the desk is closed: then everything acknowledged is on disk, and threads that write have been waited
    for. Python would wait for the other threads too, and clients kill a server that takes more than two seconds to end.
    """
    if all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate()):
        return
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


async def _cancel_at_signal(scope: anyio.CancelScope) -> None:
    if sys.platform == "win32":
        return
    with anyio.open_signal_receiver(*list_ending_signals()) as signals:
        async for _ in signals:
            scope.cancel()


def list_ending_signals() -> list[signal.Signals]:
    """Return the signals that end a process in good order; that of a closed terminal, unless it is ignored, as under
    `nohup`."""
    closed = getattr(signal, "SIGHUP", None)
    is_heard = closed is not None and signal.getsignal(closed) is not signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([signal.Signals(closed)] if is_heard else [])]


def run_worker(settings: Settings, toolsets: Sequence[Toolset]) -> None:
    """Do the background work, embedding and syncing, until SIGINT, SIGTERM or SIGHUP; errors as in `serve_stdio`."""
    check_before_serving(settings, toolsets)
    logs.configure(settings.log_level)
    let_threads_alternate()
    anyio.run(_run_worker, settings, toolsets)
    leave()


async def _run_worker(settings: Settings, toolsets: Sequence[Toolset]) -> None:
    async with (
        open_desk(settings, toolsets) as desk,
        sending_own_metrics(desk),
        anyio.create_task_group() as group,
    ):
        group.start_soon(_cancel_at_signal, group.cancel_scope)
        await desk.get_base()
        logger.info("working", extra={"toolsets": [toolset.name for toolset in toolsets]})
        await anyio.sleep_forever()


def serve_http(
    settings: Settings,
    toolsets: Sequence[Toolset],
    *,
    host: str,
    port: int,
    sse: bool,
    no_auth: bool,
    announce: Callable[[str], None] = lambda _: None,
    names: Sequence[str] = (),
) -> None:
    """Serve over HTTP until SIGINT, SIGTERM or SIGHUP; then finish the requests in progress and close.

    Args:
        settings: The settings.
        toolsets: The toolsets to serve.
        host: The address to listen on, and a name that requests may call the server by.
        port: The port; 0 for any free one.
        sse: Whether to serve the retired SSE transport too.
        no_auth: Whether callers without a key are served as the settings' org; only on a loopback address.
        announce: Called with the server's URL once it listens.
        names: The toolsets that were asked for; clients on this machine that ask for the same share this server.

    Raises:
        ConfigurationError: The address is in use, or is not a loopback address although callers need no key; the
            settings for signing in are incomplete or contradict each other; no proxy can show the server under the
            path of its public URL; or see `check_before_serving`.
    """
    if no_auth and host not in LOOPBACK_ADDRESSES:
        raise errors.ConfigurationError(
            f"--no-auth serves this machine only, so --host must be 127.0.0.1, ::1 or localhost, not {host}. "
            "To serve others, leave --no-auth out and give each a key (refdesk keys create), or let them sign in "
            "(REFDESK_OAUTH_ISSUER)."
        )
    # Not imported at the top: it would slow the start of stdio.
    from refdesk.server.oauth.configuration import read_oauth
    from refdesk.server.prefix import check_prefix, read_prefix

    check_prefix(read_prefix(settings, read_oauth(settings)), toolsets)
    check_before_serving(settings, toolsets)
    named = settings.model_copy(update={"allowed_hosts": (*settings.allowed_hosts, *_list_names(host))})
    logs.configure(settings.log_level)
    let_threads_alternate()
    anyio.run(_serve_http, named, toolsets, (host, port), sse, no_auth, announce, names)
    leave()


async def _serve_http(
    settings: Settings,
    toolsets: Sequence[Toolset],
    address: tuple[str, int],
    sse: bool,
    no_auth: bool,
    announce: Callable[[str], None],
    names: Sequence[str],
) -> None:
    # Errors in the settings end this before anything listens.
    async with open_desk(settings, toolsets) as desk:
        with _listen(*address) as listener:
            await _serve_on(listener, desk, sse, no_auth, announce, names)


async def _serve_on(
    listener: socket.socket, desk: Desk, sse: bool, no_auth: bool, announce: Callable[[str], None], names: Sequence[str]
) -> None:
    # Not imported at the top: it would slow the start of stdio.
    from refdesk.server import http
    from refdesk.server.console.tickets import Tickets
    from refdesk.server.limits import wire
    from refdesk.server.local.beside import Beside
    from refdesk.server.local.links import Links

    settings = desk.settings
    anonymous = local_principal(settings, desk.toolsets, "http") if no_auth else None
    is_everywhere = listener.getsockname()[0] in EVERYWHERE
    tickets = Tickets()
    app = http.build_app(desk, anonymous, sse=sse, takes_addresses=is_everywhere, tickets=tickets)
    async with anyio.create_task_group() as group:
        desk.wake()
        server = wire.build_server(app, settings, desk.note_stop)
        memory.keep_what_is_loaded()
        _outlive_signals(server)
        await anyio.lowlevel.checkpoint()  # an earlier signal ends it here, before anything listens
        announce(_url(listener))
        keys = "optional" if no_auth else "required"
        logger.info("listening", extra={"url": _url(listener), "keys": keys, "issuer": settings.oauth_issuer})
        if is_everywhere:
            logger.info("reached by", extra={"hosts": [*settings.allowed_hosts, "any address"], "more": MORE_HOSTS})
        tell_what_learns(settings, desk.toolsets)
        if not no_auth and settings.oauth_issuer is None:
            group.start_soon(_tell_how_to_make_keys, desk)
        beside = Beside(desk, names, Links(_reach(_url(listener)) + app.prefix, None if no_auth else tickets))
        group.start_soon(beside.run)
        await server.serve(sockets=[listener])
        await beside.finish()
        group.cancel_scope.cancel()


def _list_names(host: str) -> list[str]:
    """Return the names by which clients may call a server that listens on this address."""
    if host not in EVERYWHERE:
        return [f"[{host}]" if ":" in host else host]
    name = socket.gethostname().lower()
    return list(dict.fromkeys([name, f"{name}.local", socket.getfqdn().lower()]))


def tell_what_learns(settings: Settings, toolsets: Sequence[Toolset]) -> None:
    """Log that skills are learned without a language model, unless that was chosen explicitly."""
    is_chosen = "language_model" in settings.model_fields_set
    if not is_chosen and any(toolset.name == "skills" for toolset in toolsets):
        logger.info("skills are learned by rules", extra={"choose a model with": CHOOSE_A_MODEL})


async def _tell_how_to_make_keys(desk: Desk) -> None:
    """Log how to make a key if no valid one exists yet."""
    try:
        keys = (await desk.get_base()).keys
        has_valid = any(key.is_valid(keys.clock.now()) for key in await keys.list())
    except errors.RefdeskError:
        return
    if not has_valid:
        logger.warning("no key opens this server yet", extra={"make one with": MAKE_A_KEY})


def _outlive_signals(server: uvicorn.Server) -> None:
    """Make a signal stop the server, rather than end the process before the store is closed.

    uvicorn handles signals itself once it serves, and raises again the one that stopped it; earlier ones must not be
    lost.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    for number in list_ending_signals():
        signal.signal(number, stop)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol given explicitly, asyncio sends small answers at once; otherwise each would wait some 40 ms for
    # more.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(256)
    except OSError as error:
        listener.close()
        raise errors.ConfigurationError(
            f"Port {port} on {host} cannot be used ({error.strerror}); choose another with --port."
        ) from None
    return listener


def _reach(url: str) -> str:
    """Return the URL by which this machine reaches a server that may listen on all addresses."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
