"""The how-to's example is built in a copy of the repository, served against a real feed, and taken apart again."""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.meta.new_toolset import read_example, write_example

MOST_LINES = 250
LEFT_OUT = shutil.ignore_patterns(
    ".venv", ".git", ".benchmarks", ".*_cache", "__pycache__", ".hypothesis", "build", "dist"
)
DOCS = ["tests/meta/test_reference.py", "tests/server/test_table.py", "tests/toolsets/test_conformance.py"]
ENTRY = """<item><guid>{id}</guid><title>{title}</title><link>https://example.com/{id}</link>
<description>{text}</description><pubDate>Mon, 02 Mar 2026 09:00:00 GMT</pubDate></item>"""


@dataclass(frozen=True, slots=True)
class Copy:
    """A repository of the test's own, with the example in it."""

    root: Path

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "PYTHONPATH": os.pathsep.join([str(self.root / "src"), str(self.root)]),
            "REFDESK_HOME": str(self.root / "home"),
            "REFDESK_EMBEDDER": "hashing",
            **variables,
        }
        return subprocess.run(
            [sys.executable, *arguments], cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )

    def examine(self) -> str:
        done = self.run("-m", "tests.toolsets.conformance", str(self.root), "our-news")
        return done.stdout + done.stderr

    @property
    def folder(self) -> Path:
        return self.root / "src/refdesk/toolsets/our_news"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    root = tmp_path_factory.mktemp("made") / "repository"
    shutil.copytree(REPOSITORY, root, ignore=LEFT_OUT)
    write_example(root)
    made = Copy(root)
    done = made.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *DOCS, REFDESK_UPDATE_SNAPSHOTS="1")
    assert done.returncode == 0, done.stdout
    return made


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, Path]]:
    """The address of a feed on this machine, and the file it is."""
    folder = tmp_path_factory.mktemp("feed")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/feed.xml", folder / "feed.xml"
        server.shutdown()


def write_feed(path: Path, *entries: tuple[str, str, str]) -> None:
    items = "".join(ENTRY.format(id=id, title=title, text=text) for id, title, text in entries)
    path.write_text(f"<rss><channel>{items}</channel></rss>")


def test_the_example_is_one_small_folder() -> None:
    assert sum(len(text.splitlines()) for text in read_example().values()) <= MOST_LINES


def test_the_example_has_every_part_and_its_own_tests_pass(copy: Copy) -> None:
    assert copy.examine() == ""
    done = copy.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/toolsets/our_news")
    assert done.returncode == 0, done.stdout


def test_the_example_is_synced_searched_and_part_of_everything(copy: Copy, feed: tuple[str, Path]) -> None:
    url, path = feed
    write_feed(path, ("n1", "New office in Lisbon", "We moved."), ("n2", "Old product retired", "No more spares."))
    refdesk = functools.partial(copy.run, "-m", "refdesk", REFDESK_OUR_NEWS_URL=url)
    assert "2 added" in refdesk("sync", "our-news").stdout
    [first, *_] = json.loads(refdesk("search", "--toolset", "our-news", "--json", "Lisbon").stdout)["results"]
    assert (first["title"], first["url"]) == ("New office in Lisbon", "https://example.com/n1")
    everything = json.loads(refdesk("search", "--json", "Lisbon office").stdout)
    assert everything["results"][0]["toolset"] == "our-news"
    assert {line["toolset"]: line["status"] for line in everything["coverage"]}["our-news"] == "answered"
    checks = {check["name"]: check for check in json.loads(refdesk("doctor", "--json").stdout)["checks"]}
    assert checks["our-news source"]["found"] == "answers"
    # A feed drops what is old: that is not gone.
    write_feed(path, ("n1", "New office in Lisbon", "We moved, and it rains."))
    assert "withdrawn" not in refdesk("sync", "our-news", "--full", "--force").stdout
    [first, *_] = json.loads(refdesk("search", "--toolset", "our-news", "--json", "spares").stdout)["results"]
    assert first["title"] == "Old product retired"


@pytest.mark.parametrize(
    ("place", "pattern", "named"),
    [
        ("src/refdesk/toolsets/our_news/README.md", None, "README.md is missing"),
        (
            "src/refdesk/toolsets/our_news/README.md",
            "`search_our_news`",
            "docs: README.md of the toolset",
        ),
        ("src/refdesk/toolsets/our_news/__main__.py", None, "__main__.py is missing"),
        ("src/refdesk/toolsets/our_news/descriptor.py", None, "our_news.descriptor"),
        ("src/refdesk/toolsets/our_news/descriptor.py", r"    scopes=.*\n", "scope: our-news:read"),
        ("src/refdesk/toolsets/our_news/descriptor.py", r"    sync=Sync\((.|\n)*?\n    \),\n", "source: "),
        ("src/refdesk/toolsets/our_news/descriptor.py", r"hours=settings.our_news_stale_hours", "staleness: "),
        ("src/refdesk/toolsets/our_news/descriptor.py", ", provider=PROVIDER", "search provider: "),
        ("src/refdesk/toolsets/our_news/operations.py", r"    errors=.*\n", "errors: search_our_news"),
        ("src/refdesk/toolsets/our_news/source.py", None, "source: "),
        ("contracts/our-news/search-our-news-tool.json", None, "contract: contracts/our-news"),
        ("README.md", r".*`our-news`.*\n", "docs: the table in README.md does not have our-news"),
        ("docs/reference/tools-our-news.md", None, "docs: docs/reference/tools-our-news.md is missing"),
        ("docs/reference/settings.md", r".*REFDESK_OUR_NEWS_URL.*\n", "settings: docs/reference/settings.md"),
        ("tests/toolsets/our_news/test_our_news.py", None, "tests/toolsets/our_news has no test"),
    ],
)
def test_whatever_part_is_left_out_is_named(copy: Copy, place: str, pattern: str | None, named: str) -> None:
    path = copy.root / place
    text = path.read_text("utf-8")
    path.unlink()
    if pattern is not None:
        assert re.search(pattern, text)
        path.write_text(re.sub(pattern, "", text), "utf-8")
    try:
        assert named in copy.examine()
    finally:
        path.write_text(text, "utf-8")
