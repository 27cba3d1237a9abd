"""Dispatch: every transport runs operations and reads resources through here, so that they cannot drift apart.

Arguments pass the strict gate and the input model; only `RefdeskError`s come out. Any other exception is a bug: it is
logged once under an incident number, and the caller learns no more than that number.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import uuid4

import anyio
from pydantic import ValidationError

from refdesk import errors
from refdesk.core import contracts, tracing
from refdesk.core.context import report_nothing
from refdesk.core.operations import Call
from refdesk.core.writing import audit
from refdesk.core.writing.refusals import MOST_SECONDS
from refdesk.server import answers, json_types, strict_json, wording
from refdesk.server.deadlines import answer_within

if TYPE_CHECKING:
    from datetime import datetime

    from pydantic import BaseModel

    from refdesk.app import Desk
    from refdesk.core.context import Context, Report
    from refdesk.core.fairness import Turn
    from refdesk.core.knowledge_base import KnowledgeBase
    from refdesk.core.operations import Completions, Operation, Resource, ResourceTemplate
    from refdesk.core.writing.audit import Actor
    from refdesk.model import JsonValue, Principal

    Answer = TypeVar("Answer")

logger = logging.getLogger(__name__)

_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_ID_FIELD = re.compile(r"(.*_)?id")


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer as plain JSON values, what goes beside it, and what of it a person might want otherwise.

    Attributes:
        cursors: How to go on behind each item, where it is a page of a list.
    """

    value: dict[str, Any]
    meta: dict[str, Any]
    choice: errors.Choice | None = None
    cursors: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Caller:
    """One caller at one desk.

    Attributes:
        transport: Through which the call came, for the log, metrics and traces.
        traceparent: The trace that the call claims to be part of; checked by whoever reads it.
        asked_at: When it was first sent, if it is sent again because the process that ran it ended.
        keeps_markup: Whether answers go to something that shows markup as text, such as pages that escape it.
    """

    desk: Desk
    principal: Principal
    transport: str
    traceparent: str | None = None
    asked_at: datetime | None = None
    keeps_markup: bool = False

    async def run(self, operation: Operation, arguments: object, report: Report = report_nothing) -> Answered:
        """Return the answer of an operation, which reports its progress to `report`.

        Raises:
            RefdeskError: The arguments are wrong, the caller lacks permission, or the operation refused or failed.
        """
        async with self._on_record(operation.name):
            with _guard(self, operation.name, self.desk.find_toolset(operation)):
                self.require_operation(operation)
                validated = validate(operation, arguments)
                return await self._answer(operation, validated, report)

    async def admit(self, operation: Operation) -> None:
        """Check that the caller may call an operation, before its arguments are read.

        Raises:
            PermissionDeniedError: It may not; the refusal is recorded.
        """
        async with self._on_record(operation.name):
            self.require_operation(operation)

    async def record_refusal(self, action: str, error: errors.CallerError) -> None:
        """Record that the caller was refused; a failing store does not change the answer."""
        try:
            with anyio.move_on_after(MOST_SECONDS):
                base = (await self.desk.get_base()).knowledge_base
                await self.desk.refusals.note(base.store, base.clock, self._actor, action, error.code)
        except errors.RefdeskError as failure:
            logger.warning("refusal not on record", extra={"code": error.code, "reason": failure.message})

    @asynccontextmanager
    async def _on_record(self, action: str) -> AsyncGenerator[None]:
        try:
            yield
        except (errors.PermissionDeniedError, errors.QuotaExceededError) as error:
            await self.record_refusal(action, error)
            raise

    @property
    def _actor(self) -> Actor:
        return audit.make_actor(self.principal, self.transport)

    async def _answer(self, operation: Operation, validated: BaseModel, report: Report) -> Answered:
        subjects = _find_subjects(validated)

        def watch(base: KnowledgeBase) -> KnowledgeBase:
            if operation.effects.read_only:
                return base
            return replace(base, store=audit.watch(base.store, base.clock, self._actor, operation.name, subjects))

        toolset = self.desk.find_toolset(operation)
        answer = await self._within_time(
            toolset,
            lambda context: operation.handler(context, validated),
            operation.least_seconds,
            watch,
            report,
            operation.lane,
        )
        if not operation.effects.read_only:
            self.desk.noted += 1
        if operation.find_unanswered is not None:
            self.desk.note_unanswered(self.principal, self.transport, operation.find_unanswered(validated, answer))
        if operation.effects.read_only and self.desk.settings.audit_reads:
            await self._record_read(operation, subjects)
        value = answers.to_json(answer, keeps_markup=self.keeps_markup)
        return Answered(value, answers.get_meta(answer), answers.get_choice(answer), answers.get_cursors(answer))

    async def _record_read(self, operation: Operation, subjects: Mapping[str, JsonValue]) -> None:
        base = (await self.desk.get_base()).knowledge_base
        act = audit.make_act(self._actor, operation.name, details=subjects)
        async with base.store.transaction() as transaction:
            await audit.append(transaction, self.principal.org, base.clock.now(), act)

    async def read(self, resource: Resource) -> dict[str, Any]:
        """Return a resource as plain JSON values; errors as in `run`."""
        async with self._on_record(resource.uri):
            with _guard(self, resource.uri, self.desk.find_toolset(resource)):
                self.require(resource.scopes)
                found = await self._within_time(self.desk.find_toolset(resource), resource.reader)
                return answers.to_json(found, keeps_markup=self.keeps_markup)

    async def ask(
        self, toolset: str, target: str, scopes: frozenset[str], reader: Callable[[Context], Awaitable[Answer]]
    ) -> Answer:
        """Return what a reader returns, for a target that is not in a toolset's operation table; errors as in `run`."""
        async with self._on_record(target):
            with _guard(self, target, toolset):
                self.require(scopes)
                return await self._within_time(toolset, reader)

    async def complete(self, template: ResourceTemplate, written: str) -> Completions:
        """Return completions of a partly written argument; errors as in `run`."""
        async with self._on_record(template.uri):
            with _guard(self, template.uri, self.desk.find_toolset(template.operation)):
                self.require(template.operation.scopes)
                strict_json.check(written)
                toolset = self.desk.find_toolset(template.operation)
                return await self._within_time(toolset, lambda context: template.completer(context, written))

    def may_run(self, operation: Operation) -> bool:
        """Return whether the caller may run an operation here."""
        return self.may(operation.scopes, operation.any_scopes) and not self._is_barred(operation)

    def require_operation(self, operation: Operation) -> None:
        """Check that the caller may run an operation here.

        Raises:
            PermissionDeniedError: It lacks a scope, or the operation writes and the server is read-only.
        """
        self.require(operation.scopes, operation.any_scopes)
        if self._is_barred(operation):
            reason = self.desk.obstacle or "This server only reads (REFDESK_READ_ONLY); ask one that writes."
            raise errors.PermissionDeniedError(reason)

    def _is_barred(self, operation: Operation) -> bool:
        only_reads = self.desk.settings.read_only or self.desk.obstacle is not None
        return only_reads and not operation.effects.read_only

    def may(self, scopes: frozenset[str], any_scopes: frozenset[str] = frozenset()) -> bool:
        """Return whether the caller has all of `scopes`, and at least one of `any_scopes` unless that is empty."""
        return not self._find_missing(scopes, any_scopes)

    def require(self, scopes: frozenset[str], any_scopes: frozenset[str] = frozenset()) -> None:
        """Check that the caller has all of `scopes`, and at least one of `any_scopes` unless that is empty.

        Raises:
            PermissionDeniedError: It does not; the message names the missing scopes, or all those of which one would
                suffice.
        """
        missing = self._find_missing(scopes, any_scopes)
        if missing:
            needed = "the scope" if scopes & set(missing) or len(missing) == 1 else "one of the scopes"
            raise errors.PermissionDeniedError(
                f"This needs {needed} {', '.join(missing)}; ask whoever runs the server for a key that has it.",
                details={"missingScopes": missing},
            )

    def _find_missing(self, scopes: frozenset[str], any_scopes: frozenset[str]) -> list[str]:
        """Return the scopes that the caller lacks; if it has none of `any_scopes`, all of those."""
        missing = scopes - self.principal.scopes
        return sorted(missing or (any_scopes if any_scopes.isdisjoint(self.principal.scopes) else ()))

    async def _within_time(
        self,
        toolset: str,
        ask: Callable[[Context], Awaitable[Answer]],
        least_seconds: float = 0.0,
        watch: Callable[[KnowledgeBase], KnowledgeBase] = lambda base: base,
        report: Report = report_nothing,
        lane: str = "",
    ) -> Answer:
        seconds = max(self.desk.settings.request_timeout_seconds, least_seconds)
        turns, taken = self.desk.turns, list["Turn"]()

        async def work() -> Answer:
            async with turns.take(self.principal.org, self.principal.agent, lane) as turn:
                taken.append(turn)
                principal = replace(self.principal, transport=self.transport)
                return await ask(await self.desk.get_context(principal, toolset, watch, report, self.asked_at))

        try:
            return await answer_within(self.desk.questions, seconds, work)
        except TimeoutError:
            # Work that cannot be stopped runs on, but no longer takes up a turn of its org.
            for turn in taken:
                turns.give_back(turn)
        raise errors.WorldError(f"No answer within {seconds:g} seconds; try again, or ask for less at once.")


@cache
def get_schema(model: type[BaseModel]) -> contracts.Schema:
    """Return the schema of an input as callers see it."""
    return contracts.get_input_schema(model)


def validate(operation: Operation, arguments: object) -> BaseModel:
    """Return the arguments as the operation's input.

    Raises:
        InvalidInputError: They are not an object, hold values that cannot be stored, or do not fit the model.
    """
    if not isinstance(arguments, Mapping):
        raise errors.InvalidInputError("The arguments must be one JSON object.")
    strict_json.check(cast("object", arguments))
    schema = get_schema(operation.input)
    if faults := list(json_types.find_faults(cast("object", arguments), schema)):
        raise wording.wrong_types(faults)
    try:
        return operation.input.model_validate(arguments, by_alias=True, by_name=False)
    except ValidationError as error:
        raise wording.invalid_input(error, operation.input) from None


def _find_subjects(validated: BaseModel) -> dict[str, JsonValue]:
    """Return the ids in an input, by field: they say what was asked for, and never include free text."""
    named = {name: getattr(validated, name) for name in _list_id_fields(type(validated))}
    return {name: value for name, value in named.items() if isinstance(value, str) and _ID.fullmatch(value)}


@cache
def _list_id_fields(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(name for name in model.model_fields if _ID_FIELD.fullmatch(name))


@contextmanager
def _guard(caller: Caller, target: str, toolset: str) -> Generator[None]:
    names = {"operation": target, "transport": caller.transport, "toolset": toolset}
    recording = tracing.trace(caller.desk.tracer, target, "server", caller.traceparent, **names)
    with recording as ending, _watch(caller, target, ending):
        yield


@contextmanager
def _watch(caller: Caller, target: str, ending: tracing.Ending) -> Generator[None]:
    context = {
        "target": target,
        "transport": caller.transport,
        "org": caller.principal.org,
        "agent": caller.principal.agent,
    }
    began = time.perf_counter()
    try:
        yield
    except errors.CallerError as error:
        ending.note(error)
        logger.info("call refused", extra=context | {"code": error.code})
        raise
    except errors.RefdeskError as error:
        ending.note(error)
        logger.warning("call failed", extra=context | {"code": error.code, "reason": error.message})
        raise
    except Exception as error:
        ending.note(error)
        incident = uuid4().hex[:8]
        logger.exception("call broke", extra=context | {"incident": incident})
        raise errors.RefdeskError(
            f"Internal error; tell whoever runs the server, who finds it in the log as incident {incident}.",
            details={"incident": incident},
        ) from None
    except BaseException as error:
        ending.note(error)
        raise
    finally:
        caller.desk.note_call(Call(target, caller.transport, ending.outcome, time.perf_counter() - began))
