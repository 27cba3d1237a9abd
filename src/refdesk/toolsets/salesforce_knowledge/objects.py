"""Interprets an org's object descriptions: fields, body fields and names of article types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from refdesk.model import JsonObject

STANDARD_BODY = "ArticleBody"
RECORD_TYPE = "RecordType.Name"
MOST_BODY_FIELDS = 40
RICH_TEXT = "richtextarea"


@dataclass(frozen=True, slots=True)
class BodyField:
    """A field that holds text of the body."""

    name: str
    label: str
    is_html: bool


@dataclass(frozen=True, slots=True)
class ObjectDescription:
    """An object as refdesk's user may see it.

    Attributes:
        prefix: The first three characters of its records' ids.
        fields: Names of the fields, in the org's order, each with whether it can be filtered by.
        texts: The fields that may hold a body: the standard one and custom text areas, in the org's order.
        has_record_types: Whether articles have record types, whose names can be requested as `RECORD_TYPE`.
    """

    name: str
    prefix: str | None
    fields: Mapping[str, bool]
    texts: tuple[BodyField, ...]
    has_record_types: bool

    def keep(self, names: Sequence[str], *, with_type: bool = False) -> tuple[str, ...]:
        """Return those of the names that are fields, in the order given; `with_type` adds the record type's, if any."""
        kept = tuple(name for name in names if name in self.fields)
        return (*kept, RECORD_TYPE) if with_type and self.has_record_types else kept

    def choose_body_fields(self, configured: Sequence[str]) -> tuple[BodyField, ...]:
        """Return the fields that make up the body, in order.

        These are the configured ones, as far as they exist; else the standard body, if there is one; else the custom
        rich text fields (as orgs keep internal remarks in plain text areas), or the plain ones if none is rich.
        """
        by_name = {field.name: field for field in self.texts}
        if configured:
            plain = {name: BodyField(name, name, is_html=False) for name in self.keep(configured)}
            return tuple(by_name.get(name, plain[name]) for name in plain)
        if STANDARD_BODY in by_name:
            return (by_name[STANDARD_BODY],)
        rich = tuple(field for field in self.texts if field.is_html)
        return (rich or self.texts)[:MOST_BODY_FIELDS]


def read_description(data: object) -> ObjectDescription | None:
    """Return the description in the answer to a describe call, or `None` if there is none."""
    entry = _as_object(data)
    name, fields = entry.get("name"), entry.get("fields")
    if not isinstance(name, str) or not isinstance(fields, list):
        return None
    described = [_as_object(field) for field in cast("list[object]", fields)]
    names = {str(field["name"]): field.get("filterable") is not False for field in described if "name" in field}
    return ObjectDescription(
        name,
        _as_text(entry.get("keyPrefix")),
        names,
        tuple(_read_body_field(field) for field in described if _may_be_body(field)),
        any(field.get("relationshipName") == "RecordType" for field in described),
    )


def read_article_objects(data: object) -> dict[str, str]:
    """Return id prefix → name of each object that holds article versions, from the list of all objects."""
    listed = _as_object(data).get("sobjects")
    objects = [_as_object(each) for each in cast("list[object]", listed)] if isinstance(listed, list) else []
    return {
        prefix: name
        for each in objects
        if (name := _as_text(each.get("name"))) and name.endswith("__kav")
        if (prefix := _as_text(each.get("keyPrefix")))
    }


def _may_be_body(field: JsonObject) -> bool:
    name = field.get("name")
    if not isinstance(name, str) or field.get("type") != "textarea":
        return False
    return name == STANDARD_BODY or name.endswith("__c")


def _read_body_field(field: JsonObject) -> BodyField:
    name = str(field["name"])
    is_html = field.get("htmlFormatted") is True or field.get("extraTypeInfo") == RICH_TEXT or name == STANDARD_BODY
    return BodyField(name, _as_text(field.get("label")) or name, is_html)


def _as_object(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _as_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
