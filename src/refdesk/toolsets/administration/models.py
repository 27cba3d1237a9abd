"""The inputs and outputs of administration: camel case on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from refdesk.core.contracts import EXACT
from refdesk.kit.wire import Message, Number, Text

MOST_SHOWN = 500
MOST_EXPORTED = 1000
MOST_OFFSET = 2**53 - 1
"""The largest integer that every engine and every JSON parser can represent exactly."""

Name: TypeAlias = Annotated[Text, Field(max_length=200)]


class EraseInput(Message):
    """What `erase` takes: one of these."""

    model_config = ConfigDict(json_schema_extra={EXACT: {"minProperties": 1, "maxProperties": 1}})

    entry: Name | SkipJsonSchema[None] = Field(None, description="One entry or skill, by its id.")
    agent: Name | SkipJsonSchema[None] = Field(None, description="Everything that this agent wrote.")
    org: Name | SkipJsonSchema[None] = Field(None, description="Everything of your org, keys included: its name.")

    @model_validator(mode="after")
    def _require_one(self) -> EraseInput:
        if len(self.model_fields_set) != 1 or (self.entry, self.agent, self.org) == (None, None, None):
            raise ValueError("say one thing that is to be erased: entry, agent or org")
        return self


class EraseOutput(Message):
    """What `erase` answers."""

    erased: int = Field(description="How many entries and skills, each with all of its versions.")
    is_scrubbed: bool = Field(description="Whether no trace is left in the engines' own files, or of jobs.")


class ShowInput(Message):
    """What `show_audit` takes."""

    agent: Name | SkipJsonSchema[None] = Field(None, description="Only what this agent did.")
    action: Name | SkipJsonSchema[None] = Field(None, description="Only this, such as store_knowledge.")
    record: Name | SkipJsonSchema[None] = Field(None, description="Only what was done to what has this id.")
    refused: bool = Field(False, description="Only what was refused.")
    limit: Number = Field(50, ge=1, le=MOST_SHOWN, description="At most this many.")
    cursor: Annotated[str, Field(max_length=1000)] | SkipJsonSchema[None] = Field(
        None, description="The `nextCursor` of the page before."
    )


class Act(Message):
    """An entry of the audit log."""

    store: str | SkipJsonSchema[None] = Field(None, description="The toolset in whose own store it is kept.")
    org: str
    number: int = Field(description="In the log of the org in that store, from 1.")
    at: datetime
    act: dict[str, Any] = Field(description="Who did what to which records, how, from where, with what outcome.")
    previous: str = Field(description="The digest of the entry before; empty for the first.")
    digest: str = Field(description="SHA-256 of all of this but `store` and itself.")


class ShowOutput(Message):
    """What `show_audit` answers, newest first."""

    entries: list[Act]
    next_cursor: str | SkipJsonSchema[None] = Field(None, description="For older ones, if there are any.")


class VerifyInput(Message):
    """What `verify_audit` takes."""

    expect: Annotated[str, Field(max_length=200)] | SkipJsonSchema[None] = Field(
        None, description="An `end` noted earlier: the log must still hold it."
    )


class Broken(Message):
    """Where a log does not hold."""

    number: int = Field(description="The first at which something is wrong.")
    reason: str


class Log(Message):
    """What checking a log found."""

    store: str | SkipJsonSchema[None] = Field(None, description="The toolset in whose own store it is kept.")
    entries: int = Field(description="How many hold, from the first.")
    end: str = Field(description="To note elsewhere, and to expect later.")
    broken: Broken | SkipJsonSchema[None] = None


class VerifyOutput(Message):
    """What `verify_audit` answers: a log for each store."""

    holds: bool = Field(description="Whether nothing was changed, removed or moved.")
    logs: list[Log]


class ExportInput(Message):
    """What `export_audit` takes."""

    offset: Number = Field(
        0, ge=0, le=MOST_OFFSET, description="How many entries to leave out: the number of the last one you have."
    )
    limit: Number = Field(100, ge=1, le=MOST_EXPORTED, description="At most this many.")
    store: Name | SkipJsonSchema[None] = Field(None, description="A toolset that has a store of its own.")


class ExportOutput(Message):
    """What `export_audit` answers, oldest first."""

    entries: list[Act]
    total: int = Field(description="How many the log has.")


class SyncInput(Message):
    """What `sync_toolset` takes."""

    toolset: Name = Field(description="Which one, such as azure-updates.")
    full: bool = Field(False, description="Compare everything, not only what changed.")
    force: bool = Field(False, description="Withdraw what is gone from the source even when it is suspiciously much.")


class Progress(Message):
    """How far a sync is."""

    read: int = Field(description="Records read.")
    total: int | SkipJsonSchema[None] = Field(None, description="How many there are, where the source says so.")


class SyncOutput(Message):
    """What `sync_toolset` answers."""

    toolset: str
    outcome: Literal["succeeded", "busy"] = Field(description="`busy`: it is being synced already; nothing was done.")
    running: Progress | SkipJsonSchema[None] = Field(None, description="When `busy`: how far that is, if known.")
    kind: Literal["full", "delta"]
    started_at: datetime
    finished_at: datetime
    added: int
    changed: int
    withdrawn: int
    restored: int
    unchanged: int
    quarantined: int = Field(description="Records that cannot be read and are set aside.")
    withheld: int = Field(description="Gone from the source, suspiciously many, and kept; `force` withdraws them.")
    missing: int = Field(description="Records that the source says it holds and did not give.")


class ShowSyncsInput(Message):
    """What `show_syncs` takes."""

    toolset: Name | SkipJsonSchema[None] = Field(None, description="Only this one.")


class Sync(Message):
    """How a toolset stands with its source."""

    toolset: str
    is_due: bool
    is_running: bool
    running: Progress | SkipJsonSchema[None] = Field(None, description="How far, where this process does it.")
    documents: int = Field(description="How many the last success left.")
    last_success: datetime | SkipJsonSchema[None] = None
    last_full: datetime | SkipJsonSchema[None] = None
    last_error: str | SkipJsonSchema[None] = Field(None, description="Why the last one failed, if it did.")
    last_error_at: datetime | SkipJsonSchema[None] = None


class ShowSyncsOutput(Message):
    """What `show_syncs` answers."""

    syncs: list[Sync]


class ShowEmbeddingsInput(Message):
    """What `show_embeddings` takes."""

    limit: Number = Field(20, ge=1, le=MOST_SHOWN, description="At most this many failures.")


class Failed(Message):
    """A document that could not be embedded."""

    toolset: str
    id: str
    reason: str
    attempts: int
    retry_at: datetime | SkipJsonSchema[None] = Field(None, description="Absent: set aside until somebody retries.")


class EmbeddingCounts(Message):
    """How far embedding is, of what the caller's org can find."""

    model: str = Field(description="The model that makes vectors.")
    searched_by: str = Field(description="The one whose vectors are searched; another while models change.")
    documents: int
    embedded: int = Field(description="How many of them have vectors of `model`.")
    waiting: int
    failed: int = Field(description="How many of those waiting could not be embedded when last tried.")


class ShowEmbeddingsOutput(EmbeddingCounts):
    """What `show_embeddings` answers."""

    failures: list[Failed] = Field(description="Next to be tried first, those set aside last.")


class RetryInput(Message):
    """What `retry_embeddings` takes."""

    toolset: Name | SkipJsonSchema[None] = Field(None, description="Only what this one has.")


class RetryOutput(EmbeddingCounts):
    """What `retry_embeddings` answers."""

    retried: int = Field(description="How many that failed are due again.")
