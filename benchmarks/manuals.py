"""Collections in German and Spanish, for which no judged one is at hand: made of manuals that Debian ships.

    python -m benchmarks.manuals [--documents N] [FOLDER]       write the collections below FOLDER/retrieval
    REFDESK_TEST_DATA=FOLDER python -m benchmarks.quality

Needs Debian's `apt-get` and `dpkg-deb`. FOLDER is `.benchmarks/manuals` unless named. Each collection names its
language at its end, and everything in it was written by people:

- `help-CODE`: pages of an office program; asked is the first sentence of a page, which is taken out of it.
- `office-CODE`: the same pages; asked are up to three entries under which the program's index has a page.
- `man-CODE`: manual pages; asked is the one line that says what each is for, which is taken out of it.
- `faq-de`: Debian's answers to frequent questions; asked are the questions, of which the answers stand without them.

One document answers each question, so that another that says the same counts as wrong: figures compare ways to rank,
not collections.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import regex
from selectolax.lexbor import LexborHTMLParser, LexborNode

from benchmarks.quality import REPOSITORY

DEFAULT = REPOSITORY / ".benchmarks" / "manuals"
DOCUMENTS = 900
"""Of a collection at most, unless said otherwise."""
LEAST_CHARACTERS = 200
LEAST_QUESTION = 20

_SENTENCE = regex.compile(r"^.+?[.:!?](?=\s|$)", regex.DOTALL)
_NUMBER = regex.compile(r"^(?:Kapitel\s+)?\d+(?:\.\d+)*\.\s+")
_SECTION = regex.compile(r"^\.S[Hh]\s+", regex.MULTILINE)
_ROFF_REQUEST = regex.compile(r"^[.'] *(?:\\\".*|[A-Za-z]+) ?", regex.MULTILINE)
_ROFF_FONT = regex.compile(r"\\f(?:\[\w*\]|\w)|\\/|\\,|\\&|\\c|\\m\[\w*\]")
_ROFF_SIGNS = {"\\-": "-", "\\(aq": "'", "\\(lq": "“", "\\(rq": "”", "\\(bu": "•", "\\e": "\\", "\\ ": " "}


class Asked(NamedTuple):
    """A document and the questions that it answers."""

    title: str
    body: str
    questions: tuple[str, ...]


def _read_text(node: LexborNode) -> str:
    return " ".join(node.text(separator=" ").split())


def _read_pages(folder: Path, code: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield of each page of the office program its title, its paragraphs and what the index calls it."""
    for path in sorted(folder.glob(f"usr/share/libreoffice/help/{code}/text/**/*.html")):
        area = LexborHTMLParser(path.read_text(encoding="utf-8")).css_first("#DisplayArea")
        title = area and area.css_first("h1, h2")
        if area and title:
            entries = [entry.attributes.get("content") or "" for entry in area.css('meta[itemprop="keywords"]')]
            paragraphs = [text for each in area.css("p") if (text := _read_text(each))]
            yield _read_text(title), paragraphs, entries


def read_help(folder: Path, code: str) -> Iterator[Asked]:
    """Yield the pages of the office program that begin with a sentence, without it."""
    for title, paragraphs, _ in _read_pages(folder, code):
        text = "\n".join(paragraphs)
        if first := _SENTENCE.match(text):
            yield Asked(title, text[first.end() :].strip(), (first[0],))


def read_office(folder: Path, code: str) -> Iterator[Asked]:
    """Yield the pages of the office program that its index names."""
    for title, paragraphs, entries in _read_pages(folder, code):
        asked = [entry.replace(";", ", ") for entry in entries if len(entry) >= LEAST_QUESTION]
        yield Asked(title, "\n".join(paragraphs), tuple(asked[:3]))


def read_man(folder: Path, code: str) -> Iterator[Asked]:
    """Yield manual pages without their names and what they are for."""
    for path in sorted(folder.glob(f"usr/share/man/{code}/man*/*.gz")):
        _, *sections = _SECTION.split(gzip.decompress(path.read_bytes()).decode())
        if len(sections) > 1:
            summary = " ".join(_clean(sections[0].partition("\n")[2]).split()).partition(" - ")[2]
            yield Asked("", "\n".join(map(_clean, sections[1:])), (summary,))


def _clean(text: str) -> str:
    text = _ROFF_FONT.sub("", _ROFF_REQUEST.sub("", text))
    for sign, plain in _ROFF_SIGNS.items():
        text = text.replace(sign, plain)
    return text


def read_faq(folder: Path, code: str) -> Iterator[Asked]:
    """Yield answers to frequent questions."""
    for path in sorted(folder.glob(f"usr/share/doc/debian/FAQ/{code}/*.html")):
        for section in LexborHTMLParser(path.read_text(encoding="utf-8")).css("div.section"):
            title = section.css_first(".title")
            question = _NUMBER.sub("", _read_text(title)) if title else ""
            if title and question.endswith(("?", "?!")):
                title.decompose()
                yield Asked("", _read_text(section), (question,))


Reader: TypeAlias = Callable[[Path, str], Iterator[Asked]]

COLLECTIONS: Mapping[str, tuple[str, Reader]] = {
    "help-de": ("libreoffice-help-de", read_help),
    "help-es": ("libreoffice-help-es", read_help),
    "office-de": ("libreoffice-help-de", read_office),
    "office-es": ("libreoffice-help-es", read_office),
    "man-de": ("manpages-de", read_man),
    "man-es": ("manpages-es", read_man),
    "faq-de": ("debian-faq-de", read_faq),
}
"""Package and reader of each."""


def choose(found: Iterable[Asked], most: int) -> list[Asked]:
    """Return some documents, evenly from all, without what is too short and what was read before."""
    kept: dict[str, Asked] = {}
    asked = set[str]()
    for each in found:
        body = each.body.strip()
        questions = tuple(q for q in dict.fromkeys(each.questions) if len(q) >= LEAST_QUESTION and q not in asked)
        if len(body) >= LEAST_CHARACTERS and questions and body not in kept:
            asked.update(questions)
            kept[body] = Asked(each.title, body, questions)
    documents = list(kept.values())
    step = max(1.0, len(documents) / most)
    return [documents[int(number * step)] for number in range(min(most, len(documents)))]


def write(folder: Path, documents: Sequence[Asked]) -> None:
    """Write a collection as `benchmarks.quality` reads it."""
    folder.mkdir(parents=True, exist_ok=True)
    questions = [(number, text) for number, each in enumerate(documents) for text in each.questions]
    rows = [{"_id": str(number), "title": each.title, "text": each.body} for number, each in enumerate(documents)]
    _write_lines(folder / "corpus.jsonl", map(json.dumps, rows))
    asked = [{"_id": str(number), "text": text} for number, (_, text) in enumerate(questions)]
    _write_lines(folder / "queries.jsonl", map(json.dumps, asked))
    judged = [f"{number}\t{document}\t1" for number, (document, _) in enumerate(questions)]
    _write_lines(folder / "qrels.tsv", ["query-id\tcorpus-id\tscore", *judged])


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def fetch(package: str, folder: Path) -> Path:
    """Return the folder of a package's files, fetched where they are not there yet."""
    place = folder / package
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-q", package], cwd=folder, check=True)
        (archive,) = folder.glob(f"{package}_*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, place], check=True)
        archive.unlink()
    return place


def main() -> None:
    """Fetch the packages and write the collections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--documents", type=int, default=DOCUMENTS, metavar="N", help="at most so many in each")
    options = parser.parse_args()
    folder: Path = options.folder
    for name, (package, read) in COLLECTIONS.items():
        documents = choose(read(fetch(package, folder / "packages"), name.rsplit("-", 1)[-1]), options.documents)
        write(folder / "retrieval" / name, documents)
        print(f"{name}: {len(documents)} documents, {sum(len(each.questions) for each in documents)} questions")


if __name__ == "__main__":
    main()
