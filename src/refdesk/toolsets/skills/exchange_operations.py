"""The operations that exchange skills as folders of the Agent Skills format."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from refdesk.core.operations import READS, Effects, Operation, Route, Shortening
from refdesk.toolsets.skills import missing
from refdesk.toolsets.skills.models import Message, Result, SkillId
from refdesk.toolsets.skills.queries import get_queries

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from refdesk.core.context import Context
    from refdesk.toolsets.skills.learning import Learner

MAX_FOLDERS = 100
MAX_PATH = 400
MAX_TEXT = 300_000
IMPORT_BYTES = 4 * 1024 * 1024
IMPORT_SECONDS = 120.0


class FolderFile(Message):
    """A file of a skill's folder."""

    path: str = Field(min_length=1, max_length=MAX_PATH, description="Below the folder, with slashes.")
    text: str = Field(max_length=MAX_TEXT)


class SkillFolder(Message):
    """A skill as a folder of files."""

    name: str = Field(min_length=1, max_length=255, description="The folder's, which is the skill's.")
    files: list[FolderFile] = Field(max_length=1000, description="SKILL.md, and those beside it.")
    skill_id: Annotated[str, Field(max_length=200)] | SkipJsonSchema[None] = Field(
        None, description="Which skill an exported folder is; an import reads it in the files."
    )
    version: int | SkipJsonSchema[None] = Field(None, description="The exported one.")


class ExportInput(Message):
    """What `export_skills` takes."""

    skill_ids: Annotated[list[SkillId], Field(max_length=MAX_FOLDERS)] | SkipJsonSchema[None] = Field(
        None, description="Only these; default: all, page by page."
    )
    limit: int = Field(20, ge=1, le=MAX_FOLDERS, description="How many of all at most.")
    after: str = Field("", max_length=200, description="The `next` of the page before.")


class UnknownSkill(Message):
    """An id that no skill has."""

    skill_id: str
    reason: str = Field(description="What became of it, or which ids are nearly like it.")


class ExportOutput(Message):
    """What `export_skills` answers."""

    folders: list[SkillFolder]
    unknown: list[UnknownSkill] | SkipJsonSchema[None] = Field(
        None, description="Those of `skill_ids` that are not exported, for there is no such skill; absent for none."
    )
    next: str | SkipJsonSchema[None] = Field(None, description="Absent on the last page.")


class ImportInput(Message):
    """What `import_skills` takes."""

    folders: list[SkillFolder] = Field(min_length=1, max_length=MAX_FOLDERS)
    dry_run: bool = Field(False, description="Only say what would become of each.")


class ImportedFolder(Message):
    """What became of a folder."""

    name: str
    result: Result = Field(
        description="added; unchanged (known already); changed (a new version); kept (what is here says otherwise and "
        "stays); broken (it is no skill)."
    )
    skill_id: str
    title: str
    notes: list[str] = Field(description="What of it was left out.")
    detail: str = Field(description="Why it was not taken over.")


class ImportOutput(Message):
    """What `import_skills` answers, one entry for each folder, in their order."""

    folders: list[ImportedFolder]


async def export_skills(context: Context, asked: ExportInput) -> ExportOutput:
    """Return skills as folders, and which of `skill_ids` are not there."""
    from refdesk.toolsets.skills import exchange

    queries = get_queries(context)
    ids = asked.skill_ids if asked.skill_ids is not None else await queries.list_ids(asked.after)
    page = ids if asked.skill_ids is not None else ids[: asked.limit]
    exported = [
        SkillFolder(
            name=folder.name,
            files=[FolderFile(path=path, text=text) for path, text in folder.files.items()],
            skill_id=skill.skill_id,
            version=skill.version,
        )
        for skill, folder in await exchange.export_folders(queries, page)
    ]
    unknown = await _explain_unknown(context, asked.skill_ids or (), {folder.skill_id for folder in exported})
    return ExportOutput(folders=exported, unknown=unknown or None, next=page[-1] if len(page) < len(ids) else None)


async def _explain_unknown(context: Context, ids: Sequence[str], there: Collection[str | None]) -> list[UnknownSkill]:
    queries, unknown = get_queries(context), list[UnknownSkill]()
    for id in dict.fromkeys(ids):
        if id not in there:
            error = await missing.explain(queries.store, queries.org, id)
            named = await missing.NAMING.explain(context, error)
            unknown.append(UnknownSkill(skill_id=id, reason=named.message))
    return unknown


async def _import(learner: Learner, context: Context, asked: ImportInput) -> ImportOutput:
    from refdesk.toolsets.skills import exchange
    from refdesk.toolsets.skills.folders import Folder

    done: list[ImportedFolder] = []
    for number, given in enumerate(asked.folders):
        context.report(number, len(asked.folders), given.name)
        folder = Folder(given.name, {file.path: file.text for file in given.files})
        found = await exchange.import_folder(learner, context, folder, asked.dry_run)
        done.append(ImportedFolder.model_validate(asdict(found)))
    return ImportOutput(folders=done)


def make_import(get_learner: Callable[[], Learner]) -> Operation:
    """Return the operation that imports folders; the learner embeds what is imported."""

    async def import_skills(context: Context, asked: ImportInput) -> ImportOutput:
        return await _import(get_learner(), context, asked)

    return Operation(
        name="import_skills",
        title="Import skills",
        description=(
            "Take over skills that are folders of the Agent Skills format (SKILL.md), exported here or written "
            "elsewhere. One that was edited becomes a new version; importing twice adds nothing."
        ),
        input=ImportInput,
        output=ImportOutput,
        handler=import_skills,
        scopes=frozenset({"skills:write"}),
        effects=Effects(read_only=False, idempotent=True),
        route=Route("POST", "/skills/import"),
        least_seconds=IMPORT_SECONDS,
        most_bytes=IMPORT_BYTES,
        errors={
            "INVALID_INPUT": "An argument is missing, malformed or too long.",
            "QUOTA_EXCEEDED": "The org may keep no more; details say how many bytes it keeps.",
            "EMBEDDER_UNAVAILABLE": "The embedding model failed; folders before the one that was embedded are in.",
        },
        examples=({"folders": [_EXAMPLE], "dry_run": True},),
        lane="learning",
    )


_TEXT = (
    "---\nname: reset-router\ndescription: Reset a router that blinks red.\n---\n\nHold the button for 10 seconds.\n"
)
_EXAMPLE = {"name": "reset-router", "files": [{"path": "SKILL.md", "text": _TEXT}]}

EXPORT = Operation(
    name="export_skills",
    title="Export skills",
    description=(
        "Read skills as folders of the Agent Skills format: SKILL.md, to be put where an agent finds its skills, and "
        "what import_skills needs to lose nothing. To use one skill, get_skill is shorter."
    ),
    input=ExportInput,
    output=ExportOutput,
    handler=export_skills,
    scopes=frozenset({"skills:read"}),
    effects=READS,
    route=Route("POST", "/skills/export"),
    errors={"INVALID_INPUT": "An argument is malformed or out of range."},
    shortening=Shortening("folders", (), "Ask for fewer at once."),
    examples=({"limit": 5},),
)
