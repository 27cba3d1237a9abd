"""A folder of basic-memory: Markdown notes whose lists hold observations and whose wiki links are relations.

A note becomes an entry with its whole text, observations and relations left in place. Its tags are those of the front
matter and of its observations, plus its type unless that is `note`. Every wiki link outside of code becomes a
`references` link; the type of the relation is kept in the text only. A date without an offset is taken as UTC; if there
is no date, the file's is used; without a title, it is the heading with which the text begins, or else the file's name.
So any other folder of Markdown notes can be read as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import regex

from refdesk.kit import front_matter
from refdesk.kit.front_matter import FrontMatter
from refdesk.kit.strict_values import RefusedError, decode_text
from refdesk.toolsets.knowledge.transfer.foreign import ForeignRecord, list_unknown, make_id, read_date, take_in
from refdesk.toolsets.knowledge.transfer.reports import printable, quote

if TYPE_CHECKING:
    from refdesk.model import JsonValue
    from refdesk.toolsets.knowledge.transfer.intake import Intake, NamedText

_KNOWN = ("title", "tags", "created", "modified")
_DEFAULT_TYPE = "note"

_HEADING = regex.compile(r"#[ \t]+([^\n]*?)[ \t]*#*[ \t\r]*(?:\n|$)")
_FENCE = regex.compile(r"[ \t]*(```|~~~)")
_LIST_ITEM = regex.compile(r"[ \t]*[-*+][ \t]+(.*)")
_HASH_TAGS = regex.compile(r"(?<!\S)(?:#[\p{L}\p{M}\p{N}_/-]+)+")
_WIKI_LINK = regex.compile(r"\[\[([^\[\]\n]{1,500})\]\]")


@dataclass(frozen=True, slots=True)
class _Note:
    place: str
    file: NamedText
    matter: FrontMatter
    body: str

    @property
    def stem(self) -> str:
        """The file's path without its extension."""
        return self.file.path[: -len(".md")]

    @property
    def title(self) -> str:
        heading = _HEADING.match(self.body)
        return self.get_text("title") or (heading[1].strip() if heading else "") or self.stem.rpartition("/")[2]

    @property
    def origin_id(self) -> str:
        return self.get_text("permalink") or self.stem

    def get_text(self, name: str) -> str:
        """Return a field as text; empty if it is missing or not a scalar."""
        value = self.matter.values.get(name)
        return str(value).strip() if isinstance(value, str | int) else ""


def read(files: Iterable[NamedText], intake: Intake) -> None:
    """Take in every note, with its relations."""
    notes: list[_Note] = []
    for file in files:
        try:
            notes.append(_read_note(file, intake))
        except RefusedError as error:
            intake.refuse(printable(file.path), printable(str(error)))
    index = _Index(notes, intake.format)
    for note in notes:
        take_in(intake, _make_record(note, index, intake))


class _Index:
    """Finds the notes a wiki link may mean: by permalink, then title, path and file name, ignoring case."""

    def __init__(self, notes: Iterable[_Note], format: str) -> None:
        self._ranks: tuple[defaultdict[str, set[str]], ...] = tuple(defaultdict(set) for _ in range(4))
        for note in notes:
            names = (note.get_text("permalink"), note.title, note.stem, note.stem.rpartition("/")[2])
            for rank, name in zip(self._ranks, names, strict=True):
                rank[name.casefold()].add(make_id(format, note.origin_id))

    def find(self, target: str) -> set[str]:
        """Return the ids of the notes that a link may mean; if there are several, the link is ambiguous."""
        name = target.casefold().removeprefix("memory://")
        names = (name, name.removesuffix(".md"))
        return next((rank[each] for each in names for rank in self._ranks if each and each in rank), set[str]())


def _read_note(file: NamedText, intake: Intake) -> _Note:
    if file.is_cut:
        raise RefusedError("is longer than is read")
    text = decode_text(file.data)
    place = printable(file.path)
    matter_text, body = front_matter.split(text)
    matter = front_matter.read(matter_text) if matter_text is not None else FrontMatter()
    for number, reason in matter.refused:
        intake.leave_out(f"{place}, line {number}", printable(reason))
    return _Note(place, file, matter, body.strip())


def _make_record(note: _Note, index: _Index, intake: Intake) -> ForeignRecord:
    fields = note.matter.values
    return ForeignRecord(
        place=note.place,
        origin_id=note.origin_id,
        title=note.title,
        body=note.body,
        tags=_list_tags(note, intake),
        created_at=read_date(intake, note.place, fields, "created"),
        modified_at=read_date(intake, note.place, fields, "modified"),
        targets=_list_targets(note, index, intake),
        fields=list_unknown(fields, _KNOWN),
        fallback_at=note.file.written_at,
    )


def _list_tags(note: _Note, intake: Intake) -> list[str]:
    type = note.get_text("type")
    raw = [*_read_tags(note, intake), *([type] if type and type != _DEFAULT_TYPE else [])]
    items = (item[1] for line in _list_prose(note.body) if (item := _LIST_ITEM.fullmatch(line)))
    raw += [tag for item in items for run in _HASH_TAGS.findall(item) for tag in str(run).split("#") if tag]
    return raw


def _read_tags(note: _Note, intake: Intake) -> list[str]:
    """Return the tags of the front matter, which may be a list or a comma-separated text."""
    value = note.matter.values.get("tags") or ()
    if isinstance(value, str | int):
        value = str(value).split(",")
    if not isinstance(value, Sequence):
        intake.leave_out(note.place, "tags is not a list")
        return []
    items: Sequence[JsonValue] = value
    return [str(item).strip().removeprefix("#") for item in items if item is not None and str(item).strip()]


def _list_targets(note: _Note, index: _Index, intake: Intake) -> list[str]:
    links = (str(link) for line in _list_prose(note.body) for link in _WIKI_LINK.findall(line))
    targets: list[str] = []
    for link in dict.fromkeys(links):
        # After a bar comes the text that is shown for the link, after a hash a heading in its target.
        found = index.find(link.partition("|")[0].partition("#")[0].strip())
        if len(found) == 1:
            targets += found
        else:
            reason = "more than one note has that name" if found else "there is no such note"
            intake.leave_out(note.place, f"its link to {quote(link)}: {reason}; the text keeps it")
    return targets


def _list_prose(text: str) -> Iterator[str]:
    """Yield the lines that are not in a fenced block of code."""
    fence: str | None = None
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found is None:
            if fence is None:
                yield line.rstrip()
        elif fence is None:
            fence = str(found[1])
        elif fence == found[1]:
            fence = None
