"""The inputs and outputs of administration: camel case on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeAlias

from pydantic import ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from refdesk.core.contracts import EXACT
from refdesk.kit.wire import Message, Number, Text

MOST_SHOWN = 500
MOST_EXPORTED = 1000
MOST_OFFSET = 2**53 - 1
"""What every engine and every reader of JSON can count to."""

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
