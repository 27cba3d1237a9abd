"""Templates, and how values are shown in them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode, urlsplit

import nh3
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from refdesk import __version__
from refdesk.core.sanitizer import drop_unseen
from refdesk.server.console.arranging import break_lines, strip_head
from refdesk.server.console.cautions import split_caution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from markdown_it.token import Token

TAGS = {
    *("a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"),
    *("strong", "table", "tbody", "td", "th", "thead", "tr", "ul", "div"),
}
"""What Markdown may become. Pictures are excluded: fetching one tells its host who reads what, and when."""

SCROLLED = {"pre": {"tabindex": "0"}, "div": {"tabindex": "0", "class": "wide", "role": "group", "aria-label": "Table"}}
"""What may be wider than a page scrolls by itself, even by keyboard; the only `div` in a text are those of tables."""

_SIGNS = re.compile(r"\*\*|`|(?:^|(?<=\s))#{1,6}(?=\s)")
_WORD = re.compile(r"\w+")
LEAST_MARKED, LEAST_STEM = 3, 4
"""Fewest characters of a question's word that is marked, and of a word that is marked as the beginning of one."""

_MONTH = 31 * 86_400
"""In seconds."""


_ADDRESS = re.compile(r'(?<=\s)(href|src|action)="((?:\{\{.*?\}\}|\{%.*?%\}|[^"])*)"')
"""An attribute of a template with an address in it, which expressions may be part of."""


class _Prefixing(Extension):
    """Makes every address in a template one that `prefixed` is applied to, so that no template can forget it."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return the template with that."""
        return _ADDRESS.sub(r'\1="{% filter prefixed %}\2{% endfilter %}"', source)


def render(template: str, values: Mapping[str, Any], status: int = 200, prefix: str = "") -> HTMLResponse:
    """Return a page, whose links lead below a path prefix."""
    shown = _environment(prefix).get_template(template).render({"version": __version__, **values})
    return HTMLResponse(shown, status, headers={"cache-control": "no-store"})


@cache
def _environment(prefix: str) -> Environment:
    environment = Environment(
        loader=PackageLoader("refdesk.server.console"),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=[_Prefixing],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., object]] = {
        "age": show_age,
        "cautions": split_caution,
        "day": show_day,
        "is_public": is_public,
        "brief": show_brief,
        "markdown": show_markdown,
        "marked": mark_words,
        "moment": show_moment,
        "plain": drop_unseen,
        "playbook": show_playbook,
        "prefixed": partial(add_prefix, prefix),
        "query": make_query,
        "words": show_words,
    }
    cast("dict[str, object]", environment.filters).update(filters)
    cast("dict[str, object]", environment.globals)["parts"] = environment.get_template("parts.html").module
    return environment


@cache
def _markdown() -> MarkdownIt:
    renderer = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    renderer.add_render_rule("image", _link_image)
    renderer.add_render_rule("table_open", lambda *_: Markup("<div><table>"))
    renderer.add_render_rule("table_close", lambda *_: Markup("</table></div>"))
    return renderer


def _link_image(_: object, tokens: Sequence[Token], place: int, *_rest: object) -> str:
    token = tokens[place]
    return Markup('<a href="{}">{}</a>').format(token.attrGet("src") or "", token.content or "picture")


def show_markdown(text: str, below: int = 1) -> Markup:
    """Return Markdown as HTML that can do nothing but be read.

    Args:
        text: Markdown.
        below: The level of the heading that it comes under; its own headings follow without skipping a level.
    """
    renderer = _markdown()
    tokens = renderer.parse(drop_unseen(text))
    _lower_headings(tokens, below)
    shown = nh3.clean(
        renderer.renderer.render(tokens, renderer.options, {}),
        tags=TAGS,
        attributes={"a": {"href"}},
        set_tag_attribute_values=SCROLLED,
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


def show_brief(text: str) -> str:
    """Return Markdown as plain text for a snippet: without the signs that only mark bold text, code or headings."""
    return _SIGNS.sub("", drop_unseen(text))


def show_playbook(resolution: str) -> str:
    """Return a playbook as Markdown for its page."""
    return break_lines(strip_head(resolution))


def mark_words(text: str, question: str) -> Markup:
    """Return text with the words of a question, and words that begin with one, marked: they show why it was found."""
    words = {word.casefold() for word in _WORD.findall(question) if len(word) >= LEAST_MARKED}
    return Markup("").join(_mark_parts(text, words))


def _mark_parts(text: str, words: set[str]) -> Iterator[Markup]:
    place = 0
    for found in _WORD.finditer(text):
        yield escape(text[place : found.start()])
        yield _mark(found[0], words)
        place = found.end()
    yield escape(text[place:])


def _mark(part: str, words: set[str]) -> Markup:
    folded = part.casefold()
    is_meant = any(folded.startswith(word) or (len(folded) >= LEAST_STEM and word.startswith(folded)) for word in words)
    return Markup("<mark>{}</mark>").format(part) if is_meant else escape(part)


def add_prefix(prefix: str, address: str) -> str:
    """Return an address with the path prefix if it is one of this server; others are left as they are."""
    is_own = address.startswith("/") and not address.startswith("//")
    return Markup(prefix) + address if is_own else address


def make_query(values: Mapping[str, object]) -> str:
    """Return values as the query of an address."""
    return urlencode(values, doseq=True)


def show_moment(value: object) -> str:
    """Return an instant as people read it, to the minute in UTC; return anything else as it is."""
    try:
        instant = datetime.fromisoformat(str(value))
    except ValueError:
        return str(value)
    if instant.tzinfo is None:
        return str(value)
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def show_day(value: object) -> str:
    """Return the day of an instant in UTC, such as `3 Mar 2026`; return anything else as it is."""
    try:
        instant = datetime.fromisoformat(str(value))
    except ValueError:
        return str(value)
    if instant.tzinfo is not None:
        instant = instant.astimezone(UTC)
    return f"{instant.day} {instant:%b %Y}"


def show_age(value: object, now: datetime) -> str:
    """Return how long ago an instant was, in words for lists; beyond a month, its day."""
    try:
        instant = datetime.fromisoformat(str(value))
    except ValueError:
        return str(value)
    seconds = (now - (instant if instant.tzinfo else instant.replace(tzinfo=UTC))).total_seconds()
    if not 0 <= seconds < _MONTH:
        return show_day(value)
    for unit, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= unit:
            count = int(seconds // unit)
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"


def show_words(name: str) -> str:
    """Return the name of a field as words: `createdAt` and `created_at` as `created at`."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).replace("_", " ").strip()


def is_public(address: object) -> bool:
    """Return whether an address is a page that a browser may be sent to."""
    return isinstance(address, str) and urlsplit(address).scheme in ("http", "https")
