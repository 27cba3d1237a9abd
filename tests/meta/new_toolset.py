"""A new toolset, made from the how-to's example: `make new-toolset NAME=our-news`."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
GUIDE = Path("docs", "how-to", "add-a-toolset.md")

_BLOCK = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

LAST_ROW = "| all of them at once |"
ROW = "| `our-news` | what the company announced, from its news feed | `search_our_news` |\n"

TEST = '''"""our-news is a toolset like the others; what is its own is tested here."""

from __future__ import annotations

from refdesk.discovery import find_descriptor
from refdesk.toolsets.our_news import TOOLSET_NAME
from refdesk.toolsets.our_news.records import to_document
from refdesk.toolsets.our_news.source import parse_feed

FEED = b"""<rss><channel><item><guid>n1</guid><title>New office</title><link>https://example.com/n1</link>
<description>We &lt;b&gt;moved&lt;/b&gt;.</description><pubDate>Mon, 02 Mar 2026 09:00:00 GMT</pubDate>
</item></channel></rss>"""


def test_the_toolset_is_found() -> None:
    assert find_descriptor(TOOLSET_NAME) is not None


def test_an_entry_becomes_a_document() -> None:
    [record] = parse_feed(FEED)
    document = to_document(record)
    assert (document.id, document.title, document.body) == ("n1", "New office", "We **moved**.")
    assert document.modified_at.isoformat() == "2026-03-02T09:00:00+00:00"
'''


def read_example(name: str = "our-news", guide: Path = REPOSITORY / GUIDE) -> Mapping[str, str]:
    """Return the files of the example's folder under a name in kebab case."""
    return {file: rename(text, name) for file, text in _BLOCK.findall(guide.read_text("utf-8"))}


def rename(text: str, name: str) -> str:
    """Return a text about the example as one about a toolset of this name."""
    snake, words = name.replace("-", "_"), name.replace("-", " ")
    pascal = words.title().replace(" ", "")
    for old, new in (("our-news", name), ("our_news", snake), ("OUR_NEWS", snake.upper()), ("OurNews", pascal)):
        text = text.replace(old, new)
    return text.replace("our news", words)


def write_example(repository: Path, name: str = "our-news") -> Path:
    """Write a toolset and its tests into a repository and return its folder, which must not be there yet."""
    snake = name.replace("-", "_")
    folder, tests = repository / "src/refdesk/toolsets" / snake, repository / "tests/toolsets" / snake
    folder.mkdir()
    for file, text in read_example(name).items():
        (folder / file).write_text(text, "utf-8")
    tests.mkdir(parents=True)
    (tests / f"test_{snake}.py").write_text(rename(TEST, name), "utf-8")
    readme = repository / "README.md"
    readme.write_text(readme.read_text("utf-8").replace(LAST_ROW, rename(ROW, name) + LAST_ROW, 1), "utf-8")
    return folder


def main() -> None:
    """Make the toolset that the command line names."""
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if not _NAME.fullmatch(name):
        sys.exit("Name it in kebab case: make new-toolset NAME=our-news")
    try:
        folder = write_example(REPOSITORY, name)
    except FileExistsError:
        sys.exit(f"There is a toolset {name} already.")
    print(f"{folder.relative_to(REPOSITORY)} is made, and its tests. Next: make docs, then change what is yours.")  # noqa: T201 - a command


if __name__ == "__main__":
    main()
