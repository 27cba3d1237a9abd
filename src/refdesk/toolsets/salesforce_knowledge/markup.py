"""Reduces HTML to a few tags, well nested and shallow, so that hostile input is parsed in linear time and memory.

Tree builders take quadratic time for thousands of nested elements, and copy every open formatting element for each new
paragraph: a hostile page of a few kilobytes can exhaust a machine. This module writes every tag itself, so nothing can
be nested more deeply than it allows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_DEPTH = 64

VOID = frozenset({"br", "hr", "img"})
_CLOSED_BY_OTHERS = frozenset({"p", "li", "dt", "dd", "tr", "td", "th"})
_NESTING = frozenset({"a", "ul", "ol", "table", "pre", "blockquote", "dl", "div", "span", "caption"})
_SAME = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6", "figure"), "blockquote"),
    **dict.fromkeys(("section", "article", "header", "footer", "aside", "main", "nav", "address", "center"), "div"),
    **dict.fromkeys(("form", "fieldset", "legend", "figcaption", "details", "summary", "option"), "div"),
    **dict.fromkeys(("menu", "dir"), "ul"),
}
_NOT_SHOWN = frozenset(
    {"head", "template", "svg", "math", "object", "canvas", "audio", "video", "select", "datalist", "applet"}
)
_RAW = frozenset({"script", "style", "title", "textarea", "iframe", "noscript", "noembed", "noframes", "xmp"})
_RAW_END = {name: re.compile(f"</{name}[^>]*+>", re.IGNORECASE) for name in _RAW}
_DROPPED = frozenset(
    {"html", "body", "thead", "tbody", "tfoot", "col", "colgroup", "meta", "link", "input", "wbr", "embed"}
)

# HTML, "Tokenization": quotes count only after an equals sign. Possessive, so that it never looks back.
_TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]*+)((?:[^>=]|=\s*+"[^"]*+"|=\s*+'[^']*+'|=(?!\s*+["']))*+)>""")
_ATTRIBUTE = re.compile(r"""([a-zA-Z-]++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'>]++))?""")
_EMBEDDED = {"iframe": "embedded", "embed": "embedded", "object": "embedded", "video": "video", "audio": "audio"}
_VIDEO_HOSTS = re.compile(
    r"https://(?:[\w-]+\.)*(?:youtube(?:-nocookie)?\.com|youtu\.be|vimeo\.com|wistia\.(?:com|net)|vidyard\.com"
    r"|brightcove\.(?:com|net)|loom\.com|dailymotion\.com)/",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https?://[^\s<>\"']{1,2000}", re.IGNORECASE)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)", re.IGNORECASE)
_KEPT = {"a": "href", "img": "alt", "ol": "start"}


def simplify(html: str) -> str:
    """Return the same content in the tags p, div, span, blockquote, pre, a, br, hr, img, lists and tables.

    Elements that a browser does not show are removed or get `hidden`; of other attributes, only the targets of links,
    alternative texts and the starts of lists are kept. Content nested deeper than `MAX_DEPTH` is kept without its tags.
    """
    return _Writer().rewrite(html)


@dataclass(slots=True)
class _Writer:
    _parts: list[str] = field(default_factory=list[str])
    _open: list[str] = field(default_factory=list[str])
    _dropped: int = 0

    def rewrite(self, html: str) -> str:
        """Return the whole, rewritten."""
        position = 0
        while (start := html.find("<", position)) >= 0:
            self._parts.append(html[position:start])
            position = self._read(html, start)
        self._parts.append(html[position:])
        self._close(0)
        return "".join(self._parts)

    def _read(self, html: str, start: int) -> int:
        """Write what begins at `start` and return where to continue; an unfinished tag ends everything."""
        tag = _TAG.match(html, start)
        if tag is not None:
            name = tag[2].lower()
            if name in _EMBEDDED and not tag[1]:
                self._parts.append(_mark_embedded(name, tag[3]))
            if name in _RAW and not tag[1]:
                end = _RAW_END[name].search(html, tag.end())
                return end.end() if end else len(html)
            self._write(name, tag[3], is_end=bool(tag[1]))
            return tag.end()
        if html.startswith("<!--", start):
            return _find_end(html, "-->", start + 2)
        if html.startswith(("<!", "<?", "</"), start):
            return _find_end(html, ">", start)
        if html[start + 1 : start + 2].isascii() and html[start + 1 : start + 2].isalpha():
            return len(html)
        self._parts.append("&lt;")
        return start + 1

    def _write(self, name: str, attributes: str, *, is_end: bool) -> None:
        is_unseen = name in _NOT_SHOWN
        kept = _SAME.get(name, "div" if is_unseen else name)
        if name in _RAW or name in _DROPPED:
            return
        if kept in VOID or kept in _CLOSED_BY_OTHERS:
            if not (is_end and kept in VOID):
                self._parts.append(f"</{kept}>" if is_end else _render(kept, attributes, is_hidden=False))
            return
        kept = kept if kept in _NESTING else "span"
        if is_end:
            self._end(kept)
        else:
            self._begin(kept, _render(kept, attributes, is_hidden=is_unseen))

    def _begin(self, name: str, text: str) -> None:
        if name == "a":
            self._end(name)
        if len(self._open) >= MAX_DEPTH:
            self._dropped += 1
            return
        self._open.append(name)
        self._parts.append(text)

    def _end(self, name: str) -> None:
        if self._dropped:
            self._dropped -= 1
        elif name in self._open:
            self._close(len(self._open) - 1 - self._open[::-1].index(name))

    def _close(self, depth: int) -> None:
        while len(self._open) > depth:
            self._parts.append(f"</{self._open.pop()}>")


def _mark_embedded(name: str, attributes: str) -> str:
    """Return the mark for an embedded video or page: what it is, with its address if that is a valid one."""
    found = {key.lower(): value.strip("\"'") for key, value in _ATTRIBUTE.findall(attributes)}
    if "hidden" in found or _HIDDEN.search(found.get("style", "")):
        return ""
    source = (found.get("src") or found.get("data") or "").strip()
    address = f"https:{source}" if source.startswith("//") else source
    if not _ADDRESS.fullmatch(address):
        address = ""
    kind = "video" if _VIDEO_HOSTS.match(address) else _EMBEDDED[name]
    return f" [{kind}: {address}] " if address else f" [{kind}] "


def _find_end(html: str, mark: str, start: int) -> int:
    """Return the end of the next occurrence of a mark, or the end of the text if there is none."""
    found = html.find(mark, start)
    return len(html) if found < 0 else found + len(mark)


def _render(name: str, attributes: str, *, is_hidden: bool) -> str:
    if not attributes:
        return f"<{name} hidden>" if is_hidden else f"<{name}>"
    found = {key.lower(): value for key, value in _ATTRIBUTE.findall(attributes)}
    style = found.get("style", "")
    text = f"<{name} hidden" if is_hidden or "hidden" in found or _HIDDEN.search(style) else f"<{name}"
    value = found.get(_KEPT.get(name, ""), "").strip("\"'").replace('"', "&quot;")
    return f'{text} {_KEPT[name]}="{value}">' if value else f"{text}>"
