"""What a toolset says about itself, in one place in its folder; whatever must know toolsets derives it from there.

A descriptor is read by every command, so the module that has it imports nothing but this one and the standard library:
what it names is loaded by its callables, when it is needed.
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
    from refdesk.protocols import Source


FEED_MARK = ":"
"""What stands between the names of a toolset and of a further source of it, as in `azure-updates:m365`."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that `refdesk doctor` looked at.

    Attributes:
        status: `warn` works, but not all of it; `fail` does not work.
        found: What was found; never a secret.
        advice: What to do about it; empty when nothing.
    """

    name: str
    status: Literal["ok", "warn", "fail"]
    found: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Means:
    """What a toolset's table is made with.

    Attributes:
        choose_language_model: Returns the one that the settings mean; raises a `ConfigurationError` or a
            `MissingDependencyError` where they lack something. Nothing hosted is loaded by it yet.
        settings: With the toolset's own among them; `None` where the table is only described.
    """

    choose_language_model: Callable[[], Inducer]
    settings: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """How a toolset is kept up to date with a source. All of its documents are in the shared org's collection.

    Each callable but those of the converter takes the settings, which have the toolset's own among them.

    Attributes:
        open_source: Returns the source; nothing is asked of it yet. Raises a `ConfigurationError` where it cannot be.
        load_converter: Returns what makes a document of a record; see `Syncer.to_document`.
        stale_after: The documents count as current for so long after a sync.
        full_after: A sync compares everything when the last one that did so is older.
        get_converter_version: See `Syncer.converter_version`; `None` converts every record anew at each sync.
        id_prefix: How the ids of all its documents begin, where the toolset has further sources; of the first one they
            are those that begin like no other's.
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
    """Told how far an export is."""

    def __call__(self, done: int, total: int | None) -> None:
        """Take note that `done` of `total` are exported; `None` where nobody knows how many there are."""
        ...


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What is to be written where.

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
    """What became of an export.

    Attributes:
        told: A message for the user; empty for none.
        is_complete: Whether all of it could be written.
    """

    told: str = ""
    is_complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """How a toolset's documents become files.

    Attributes:
        formats: By name, the usual one first.
        takes_search: Whether a query and filters may choose what is written.
        export: Writes; raises an `InvalidInputError` where the target does not suit, and an `OperatorError` where it
            cannot be written.
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
        load: Returns the table of its operations and resources. Of one that is asked live it is bound to nothing:
            callers learn what is not configured.
        scopes: What a credential can be allowed, each with what that is.
        load_settings: Returns the model of its own settings; `None` where it has none.
        is_configured: Whether the settings bring it into play when no toolset is named.
        sync: How it is kept up to date; `None` where its documents come from agents, or it has none.
        list_feeds: Returns the further sources of its collection that the settings add, by what tells them apart; each
            has a prefix of ids, and is synced, watched and told of as `toolset:feed`.
        connect: Opens what it is asked live through; called where it is in play and configured.
        join: Returns a table that asks the other toolsets and has no documents of its own. It is given the tables of
            those in play, the names of all that may be asked for, and the task group in which the questions end that
            are too slow; without that it is only read. It comes by itself where several can be searched.
        check: Looks at what it depends on, for `refdesk doctor`, and never raises a `RefdeskError`. Without it doctor
            looks whether the source answers.
        exporter: How its documents become files; `None` where they cannot.
        list_quotas: Returns how much may be written to it.
        choose_options: Returns how the settings let it behave; its handlers find that in `KnowledgeBase.options`.
        record_prefix: What the kinds of bookkeeping begin with that are its own, and move with its documents.
        own_store: The setting that holds the URL of a store of its own, where somebody sets it.
        announces: Loads what reads an announcement (see `refdesk.impact.changes`) out of a document; `None` where its
            documents announce no changes.
        relies: Whether its documents may be made wrong by what others announce.
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
    """Return the `join` of a toolset of which nothing is listed, so that it costs nothing until it is asked for.

    Args:
        name: Of the toolset.
        description: Of the toolset.
        load_rest: Called with the tables of those in play; returns all that the toolset offers.
        scopes: Those that only this needs.
    """

    def join(toolsets: Sequence[Toolset], names: Sequence[str], group: TaskGroup | None) -> Toolset:
        from refdesk.core.operations import Toolset

        del names, group
        return Toolset(name, description, (), partial(load_rest, toolsets), rest_scopes=scopes)

    return join
