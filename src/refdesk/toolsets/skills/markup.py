"""Takes HTML off transcripts: help desks export messages, or whole conversations, the way a browser is to show them."""

from __future__ import annotations

from html import unescape

import nh3
import regex

_HTML = regex.compile(
    r"\s*<(?:!doctype\s+html|html|body|p|div|span|br|b|strong|em|font|table|ul|ol|h[1-6])(?:\s[^<>]*+)?/?>|.*?<br\s*+/?>",
    regex.IGNORECASE | regex.DOTALL,
)
"""A text that begins with a tag or breaks its lines by tags. In any other, tags are what it is about."""
_END_OF_LINE = regex.compile(r"(?=<(?:br|/p|/div|/li|/tr|/h[1-6]|/ul|/ol|/table)\b)", regex.IGNORECASE)
_HIDDEN = {"script", "style", "title"}


def take_off(text: str) -> str:
    """Return what a browser would show of a text in HTML, a line for each block; any other text as it is."""
    if _HTML.match(text) is None:
        return text
    shown = unescape(nh3.clean(_END_OF_LINE.sub("\n", text), tags=set(), clean_content_tags=_HIDDEN))
    return "\n".join(line.strip() for line in shown.splitlines() if line.strip())
