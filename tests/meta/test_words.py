"""The repository speaks in the field's terms; docs/reference/glossary.md decides which."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

SOURCE = REPOSITORY / "src" / "refdesk"
MAP = "## One search and one write"

BANNED = {
    r"by (?:its|their) words": "keyword search",
    r"by (?:its|their) meaning": "semantic search",
    r"(?:by|in|with) words and meaning": "hybrid search",
    r"by words (?:alone|only|and)": "keyword search",
    r"(?:the|a|one) way in\b": "entry point, dispatch",
    r"the line to redis": "the connection",
    r"what stands (?:beside|behind|before|between)": "name it",
    r"(?:is|are|was) told\b": "is reported, gets",
    r"\bcan(?:not)? be had\b|\bto be had\b": "available",
    r"\bfaces? of (?:it|the|one)\b|\b(?:mcp|rest) face\b|\b(?:every|each|the) faces?\b": "transport",
    r"\bnearness\b": "similarity",
    r"\bforetell\b": "predict",
    r"had its say|its say\b": "coverage",
    r"how (?:it|a desk|a skill|syncing) stands": "status",
    r"other muscle": "other engines",
    r"is told below": "is reported",
}
ALLOWED = {"docs/reference/glossary.md"}

Written = tuple[str, str]


def read_docstrings(path: Path) -> str:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, documented))
    return "\n".join(text for node in nodes if (text := ast.get_docstring(node)))


def list_texts() -> list[Written]:
    pages = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *SOURCE.rglob("*.md")]
    texts = [(path, path.read_text()) for path in pages if path.name != "CHANGELOG.md"]
    texts += [(path, read_docstrings(path)) for path in SOURCE.rglob("*.py")]
    named = [(path.relative_to(REPOSITORY).as_posix(), text) for path, text in sorted(texts)]
    return [(name, " ".join(text.split())) for name, text in named if name not in ALLOWED]


def find_banned(texts: list[Written]) -> list[str]:
    return [
        f"{name}: {found[0]!r}; say {better}"
        for name, text in texts
        for pattern, better in BANNED.items()
        for found in re.finditer(pattern, text, re.IGNORECASE)
    ]


def test_docs_and_docstrings_use_the_fields_terms() -> None:
    assert find_banned(list_texts()) == []


@pytest.mark.parametrize(
    "planted", ["found by its words", "the REST face of it", "The one way in:", "Words are other muscle."]
)
def test_a_planted_paraphrase_is_found(planted: str) -> None:
    assert find_banned([("planted.md", planted)])


def test_every_term_of_the_glossary_is_defined_once() -> None:
    rows = re.findall(r"^\| (.+?) \|", (REPOSITORY / "docs/reference/glossary.md").read_text(), re.MULTILINE)
    terms = [term for row in rows for term in re.findall(r"\*\*(.+?)\*\*", row)]
    assert len(terms) > 50
    assert sorted({term for term in terms if terms.count(term) > 1}) == []


def list_definitions(path: Path) -> set[str]:
    """Return the names of a file's functions and classes, those of methods after their class's."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
            names |= {node.name, *(f"{node.name}.{method.name}" for method in methods)}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
    return names


def test_the_map_names_files_and_functions_that_exist() -> None:
    _, _, text = (REPOSITORY / "ARCHITECTURE.md").read_text().partition(MAP)
    named = re.findall(r"`([\w/]+\.py)(?:::([\w.]+))?`", text)
    assert len(named) >= 20
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not (SOURCE / file).is_file() or (name and name not in list_definitions(SOURCE / file))
    ]
    assert missing == []
    steps = [len(re.findall(r"^\d+\. ", part, re.MULTILINE)) for part in re.split(r"\n\n(?=1\. )", text)[1:]]
    assert steps == [10, 10]


def test_the_readme_begins_with_how_to_run_and_test() -> None:
    top, _, _ = (REPOSITORY / "README.md").read_text().partition("\n## ")
    makefile = (REPOSITORY / "Makefile").read_text()
    for target in ("serve", "test"):
        assert f"$ make {target} " in top
        assert f"\n{target}: $(READY)" in makefile, f"make {target} must set up what it needs"
    assert "source .venv/bin/activate" in (REPOSITORY / "README.md").read_text()
