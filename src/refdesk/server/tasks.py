"""The MCP Tasks extension (SEP-2663): a long call is answered with a task, whose outcome the client asks for later.

It belongs to the later protocol era, for clients that declare it; for all others the same tools answer when they have
finished. A call that finishes within a moment is answered directly in either case.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from refdesk import errors
from refdesk.core.context import report_nothing
from refdesk.core.operations import NESTED
from refdesk.server import answers

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

    from refdesk.app import Desk
    from refdesk.core.background.tasks import Task, TaskLog
    from refdesk.core.context import Report
    from refdesk.model import JsonObject, JsonValue, Principal

    RequestContext: TypeAlias = ServerRequestContext[Any, Any]
    Outcome: TypeAlias = tuple[types.CallToolResult, errors.Choice | None]
    Work: TypeAlias = Callable[[Report], Awaitable[Outcome]]

logger = logging.getLogger(__name__)

EXTENSION = "io.modelcontextprotocol/tasks"
GET, UPDATE, CANCEL = "tasks/get", "tasks/update", "tasks/cancel"

AT_ONCE_SECONDS = 0.5
"""A call that finishes within this time does not become a task."""

RENEW_SECONDS = 5.0
"""How often the lease of a running task is renewed, and its outcome offered to a store that fails; the lease is six
times as long."""

SWEEP_SECONDS = 60.0
"""How often a server looks for tasks whose process has died."""

POLL_MS = 1_000
INTERRUPTED = "The server was interrupted while it worked on this; look whether it was done, then call again."
LOST = "The tool is not served any more."


@dataclass(slots=True)
class _Run:
    """The work of a task in this process.

    Attributes:
        ended: Set when there is an outcome: a result, or a protocol error.
        message: What is being done.
    """

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)
    outcome: Outcome | None = None
    error: MCPError | None = None
    message: str = ""

    def report(self, done: float, total: float | None = None, message: str = "") -> None:
        """Note what is being done."""
        del done, total
        self.message = message or self.message

    async def work(self, work: Work) -> None:
        """Work until there is an outcome; `scope` can cancel it."""
        try:
            with self.scope:
                self.outcome = await work(self.report)
        except MCPError as error:
            self.error = error
        except Exception:
            logger.exception("task broke")
            self.error = MCPError(
                types.INTERNAL_ERROR, "Internal error; tell whoever runs the server, who finds it in the log."
            )
        finally:
            self.ended.set()


@dataclass(slots=True)
class Tasks:
    """The tasks of one desk.

    Attributes:
        identify: Returns who sent a message.
        redo: Returns the work of a task whose process died; `None` if it is not safe to do twice.
        at_once: A call that finishes within this many seconds does not become a task.
        renew_seconds: See `RENEW_SECONDS`.
    """

    desk: Desk
    identify: Callable[[RequestContext], Principal]
    redo: Callable[[Task], Work | None]
    at_once: float = AT_ONCE_SECONDS
    renew_seconds: float = RENEW_SECONDS
    _log: TaskLog | None = None
    _running: dict[str, _Run] = field(default_factory=dict[str, _Run])

    def extend(self, server: Server[Any]) -> None:
        """Make a server serve the extension."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler(GET, types.GetTaskRequestParams, self.get)
        server.add_request_handler(UPDATE, types.GetTaskRequestParams, self.update)
        server.add_request_handler(CANCEL, types.GetTaskRequestParams, self.cancel)
        if self.desk.questions is not None:
            self.desk.questions.start_soon(self._sweep)

    def is_wanted(self, context: RequestContext) -> bool:
        """Return whether the client of a call accepts tasks."""
        known = context.session.client_capabilities
        declared = (known.extensions or {}) if known is not None else {}
        return context.protocol_version in MODERN_PROTOCOL_VERSIONS and EXTENSION in declared

    async def run(
        self, principal: Principal, tool: str, arguments: dict[str, JsonValue], work: Work
    ) -> Outcome | dict[str, Any]:
        """Return the outcome if there is one within a moment, else the task that the call has become.

        Args:
            principal: Who calls.
            tool: The tool that is called.
            arguments: In the form that may be stored.
            work: Does the work of the call.

        Raises:
            LimitExceededError: The caller has too many tasks.
            MCPError: `work` raised it.
        """
        group = self.desk.questions
        if group is None:
            return await work(report_nothing)
        run = _Run()
        group.start_soon(run.work, work)
        try:
            with anyio.move_on_after(self.at_once):
                await run.ended.wait()
            if run.ended.is_set():
                return _get_outcome(run)
            task = await (await self._get_log()).create(principal, tool, arguments)
        except BaseException:
            run.scope.cancel()  # nobody would learn the outcome
            raise
        self._running[task.id] = run
        group.start_soon(self._follow, task, run)
        return {"resultType": "task", **_describe(task, run)}

    async def get(self, context: RequestContext, params: types.GetTaskRequestParams) -> dict[str, Any]:
        """Return a task, with its outcome if there is one.

        Raises:
            MCPError: The caller has no such task, or has not declared the extension.
        """
        task = await self._find(context, params)
        shown = _describe(task, self._running.get(task.id))
        if task.status == "completed":
            shown["result"] = task.outcome
        if task.status == "failed":
            shown["error"] = task.outcome
        return shown

    async def update(self, context: RequestContext, params: types.GetTaskRequestParams) -> dict[str, Any]:
        """Acknowledge a client's input; no task ever asks for any."""
        await self._find(context, params)
        return {}

    async def cancel(self, context: RequestContext, params: types.GetTaskRequestParams) -> dict[str, Any]:
        """Cancel a task, unless it has ended; its writes are undone or complete, never partial."""
        task = await self._find(context, params)
        await (await self._get_log()).cancel(task)
        if task.id in self._running:
            self._running[task.id].scope.cancel()
        return {}

    async def _find(self, context: RequestContext, params: types.GetTaskRequestParams) -> Task:
        if not self.is_wanted(context):
            data: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
            raise MCPError(
                types.MISSING_REQUIRED_CLIENT_CAPABILITY, f"Declare the extension {EXTENSION} to use tasks.", data
            )
        header = context.request.headers.get("mcp-name") if context.request is not None else None
        if header is not None and header != params.task_id:
            raise MCPError(types.HEADER_MISMATCH, "The header Mcp-Name names another task than the message.")
        try:
            task = await (await self._get_log()).get(self.identify(context), params.task_id)
        except errors.RefdeskError as error:
            raise MCPError(types.INTERNAL_ERROR, error.message, answers.error_to_json(error, NESTED)) from None
        if task is None:
            raise MCPError(types.INVALID_PARAMS, "You have no such task; outcomes are kept for an hour.")
        return task

    async def _follow(self, task: Task, run: _Run) -> None:
        """Renew a task's lease while it is worked on, and store its outcome."""
        try:
            while not run.ended.is_set():
                with anyio.move_on_after(self.renew_seconds):
                    await run.ended.wait()
                if not run.ended.is_set() and not await self._renew(task, run):
                    run.scope.cancel()
                    await run.ended.wait()
            while not await self._keep(task, run):  # noqa: ASYNC110 - the store may be another process
                await anyio.sleep(self.renew_seconds)
        finally:
            self._running.pop(task.id, None)

    async def _renew(self, task: Task, run: _Run) -> bool:
        """Renew a task's lease; return whether the task is this process's. It stays so while the store fails, since
        nobody can take it over by that store either."""
        try:
            return await (await self._get_log()).renew(task, run.message)
        except errors.RefdeskError as error:
            logger.warning("task not renewed", extra={"reason": error.message})
            return True

    async def _keep(self, task: Task, run: _Run) -> bool:
        """Store the outcome of a task, if it has one; return whether that is done, or was another process's to do."""
        try:
            log = await self._get_log()
            if run.outcome is not None:
                await log.finish(task, "completed", _dump(run.outcome[0]))
            elif run.error is not None:
                failed: JsonObject = {"code": run.error.error.code, "message": run.error.error.message}
                await log.finish(task, "failed", failed, run.error.error.message)
        except errors.RefdeskError as error:
            logger.warning("task not kept", extra={"reason": error.message})
            return False
        return True

    async def _sweep(self) -> None:
        """Take over the tasks of processes that died, again and again while the desk is open."""
        while True:
            await anyio.sleep(SWEEP_SECONDS)
            try:
                await self.take_over()
            except errors.RefdeskError as error:
                logger.info("tasks not looked at", extra={"reason": error.message})

    async def take_over(self) -> None:
        """Resume tasks that nobody works on any more, or mark them as interrupted."""
        log = await self._get_log()
        for task in await log.take_over():
            work = self.redo(task)
            if work is None or self.desk.questions is None:
                await log.finish(task, "failed", {"code": types.INTERNAL_ERROR, "message": INTERRUPTED}, INTERRUPTED)
                continue
            run = self._running[task.id] = _Run()
            self.desk.questions.start_soon(run.work, work)
            self.desk.questions.start_soon(self._follow, task, run)

    async def _get_log(self) -> TaskLog:
        from refdesk.core.background.tasks import TaskLog  # not at start-up

        if self._log is None:
            base = (await self.desk.get_base()).knowledge_base
            self._log = TaskLog(base.store, base.clock)
        return self._log


def _get_outcome(run: _Run) -> Outcome:
    if run.error is not None:
        raise run.error
    if run.outcome is None:
        raise MCPError(types.INTERNAL_ERROR, "The server is shutting down.")
    return run.outcome


def _dump(result: types.CallToolResult) -> JsonObject:
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def _describe(task: Task, run: _Run | None) -> dict[str, Any]:
    from refdesk.core.background.tasks import KEPT  # not at start-up

    message = (run.message if run is not None and task.status == "working" else "") or task.message
    return {
        "taskId": task.id,
        "status": task.status,
        **({"statusMessage": message} if message else {}),
        "createdAt": task.created_at.isoformat(),
        "lastUpdatedAt": task.updated_at.isoformat(),
        "ttlMs": int(KEPT.total_seconds() * 1000),
        "pollIntervalMs": POLL_MS,
    }
