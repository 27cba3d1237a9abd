"""The operation that imports entries: does what `refdesk import` does with files, for callers who send the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import anyio.to_thread
from pydantic import Field

from refdesk.core.context import Context
from refdesk.core.operations import Effects, Operation, Route, Shortening
from refdesk.errors import PermissionDeniedError
from refdesk.kit.wire import Message
from refdesk.toolsets.knowledge.operations import WRITE_OTHERS_SCOPE, WRITE_SCOPE

if TYPE_CHECKING:
    from refdesk.model import JsonValue, Principal
    from refdesk.toolsets.knowledge.transfer.intake import Intake

IMPORT_SECONDS = 120.0
"""The least time limit for an import."""

MOST_BYTES = 2 * 1024 * 1024
"""The largest request; larger files are for the command `refdesk import`."""


class ImportInput(Message):
    """What `import_knowledge` takes."""

    format: Literal["jsonl", "mcp-memory", "mem0"] = Field(
        description="`jsonl` is refdesk's own; `mcp-memory` that of the MCP memory server; `mem0` that of mem0."
    )
    text: str = Field(min_length=1, description="The file's text.")
    dry_run: bool = Field(False, description="Change nothing, only say what would be done.")


class ImportProblem(Message):
    """Why something was not taken over."""

    kind: Literal["conflict", "invalid", "quota", "left_out"]
    place: str
    message: str


class ImportOutput(Message):
    """What `import_knowledge` answers."""

    added: int = Field(description="Entries that were not there.")
    unchanged: int = Field(description="Entries that were there already, the same.")
    conflicts: int = Field(description="Entries whose id is taken by other content, which stays.")
    invalid: int = Field(description="Records that are no valid entry, or whose chain does not hold.")
    over_quota: int = Field(description="Entries that the quota had no room for.")
    left_out: int = Field(description="Parts of records that have no place in an entry.")
    dry_run: bool
    problems: list[ImportProblem] = Field(description="In the order they were met.")


async def import_knowledge(context: Context, asked: ImportInput) -> ImportOutput:
    """Add the entries of a text; stored entries are never changed, and importing the same text twice adds nothing."""
    from refdesk.toolsets.knowledge.transfer.intake import Intake
    from refdesk.toolsets.knowledge.transfer.planning import apply_plan, plan_import

    base, principal = context.knowledge_base, context.principal
    context.report(0, None, "Reading")
    intake = Intake(asked.format, principal.agent, base.clock.now())
    await anyio.to_thread.run_sync(_read, asked.text, intake)
    _refuse_other_authors(principal, intake)
    plan = await plan_import(base, principal.org, intake)

    def note(done: int, total: int) -> None:
        context.report(done, total, f"Imported {done} of {total} entries")

    report = plan.report if asked.dry_run else await apply_plan(base, plan, note)
    return ImportOutput(
        added=report.added,
        unchanged=report.unchanged,
        conflicts=report.conflicts,
        invalid=report.invalid,
        over_quota=report.over_quota,
        left_out=report.left_out,
        dry_run=report.dry_run,
        problems=[ImportProblem(kind=each.kind, place=each.place, message=each.message) for each in report.problems],
    )


def _refuse_other_authors(principal: Principal, intake: Intake) -> None:
    """Refuse the import unless the caller wrote every entry or may write for others: entries keep their authors."""
    others = sorted({placed.entry.author for placed in intake.entries} - {principal.agent})
    if others and WRITE_OTHERS_SCOPE not in principal.scopes:
        raise PermissionDeniedError(
            f"Entries keep their authors, and {others[0]} is another: ask for the scope {WRITE_OTHERS_SCOPE}, or use "
            "`refdesk import`."
        )


def _read(text: str, intake: Intake) -> None:
    from refdesk.toolsets.knowledge.transfer import jsonl, mcp_memory, mem0
    from refdesk.toolsets.knowledge.transfer.intake import Line

    data = text.encode()
    if intake.format == "mem0":
        mem0.read(data, intake)
        return
    lines = (Line(number, line) for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), start=1))
    (jsonl if intake.format == "jsonl" else mcp_memory).read(lines, intake)


def _keep(asked: ImportInput) -> dict[str, JsonValue]:
    return asked.model_dump(mode="json", by_alias=True)


IMPORT_KNOWLEDGE = Operation(
    name="import_knowledge",
    title="Import knowledge",
    description=(
        "Add entries from an export of refdesk, of the MCP memory server or of mem0, with their ids, authors and "
        "dates. Nothing that is stored is changed, and importing twice adds nothing. Try it with dryRun first."
    ),
    input=ImportInput,
    output=ImportOutput,
    handler=import_knowledge,
    scopes=frozenset({WRITE_SCOPE}),
    effects=Effects(read_only=False, idempotent=True),
    route=Route("POST", "/knowledge/import"),
    errors={
        "INVALID_INPUT": "An argument is missing or malformed, or the text has another format; nothing was imported.",
        "PERMISSION_DENIED": f"The credential lacks {WRITE_SCOPE}, or {WRITE_OTHERS_SCOPE} where others wrote entries.",
        "UNAUTHENTICATED": "The request carries no valid credential.",
        "TOO_LARGE": f"The request has more than {MOST_BYTES} bytes: import it in parts, or with `refdesk import`.",
        "STORE_UNAVAILABLE": "The storage engine failed; importing again adds what is missing.",
    },
    examples=(
        {
            "format": "mcp-memory",
            "text": '{"type":"entity","name":"Refunds","entityType":"policy","observations":["Up to 500 EUR."]}',
            "dryRun": True,
        },
    ),
    least_seconds=IMPORT_SECONDS,
    most_bytes=MOST_BYTES,
    shortening=Shortening("problems", ("message",), "Import it in parts to see the others."),
    keep=_keep,
)
