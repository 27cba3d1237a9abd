from __future__ import annotations

import random
import re

import pytest

from refdesk.toolsets.salesforce_knowledge.markup import MAX_DEPTH, simplify
from refdesk.toolsets.salesforce_knowledge.plain_text import MAX_CHARACTERS, tidy, to_plain_text


def test_paragraphs_headings_and_line_breaks_keep_their_places() -> None:
    html = "<h2>Reset &amp; go</h2><p>First&nbsp;do\n <b>this</b><br/>then that.</p><div>One</div><div>Two</div>"
    assert to_plain_text(html) == "Reset & go\n\nFirst do this\nthen that.\n\nOne\nTwo"


def test_lists_keep_marks_numbers_and_depth() -> None:
    html = "<ol start=3><li>Open<ul><li>a</li><li><p>b</p><p>more</p></li></ul></li><li>Close</li></ol>after"
    assert to_plain_text(html) == "3. Open\n  - a\n  - b\n    more\n4. Close\n\nafter"


def test_tables_keep_their_cells_apart() -> None:
    html = (
        "<table><thead><tr><th>Code</th><th>Meaning</th></tr></thead><tbody>"
        "<tr><td><p>E1</p></td><td>bad<br>line<ul><li>x</li></ul></td></tr></tbody></table>"
    )
    assert to_plain_text(html) == "Code | Meaning\nE1 | bad line - x"


def test_links_show_their_address_once_and_images_what_they_show() -> None:
    html = (
        '<p><a href="https://help.example/a?x=1&amp;y=2">the page</a>, '
        '<a href="https://b.example">https://b.example</a>, '
        "<a href='mailto:it@c.example'>it@c.example</a>, <a href='javascript:evil()'>click</a>, "
        '<a href="/relative">here</a> <img alt="A &quot;dialog&quot;" src="data:image/png;base64,xyz"><img src=x></p>'
    )
    assert to_plain_text(html) == (
        'the page (https://help.example/a?x=1&y=2), https://b.example, it@c.example, click, here [A "dialog"][image]'
    )


def test_what_is_embedded_leaves_a_mark_with_its_address() -> None:
    html = (
        '<p>Look:</p><iframe width=560 src="//www.youtube.com/embed/x_y-z?a=1&amp;b=2" allowfullscreen></iframe>'
        '<video controls src="https://cdn.example/how.mp4">Your browser is too old</video><audio></audio>'
        '<iframe src="https://maps.example/place"></iframe><object data="javascript:evil()">old</object>'
        '<iframe style="display:none" src="https://tracker.example"></iframe><embed src="https://a.example/x.swf">'
        '<p><img src="/servlet/rtaImage?eid=ka0" alt=""></p>'
    )
    assert to_plain_text(html).split("\n\n") == [
        "Look:",
        "[video: https://www.youtube.com/embed/x_y-z?a=1&b=2] [video: https://cdn.example/how.mp4] [audio]"
        " [embedded: https://maps.example/place] [embedded] [embedded: https://a.example/x.swf]",
        "[image]",
    ]


def test_preformatted_text_keeps_its_lines_and_blanks() -> None:
    assert to_plain_text("<pre>if x:\n    run()</pre>") == "if x:\n    run()"


@pytest.mark.parametrize(
    "html",
    [
        *("<script>evil()</script>", "<style>p{}</style>", "<SCRIPT src=x>evil()</SCRIPT >", "<!-- evil() -->"),
        *('<span style="Display : none">evil()</span>', "<b hidden>evil()</b>", "<template>evil()</template>"),
        *("<svg><text>evil()</text></svg>", "<textarea>evil()</textarea>", "<select><option>evil()</select>"),
        *("<script>if (a</script", "<p style='visibility:hidden'>x<i>evil()</i></p>".replace("p", "div")),
        *(
            "<iframe>evil()</iframe>",
            "<title>evil()</title>",
            "<object>evil()</object>",
            "<!doctype evil()>",
            "<?evil()?>",
        ),
    ],
)
def test_what_a_browser_does_not_show_is_gone(html: str) -> None:
    text = to_plain_text(f"<p>before</p>{html}")
    assert text.startswith("before")
    assert "evil" not in text


def test_invisible_characters_and_controls_are_gone() -> None:
    assert to_plain_text("<p>pass\u200bword\U000e0041 \u202eabc\u202c&#x7;\u00ad</p>") == "password abc"


def test_text_that_looks_like_markup_stays_text() -> None:
    assert to_plain_text("<p>if a &lt; b and 3 < 4, write &lt;b&gt;</p>") == "if a < b and 3 < 4, write <b>"


@pytest.mark.parametrize("html", ["", "   ", "<p></p>", "<br><br>", "<p>&nbsp;</p>", "<", "<p", "<!--"])
def test_html_without_text_has_none(html: str) -> None:
    assert to_plain_text(html).strip("<") == ""


def test_overlong_html_is_cut_and_says_so() -> None:
    text = to_plain_text("<p>a</p>" * (MAX_CHARACTERS // 8 + 1))
    assert text.endswith("\n…")


def test_tidy_text_has_no_blank_ends_and_no_two_empty_lines() -> None:
    assert tidy("\r\n a  \r\n\r\n\r\n\r\nb\x00\xa0c \n") == " a\n\nb c"


ABYSSES = {
    "divs": "<div>",
    "lists": "<ul><li>",
    "formatting with attributes": "<b id=1>x<p>",
    "tables": "<table><tr><td>",
    "links": '<a href="https://a.example">',
    "quotes that hide tags": '<div x="<">',
    "quotes out of place": '<div ="<b id=1>">',
    "ends that end nothing": "<div></span>",
    "unfinished tags": "<a ",
    "unfinished quotes": '<a b="',
    "unfinished comments": "<!--",
    "unfinished scripts": "<script>",
    "declarations": "<![CDATA[",
    "selects": "<select><option>",
    "svg": "<svg><foreignObject>",
}


@pytest.mark.parametrize("name", ABYSSES)
def test_hostile_markup_is_read_in_time_and_nests_no_deeper_than_allowed(name: str) -> None:
    html = ABYSSES[name] * (MAX_CHARACTERS // len(ABYSSES[name])) + "end"
    simple = simplify(html)
    depth = deepest = 0
    for end in re.findall(r"<(/?)(?:a|ul|ol|table|pre|blockquote|dl|div|span|caption)\b", simple):
        depth += -1 if end else 1
        deepest = max(deepest, depth)
    assert deepest <= MAX_DEPTH
    assert len(simple) <= 4 * len(html)
    # A tree builder left to itself takes from twenty seconds to minutes for these, which is past a test's time.
    to_plain_text(html)


def test_random_markup_never_raises_and_leaves_no_control_character() -> None:
    chance = random.Random(7)
    pieces = [
        *ABYSSES.values(),
        *"<>/='\"& \n",
        "</p>",
        "</div>",
        "</li>",
        "</table>",
        "<pre>",
        "text",
        "&amp",
        "&#0;",
        "\x00",
    ]
    for _ in range(2000):
        text = to_plain_text("".join(chance.choices(pieces, k=30)))
        assert not re.search(r"[\x00-\x08\x0b-\x1f]", text)
        assert "\n\n\n" not in text
