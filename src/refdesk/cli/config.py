"""`refdesk config`: which settings are in effect, and where each comes from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import click

from refdesk import errors
from refdesk.cli import invocation
from refdesk.cli.views_of_entries import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refdesk.settings import Effective

HIDDEN = "(set, not shown)"
_USER = re.compile(r"(?<=://)[^/\s@]+@")
"""The user part of a URL, which may include a password."""


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "is_all", is_flag=True, help="Also settings that nobody has set.")
@invocation.json_option
def config(names: tuple[str, ...], is_all: bool, as_json: bool) -> None:
    """Show the settings in effect and where each comes from, or only those named, such as home.

    The environment wins over the config file, and that over the defaults. Secrets are never shown.
    """
    from refdesk.settings import find_config_file, list_effective

    found = list_effective()
    known = {each.name for each in found}
    for name in (name for name in names if name not in known):
        raise errors.InvalidInputError(f"There is no setting {name!r}; refdesk config --all lists every one.")
    shown = [each for each in found if (each.name in names if names else is_all or each.source != "default")]
    path, is_there = find_config_file()
    if as_json:
        file = {"path": path, "isThere": is_there}
        invocation.print_json({"file": file, "settings": [_to_json(each) for each in shown]})
        return
    click.echo(f"Config file: {path or 'none, as REFDESK_CONFIG says'}{'' if is_there or not path else ' (not there)'}")
    click.echo("\n".join(_lay_out(shown)) or "Every setting has its default; refdesk config --all lists them.")


def _lay_out(shown: Sequence[Effective]) -> list[str]:
    rows = [(each.name, tell_value(each) or "(none)", each.source) for each in shown]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(2)]
    return [f"{name:<{widths[0]}}  {printable(value):<{widths[1]}}  {source}" for name, value, source in rows]


def tell_value(each: Effective) -> str:
    """Return a setting's value as an environment variable would hold it, without secrets; empty where it has none."""
    if each.value is None:
        return ""
    if each.is_secret:
        return HIDDEN
    value: object = each.value
    if isinstance(value, tuple):
        return ",".join(str(part) for part in cast("tuple[object, ...]", value))
    return _USER.sub("…@", str(value).lower() if isinstance(value, bool) else str(value))


def _to_json(each: Effective) -> dict[str, Any]:
    value = {"isSet": each.value is not None} if each.is_secret else {"value": tell_value(each) or None}
    return {"name": each.name, "variable": each.variable, **value, "source": each.source, "secret": each.is_secret}
