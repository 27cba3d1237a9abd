"""Searches for the command line, whose filters are texts; the operation table says how to convert them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from refdesk import errors
from refdesk.core import contracts
from refdesk.core.counts import say_count
from refdesk.core.operations import WARNINGS
from refdesk.factories.toolsets import has_documents
from refdesk.kit import times
from refdesk.server.calls import Caller
from refdesk.server.json_types import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from refdesk.app import Desk
    from refdesk.core.background.embedding import Indexer
    from refdesk.core.operations import Operation, Toolset
    from refdesk.model import Principal

MOST_EMBEDDED = 100
"""Most documents without vectors that are embedded before a search, if nothing else does it: a person is waiting."""

_NO_FILTERS = frozenset({"query", "limit", "top_k", "offset", "semantic", "filters"})


async def search(desk: Desk, principal: Principal, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `value` of a search's answer, and the `meta` that accompanies it.

    Args:
        desk: The desk that searches.
        principal: Who asks.
        arguments: The `names` of toolsets, empty for all; `filters`, each as `NAME=VALUE`; `patienceMs`, the default
            deadline of a search over several toolsets; and the given arguments, by the names that most searches have
            for them.

    Raises:
        RefdeskError: The search does not take the given arguments, or it refused or failed.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    names, filters, patience = (given.pop(name, None) for name in ("names", "filters", "patienceMs"))
    chosen = [each for each in desk.toolsets if (each.name in names if names else has_documents(each.name))]
    is_one = len(chosen) == 1
    operation = _find_widest(chosen if is_one else desk.toolsets)
    if operation is None:
        raise errors.InvalidInputError(f"{chosen[-1].name} cannot be searched.")
    fitted = _fit_one(operation, given) if is_one else _fit_several(given, chosen if names else (), patience)
    asked = fit_search(operation, fitted, filters or ())
    behind = 0
    if not is_one or (given.get("query") and _is_semantic(operation, given.get("semantic"))):
        await (await desk.get_base()).semantics.load()
        behind = 0 if desk.in_background else await _embed_few(desk)
    answer = await Caller(desk, principal, "cli").run(operation, asked)
    return {"value": answer.value, "meta": _add_warning(answer.meta, behind) if behind else answer.meta}


async def _embed_few(desk: Desk) -> int:
    """Embed documents without vectors if they are few, as nothing does so in the background; return how many are left.

    If that is not possible, keyword search still answers, and says so itself.
    """
    behind = 0
    for base in (await desk.get_base()).each():
        waiting = await _count_waiting(base.indexer)
        if 0 < waiting <= MOST_EMBEDDED and desk.obstacle is None and not desk.settings.read_only:
            with suppress(errors.RefdeskError):
                await base.indexer.run_once()
            waiting = await _count_waiting(base.indexer)
        behind += waiting
    return behind


async def _count_waiting(indexer: Indexer) -> int:
    """Return how many documents have no vectors, not counting those that could not be embedded."""
    pending = await indexer.count_pending()
    return max(0, pending - len(await indexer.list_failures())) if pending else 0


def _add_warning(meta: Mapping[str, Any], behind: int) -> dict[str, Any]:
    message = (
        f"{say_count(behind, 'document has', 'documents have')} no vectors yet, so only keyword search finds what is "
        "said there; refdesk worker --until-idle makes them."
    )
    return {**meta, WARNINGS: [*meta.get(WARNINGS, ()), {"code": "NOT_EMBEDDED", "message": message}]}


def _fit_one(operation: Operation, given: Mapping[str, Any]) -> dict[str, Any]:
    _refuse("deadlineMs" in given, "--deadline-ms is for a search over several toolsets.")
    fitted = {name: value for name, value in given.items() if value}
    if "semantic" not in _get_schema(operation)["properties"]:
        _refuse(given.get("semantic") is False, f"{operation.name} has no keyword search alone: leave out --keyword.")
        return {name: value for name, value in fitted.items() if name != "semantic"}
    return {**fitted, **({"semantic": given["semantic"]} if "semantic" in given else {})}


def _fit_several(given: Mapping[str, Any], only: Sequence[Toolset], patience: int) -> dict[str, Any]:
    _refuse(given.get("offset"), "--offset pages through one toolset: name it with --toolset.")
    _refuse(given.get("semantic") is False, "--keyword is for one toolset: name it with --toolset.")
    _refuse(not given.get("query"), "Say what to search for, or name one --toolset to list its newest.")
    several = {"toolsets": [each.name for each in only]} if only else {}
    fitting = {name: value for name, value in given.items() if name not in {"offset", "semantic"}}
    return {"deadlineMs": patience, **fitting, **several}


def _refuse(wrong: object, reason: str) -> None:
    if wrong:
        raise errors.InvalidInputError(reason)


def _find_widest(toolsets: Sequence[Toolset]) -> Operation | None:
    """Return the search over all toolsets, which comes after the toolsets' own, or the search of the only toolset."""
    return next(filter(None, map(find_search, reversed(toolsets))), None)


def find_search(toolset: Toolset) -> Operation | None:
    """Return the toolset's search operation, if it has one."""
    return next((operation for operation in toolset.operations if operation.name.startswith("search_")), None)


def fit_search(operation: Operation, arguments: Mapping[str, object], filters: Sequence[str]) -> dict[str, object]:
    """Return the arguments of a search, under the names that it has for them, with the filters.

    Raises:
        InvalidInputError: A filter is not a pair, or the search has no filter of that name.
    """
    known = _find_filters(operation)
    for pair in filters:
        name, equals, _ = pair.partition("=")
        if not equals or name not in known:
            raise errors.InvalidInputError(
                f"--filter takes NAME=VALUE, where NAME is one of {', '.join(sorted(known))}."
            )
    is_renamed = "top_k" in _get_schema(operation)["properties"]
    given = {"top_k" if is_renamed and name == "limit" else name: value for name, value in arguments.items()}
    return {**given, **_gather(operation, filters)}


def _is_semantic(operation: Operation, wanted: bool | None) -> bool:
    """Return whether a search needs the embedding model: as requested, or else by default."""
    choice: dict[str, Any] | None = _get_schema(operation)["properties"].get("semantic")
    if choice is None:
        return not operation.effects.open_world
    return bool(choice.get("default") if wanted is None else wanted)


def _find_filters(operation: Operation) -> Mapping[str, Any]:
    """Return the schemas of a search's filters: those in its `filters`, or its own arguments if it has no such
    field."""
    properties = _get_schema(operation)["properties"]
    own = {name: schema for name, schema in properties.items() if name not in _NO_FILTERS}
    return properties.get("filters", {}).get("properties", own)


def _gather(operation: Operation, pairs: Iterable[str]) -> dict[str, object]:
    """Return the arguments that the filters stand for; repeated filters of a list type are gathered in one list."""
    known, gathered = _find_filters(operation), dict[str, Any]()
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name in (instants := _find_instants(operation)):
            gathered[name] = times.spell_past(value, times.get_now(), is_day=instants[name])
        elif known[name].get("type") == "array":
            gathered.setdefault(name, []).append(read_text(value, known[name]["items"]))
        else:
            is_switch = known[name].get("type") == "boolean"
            gathered[name] = read_text(value.lower() if is_switch else value, known[name])
    has_filters = "filters" in _get_schema(operation)["properties"]
    return {"filters": gathered} if has_filters and gathered else gathered


def _find_instants(operation: Operation) -> Mapping[str, bool]:
    """Return the filters that are days or instants, and whether each is a day."""
    properties = _get_schema(operation, is_exact=True)["properties"]
    schemas = properties.get("filters", {}).get("properties", properties)
    formats = {
        name: {each.get("format") for each in (schema, *schema.get("anyOf", ()))} for name, schema in schemas.items()
    }
    return {name: "date-time" not in each for name, each in formats.items() if each & {"date", "date-time"}}


def _get_schema(operation: Operation, *, is_exact: bool = False) -> dict[str, Any]:
    return dict(contracts.get_input_schema(operation.input, is_exact=is_exact))
