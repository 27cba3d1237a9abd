"""What a toolset must have, part by part: whatever is missing is named.

    python -m tests.toolsets.conformance REPOSITORY [NAME]

prints what the toolsets of a repository lack, a line each, and ends with status 1 where something does.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from refdesk.core import contracts
from refdesk.core.descriptors import ToolsetDescriptor
from refdesk.core.operations import Toolset
from refdesk.factories.toolsets import describe_toolsets
from refdesk.server import descriptions, openapi
from refdesk.settings import load_settings, variable

FILES = ("__init__.py", "__main__.py", "descriptor.py", "models.py", "operations.py", "README.md")

Check = Callable[[ToolsetDescriptor, Toolset, Path], Iterator[str]]


def get_folder(repository: Path, name: str) -> Path:
    return repository / "src/refdesk/toolsets" / name.replace("-", "_")


def check_files(descriptor: ToolsetDescriptor, toolset: Toolset, repository: Path) -> Iterator[str]:
    folder = get_folder(repository, descriptor.name)
    for name in FILES:
        if not (folder / name).is_file():
            yield f"{name} is missing"
    if not list((repository / "tests/toolsets" / folder.name).glob("test_*.py")):
        yield f"tests/toolsets/{folder.name} has no test"


def check_descriptor(descriptor: ToolsetDescriptor, toolset: Toolset, repository: Path) -> Iterator[str]:
    if (toolset.name, toolset.description) != (descriptor.name, descriptor.description):
        yield "descriptor: its table has another name or description"
    if (descriptor.load is None) == (descriptor.join is None):
        yield "descriptor: it has to load a table, or to join others"


def check_contract(descriptor: ToolsetDescriptor, toolset: Toolset, repository: Path) -> Iterator[str]:
    folder = repository / "contracts" / descriptor.name
    for name, text in contracts.render_contracts(toolset).items():
        path = folder / name
        if not path.is_file() or path.read_text("utf-8") != text:
            yield f"contract: contracts/{descriptor.name}/{name} is not what the models say (make docs)"


def check_scopes(descriptor: ToolsetDescriptor, toolset: Toolset, repository: Path) -> Iterator[str]:
    if descriptor.join is not None:
        return
    for entry in (*toolset.operations, *toolset.resources):
        if not entry.scopes:
            yield f"scope: {entry.name} needs none"
        for scope in sorted(entry.scopes - descriptor.scopes.keys()):
            yield f"scope: {scope}, which {entry.name} needs, is not declared by the descriptor"


def check_source(descriptor: ToolsetDescriptor, toolset: Toolset, repository: Path) -> Iterator[str]:
    folder = get_folder(repository, descriptor.name)
    has_source, has_records = ((folder / name).is_file() for name in ("source.py", "records.py"))
    if descriptor.sync is None:
        if has_source and has_records:
            yield "source: there is one, and the descriptor has no sync"
        return
    if not has_source or not callable(descriptor.sync.load_converter()):
        yield "source: the descriptor has a sync, and there is no source.py or no converter"
    if descriptor.check is None and descriptor.load_settings is None:
        yield "source: nobody can say where it is"


def check_staleness(descriptor: ToolsetDescriptor, toolset: Toolset, repository: Path) -> Iterator[str]:
    if descriptor.sync is None:
        return
    settings = load_settings()
    stale, full = descriptor.sync.stale_after(settings), descriptor.sync.full_after(settings)
    if not 0 < stale.total_seconds() <= full.total_seconds():
        yield "staleness: it must be stale after some time, and not after a full sync is due"


def check_provider(descriptor: ToolsetDescriptor, toolset: Toolset, repository: Path) -> Iterator[str]:
    searches = {operation.name: operation for operation in toolset.operations if operation.name.startswith("search_")}
    if descriptor.join is not None or not searches:
        return
    provider = toolset.provider
    if provider is None:
        yield "search provider: it can be searched, and takes no part in the search over everything"
    elif provider.operation not in searches or provider.scopes != searches[provider.operation].scopes:
        yield "search provider: it names no search of the toolset, or other scopes than that needs"


def check_settings(descriptor: ToolsetDescriptor, toolset: Toolset, repository: Path) -> Iterator[str]:
    page = (repository / "docs/reference/settings.md").read_text("utf-8")
    for name in descriptor.load_settings().model_fields if descriptor.load_settings is not None else ():
        if f"`{variable(name)}`" not in page:
            yield f"settings: docs/reference/settings.md does not have {variable(name)} (make docs)"


def check_pages(descriptor: ToolsetDescriptor, toolset: Toolset, repository: Path) -> Iterator[str]:
    page = repository / f"docs/reference/tools-{descriptor.name}.md"
    if not page.is_file():
        yield f"docs: {page.relative_to(repository)} is missing (make docs)"
    if not re.search(
        rf"^\|.*`{toolset.operations[0].name}`", (repository / "README.md").read_text("utf-8"), re.MULTILINE
    ):
        yield f"docs: the table in README.md does not have {descriptor.name}"
    readme = get_folder(repository, descriptor.name) / "README.md"
    text = readme.read_text("utf-8") if readme.is_file() else ""
    for operation in toolset.operations:
        if f"`{operation.name}`" not in text:
            yield f"docs: README.md of the toolset does not name {operation.name}"


def check_transports(descriptor: ToolsetDescriptor, toolset: Toolset, repository: Path) -> Iterator[str]:
    paths: Mapping[str, Mapping[str, object]] = openapi.describe((toolset,))["paths"]
    for operation, tool in zip(toolset.operations, descriptions.describe_tools(toolset.operations), strict=True):
        if tool.name != operation.name or not tool.input_schema.get("properties"):
            yield f"transports: MCP does not offer {operation.name}"
        if operation.route.method.lower() not in paths.get(operation.route.path, {}):
            yield f"transports: REST does not offer {operation.name}"


def check_errors(descriptor: ToolsetDescriptor, toolset: Toolset, repository: Path) -> Iterator[str]:
    for operation in toolset.operations:
        if not operation.errors or not all(operation.errors.values()):
            yield f"errors: {operation.name} does not say what a caller can meet"


CHECKS: Mapping[str, Check] = {
    "files": check_files,
    "descriptor": check_descriptor,
    "contract": check_contract,
    "scope": check_scopes,
    "source": check_source,
    "staleness": check_staleness,
    "search provider": check_provider,
    "settings": check_settings,
    "docs": check_pages,
    "transports": check_transports,
    "errors": check_errors,
}


def main(repository: Path, names: list[str]) -> int:
    """Print what is missing, and return the exit status."""
    from refdesk.discovery import find_descriptors

    tables = {toolset.name: toolset for toolset in describe_toolsets()}
    lacks = [
        f"{descriptor.name}: {lack}"
        for descriptor in find_descriptors()
        if not names or descriptor.name in names
        for check in CHECKS.values()
        for lack in check(descriptor, tables[descriptor.name], repository)
    ]
    sys.stdout.write("".join(f"{lack}\n" for lack in lacks))
    return bool(lacks)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
