"""The repository's own rules about its shape."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.conftest import REPOSITORY

SOURCE = REPOSITORY / "src" / "refdesk"
PYTHON_FOLDERS = ("src", "tests", "sample_world", "benchmarks")
ENGINE_NAMES = re.compile(r"\b(apsw|sqlite|postgres(?:ql)?|pgvector|redis|bullmq|neo4j)\b", re.IGNORECASE)
MOST_LINES_OF_A_MODULE = 500
MOST_LINES_OF_A_FUNCTION = 40
TOOLSET_FILES = {"__init__.py", "__main__.py", "models.py", "operations.py", "README.md"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((REPOSITORY / folder).rglob("*.py"))


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def body_lines(function: Function) -> int:
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def relative(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def test_no_module_is_longer_than_the_limit() -> None:
    lengths = {relative(path): len(path.read_text().splitlines()) for path in modules(*PYTHON_FOLDERS)}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES_OF_A_MODULE} == {}


def test_no_function_is_longer_than_the_limit_and_most_are_short() -> None:
    lengths = {
        f"{relative(path)}:{function.name}": body_lines(function)
        for path in modules("src")
        for function in functions(path)
    }
    assert {name: length for name, length in lengths.items() if length > MOST_LINES_OF_A_FUNCTION} == {}
    assert median(lengths.values()) < 10


def test_an_engine_is_named_only_where_it_lives_or_is_chosen() -> None:
    allowed = {"src/refdesk/app.py", "src/refdesk/settings.py"}
    for path in modules("src"):
        name = relative(path)
        if name in allowed or name.startswith(("src/refdesk/stores/", "src/refdesk/queues/", "src/refdesk/factories/")):
            continue
        assert not ENGINE_NAMES.search(path.read_text()), f"{name} names an engine"


def test_every_toolset_has_the_same_files() -> None:
    folders = [path for path in (SOURCE / "toolsets").iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert folders
    for folder in folders:
        missing = TOOLSET_FILES - {path.name for path in folder.iterdir()}
        assert not missing, f"{relative(folder)} lacks {sorted(missing)}"


def test_only_the_settings_read_the_environment() -> None:
    for path in modules("src"):
        if relative(path) != "src/refdesk/settings.py":
            assert not re.search(r"os\.(environ|getenv)", path.read_text()), f"{relative(path)} reads the environment"


def test_imports_stand_at_the_top_except_where_something_heavy_is_put_off() -> None:
    # The composition root and the faces start without what the call at hand does not need; a model and its numbers
    # are loaded when something is embedded, and a store's when it is opened.
    faces = ("app.py", "factories/", "cli", "server/")
    lazy = (*faces, "toolsets/", "embedders/", "language_models/", "stores/")
    allowed = tuple(f"src/refdesk/{folder}" for folder in lazy)
    for path in modules("src"):
        if relative(path).startswith(allowed):
            continue
        for function in functions(path):
            inner = [n for n in ast.walk(function) if isinstance(n, ast.Import | ast.ImportFrom)]
            assert not inner, f"{relative(path)}:{function.name} imports inside a function"
