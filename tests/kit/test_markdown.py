from __future__ import annotations

import re
import time
from functools import partial

import pytest

from refdesk.kit import markdown as kit
from refdesk.kit.markdown import MAX_CHARACTERS, to_line

to_markdown = partial(kit.to_markdown, base_url="https://azure.microsoft.com")


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("", ""),
        ("<p>&nbsp;</p><div><br></div>", ""),
        ("plain", "plain"),
        ("<h2>Dates <b>now</b></h2><p>para</p>", "## Dates **now**\n\npara"),
        ("<ul><li>a</li><li>b</li></ul>", "- a\n- b"),
        ("<ol start=3><li>x<li>y</ol>", "3. x\n4. y"),
        ("<b>bold </b>and <i>italic</i>", "**bold** and *italic*"),
        ("<pre>a\n  b &lt; c\n</pre>", "```\na\n  b < c\n```"),
        ("run <code>az &lt;name&gt;</code>", "run `az <name>`"),
        (
            "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>",
            "| A | B |\n| --- | --- |\n| 1 | 2 |",
        ),
        ("a<br>b", "a  \nb"),
        ("a<br><br><br><br>b", "a\n\nb"),
        ("<p>a  \n b&nbsp;&nbsp;c</p>", "a b c"),
        ("<div>a</div><div>b</div>", "a\n\nb"),
        ("<section>a</section><section>b</section>", "a\n\nb"),
        ("<span style='font-size:12pt'>a</span><span>b</span>", "ab"),
        ("A\u200bzure\ufeff \u00adkeys\u202e", "Azure keys"),
        ("<ul><li>a<ol><li>b<li>c</ol><li>d</ul>", "- a\n  1. b\n  2. c\n- d"),
        ("<ul><li>a</li><ul><li>b</li></ul><li>c</li></ul>", "- a\n  - b\n- c"),
        ("<ul><li><p>a</p><li><p>b</p></ul>", "- a\n\n- b"),
        ("<ol><li><p>x</p><p>y</p><li>z</ol>", "1. x\n\n   y\n\n2. z"),
        ("<ul><li> <b>a</b><br></li></ul>", "- **a**"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
        ("<b>a<p>b</p><ul><li>c</ul>d</b>", "**a**\n\n**b**\n\n- c\n\n**d**"),
        ("<b>a <strong>b</strong> <i>c</i></b>", "**a b *c***"),
        ("<h1>a<br>b</h1><hr><s>c</s>", "# a b\n\n---\n\n~~c~~"),
        ("<dl><dt>t<dd>d</dl>", "t\n\nd"),
        ("<code>a`b</code>", "``a`b``"),
        ("<pre>```\nx</pre>", "````\n```\nx\n````"),
        (
            "<table><tbody><tr><td>a|b<br>c</td><td><ul><li>x<li>y</ul></td></tr><tr><td>z</table>",
            "| a\\|b c | x y |\n| --- | --- |\n| z |  |",
        ),
    ],
)
def test_html_becomes_markdown(html: str, markdown: str) -> None:
    assert to_markdown(html) == markdown


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ('<a href="https://aka.ms/x">Learn more</a>', "[Learn more](https://aka.ms/x)"),
        ('<a href="/pricing?a=1&amp;b=2">prices</a>', "[prices](https://azure.microsoft.com/pricing?a=1&b=2)"),
        ('<a href="//aka.ms/x">x</a>', "[x](https://aka.ms/x)"),
        ('<a href="mailto:a@b.example">mail</a>', "[mail](mailto:a@b.example)"),
        ('<a href="tel:+123">call</a>', "[call](tel:+123)"),
        ("<a>nowhere</a>", "nowhere"),
        ('<a href="javascript:alert(1)">click</a>', "click"),
        ('<a href="data:text/html,x">click</a>', "click"),
        ('<a href="https://aka.ms/x"></a>end', "end"),
        ('<a href="https://aka.ms/x">https://aka.ms/x</a>', "https://aka.ms/x"),
        ('see <img src="data:image/png;base64,AAAA" alt="chart"> here', "see here"),
        ('<img src="/chart.png" alt="chart">', "![chart](https://azure.microsoft.com/chart.png)"),
    ],
)
def test_links_are_absolute_and_images_have_an_address(html: str, markdown: str) -> None:
    assert " ".join(to_markdown(html).split()) == markdown


@pytest.mark.parametrize("text", ["# x", "- x", "+ x", "* x", "1. x", "12) x", "> x", "---", "~~~", "```"])
def test_a_paragraph_stays_one_whatever_it_begins_with(text: str) -> None:
    escaped = re.sub(r"^(\d*)", r"\1" + r"\\", text)
    assert to_markdown(f"<p>{text}</p>") == escaped
    assert to_markdown(f"<p>a<br>{text}</p>") == f"a  \n{escaped}"


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ('<a href="https://x.test/a(b)">c</a>', "[c](https://x.test/a(b))"),
        ('<a href="https://x.test/a)">c</a>', "[c](https://x.test/a%29)"),
        ('<a href="https://x.test/a b">c</a>', "[c](https://x.test/a%20b)"),
        ('<a href="https://x.test/">a]b[c</a>', "[a\\]b\\[c](https://x.test/)"),
        (
            '<img src="https://x.test/i.png" alt="a](http://evil.test)">',
            "![a\\](http://evil.test)](https://x.test/i.png)",
        ),
    ],
)
def test_a_link_goes_where_it_went(html: str, markdown: str) -> None:
    assert to_markdown(html) == markdown


@pytest.mark.parametrize(
    "html",
    [
        "<script>alert('gone')</script>shown",
        "<style>p { color: gone }</style>shown",
        "<!-- gone -->shown",
        '<div style="color:red; display:none">gone</div>shown',
        '<span style="visibility: hidden">gone</span>shown',
        "<p hidden>gone</p>shown",
        "<template>gone</template>shown",
        "<b>" * 500 + "<script>gone</script><style>gone</style>shown",
    ],
)
def test_what_a_browser_hides_is_gone(html: str) -> None:
    assert to_markdown(html).strip("*") == "shown"


@pytest.mark.parametrize(
    "html",
    ["&lt;script&gt;x&lt;/script&gt;", "a &lt;b&gt; &amp;lt;i&gt;", "<b>" * 500 + "&lt;div&gt;", "&lt;!-- x --&gt;"],
)
def test_a_tag_that_was_text_stays_text(html: str) -> None:
    assert not re.search(r"<[a-zA-Z/!]", to_markdown(html))


def test_angle_brackets_that_are_no_tag_stay() -> None:
    assert to_markdown("1 &lt; 2 and 3 > 2") == "1 < 2 and 3 > 2"


HOSTILE = {
    "a flood of unclosed tags": "<div" * 50_000,
    "deep formatting": "<b>" * 20_000 + "x" + "</b>" * 20_000,
    "deep divisions": "<div>" * 20_000 + "x",
    "deep lists": "<ul><li>" * 500 + "x" + "</li></ul>" * 500,
    "deeper lists": "<ul><li>x" * 20_000,
    "quotes in quotes": "<blockquote>x" * 5000,
    "quotes around many lines": "<blockquote>" * 99 + "x<br>" * 30_000,
    "tables in tables": "<table><tr><td>x" * 1000,
    "many paragraphs": "<p>x" * 40_000,
    "many links": '<a href="http://x">y</a>' * 8000,
    "many brackets": "[http://" * 20_000,
    "blanks": " " * 200_000 + "x",
    "stars": "*" * 200_000,
    "fences": "<pre>" + "`" * 100_000 + "</pre>",
    "templates": "<template>" * 20_000,
    "unclosed formatting": "<p><b><i><a href=x>" * 10_000,
    "cells": "<td>" * 50_000,
    "menus": "<select><option>" * 10_000,
    "drawings": "<svg><a>" * 20_000,
    "code in code": "<code>" * 99 + "<code></code>" * 10_000,
}


@pytest.mark.parametrize("html", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_html_takes_little_time_and_gives_bounded_text(html: str) -> None:
    start = time.process_time()
    text = to_markdown(html)
    assert time.process_time() - start < 5
    assert len(text) <= 2 * MAX_CHARACTERS


def test_html_beyond_the_bound_is_cut_visibly() -> None:
    text = to_markdown("<p>word </p>" * 100_000)
    assert text.endswith("\n\n…")
    assert len(text) < MAX_CHARACTERS


def test_a_title_is_one_line_without_invisible_characters() -> None:
    assert to_line(" Public\u200b  Preview:\n Thing\u00a0two ") == "Public Preview: Thing two"
