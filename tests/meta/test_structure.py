"""The repository's own rules about its shape."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median

import grimp
import pytest

from tests.conftest import REPOSITORY

SOURCE = REPOSITORY / "src" / "refdesk"
PYTHON_FOLDERS = ("src", "tests", "sample_world", "benchmarks")
ENGINE_NAMES = re.compile(r"\b(apsw|sqlite|postgres(?:ql)?|pgvector|redis|bullmq|neo4j)\b", re.IGNORECASE)
MOST_LINES_OF_A_MODULE = 500
MOST_LINES_OF_A_FUNCTION = 40
TOOLSET_FILES = {"__init__.py", "__main__.py", "descriptor.py", "models.py", "operations.py", "README.md"}
ENGINE_FILES = {
    *("store", "connections", "migrations", "failures", "rows", "reads", "writes", "archive"),
    *("filters", "search", "lexical", "vectors"),
}

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
    # Azure sells products that have the names of engines.
    products = {"src/refdesk/toolsets/azure_updates/products.py"}
    products |= {f"src/refdesk/impact/{name}.py" for name in ("products", "versions", "common_terms")}
    allowed = {"src/refdesk/app.py", "src/refdesk/settings.py", *products}
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


def test_every_engine_follows_the_one_plan() -> None:
    stores = SOURCE / "stores"
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"^\|(.*?)\|", (stores / "README.md").read_text(), re.MULTILINE)))
    files = {path for path in modules("src") if stores in path.parents and path.stem != "__init__"}
    assert [relative(path) for path in sorted(files) if path.stem not in named] == []
    assert sorted(set(named) - {path.stem for path in files}) == []
    engines = {path.relative_to(stores).parts[0] for path in files}
    servers = {
        "store",
        "connections",
        "migrations",
        "failures",
        "rows",
        "reads",
        "writes",
        "archive",
        "filters",
        "search",
    }
    for engine in engines - {"memory"}:
        missing = {*servers, "lexical", "vectors"} - {path.stem for path in files if stores / engine in path.parents}
        assert not missing, f"stores/{engine} lacks {sorted(missing)}"


def test_modules_import_each_other_in_no_circle() -> None:
    # Imports for type checking count too: a circle of types is a circle in the reader's head.
    graph = grimp.build_graph("refdesk", cache_dir=None)
    edges = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    sorter = TopologicalSorter(edges)
    try:
        sorter.prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_only_the_settings_read_the_environment() -> None:
    for path in modules("src"):
        text = path.read_text()
        if (
            relative(path) == "src/refdesk/__init__.py"
        ):  # sets what keeps dependencies from calling home, and reads none
            text = text.replace("os.environ.update(", "")
        # The forwarder compares variables and hands them on, without knowing what they mean.
        if relative(path) not in ("src/refdesk/settings.py", "src/refdesk/forwarder/identity.py"):
            assert not re.search(r"os\.(environ|getenv)", text), f"{relative(path)} reads the environment"


def test_imports_stand_at_the_top_except_where_something_heavy_is_put_off() -> None:
    # The composition root and the transports start without what the call at hand does not need; a model and its numbers
    # are loaded when something is embedded, a store's when it is opened, retries when something is asked, and a search
    # when an id is unknown.
    transports = ("__main__.py", "app.py", "factories/", "cli", "server/", "forwarder/")
    lazy = (
        *transports,
        "toolsets/",
        "embedders/",
        "language_models/",
        "stores/",
        "core/retrying.py",
        "core/descriptors.py",
        "kit/unknown_ids.py",
    )
    allowed = tuple(f"src/refdesk/{folder}" for folder in lazy)
    for path in modules("src"):
        if relative(path).startswith(allowed):
            continue
        for function in functions(path):
            inner = [n for n in ast.walk(function) if isinstance(n, ast.Import | ast.ImportFrom)]
            assert not inner, f"{relative(path)}:{function.name} imports inside a function"
