"""The glossary, as refdesk knows it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from refdesk.core.descriptors import Check, Live, Means, ToolsetDescriptor

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from company_glossary.settings import GlossarySettings
    from refdesk.core.operations import Toolset

NAME = "company-glossary"
DESCRIPTION = "What words mean in this company."


def _make(path: Path | None) -> Toolset:
    from company_glossary.operations import make_operations
    from refdesk.core.operations import Toolset
    from refdesk.errors import ConfigurationError

    def get_path() -> Path:
        if path is None:
            raise ConfigurationError("Set REFDESK_COMPANY_GLOSSARY_FILE.")
        return path

    return Toolset(NAME, DESCRIPTION, make_operations(get_path))


def _load(means: Means) -> Toolset:
    del means
    return _make(None)


def _load_settings() -> type[GlossarySettings]:
    from company_glossary.settings import GlossarySettings

    return GlossarySettings


def _is_configured(settings: GlossarySettings) -> bool:
    return settings.company_glossary_file is not None


@asynccontextmanager
async def _connect(settings: GlossarySettings) -> AsyncGenerator[Live]:
    yield Live(_make(settings.company_glossary_file), lambda: None)


async def _check(settings: GlossarySettings) -> Sequence[Check]:
    from company_glossary.operations import read_words
    from refdesk.errors import RefdeskError

    if settings.company_glossary_file is None:
        return [Check("glossary", "ok", "not configured", "Set REFDESK_COMPANY_GLOSSARY_FILE.")]
    try:
        words = await read_words(settings.company_glossary_file)
    except RefdeskError as error:
        return [Check("glossary", "fail", error.message)]
    return [Check("glossary", "ok", f"{len(words)} words")]


TOOLSET = ToolsetDescriptor(
    name=NAME,
    description=DESCRIPTION,
    load=_load,
    scopes={"company-glossary:read": "look words up in the company's glossary"},
    load_settings=_load_settings,
    is_configured=_is_configured,
    connect=_connect,
    check=_check,
)
