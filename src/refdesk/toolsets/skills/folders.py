"""Skills as folders of the Agent Skills format: `SKILL.md` with front matter, and any other files.

A folder that refdesk wrote also holds `EVIDENCE`: all that a `SKILL.md` does not say, such as which conversations
support which step, so that reading it back loses nothing. A folder from elsewhere is kept in its own words.

Source: the Agent Skills specification (agentskills.io/specification), and its reference validator `skills-ref`.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import regex

from refdesk.core import visible
from refdesk.errors import InvalidInputError
from refdesk.toolsets.skills import manifest, skill_text
from refdesk.toolsets.skills.records import Instructions

if TYPE_CHECKING:
    from refdesk.model import JsonObject, JsonValue
    from refdesk.toolsets.skills.records import Skill

EVIDENCE = "assets/refdesk.json"
FORMAT = "refdesk-skill/1"

MAX_NAME, MAX_DESCRIPTION, MAX_COMPATIBILITY = 64, 1024, 500
"""Code points, as the format has it."""

MAX_FILES = 64
MAX_CHARACTERS = 262_144
"""Most characters of a folder's files together."""

FIELDS = ("license", "compatibility", "allowed-tools", "metadata")
"""What a front matter may hold besides name and description."""

_NAME = regex.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PART = regex.compile(r"(?!\.)[^\p{C}\\/:*?\"<>|]{1,128}(?<![ .])")
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))})
"""Names that no file or folder may have on Windows."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A skill as files: their texts, by path below the folder of this name."""

    name: str
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReadFolder:
    """What a folder says.

    Attributes:
        name: As in its front matter, if a skill can have that name here; else empty.
        title: Its first heading; without one, its name in words.
        instructions: Its text in its own words, with its other files.
        evidence: What refdesk wrote beside it; empty if refdesk did not write the folder.
        notes: What was left out of it, in sentences.
    """

    name: str
    title: str
    instructions: Instructions
    evidence: JsonObject = field(default_factory=dict[str, "JsonValue"])
    notes: tuple[str, ...] = ()


def write(skill: Skill) -> Folder:
    """Return a skill's folder: the same bytes for the same version."""
    files = {file.path: file.text for file in manifest.make_manifest(skill).files}
    if skill.instructions is None or skill.playbook.steps:
        evidence = {"format": FORMAT, **skill_text.to_evidence(skill)}
        files[EVIDENCE] = json.dumps(evidence, ensure_ascii=False, indent=1) + "\n"
    return Folder(skill.name, files)


def read(folder: Folder) -> ReadFolder:
    """Return what a folder says.

    Raises:
        InvalidInputError: It is no skill; the message says why.
    """
    from refdesk.kit import front_matter

    path = next((path for path in folder.files if path.casefold() == "skill.md"), None)
    if path is None:
        raise InvalidInputError("There is no SKILL.md in it: add one.")
    fences, text = front_matter.split(folder.files[path].replace("\r\n", "\n").removeprefix("\ufeff"))
    if fences is None:
        raise InvalidInputError("SKILL.md does not begin with front matter: put it between two lines of three hyphens.")
    matter = front_matter.read(fences)
    if matter.refused:
        line, reason = matter.refused[0]
        raise InvalidInputError(f"Line {line} of SKILL.md {reason}: mend it.")
    notes = [f"The field {name} is none of the format." for name in matter.values if name not in (*_OWN, *FIELDS)]
    name, description = (_require_text(matter.values, field) for field in _OWN)
    _check_lengths(description, matter.values)
    files, evidence = _take_files(folder, path, notes)
    fields = {field: value for field in FIELDS if (value := _read_field(matter.values.get(field))) is not None}
    text = text.lstrip("\n").rstrip() + "\n"
    return ReadFolder(
        _accept_name(name, folder.name, notes),
        skill_text.find_title(text) or name.replace("-", " ").capitalize(),
        Instructions(description, text, fields, files),
        evidence,
        tuple(notes),
    )


_OWN = ("name", "description")


def _require_text(values: Mapping[str, JsonValue], field: str) -> str:
    value = values.get(field)
    if not isinstance(value, str) or not visible.is_seen(value):
        raise InvalidInputError(f"The front matter of SKILL.md has no {field}: add it.")
    return " ".join(value.split())


def _check_lengths(description: str, values: Mapping[str, JsonValue]) -> None:
    if len(description) > MAX_DESCRIPTION:
        raise InvalidInputError(
            f"The description has {len(description)} characters; at most {MAX_DESCRIPTION} are allowed."
        )
    compatibility = values.get("compatibility")
    if isinstance(compatibility, str) and len(compatibility) > MAX_COMPATIBILITY:
        raise InvalidInputError(f"The compatibility may have at most {MAX_COMPATIBILITY} characters.")


def _accept_name(name: str, folder: str, notes: list[str]) -> str:
    """Return the name if a skill can have it on every system; else an empty one, and add a note."""
    name = unicodedata.normalize("NFKC", name)
    if name != unicodedata.normalize("NFKC", folder):
        notes.append(f"The folder's name is not that of the skill, {name}.")
    if len(name) <= MAX_NAME and _NAME.fullmatch(name) and name not in _RESERVED:
        return name
    notes.append(f"The name {name} is not allowed everywhere: it gets another one.")
    return ""


def _read_field(value: JsonValue) -> JsonValue:
    """Return a field in the form that the format knows: a text, a list of texts, or texts by name."""
    if isinstance(value, Mapping):
        return {str(name): _to_text(item) for name, item in cast("JsonObject", value).items()}
    if isinstance(value, list):
        return [_to_text(item) for item in value]
    return _to_text(value) if value not in (None, "") else None


def _to_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _take_files(folder: Folder, skill_file: str, notes: list[str]) -> tuple[dict[str, str], JsonObject]:
    """Return the files beside `SKILL.md` that are kept, and the evidence among them."""
    kept = dict[str, str]()
    taken = {"skill.md", EVIDENCE.casefold()}
    left = MAX_CHARACTERS - len(folder.files[skill_file])
    if left < 0:
        raise InvalidInputError(f"SKILL.md may have at most {MAX_CHARACTERS} characters.")
    for path, text in sorted(folder.files.items()):
        if path in (skill_file, EVIDENCE):
            continue
        if not is_portable(path) or _clashes(path, taken) or len(kept) >= MAX_FILES or len(text) > left:
            notes.append(f"The file {path} was left out: {_explain(path, taken)}.")
            continue
        taken.add(path.casefold())
        left -= len(text)
        kept[path] = text
    return kept, skill_text.read_evidence(folder.files.get(EVIDENCE, ""), FORMAT, notes)


def _clashes(path: str, taken: Set[str]) -> bool:
    """Return whether, on any system, a file at the path would collide with another file or with its folder."""
    path = path.casefold()
    parents = {path.rsplit("/", depth)[0] for depth in range(path.count("/") + 1)}
    return not parents.isdisjoint(taken) or any(each.startswith(f"{path}/") for each in taken)


def _explain(path: str, taken: Set[str]) -> str:
    if _clashes(path, taken):
        return "another file is where it would be"
    if not is_portable(path):
        return "not every system can have a file of that name"
    return f"a skill keeps {MAX_FILES} files of {MAX_CHARACTERS} characters together"


def is_portable(path: str) -> bool:
    """Return whether every system can have a file at this path, below any folder."""
    parts = path.split("/")
    if len(path) > 200 or not all(_PART.fullmatch(part) for part in parts):
        return False
    return not any(part.casefold().partition(".")[0] in _RESERVED for part in parts)
