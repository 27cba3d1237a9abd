"""The inputs and outputs of the operations that list entries, and the tags and authors of entries."""

from __future__ import annotations

from datetime import datetime, time
from typing import Annotated

from pydantic import Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from refdesk.kit.paging import Cursor, NextCursor, Notice, Paged
from refdesk.kit.wire import Message, Time, parse_time
from refdesk.toolsets.knowledge.models import Tags, UnknownTag


class ListInput(Message):
    """What `list_knowledge` takes."""

    tags: Tags = Field(default_factory=list[str], description="Only entries with all of these.")
    author: Annotated[str, Field(max_length=200)] | SkipJsonSchema[None] = Field(
        None, description="Only entries of this agent."
    )
    since: Time | SkipJsonSchema[None] = Field(
        None, description="First day or instant, UTC, included, on which it was written.", examples=["2026-01-01"]
    )
    until: Time | SkipJsonSchema[None] = Field(
        None, description="Last day or instant, UTC, included.", examples=["2026-03-31"]
    )
    limit: int = Field(50, ge=1, le=200, description="At most this many.")
    offset: int = Field(0, ge=0, description="How many to skip: the next page starts at `offset` + `limit`.")
    cursor: Cursor = None
    include_superseded: bool = Field(False, description="Also entries that others replaced.")
    include_expired: bool = Field(False, description="Also entries whose time is over.")

    @model_validator(mode="after")
    def _refuse_reversed(self) -> ListInput:
        first, last = self.period
        if first and last and first > last:
            raise ValueError(f"since {self.since} is after until {self.until}: swap them or widen the range")
        return self

    @property
    def period(self) -> tuple[datetime | None, datetime | None]:
        """The period between the two bounds, both inclusive; a bound that names a day includes the whole day."""
        return (
            parse_time(self.since, time.min) if self.since is not None else None,
            parse_time(self.until, time.max) if self.until is not None else None,
        )


class ListedEntry(Message):
    """One entry, without its body."""

    id: str
    title: str
    tags: list[str]
    confidence: int
    author: str
    created_at: datetime
    expires_at: datetime | SkipJsonSchema[None] = None
    is_superseded: bool


class ListOutput(Paged, Message):
    """One page of the entries, newest first."""

    entries: list[ListedEntry]
    total: int = Field(description="How many there are in all.")
    offset: int = Field(description="How many came before.")
    has_more: bool
    next_cursor: NextCursor = None
    notice: Notice = None
    unknown_tags: list[UnknownTag] | SkipJsonSchema[None] = Field(None, description="The reason for no entries.")


class TagsInput(Message):
    """What `list_tags` takes."""

    limit: int = Field(200, ge=1, le=1000, description="At most this many.")
    offset: int = Field(0, ge=0, description="How many to skip.")
    cursor: Cursor = None


class TagCount(Message):
    """A tag, and how many entries have it that hold now."""

    tag: str
    entries: int


class TagsOutput(Paged, Message):
    """The tags of entries that hold now, most frequent first."""

    tags: list[TagCount]
    total: int = Field(description="How many different tags there are.")
    has_more: bool
    next_cursor: NextCursor = None
    notice: Notice = None


class AuthorsInput(Message):
    """What `list_authors` takes."""

    limit: int = Field(200, ge=1, le=1000, description="At most this many.")
    offset: int = Field(0, ge=0, description="How many to skip.")
    cursor: Cursor = None


class AuthorCount(Message):
    """An agent, and how many entries of it hold now."""

    author: str
    entries: int


class AuthorsOutput(Paged, Message):
    """The agents that wrote entries which hold now, those with the most first."""

    authors: list[AuthorCount]
    total: int = Field(description="How many agents there are.")
    has_more: bool
    next_cursor: NextCursor = None
    notice: Notice = None
