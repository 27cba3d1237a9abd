"""Writes the parsed tree of clean HTML as Markdown (CommonMark, with GFM tables and strikethrough).

Every element is visited once, and lists and quotes stop indenting at `MOST_INDENTED`, so time and output are linear in
the input, however it is nested.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from refdesk.kit.html_tree import Element, parse

MOST_INDENTED = 16

_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_MARKS = {"b": "**", "strong": "**", "i": "*", "em": "*", "s": "~~", "del": "~~"}
_LISTS = frozenset({"ul", "ol"})
_PLAIN_BLOCKS = frozenset(
    {
        "p",
        "div",
        "section",
        "article",
        "header",
        "footer",
        "aside",
        "main",
        "figure",
        "dl",
        "dt",
        "dd",
        "caption",
        "figcaption",
    }
)
_ROW_GROUPS = frozenset({"thead", "tbody", "tfoot"})
_CELLS = frozenset({"td", "th"})
_BREAK = "\x00"
_HARD_BREAKS = re.compile(rf" *{_BREAK}[ {_BREAK}]*")
_BLANKS = re.compile(r"\s+")
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)", re.IGNORECASE)
_TAG_START = re.compile(r"<(?=[a-zA-Z/!?])")
# CommonMark 0.31, section 4 and 5: what makes a line something other than part of a paragraph.
_BLOCK_START = re.compile(r"(?:#{1,6}(?= |$)|[-+*](?= |$)|>|-{3,}$|={3,}$|~{3}|`{3})", re.MULTILINE)
_NUMBER_START = re.compile(r"(\d{1,9})([.)])(?= |$)")
_ITEM_START = re.compile(r"(?:- |\d{1,9}\. )")
_TICKS = re.compile("`+")
# CommonMark 0.31, section 6.3: parentheses in a bare target must be balanced; one level is enough for real ones.
_BALANCED = re.compile(r"[^()\s]*+(?:\([^()\s]*+\)[^()\s]*+)*+")


def write_markdown(html: str) -> str:
    """Return clean HTML as Markdown: blocks separated by one empty line, and no tags outside code.

    Raises:
        RecursionError: It is nested deeper than Python's recursion limit.
    """
    return "\n\n".join(block.text for block in _Writer().read(parse(html.replace(_BREAK, ""))))


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines of Markdown. Only a paragraph can have marks, such as those of emphasis, around the whole of it."""

    text: str
    is_paragraph: bool = False


@dataclass(slots=True)
class _Writer:
    """Collects the blocks of one container; `_line` is the paragraph being written."""

    depth: int = 0
    marks: frozenset[str] = frozenset()
    blocks: list[_Block] = field(default_factory=list[_Block])
    _line: list[str] = field(default_factory=list[str])

    def read(self, node: Element) -> list[_Block]:
        """Return the blocks of a container."""
        self.walk(node)
        self.end_line()
        return self.blocks

    def walk(self, node: Element) -> None:
        """Write the content of a node."""
        for child in node.children:
            if isinstance(child, str):
                self._line.append(self._read_text(child))
            else:
                self._write(child)

    def end_line(self) -> None:
        """End the paragraph."""
        text = _HARD_BREAKS.sub(_write_breaks, re.sub(" +", " ", "".join(self._line)).strip(f" {_BREAK}"))
        self._line.clear()
        if text:
            self.blocks.append(_Block("\n".join(_escape_start(line) for line in text.split("\n")), is_paragraph=True))

    def _write(self, node: Element) -> None:
        tag = node.tag
        if _is_hidden(node):
            return
        if tag in _PLAIN_BLOCKS:
            self.end_line()
            self.walk(node)
            self.end_line()
        elif block := _write_block(node, tag, self.depth):
            self.end_line()
            self.blocks += [block] if block.text else []
        else:
            self._write_inline(node, tag)

    def _read_text(self, text: str) -> str:
        folded = _TAG_START.sub("&lt;", _BLANKS.sub(" ", text))
        return _escape_brackets(folded) if "[" in self.marks else folded

    def _write_inline(self, node: Element, tag: str) -> None:
        if tag == "br":
            self._line.append(_BREAK)
        elif tag == "img":
            self._line.append(_write_image(node))
        elif tag == "code":
            self._line.append(_write_code(_read_raw(node)))
        elif tag in _MARKS:
            self._mark(node, _MARKS[tag], _MARKS[tag])
        elif tag == "a" and (target := node.attributes.get("href")):
            self._mark(node, "[", f"]({_write_target(target)})")
        else:
            self.walk(node)

    def _mark(self, node: Element, before: str, after: str) -> None:
        """Write marks around the content of a node; if that is several blocks, around each paragraph."""
        if before in self.marks:
            self.walk(node)
            return
        blocks, rest = _Writer(self.depth, self.marks | {before})._read_open(node)
        for block in blocks:
            if block.is_paragraph:
                self._line.append(f"{before}{block.text}{after}")
            self.end_line()
            self.blocks += [] if block.is_paragraph else [block]
        core = rest.strip(f" {_BREAK}")
        start = rest.index(core)
        self._line.append(f"{rest[:start]}{before}{core}{after}{rest[start + len(core) :]}" if core else rest)

    def _read_open(self, node: Element) -> tuple[list[_Block], str]:
        """Return the blocks that end within a node, and the paragraph that continues after it."""
        self.walk(node)
        return self.blocks, "".join(self._line)


def _write_breaks(found: re.Match[str]) -> str:
    """Return one `br` as a hard line break, several as the end of the paragraph."""
    return "  \n" if found[0].count(_BREAK) == 1 else "\n\n"


def _write_block(node: Element, tag: str, depth: int) -> _Block | None:
    """Return the block that an element makes by itself; `None` for other elements."""
    if tag in _HEADINGS:
        text = _join(_Writer(depth).read(node))
        return _Block(f"{_HEADINGS[tag]} {text}" if text else "")
    if tag in _LISTS:
        return _Block(_write_list(node, tag, depth + 1))
    if tag == "blockquote":
        blocks = _Writer(depth + 1).read(node)
        return _Block(_indent("\n\n".join(block.text for block in blocks), "> ", "> ", depth + 1) if blocks else "")
    if tag == "pre":
        return _Block(_write_fence(_read_raw(node)))
    if tag == "table":
        return _Block(_write_table(node, depth))
    return _Block("---") if tag == "hr" else None


def _write_list(node: Element, tag: str, depth: int) -> str:
    items: list[str] = []
    number = _read_start(node)
    is_loose = False
    for child in node.walk_elements():
        if child.tag in _LISTS:
            # A list directly in a list belongs to the item before it, as browsers show it.
            items.append(_indent(_write_list(child, child.tag, depth + 1), "  ", "  ", depth))
            continue
        blocks = _Writer(depth).read(child) if not _is_hidden(child) else []
        if not blocks:
            continue
        mark = f"{number}. " if tag == "ol" else "- "
        number += 1
        is_loose = is_loose or any(inner.tag == "p" for inner in child.walk_elements())
        parts = blocks[0].text + "".join(f"{_gap(block)}{block.text}" for block in blocks[1:])
        items.append(_indent(parts, mark, " " * len(mark), depth))
    return ("\n\n" if is_loose else "\n").join(item for item in items if item)


def _gap(block: _Block) -> str:
    return "\n\n" if block.is_paragraph or not block.text.startswith(("- ", "1. ")) else "\n"


def _write_table(node: Element, depth: int) -> str:
    rows = [[_write_cell(cell, depth) for cell in row.walk_elements() if cell.tag in _CELLS] for row in _rows(node)]
    rows = [row for row in rows if row]
    if not rows:
        return ""
    # Rows are padded to the width of the first one: a single wide row must not widen thousands of others.
    width = len(rows[0])
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    return "\n".join([lines[0], f"| {' | '.join(['---'] * width)} |", *lines[1:]])


def _rows(node: Element) -> Iterator[Element]:
    for child in node.walk_elements():
        if child.tag in _ROW_GROUPS:
            yield from _rows(child)
        elif child.tag == "tr" and not _is_hidden(child):
            yield child


def _write_cell(node: Element, depth: int) -> str:
    blocks = _Writer(depth).read(node) if not _is_hidden(node) else []
    lines = (line.strip() for block in blocks for line in block.text.split("\n"))
    return " ".join(_ITEM_START.sub("", line) for line in lines if line).replace("|", "\\|")


def _write_image(node: Element) -> str:
    source, text = node.attributes.get("src"), node.attributes.get("alt", "")
    folded = _escape_brackets(_TAG_START.sub("&lt;", _BLANKS.sub(" ", text)))
    return f"![{folded}]({_write_target(source)})" if source else ""


def _escape_brackets(text: str) -> str:
    return text.replace("[", "\\[").replace("]", "\\]")


def _write_target(target: str) -> str:
    bare = "%20".join(target.split()).replace("<", "%3C").replace(">", "%3E")
    return bare if _BALANCED.fullmatch(bare) else bare.replace("(", "%28").replace(")", "%29")


def _write_code(text: str) -> str:
    if not text.strip():
        return " "
    ticks = "`" * (1 + _longest_ticks(text) if "`" in text else 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{_BLANKS.sub(' ', text)}{pad}{ticks}"


def _write_fence(text: str) -> str:
    if not text.strip():
        return ""
    ticks = "`" * max(3, 1 + _longest_ticks(text))
    body = text.strip("\n")
    return f"{ticks}\n{body}\n{ticks}"


def _longest_ticks(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)


def _read_raw(node: Element) -> str:
    """Return the text of code, with its blanks."""
    parts: list[str] = []
    for child in node.children:
        if isinstance(child, str):
            parts.append(child)
        elif child.tag == "br":
            parts.append("\n")
        elif not _is_hidden(child):
            parts.append(_read_raw(child))
    return "".join(parts)


def _read_start(node: Element) -> int:
    start = node.attributes.get("start") or "1"
    return int(start) if re.fullmatch(r"\d{1,9}", start) else 1


def _join(blocks: list[_Block]) -> str:
    return " ".join(" ".join(block.text for block in blocks).split())


def _indent(text: str, first: str, more: str, depth: int) -> str:
    """Return the lines with one mark before the first and another before each of the rest, unless nested too deeply."""
    if depth > MOST_INDENTED:
        return text
    head, *lines = text.split("\n")
    return "\n".join([f"{first}{head}", *(f"{more}{line}" if line else more.rstrip() for line in lines)])


def _escape_start(line: str) -> str:
    if _BLOCK_START.match(line):
        return f"\\{line}"
    return _NUMBER_START.sub(r"\1\\\2", line, count=1) if line[:1].isdigit() and _NUMBER_START.match(line) else line


def _is_hidden(node: Element) -> bool:
    attributes = node.attributes
    return "hidden" in attributes or bool(_HIDDEN.search(attributes.get("style", "")))
