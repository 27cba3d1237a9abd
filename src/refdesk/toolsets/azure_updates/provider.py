"""The search provider of azure-updates: hybrid search; the period is that of an update's last change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refdesk.core.search.providers import HitReference
from refdesk.kit.provider import CollectionSearch
from refdesk.toolsets.azure_updates import TOOLSET_NAME
from refdesk.toolsets.azure_updates.operations import SCOPES, SEARCH_UPDATES
from refdesk.toolsets.azure_updates.products import name_tag
from refdesk.toolsets.azure_updates.results import get_public_page
from refdesk.toolsets.azure_updates.state import describe_data

if TYPE_CHECKING:
    from refdesk.model import Document


def refer(update: Document) -> HitReference:
    """Return how an update is read whole."""
    return HitReference(SEARCH_UPDATES.name, {"id": update.id}, get_public_page(update.id))


def read(update: Document) -> str:
    """Return the description, without the targets of its links; behind it the body has what products are called."""
    from refdesk.kit.markdown import drop_targets  # not at the start, which its parser would slow

    return drop_targets(str(update.data["description"]))


FIND = (
    CollectionSearch(
        read=read,
        toolset=TOOLSET_NAME,
        operation=SEARCH_UPDATES.name,
        scopes=SCOPES,
        refer=refer,
        source="Microsoft",
        things="updates",
        dates="modified",
        tags="tags",
        name_tag=name_tag,
        quotes_bind=True,
        describe=describe_data,
    )
    .to_provider()
    .find
)
