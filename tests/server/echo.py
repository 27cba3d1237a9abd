"""Two tiny toolsets that show every behaviour of the transports, and a desk to serve them at."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import anyio
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema

from refdesk import errors
from refdesk.app import Desk, open_desk
from refdesk.core.context import Context
from refdesk.core.operations import (
    READS,
    Completions,
    Effects,
    ErrorFormat,
    Operation,
    Resource,
    ResourceTemplate,
    Rest,
    Route,
    Toolset,
)
from refdesk.model import Principal
from refdesk.settings import Settings, compose

READER = Principal("local", "tester", frozenset({"echo:read", "echo:write", "flat:read", "updates:read"}))
SECRET = "hunter2-in-the-trace"


class _Message(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class Filters(_Message):
    tags: list[str] = Field(default_factory=list[str], description="All of these.")
    since: str | SkipJsonSchema[None] = Field(None, description="First day.")


class SearchInput(_Message):
    query: str = Field("", max_length=20, description="Words.")
    filters: Filters = Field(default_factory=lambda: Filters(since=None), description="Conditions.")
    limit: int = Field(3, ge=1, le=10, description="At most.")
    offset: int = Field(0, ge=0)
    color: Literal["red", "green"] | SkipJsonSchema[None] = Field(None, description="A color.")

    @model_validator(mode="after")
    def _refuse_contradiction(self) -> SearchInput:
        if self.query == "both" and self.color:
            raise ValueError("query and color exclude each other")
        return self


class Item(_Message):
    id: str
    title: str
    sort_name: str | None = None


class SearchOutput(_Message):
    results: list[Item]
    total: int
    has_more: bool


class GetInput(_Message):
    id: str = Field(min_length=1)
    loud: bool = False


class FailInput(_Message):
    how: str


class Said(_Message):
    said: str
    by: str


async def search(context: Context, asked: SearchInput) -> SearchOutput:
    del context
    numbers = range(asked.offset, min(asked.offset + asked.limit, 5))
    items = [Item(id=str(n), title=f"{asked.query} {n}", sort_name="first" if n == 0 else None) for n in numbers]
    return SearchOutput(results=items, total=5, has_more=asked.offset + asked.limit < 5)


async def get(context: Context, asked: GetInput) -> Said:
    if asked.id == "missing":
        raise FAILURES["missing"]
    return Said(said=asked.id.upper() if asked.loud else asked.id, by=context.principal.agent)


FAILURES: dict[str, Exception] = {
    "invalid": errors.InvalidInputError("Mend it.", details={"field": "how"}),
    "unauthenticated": errors.UnauthenticatedError("Bring a key."),
    "denied": errors.PermissionDeniedError("Not yours."),
    "missing": errors.NotFoundError("No such thing."),
    "conflict": errors.ConflictError("It changed."),
    "large": errors.TooLargeError("Too much."),
    "limit": errors.LimitExceededError("Later.", retry_after_seconds=1.2),
    "quota": errors.QuotaExceededError("Full.", details={"used": 3, "limit": 3}),
    "world": errors.SourceError("It is down."),
    "operator": errors.ConfigurationError("Set it."),
    "bug": ZeroDivisionError(SECRET),
}


async def fail(context: Context, asked: FailInput) -> Said:
    del context
    if asked.how == "wait":
        await anyio.sleep_forever()
    raise FAILURES[asked.how]


async def read(context: Context) -> Said:
    return Said(said="guide", by=context.principal.org)


async def complete(context: Context, written: str) -> Completions:
    if written == "bug":
        raise FAILURES["bug"]
    return Completions((written + "1", context.principal.org), has_more=True)


def _fail_operation(name: str, path: str, scope: str) -> Operation:
    return Operation(
        name=name,
        title="Fail",
        description="Fails as asked.",
        input=FailInput,
        output=Said,
        handler=fail,
        scopes=frozenset({scope}),
        effects=Effects(read_only=False, idempotent=False, destructive=True, open_world=True),
        route=Route("POST", path),
        errors={"NOT_FOUND": "there is no such thing.", "LIMIT_EXCEEDED": "too many calls."},
    )


GET = Operation(
    name="get_echo",
    title="Get one echo",
    description="Says it again.",
    input=GetInput,
    output=Said,
    handler=get,
    scopes=frozenset({"echo:read"}),
    effects=READS,
    route=Route("GET", "/echo/items/{id}"),
    examples=({"id": "abc", "loud": True},),
)

GUIDE = Resource(
    uri="echo://guide",
    name="Echo guide",
    description="How to echo.",
    output=Said,
    reader=read,
    scopes=frozenset({"updates:read"}),
    route=Route("GET", "/echo/guide"),
    max_age_seconds=90,
    is_public=True,
)

NESTED = Toolset(
    name="echo",
    description="Says again what it hears.",
    listed=(
        Operation(
            name="search_echo",
            title="Search echoes",
            description="Finds echoes.\nUse get_echo next.",
            input=SearchInput,
            output=SearchOutput,
            handler=search,
            scopes=frozenset({"echo:read"}),
            effects=READS,
            route=Route("POST", "/echo/search"),
            examples=({"query": "hi", "limit": 2}, {"filters": {"tags": ["a"]}}),
        ),
        GET,
        _fail_operation("fail_echo", "/echo/fail", "echo:write"),
    ),
    load_rest=lambda: Rest(resources=(GUIDE,)),
    rest_scopes=frozenset({"updates:read"}),
    templates=(ResourceTemplate("echo://items/{id}", "Echo", "One echo.", GET, complete),),
)

FLAT = Toolset(
    name="flat",
    description="Fails flatly.",
    listed=(_fail_operation("fail_flat", "/flat/fail", "flat:read"),),
    load_rest=lambda: Rest((_fail_operation("flat_more", "/flat/more", "flat:read"),)),
    error_format=ErrorFormat(is_flat=True),
)


def make_settings(home: Path, **chosen: object) -> Settings:
    """Settings of a folder of the test's own, whatever the environment says."""
    return compose().model_validate({"home": home, "store": "memory://", "embedder": "hashing", **chosen})


@asynccontextmanager
async def echo_desk(home: Path, **chosen: object) -> AsyncGenerator[Desk]:
    async with open_desk(make_settings(home, **chosen), [NESTED, FLAT]) as desk:
        yield desk
