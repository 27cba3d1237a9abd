"""Schema migrations: the numbered SQL files of an engine, each applied once, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from refdesk.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: `number` is its position, `name` the rest of its file's name, `script` its SQL."""

    number: int
    name: str
    script: str


def load_steps(engine: str) -> list[Migration]:
    """Return the steps that this version has for an engine, which is a folder of `schema`, in order."""
    folder = resources.files("refdesk.stores").joinpath("schema", engine)
    return sorted(
        (_parse(each.name, each.read_text("utf-8")) for each in folder.iterdir() if each.name.endswith(".sql")),
        key=lambda migration: migration.number,
    )


def find_missing(migrations: list[Migration], applied: Mapping[int, str], place: str) -> list[Migration]:
    """Return the steps that have not been applied, in order.

    Args:
        migrations: Every step there is, in order.
        applied: The names of the steps that were applied, by number.
        place: What a store of this engine is, such as a file or a database.

    Raises:
        ConfigurationError: The store was written by a newer refdesk.
    """
    known = {migration.number: migration.name for migration in migrations}
    if any(known.get(number) != name for number, name in applied.items()):
        raise ConfigurationError(
            f"The store was written by a newer refdesk (schema {max(applied)}, this one knows {max(known)}). "
            f"Upgrade refdesk, or name another {place} in REFDESK_STORE."
        )
    return [migration for migration in migrations if migration.number not in applied]


def _parse(file_name: str, script: str) -> Migration:
    number, _, name = file_name.removesuffix(".sql").partition("_")
    return Migration(int(number), name, script)
