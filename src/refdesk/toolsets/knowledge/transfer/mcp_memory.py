"""The file of the MCP reference memory server: one entity or relation per line, in JSON.

An entity becomes an entry: its name is the title and its type a tag. The body lists its observations, then the
relations that start at it, so that their types stay readable. Each relation also becomes a `references` link.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refdesk.kit.strict_values import RefusedError, read_string, read_strings
from refdesk.toolsets.knowledge.transfer.foreign import ForeignRecord, list_unknown, make_id, take_in
from refdesk.toolsets.knowledge.transfer.jsonl import read_line
from refdesk.toolsets.knowledge.transfer.reports import printable, quote

if TYPE_CHECKING:
    from refdesk.model import JsonObject
    from refdesk.toolsets.knowledge.transfer.intake import Intake, Line

_ENTITY = ("type", "name", "entityType", "observations")
_RELATION = ("type", "from", "to", "relationType")


@dataclass(frozen=True, slots=True)
class _Entity:
    place: str
    name: str
    type: str
    observations: Sequence[str]
    fields: JsonObject


@dataclass(frozen=True, slots=True)
class _Relation:
    source: str
    type: str
    target: str


def read(lines: Iterable[Line], intake: Intake) -> None:
    """Take in every entity, with its relations."""
    entities: list[_Entity] = []
    relations: dict[_Relation, str] = {}
    for line in lines:
        if not line.data.strip() and not line.is_cut:
            continue
        try:
            _read_record(read_line(line), line.place, intake, entities, relations)
        except RefusedError as error:
            intake.refuse(line.place, printable(str(error)))
    names = frozenset(entity.name for entity in entities)
    starting = _group(relations, names, intake)
    for entity in entities:
        take_in(intake, _make_record(entity, starting[entity.name], names, intake))


def _read_record(
    record: JsonObject, place: str, intake: Intake, entities: list[_Entity], relations: dict[_Relation, str]
) -> None:
    match record.get("type"):
        case "entity":
            name, type = read_string(record, "name"), read_string(record, "entityType")
            observations = read_strings(record.get("observations"), "observations")
            entities.append(_Entity(place, name, type, observations, list_unknown(record, _ENTITY)))
        case "relation":
            ends = read_string(record, "from"), read_string(record, "relationType"), read_string(record, "to")
            if relations.setdefault(_Relation(*ends), place) != place:
                intake.leave_out(place, f"repeats {relations[_Relation(*ends)]}")
            if unknown := list_unknown(record, _RELATION):
                intake.leave_out(place, f"its fields {quote(', '.join(unknown))} have no place in a link")
        case _:
            intake.leave_out(place, "is neither an entity nor a relation")


def _group(relations: dict[_Relation, str], names: frozenset[str], intake: Intake) -> defaultdict[str, list[_Relation]]:
    starting: defaultdict[str, list[_Relation]] = defaultdict(list)
    for relation, place in relations.items():
        if relation.source not in names:
            intake.leave_out(place, f"there is no entity {quote(relation.source)} that it starts from")
            continue
        starting[relation.source].append(relation)
        if relation.target not in names:
            intake.leave_out(place, f"there is no entity {quote(relation.target)} to link to; the text says it")
    return starting


def _make_record(
    entity: _Entity, relations: Sequence[_Relation], names: frozenset[str], intake: Intake
) -> ForeignRecord:
    return ForeignRecord(
        place=entity.place,
        origin_id=entity.name,
        title=entity.name,
        body=_write_body(entity, relations),
        tags=[entity.type] if entity.type.strip() else [],
        targets=[make_id(intake.format, relation.target) for relation in relations if relation.target in names],
        fields=entity.fields,
    )


def _write_body(entity: _Entity, relations: Sequence[_Relation]) -> str:
    said = [observation for observation in entity.observations if observation.strip()]
    listed = [f"{relation.type} [[{relation.target}]]".strip() for relation in relations]
    if not said and not listed:
        return f"{entity.name} ({entity.type})" if entity.type.strip() else entity.name
    if len(said) == 1 and not listed:
        return said[0]
    return "\n\n".join(_write_list(items) for items in (said, listed) if items)


def _write_list(items: Sequence[str]) -> str:
    return "\n".join("- " + item.replace("\n", "\n  ") for item in items)
