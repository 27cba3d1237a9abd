"""What agents wrote down: stored, searched, superseded, never lost."""

from __future__ import annotations

from refdesk.core.operations import Toolset
from refdesk.toolsets.knowledge.models import TOOLSET_NAME
from refdesk.toolsets.knowledge.operations import OPERATIONS
from refdesk.toolsets.knowledge.provider import PROVIDER
from refdesk.toolsets.knowledge.resources import TEMPLATES

TOOLSET = Toolset(
    name=TOOLSET_NAME,
    description="Knowledge that agents store, search and supersede.",
    operations=OPERATIONS,
    templates=TEMPLATES,
    provider=PROVIDER,
)
