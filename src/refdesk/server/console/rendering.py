"""Templates, and how values are shown in them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import nh3
from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.responses import HTMLResponse

from refdesk import __version__
from refdesk.core.sanitizer import clean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markdown_it.token import Token

TAGS = {
    *("a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"),
    *("strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
"""What text may become. Pictures are not among it: to fetch one tells its host who reads what, and when."""


def render(template: str, values: Mapping[str, Any], status: int = 200) -> HTMLResponse:
    """Return a page."""
    shown = _environment().get_template(template).render({"version": __version__, **values})
    return HTMLResponse(shown, status, headers={"cache-control": "no-store"})


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("refdesk.server.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "is_public": is_public,
        "markdown": show_markdown,
        "moment": show_moment,
        "plain": clean,
        "query": make_query,
        "words": show_words,
    }
    return environment


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])


def show_markdown(text: str, below: int = 1) -> Markup:
    """Return Markdown as HTML that can do nothing but be read.

    Args:
        text: Markdown.
        below: The level of the heading that it comes under; its own follow without a gap.
    """
    renderer = _markdown()
    tokens = renderer.parse(clean(text))
    _lower_headings(tokens, below)
    shown = nh3.clean(
        renderer.renderer.render(tokens, renderer.options, {}),
        tags=TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(shown)


def _lower_headings(tokens: Sequence[Token], below: int) -> None:
    open_levels: list[int] = []
    for token in tokens:
        if token.type == "heading_open":
            level = int(token.tag[1:])
            while open_levels and open_levels[-1] >= level:
                open_levels.pop()
            open_levels.append(level)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, below + len(open_levels))}"


def make_query(values: Mapping[str, object]) -> str:
    """Return values as the query of an address."""
    return urlencode(values, doseq=True)


def show_moment(value: object) -> str:
    """Return an instant as people read it, to the minute in UTC; anything else as it is."""
    try:
        instant = datetime.fromisoformat(str(value))
    except ValueError:
        return str(value)
    if instant.tzinfo is None:
        return str(value)
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def show_words(name: str) -> str:
    """Return the name of a field as words: `createdAt` and `created_at` as `created at`."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).replace("_", " ").strip()


def is_public(address: object) -> bool:
    """Return whether an address is a page that a browser may be sent to."""
    return isinstance(address, str) and urlsplit(address).scheme in ("http", "https")
