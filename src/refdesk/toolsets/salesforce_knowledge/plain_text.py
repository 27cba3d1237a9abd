"""Converts the HTML of articles to plain text, block by block, from the tree that `nh3` makes of it.

Lists keep their marks, tables their cells and links their targets; anything that a browser would not show is removed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import nh3

from refdesk.kit.html_tree import Element, parse
from refdesk.toolsets.salesforce_knowledge.markup import simplify

MAX_CHARACTERS = 200_000
"""Most characters of HTML that are read from one field; Salesforce stores at most 131,072."""

MOST_INDENTED = 8

_PARAGRAPHS = frozenset({"p", "pre", "blockquote", "table", "dl", "hr"})
_LINES = frozenset({"div", "li", "tr", "dt", "dd", "caption", "br"})
_LISTS = frozenset({"ul", "ol"})
_CELLS = frozenset({"td", "th"})
_TAGS = {*_PARAGRAPHS, *_LINES, *_LISTS, *_CELLS, "div", "span", "a", "img"}
_CLEANER = nh3.Cleaner(
    tags=_TAGS,
    attributes={"*": {"hidden"}, "a": {"href"}, "img": {"alt"}, "ol": {"start"}},
    url_schemes={"http", "https", "mailto", "tel"},
    link_rel=None,
)
_WEB = re.compile(r"(?:https?://|mailto:|tel:)", re.IGNORECASE)
# Zero-width characters, soft hyphens, direction marks and tag characters: they hide text or split words.
_INVISIBLE = re.compile("[\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def to_plain_text(html: str) -> str:
    """Return the text of an HTML fragment; empty if it has none.

    Paragraphs, headings and tables are separated by one empty line. Items begin with `- ` or their number and are
    indented by two blanks for each list around theirs. Cells are separated by ` | `. A link is followed by its address
    in parentheses unless its text is the address. An image becomes its alternative text in brackets, or `[image]`, and
    embedded content leaves a mark with its address, such as `[video: https://…]`. HTML beyond `MAX_CHARACTERS` is cut
    off, and the text then ends in `…`.
    """
    text = _Reader().read(parse(_CLEANER.clean(simplify(html[:MAX_CHARACTERS]))))
    return f"{text}\n…".lstrip() if len(html) > MAX_CHARACTERS else text


def tidy(text: str) -> str:
    """Return plain text without invisible characters, trailing blanks and more than one empty line in a row."""
    clean = _CONTROLS.sub("", _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")))
    lines: list[str] = []
    for line in clean.split("\n"):
        bare = line.rstrip()
        if bare or (lines and lines[-1]):
            lines.append(bare)
    return "\n".join(lines).strip("\n")


@dataclass(slots=True)
class _Reader:
    """Writes lines while it walks. `_line` is the one being written; `_lists` the number each open list has reached."""

    _done: list[str] = field(default_factory=list[str])
    _line: list[str] = field(default_factory=list[str])
    _lists: list[int | None] = field(default_factory=list["int | None"])
    _mark: str = ""
    _cells: int = 0
    _verbatim: int = 0

    def read(self, root: Element) -> str:
        """Return the text in an element."""
        left = [(root, iter(root.children))]
        while left:
            element, children = left[-1]
            child = next(children, None)
            if child is None:
                self._exit(element)
                left.pop()
            elif isinstance(child, str):
                self._write(child)
            elif self._enter(child):
                left.append((child, iter(child.children)))
        self._break_line()
        return tidy("\n".join(self._done))

    def _enter(self, node: Element) -> bool:
        """Begin a node; return whether its content is to be read."""
        tag = node.tag
        if "hidden" in node.attributes:
            return False
        if tag in _LISTS:
            self._begin_list(tag, node)
        elif tag == "li":
            self._begin_item()
        elif tag in _CELLS:
            self._begin_cell()
        elif tag == "img":
            self._write(_describe_image(node))
        else:
            self._begin_block(tag)
        return True

    def _exit(self, node: Element) -> None:
        tag = node.tag
        if tag in _LISTS:
            self._break_line()
            self._lists.pop()
            if not self._lists:
                self._break_paragraph()
        elif tag in _CELLS:
            self._cells -= 1
        elif tag == "a":
            self._write(self._cite(node))
        else:
            self._break(tag)
            self._verbatim -= tag == "pre"

    def _begin_list(self, tag: str, node: Element) -> None:
        if self._lists:
            self._break_line()
        else:
            self._break_paragraph()
        self._lists.append(_read_start(node) if tag == "ol" else None)

    def _begin_item(self) -> None:
        self._break_line()
        number = self._lists[-1] if self._lists else None
        if number is not None:
            self._lists[-1] = number + 1
        mark = "- " if number is None else f"{number}. "
        if self._cells:
            self._line.append(mark)
        else:
            self._mark = mark

    def _begin_cell(self) -> None:
        self._cells += 1
        if self._cells == 1 and "".join(self._line).strip():
            self._line.append(" | ")

    def _begin_block(self, tag: str) -> None:
        self._break(tag)
        self._verbatim += tag == "pre"

    def _break(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            self._break_paragraph()
        elif tag in _LINES:
            self._break_line()

    def _break_line(self) -> None:
        if self._cells:
            self._line.append(" ")
            return
        text = "".join(self._line)
        self._line.clear()
        text = text.rstrip() if self._verbatim else " ".join(text.split())
        if not text.strip():
            return
        depth = min(max(0, len(self._lists) - 1), MOST_INDENTED)
        # Further lines of an item are aligned with its text, not with its mark.
        margin = self._mark or ("  " if self._lists else "")
        self._done.append("  " * depth + margin + text)
        self._mark = ""

    def _break_paragraph(self) -> None:
        self._break_line()
        if not (self._cells or self._lists or self._mark):
            self._done.append("")

    def _write(self, text: str) -> None:
        if not self._verbatim or self._cells:
            self._line.append(text)
            return
        first, *others = text.split("\n")
        self._line.append(first)
        for line in others:
            self._break_line()
            self._line.append(line)

    def _cite(self, node: Element) -> str:
        target = node.attributes.get("href", "").strip()
        if not _WEB.match(target):
            return ""
        shown = " ".join(("".join(node.read_texts())).split())
        is_shown = shown.casefold() in (target.casefold(), target.partition(":")[2].strip("/").casefold())
        return "" if is_shown or len(target) > 2000 else f" ({target})" if shown else target


def _describe_image(node: Element) -> str:
    alternative = " ".join(node.attributes.get("alt", "").split())
    return f"[{alternative or 'image'}]"


def _read_start(node: Element) -> int:
    start = node.attributes.get("start") or "1"
    return int(start) if start.isascii() and start.isdigit() and len(start) < 7 else 1
