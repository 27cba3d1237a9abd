"""What a toolset says about itself, in one place in its folder; whatever must know toolsets derives it from there.

A descriptor is read by every command, so the module that has it imports nothing but this one and the standard library.
Its callables load what they name when it is needed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from datetime import timedelta
    from typing import TextIO

    from anyio.abc import TaskGroup
    from pydantic import BaseModel

    from refdesk.core.background.records import ToDocument
    from refdesk.core.context import Context
    from refdesk.core.operations import Rest, Toolset
    from refdesk.core.writing.quotas import Quota
    from refdesk.model import Document
    from refdesk.playbooks import Inducer
    from refdesk.sources import Source


FEED_MARK = ":"
"""Separates the name of a toolset from that of a further source of it, as in `azure-updates:m365`."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that `refdesk doctor` looked at.

    Attributes:
        status: `warn`: it works, but not fully; `fail`: it does not work.
        found: What was found; never a secret.
        advice: What to do about it; empty when there is nothing to do.
    """

    name: str
    status: Literal["ok", "warn", "fail"]
    found: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Means:
    """What a toolset's table is made with.

    Attributes:
        choose_language_model: Returns the one that the settings name; raises a `ConfigurationError` or a
            `MissingDependencyError` where something is missing. It does not load the model yet.
        settings: All settings, including the toolset's own; `None` where the table is only described.
    """

    choose_language_model: Callable[[], Inducer]
    settings: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """How a toolset is kept up to date with a source. All of its documents are in the shared org's collection.

    Each callable except those of the converter takes the settings, which include the toolset's own.

    Attributes:
        open_source: Returns the source, without asking it for anything yet. Raises a `ConfigurationError` where it
            cannot be opened.
        load_converter: Returns what makes a document of a record; see `Syncer.to_document`.
        stale_after: How long after a sync the documents count as current.
        full_after: A sync compares everything if the last one that did so is older than this.
        get_converter_version: See `Syncer.converter_version`; `None` converts every record anew at each sync.
        id_prefix: How the ids of all its documents begin, if it is a further source of the toolset. Documents of the
            first source are those whose ids begin with no such prefix.
    """

    open_source: Callable[[Any], Source]
    load_converter: Callable[[], ToDocument]
    stale_after: Callable[[Any], timedelta]
    full_after: Callable[[Any], timedelta]
    get_converter_version: Callable[[], str] | None = None
    id_prefix: str = ""


@dataclass(frozen=True, slots=True)
class Live:
    """A toolset whose answers come from a service at the moment they are asked for.

    Attributes:
        toolset: Bound to the service; valid as long as the connection is open.
        get_problem: Returns what kept the last call from being answered, or `None` when it was.
    """

    toolset: Toolset
    get_problem: Callable[[], str | None]


class OnExported(Protocol):
    """Receives the progress of an export."""

    def __call__(self, done: int, total: int | None) -> None:
        """Take note that `done` of `total` documents are exported; `None` where the total is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What to write, and where.

    Attributes:
        context: Whose documents.
        form: One of the exporter's formats.
        search: The arguments of the toolset's search that choose what is written, validated; `None` for everything.
        target: A file or folder, or a stream, which is neither flushed nor closed.
    """

    context: Context
    form: str
    search: BaseModel | None
    target: Path | TextIO
    on_progress: OnExported | None = None

    @property
    def is_named(self) -> bool:
        """Whether the target has a name of its own."""
        return isinstance(self.target, Path)

    @property
    def place(self) -> str:
        """What to call the target."""
        return str(self.target) if self.is_named else "standard output"


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export.

    Attributes:
        told: A message for the user; may be empty.
        is_complete: Whether everything could be written.
    """

    told: str = ""
    is_complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """How a toolset's documents become files.

    Attributes:
        formats: Their names, the usual one first.
        takes_search: Whether a query and filters may choose what is written.
        export: Writes the files; raises an `InvalidInputError` where the target is unsuitable, and an `OperatorError`
            where it cannot be written.
    """

    formats: tuple[str, ...]
    export: Callable[[ExportRequest], Awaitable[Exported]]
    takes_search: bool = False


def _is_always(settings: object) -> bool:
    del settings
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetDescriptor:
    """Everything about a toolset that is decided outside its own handlers.

    Where a callable takes the settings, they are the whole tree, of which the toolset's own model is a base class.

    Attributes:
        name: In kebab case, as it is served, listed and given to `--toolset`; its collections have this name.
        description: What kind of knowledge it is, in one sentence.
        load: Returns the table of its operations and resources. For a toolset that is asked live, the table is not
            bound to a service: callers get an error that says what is not configured.
        scopes: The scopes that a credential can have for it, each with what it allows.
        load_settings: Returns the model of its own settings; `None` where it has none.
        is_configured: Whether the settings bring it into play when no toolset is named.
        sync: How it is kept up to date; `None` where its documents come from agents, or it has none.
        list_feeds: Returns the further sources of its collection that the settings add, by name; each has a prefix of
            ids, and is synced, watched and reported as `toolset:feed`.
        connect: Opens the connection through which it is asked live; called where it is in play and configured.
        join: Returns a table that asks the other toolsets and has no documents of its own. It is given the tables of
            those in play, the names of all that may be asked for, and the task group in which questions that are too
            slow run to their end; without a task group the table is only read. Such a toolset is in play by itself
            where several toolsets can be searched.
        check: Checks what it depends on, for `refdesk doctor`, and never raises a `RefdeskError`. Without it doctor
            checks whether the source answers.
        exporter: How its documents become files; `None` where they cannot.
        list_quotas: Returns how much may be written to it.
        choose_options: Returns how it is to behave according to the settings; its handlers find that in
            `KnowledgeBase.options`.
        record_prefix: Prefix of the kinds of bookkeeping that are its own and move with its documents.
        own_store: The setting that may hold the URL of a store of its own.
        announces: Loads what reads an announcement (see `refdesk.impact.changes`) out of a document; `None` where its
            documents announce no changes.
        relies: Whether what others announce may make its documents wrong.
        disputes: Whether its documents may contradict each other.
    """

    name: str
    description: str
    load: Callable[[Means], Toolset] | None = None
    scopes: Mapping[str, str] = field(default_factory=dict[str, str])
    load_settings: Callable[[], type[BaseModel]] | None = None
    is_configured: Callable[[Any], bool] = _is_always
    sync: Sync | None = None
    list_feeds: Callable[[Any], Mapping[str, Sync]] | None = None
    connect: Callable[[Any], AbstractAsyncContextManager[Live]] | None = None
    join: Callable[[Sequence[Toolset], Sequence[str], TaskGroup | None], Toolset] | None = None
    check: Callable[[Any], Awaitable[Sequence[Check]]] | None = None
    exporter: Exporter | None = None
    list_quotas: Callable[[Any], Sequence[Quota]] | None = None
    choose_options: Callable[[Any], object] | None = None
    record_prefix: str | None = None
    own_store: str | None = None
    announces: Callable[[], Callable[[Document], Any]] | None = None
    relies: bool = False
    disputes: bool = False


def join_unlisted(
    name: str,
    description: str,
    load_rest: Callable[[Sequence[Toolset]], Rest],
    scopes: frozenset[str] = frozenset(),
) -> Callable[[Sequence[Toolset], Sequence[str], TaskGroup | None], Toolset]:
    """Return the `join` of a toolset that lists nothing, so that it costs nothing until it is asked for.

    Args:
        name: Of the toolset.
        description: Of the toolset.
        load_rest: Called with the tables of those in play; returns all that the toolset offers.
        scopes: Those that only this toolset needs.
    """

    def join(toolsets: Sequence[Toolset], names: Sequence[str], group: TaskGroup | None) -> Toolset:
        from refdesk.core.operations import Toolset

        del names, group
        return Toolset(name, description, (), partial(load_rest, toolsets), rest_scopes=scopes)

    return join
