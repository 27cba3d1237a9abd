"""The tree of HTML that `nh3` has cleaned.

The output of `nh3` has gone through a complete HTML parser and has one normal form: every element is closed, every
attribute is quoted, no comment is left. So a pattern reads it exactly, in linear time, and no second parser is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape

# HTML, "Serialising HTML fragments": the value of an attribute may contain anything but an unescaped quote.
_TAG = re.compile(r'<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\s+[^\s=>"]+="[^"]*")*)\s*>')
_ATTRIBUTE = re.compile(r'([^\s=>"]+)="([^"]*)"')
_VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})


@dataclass(slots=True, eq=False)
class Element:
    """An element and its content in order: unescaped texts, and elements; `tag` is in lower case."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict[str, str])
    children: list[Element | str] = field(default_factory=list["Element | str"])

    def walk_elements(self) -> Iterator[Element]:
        """Yield the elements directly in this one."""
        return (child for child in self.children if not isinstance(child, str))

    def read_texts(self) -> Iterator[str]:
        """Yield all texts in this element in order, at any depth."""
        left = [iter(self.children)]
        while left:
            child = next(left[-1], None)
            if child is None:
                left.pop()
            elif isinstance(child, str):
                yield child
            else:
                left.append(iter(child.children))


def parse(clean: str) -> Element:
    """Return an element that holds the content of clean HTML.

    Args:
        clean: HTML written by `nh3`.
    """
    root = Element("body")
    open_elements, position = [root], 0
    for tag in _TAG.finditer(clean):
        if tag.start() > position:
            open_elements[-1].children.append(unescape(clean[position : tag.start()]))
        position = tag.end()
        name = tag[2].lower()
        if not tag[1]:
            element = Element(name, {key: unescape(value) for key, value in _ATTRIBUTE.findall(tag[3])})
            open_elements[-1].children.append(element)
            if name not in _VOID:
                open_elements.append(element)
        elif len(open_elements) > 1:
            open_elements.pop()
    if position < len(clean):
        open_elements[-1].children.append(unescape(clean[position:]))
    return root
