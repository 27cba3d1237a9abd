"""Converts foreign HTML to Markdown: `nh3` parses and cleans it, `markdown_writer` writes it.

For any input, the time is about linear in its size: elements nested deeper than any page needs are unwrapped first,
because they make parsers slow down or use unbounded memory.
"""

from __future__ import annotations

import re
from functools import lru_cache

import nh3

from refdesk.kit.html_tree import parse
from refdesk.kit.markdown_writer import write_markdown

MAX_CHARACTERS = 400_000
"""How many characters of HTML are read; the largest real description in a feed has 48,000."""

MAX_DEPTH = 100

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^<>]*>")
# Void elements, those that contain no elements, and those that a parser closes by itself: they do not nest.
_NOT_NESTING = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
) | {
    *("p", "li", "dt", "dd", "option", "tr", "td", "th", "thead", "tbody", "tfoot", "script", "style", "template"),
}
_PLAIN_TAG = re.compile(r"<(?=[a-zA-Z/!?])")
# Zero-width characters, soft hyphens, direction marks and tag characters: they hide text or split words.
_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
_WITHOUT_TARGET = re.compile(r"!\[[^\]\n]{0,500}\]\(<?>?\)|(?<!!)\[\s?\]\([^)\s]{0,2000}\)")
_TARGET = re.compile(
    r"!?\[((?:[^\[\]\\]|\\.){0,1000})\]\((?:<[^<>\n]{0,4000}>|[^()\s]{0,4000}(?:\([^()\s]{0,4000}\)[^()\s]{0,4000}){0,8})\)"
)
_ADDRESS = re.compile(r"<?https?://[^\s<>)\]]{1,4000}>?")
_REPEATED_TARGET = re.compile(r"\[(https?://[^\]\s]{1,1000})\]\(\1\)")

_TAGS = {
    *("h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "pre", "blockquote", "ul", "ol", "li", "dl", "dt", "dd"),
    *("table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td", "figure", "figcaption", "img", "a", "code"),
    *("b", "strong", "i", "em", "s", "del", "div", "span", "section", "article", "header", "footer", "aside", "main"),
}


@lru_cache(maxsize=16)
def _make_cleaner(base_url: str) -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=_TAGS,
        attributes={"*": {"style", "hidden"}, "a": {"href"}, "img": {"src", "alt"}, "ol": {"start"}},
        # What a browser would not show must stay recognisable as such; all other styles are removed.
        filter_style_properties={"display", "visibility"},
        url_schemes={"http", "https", "mailto", "tel"},
        url_relative=("rewrite_with_base", base_url),
        link_rel=None,
    )


def to_markdown(html: str, base_url: str) -> str:
    """Return the text of an HTML fragment as Markdown; empty if it has none.

    ATX headings, `-` bullets, fenced code and tables are kept. Link targets are absolute; a link without one becomes
    its text; images without an address are dropped. Removed are what a browser would hide, invisible characters,
    trailing blanks other than hard line breaks, repeated blank lines, and tags outside code. HTML beyond
    `MAX_CHARACTERS` is cut off, and the text then ends in `…`.

    Args:
        html: The fragment.
        base_url: What relative links are relative to.
    """
    kept = _flatten(html[:MAX_CHARACTERS])
    try:
        text = _convert(kept, base_url)
    except RecursionError:
        text = _to_text(kept)
    tidy = _tidy(text)
    return f"{tidy}\n\n…".lstrip() if len(html) > MAX_CHARACTERS else tidy


def drop_targets(markdown: str) -> str:
    """Return Markdown without the targets of links and images, which are addresses rather than words of the text."""
    return _ADDRESS.sub("", _TARGET.sub(r"\1", markdown))


def to_line(text: str) -> str:
    """Return plain text on one line, without invisible characters and with runs of blanks collapsed."""
    return " ".join(_INVISIBLE.sub("", text).split())


def _convert(html: str, base_url: str) -> str:
    markdown = write_markdown(_INVISIBLE.sub("", _make_cleaner(base_url).clean(html)))
    if len(markdown) > 2 * MAX_CHARACTERS:
        return _to_text(html)
    return _REPEATED_TARGET.sub(r"\1", _WITHOUT_TARGET.sub("", markdown))


def _to_text(html: str) -> str:
    text = "\n".join(parse(nh3.clean(html, tags=_TAGS, attributes={}, link_rel=None)).read_texts())
    return _PLAIN_TAG.sub("&lt;", _INVISIBLE.sub("", text))


def _flatten(html: str) -> str:
    """Return the HTML without the tags that nest deeper than `MAX_DEPTH`; their content stays."""
    if html.count("<") <= MAX_DEPTH:
        return html
    depth = 0

    def keep(tag: re.Match[str]) -> str:
        nonlocal depth
        if tag[2].lower() in _NOT_NESTING:
            return tag[0]
        inner = depth if tag[1] else depth + 1
        depth = max(0, depth + (-1 if tag[1] else 1))
        return tag[0] if inner <= MAX_DEPTH else ""

    return _TAG.sub(keep, html)


def _tidy(markdown: str) -> str:
    lines: list[str] = []
    for line in markdown.split("\n"):
        bare = line.rstrip()
        if bare or (lines and lines[-1]):
            lines.append(f"{bare}  " if bare and line.endswith("  ") else bare)
    followed = zip(lines, [*lines[1:], ""], strict=False)
    return "\n".join(line if after else line.rstrip() for line, after in followed).strip()
