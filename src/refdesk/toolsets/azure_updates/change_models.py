"""The inputs and outputs of the operations that tell what changed."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from refdesk.kit.paging import NEXT_CURSOR, Cursor, Paged
from refdesk.kit.wire import Day, LastDay, Number, refuse_nul
from refdesk.toolsets.azure_updates.models import Answer, Input, UnknownValue, Values

ChangeKind: TypeAlias = Literal["added", "changed", "withdrawn", "restored"]


class ChangesInput(Input):
    """What `list_azure_changes` takes."""

    date_from: Day | SkipJsonSchema[None] = Field(
        default=None, description="First day, UTC, included, on which a sync met the change.", examples=["2026-11-01"]
    )
    date_to: LastDay | SkipJsonSchema[None] = Field(
        default=None, description="Last day of that, UTC, included.", examples=["2026-11-30"]
    )
    kinds: Annotated[list[ChangeKind], Field(max_length=4)] = Field(
        default_factory=list["ChangeKind"], description="Kinds of change, one of which it is; all without."
    )
    products: Values = Field(
        default_factory=list[str], description="Products, one of which the update has.", examples=[["Key Vault"]]
    )
    limit: Number = Field(default=50, ge=1, le=100, description="How many changes at most.")
    offset: Number = Field(default=0, ge=0, description="How many changes to skip.")
    cursor: Cursor = None

    @model_validator(mode="after")
    def _refuse_reversed_days(self) -> ChangesInput:
        if self.date_from and self.date_to and self.date_from > self.date_to:
            raise ValueError(f"dateFrom {self.date_from} is after dateTo {self.date_to}: swap them or widen the range")
        return self


class FieldChange(Answer):
    """One field of an update before and after. Of descriptions only a history quotes."""

    field: str
    before: str | list[str] | None = None
    after: str | list[str] | None = None


class UpdateChange(Answer):
    """What one sync did to one update."""

    id: str
    title: str
    change: ChangeKind
    version: int
    fields: list[FieldChange] = Field(default_factory=list[FieldChange])


class DatedChange(UpdateChange):
    """What a sync did to one update, and when."""

    at: str = Field(description="When refdesk met it, which is when it was published or edited at the earliest.")


class ChangesOutput(Paged, Answer):
    """One page of the changes, newest first."""

    changes: list[DatedChange]
    total: int
    limit: int
    offset: int
    has_more: bool
    next_cursor: str = Field(default="", description=NEXT_CURSOR)
    unknown_filter_values: list[UnknownValue] = Field(
        default_factory=list[UnknownValue], description="Products that no update has."
    )
    notes: list[str] = Field(default_factory=list[str], description="What to know about the data, such as its age.")


class HistoryInput(Input):
    """What `get_azure_update_history` takes."""

    id: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(refuse_nul)] = Field(
        description="The update's id; one that was withdrawn has its history too.", examples=["569743"]
    )
    limit: Number = Field(default=20, ge=1, le=100, description="How many versions at most.")
    offset: Number = Field(default=0, ge=0, description="How many versions to skip.")
    cursor: Cursor = None


class HistoryVersion(Answer):
    """A version of an update."""

    version: int
    at: str = Field(description="When refdesk met it.")
    change: ChangeKind
    fields: list[FieldChange] = Field(
        default_factory=list[FieldChange], description="What differs from the version before, quoted."
    )


class HistoryOutput(Paged, Answer):
    """The versions of one update, newest first."""

    id: str
    title: str
    is_withdrawn: bool = Field(description="Whether the feed has it no longer.")
    versions: list[HistoryVersion]
    total: int
    limit: int
    offset: int
    has_more: bool
    next_cursor: str = Field(default="", description=NEXT_CURSOR)
    notes: list[str] = Field(default_factory=list[str], description="What to know about the data, such as its age.")
