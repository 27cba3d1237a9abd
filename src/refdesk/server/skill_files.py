"""The MCP Skills extension (SEP-2640): the skills of the caller's org as files that hosts list, verify and read.

The extension's two methods and its files are served beside what the SDK serves, which does not have the extension.
Modern clients learn of it through `server/discover`; all others have the tools.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import quote

import mcp_types as types
from mcp.shared.exceptions import MCPError

from refdesk import errors
from refdesk.core.operations import NESTED
from refdesk.server import answers
from refdesk.server.calls import Caller
from refdesk.server.telemetry import find_traceparent

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

    from refdesk.app import Desk
    from refdesk.core.context import Context
    from refdesk.model import Principal
    from refdesk.toolsets.skills.manifest import SkillFile, SkillManifest

    RequestContext: TypeAlias = ServerRequestContext[Any, Any]
    Answer = TypeVar("Answer")

EXTENSION = "io.modelcontextprotocol/skills"
LIST, GET, READ, SUBSCRIBE = "skills/list", "skills/get", "resources/read", "resources/subscribe"
SCOPES = frozenset({"skills:read"})
MARKDOWN, PLAIN = "text/markdown", "text/plain"
SCHEME = "skill://"
FILES = f"{SCHEME}{{path}}"
"""Stands for any address of that scheme wherever a name must not contain what a caller chose."""

PAGE = 100
"""Most skills on one page of a listing; each has its frontmatter and digests."""

_FRESHNESS = {"ttlMs": 60_000, "cacheScope": "private"}


class GetParams(types.RequestParams):
    """What `skills/get` takes: the address of a `SKILL.md`."""

    uri: str


@dataclass(frozen=True, slots=True)
class SkillFiles:
    """Serves the extension at one desk.

    Attributes:
        identify: Returns who calls, from the context of a request.
        read_other: Reads resources that are not files of skills.
        page: Most skills on one page.
    """

    desk: Desk
    identify: Callable[[RequestContext], Principal]
    read_other: Callable[[RequestContext, types.ReadResourceRequestParams], Awaitable[Any]]
    page: int = PAGE

    async def list(self, context: RequestContext, params: types.PaginatedRequestParams) -> dict[str, Any]:
        """Return a page of the skills of the caller's org, ordered by address; the cursor is the last address of the
        page before."""
        from refdesk.toolsets.skills import manifest, queries

        async def read(asked: Context) -> list[SkillManifest]:
            return await manifest.list_manifests(queries.get_queries(asked))

        found = sorted(await self._ask(context, LIST, read), key=_get_uri)
        first = bisect_right(found, params.cursor, key=_get_uri) if params.cursor else 0
        page = found[first : first + self.page]
        cursor = {"nextCursor": page[-1].uri} if first + self.page < len(found) else {}
        return {"skills": [describe(one) for one in page], **cursor, **_FRESHNESS}

    async def get(self, context: RequestContext, params: GetParams) -> dict[str, Any]:
        """Return one skill.

        Raises:
            MCPError: There is no skill at this address in the caller's org.
        """
        found = await self._find(context, GET, params.uri)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, "No such skill; call skills/list for those there are.")
        return {"skill": describe(found), **_FRESHNESS}

    async def read(self, context: RequestContext, params: types.ReadResourceRequestParams) -> Any:  # noqa: ANN401 - as the SDK has it
        """Return a skill's file, or any other resource at the address."""
        uri = str(params.uri)
        file = await self._find_file(context, uri) if uri.startswith(SCHEME) else None
        if file is None:
            return await self.read_other(context, params)
        is_markdown = file.path.casefold().endswith(".md")
        contents = types.TextResourceContents(uri=uri, mime_type=MARKDOWN if is_markdown else PLAIN, text=file.text)
        return types.ReadResourceResult(contents=[contents], ttl_ms=0, cache_scope="private")

    async def _find(self, context: RequestContext, target: str, uri: str) -> SkillManifest | None:
        from refdesk.toolsets.skills import manifest, queries

        async def find(asked: Context) -> SkillManifest | None:
            return await manifest.find_manifest(queries.get_queries(asked), uri)

        return await self._ask(context, target, find)

    async def _find_file(self, context: RequestContext, uri: str) -> SkillFile | None:
        from refdesk.toolsets.skills import manifest, queries

        async def find(asked: Context) -> SkillFile | None:
            found = await manifest.find_file(queries.get_queries(asked), uri)
            return found[1] if found is not None else None

        return await self._ask(context, FILES, find)

    async def _ask(self, context: RequestContext, target: str, read: Callable[[Context], Awaitable[Answer]]) -> Answer:
        try:
            caller = Caller(self.desk, self.identify(context), "mcp", find_traceparent(context))
            return await caller.ask("skills", target, SCOPES, read)
        except errors.RefdeskError as error:
            code = types.INVALID_PARAMS if isinstance(error, errors.CallerError) else types.INTERNAL_ERROR
            raise MCPError(code, error.message, answers.error_to_json(error, NESTED)) from None


def extend(server: Server[Any], desk: Desk, identify: Callable[[RequestContext], Principal]) -> None:
    """Make a server that can read resources serve the extension too."""
    known = server.get_request_handler(READ)
    assert known is not None
    files = SkillFiles(desk, identify, known.handler)
    server.extensions[EXTENSION] = {}
    server.add_request_handler(LIST, types.PaginatedRequestParams, files.list)
    server.add_request_handler(GET, GetParams, files.get)
    server.add_request_handler(READ, types.ReadResourceRequestParams, files.read)


async def find_text(caller: Caller, uri: str) -> str | None:
    """Return the text of a skill's file, or `None` if there is none at this address; errors as in `Caller.ask`."""
    from refdesk.toolsets.skills import manifest, queries

    async def find(asked: Context) -> str | None:
        found = await manifest.find_file(queries.get_queries(asked), uri)
        return found[1].text if found is not None else None

    return await caller.ask("skills", FILES, SCOPES, find)


def asks_for_skills(method: object, params: Mapping[str, Any]) -> bool:
    """Return whether a message asks for what the extension serves."""
    return method in (LIST, GET) or (method in (READ, SUBSCRIBE) and str(params.get("uri")).startswith(SCHEME))


def describe(manifest: SkillManifest) -> dict[str, Any]:
    """Return a skill's entry: its address, its frontmatter as in the file, and every file with digest and size."""
    folder = manifest.uri.rpartition("/")[0]
    resources = [
        {"uri": f"{folder}/{quote(file.path)}", "digest": f"sha256:{file.sha256}", "size": file.size}
        for file in manifest.files
    ]
    return {"uri": manifest.uri, "frontmatter": manifest.frontmatter, "resources": resources}


def _get_uri(manifest: SkillManifest) -> str:
    return manifest.uri
