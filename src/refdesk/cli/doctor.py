"""`refdesk doctor`: checks configuration, connections, freshness and background work, and says what to fix."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from refdesk import errors
from refdesk.cli import invocation
from refdesk.cli.deep_checks import look_deep
from refdesk.cli.python_build import check_python
from refdesk.core.counts import say_count
from refdesk.core.descriptors import Check
from refdesk.discovery import discover, find_descriptors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import timedelta
    from pathlib import Path

    from refdesk.app import Desk
    from refdesk.core.descriptors import ToolsetDescriptor
    from refdesk.core.operations import Toolset
    from refdesk.factories.bases import Base
    from refdesk.settings import Settings

MOST_SHOWN = 3
SOURCE_SECONDS = 5.0
MODEL_SECONDS = 10.0
NEARLY_FULL = 0.9
"""Share of an org's quota from which on doctor warns."""
LEAST_FREE = 1_000_000
"""Free bytes on a disk below which storing will soon fail."""

_COLORS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@click.option("--deep", is_flag=True, help="Read everything that is kept, and compare what must agree.")
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def doctor(deep: bool, as_json: bool) -> None:
    """Look at everything and say what is wrong and what to do; exit status 1 if something fails.

    With --deep every row, checksum, vector, link, index and entry of the audit log is read, beside servers that go on.
    """
    import anyio

    checks = anyio.run(run_checks, deep)
    if as_json:
        from refdesk.server.answers import to_text

        click.echo(to_text({"ok": not _has_failed(checks), "checks": [asdict(check) for check in checks]}))
    else:
        from refdesk.settings import read_variable

        # As no-color.org specifies it; click itself only checks whether the output is a terminal.
        color = False if read_variable("NO_COLOR") else None
        for check in checks:
            click.echo(render(check), color=color)
    sys.exit(_has_failed(checks))


def render(check: Check) -> str:
    """Return a check as one line, with a second line if there is something to do."""
    status = click.style(f"{check.status:<4}", fg=_COLORS[check.status], bold=True)
    advice = f"\n{'':21}{check.advice}" if check.advice else ""
    return f"{status}  {check.name:<14} {check.found}{advice}"


def _has_failed(checks: list[Check]) -> bool:
    return any(check.status == "fail" for check in checks)


async def run_checks(is_deep: bool = False) -> list[Check]:
    """Return every check that could be made, ordered so that each follows those it depends on."""
    from refdesk.app import open_desk
    from refdesk.factories.toolsets import load_toolsets
    from refdesk.settings import load_settings

    try:
        settings = load_settings()
        invocation.configure_logging(settings.log_level)
        toolsets = load_toolsets(settings=settings)
        found = f"embedder {settings.embedder}, org {settings.org}"
        checks = [Check("settings", "ok", found), *check_python(), *_check_file(), *_check_serving(settings, toolsets)]
        # Keys from a file are not needed to open a store, so everything else can be checked without them.
        async with open_desk(settings.model_copy(update={"keys_file": None}), toolsets, in_background=False) as desk:
            checks += [check async for check in _look(desk)]
            return checks + (await look_deep(desk) if is_deep else [])
    except errors.OperatorError as error:
        return [
            Check("settings", "fail", error.message, "Change or unset the variable; see the reference of settings.")
        ]


def _check_file() -> list[Check]:
    """Return whether others can read the secrets in the config file; nothing if there is no file."""
    from refdesk.settings import find_config_file, list_effective

    path, is_there = find_config_file()
    if path is None or not is_there:
        return []
    secrets = [each.name for each in list_effective() if each.source == "file" and each.is_secret]
    if secrets and sys.platform != "win32" and os.stat(path).st_mode & 0o077:
        return [Check("config file", "warn", f"others can read {path}: {', '.join(secrets)}", f"chmod 600 {path}")]
    return [Check("config file", "ok", path)]


def _check_serving(settings: Settings, toolsets: Sequence[Toolset]) -> list[Check]:
    """Return whether a server can start with the settings that only it reads; nothing on those that are not set."""
    from refdesk.factories.bases import open_key_file
    from refdesk.factories.toolsets import join_toolsets
    from refdesk.server.descriptions import choose_tools
    from refdesk.server.prefix import check_prefix, read_prefix

    def find_prefix() -> str | None:
        prefix = read_prefix(settings, None)
        check_prefix(prefix, toolsets)
        return f"clients reach the server under {prefix}, by a proxy" if prefix else None

    def find_tools() -> str | None:
        offered = [each for _, some in choose_tools(join_toolsets(toolsets, None), settings.tools) for each in some]
        return f"MCP offers {say_count(len(offered), 'tool')}" if settings.tools else None

    def find_keys() -> str | None:
        file = open_key_file(settings)
        return f"{say_count(len(file.list()), 'key')} in the file" if file is not None else None

    checks = list[Check]()
    for name, find in (("public URL", find_prefix), ("tools", find_tools), ("keys file", find_keys)):
        try:
            found = find()
        except errors.ConfigurationError as error:
            checks.append(Check(name, "fail", error.message, "The server does not start like this."))
        else:
            checks += [] if found is None else [Check(name, "ok", found)]
    return checks


async def _look(desk: Desk) -> AsyncIterator[Check]:
    yield _check_home(desk.settings)
    try:
        base = await desk.get_base()
        for each in base.each():
            await each.knowledge_base.store.check()
    except errors.RefdeskError as error:
        yield Check("store", "fail", error.message, "Nothing can be answered until the store opens.")
        return
    for name, each in (("store", base), *((f"{name} store", other) for name, other in base.apart.items())):
        async for check in _check_store(name, each, desk.settings.max_org_bytes):
            yield check
    for check in (*await _check_roles(desk.settings), _check_queue(base), *await _check_toolsets(desk)):
        yield check
    yield await _check_quarantine(base)
    yield await check_backups(desk.settings, base)
    for each in base.each():
        async for check in _check_embeddings(each):
            yield check
    yield await _check_model(base)
    yield _check_language_model(desk.settings)
    for check in (*await _check_sources(desk.settings), *_check_packages(desk.settings)):
        yield check
    for check in await check_sign_in(desk.settings):
        yield check


async def _check_store(name: str, base: Base, most: int | None) -> AsyncIterator[Check]:
    from refdesk.core.keeping.unfinished import find_unfinished

    store = base.knowledge_base.store
    if store.obstacle is not None:
        yield Check(
            name, "fail", f"{store.engine}: takes no writes: {store.obstacle}", "What is there is answered meanwhile."
        )
    else:
        yield Check(name, "ok", f"{store.engine}: opens, is safe, takes writes; schema is current")
    for node in await store.list_nodes():
        described = f"{node.name}, {node.holds}"
        yield Check(f"{name} node", "warn" if node.problem else "ok", described, node.problem or "")
    for move in await find_unfinished(store):
        yield Check(f"{name} move", "warn", move.found, move.advice)
    async for check in _check_sizes(name, base, most):
        yield check


async def _check_roles(settings: Settings) -> list[Check]:
    """Return a warning for each store whose database role bypasses row-level security; nothing if there is none."""
    from refdesk.factories.stores import list_above_policies
    from refdesk.factories.toolsets import choose_own_stores, list_names

    own = choose_own_stores(settings, list_names()).values()
    urls = {"REFDESK_STORE": [settings.store_url], "REFDESK_STORE_READ": settings.store_read_urls}
    try:
        found = await list_above_policies({**urls, **{variable: [url] for url, variable in own}})
    except errors.RefdeskError as error:
        return [Check("store role", "warn", error.message, "Whether row-level security binds the role is not known.")]
    advice = (
        "The second wall between orgs does not hold, only refdesk's own: ALTER ROLE … NOSUPERUSER NOBYPASSRLS, or name "
        "a role of its own that owns the database."
    )
    told = "row-level security does not bind the role of {}: it is a superuser or has BYPASSRLS"
    return [Check("store role", "warn", told.format(name), advice) for name in dict.fromkeys(found)]


async def _check_sizes(name: str, base: Base, most: int | None) -> AsyncIterator[Check]:
    """Yield how much each org stores, largest first, if that is counted."""
    from refdesk.core.writing import sizes

    found = sorted((await sizes.read_sizes(base.knowledge_base.store)).items(), key=lambda pair: (-pair[1], pair[0]))
    if most is None or not found:
        return
    told = "; ".join(f"{org} {size} bytes ({size / max(most, 1):.0%})" for org, size in found[:MOST_SHOWN])
    advice = f"At {most} its notes and skills are refused. Raise {sizes.SETTING}, or erase what is not needed."
    is_near = found[0][1] > NEARLY_FULL * most
    yield Check(f"{name} size", "warn" if is_near else "ok", f"of {most} bytes: {told}", advice if is_near else "")


def _check_queue(base: Base) -> Check:
    if base.queue is not None and base.queue.trouble:
        advice = "Nothing is lost: each process works for itself meanwhile. See the how-to on workers."
        return Check("queue", "warn", base.queue.trouble, advice)
    if base.queue is not None and base.queue.is_shared:
        return Check("queue", "ok", "shared: every worker embeds, tokens and limits count across servers")
    return Check("queue", "ok", "none is shared: one process at a time embeds")


async def _check_sources(settings: Settings) -> list[Check]:
    return [check for each in find_descriptors() for check in await _check_source(each, settings)]


async def _check_source(descriptor: ToolsetDescriptor, settings: Settings) -> Sequence[Check]:
    """Return the toolset's own checks of what it depends on; if it has none, whether its source answers."""
    if descriptor.check is not None:
        return await descriptor.check(settings)
    if descriptor.sync is None:
        return []
    import anyio

    name = f"{descriptor.name} source"
    if not descriptor.is_configured(settings):
        return [Check(name, "ok", "not configured")]
    try:
        with anyio.fail_after(SOURCE_SECONDS):
            async for _ in descriptor.sync.open_source(settings).read(None):
                break
    except errors.RefdeskError as error:
        return [Check(name, "warn", error.message, "Search goes on with what is on file.")]
    except TimeoutError:
        return [Check(name, "warn", f"no answer within {SOURCE_SECONDS:g} seconds", "Check the network, or a proxy.")]
    return [Check(name, "ok", "answers")]


def _check_packages(settings: Settings) -> list[Check]:
    """Return whether the toolsets that installed packages bring are served."""
    from refdesk.factories.toolsets import load_what_can_be

    problems = load_what_can_be((), settings).problems
    checks = [Check(name, "ok", f"brought by the package {package}") for name, package in discover().packages.items()]
    advice = "The others are served. Update the package, or uninstall it."
    return [
        *[check for check in checks if discover().packages[check.name] not in problems],
        *[Check(package, "fail", f"its toolset is left out: {reason}", advice) for package, reason in problems.items()],
    ]


def _check_home(settings: Settings) -> Check:
    from refdesk.factories.stores import find_file

    if settings.store is not None:
        return Check("data folder", "ok", "not used: REFDESK_STORE says where things are kept")
    try:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = settings.home / ".doctor"
        probe.touch(mode=0o600)
        probe.unlink()
        free = shutil.disk_usage(settings.home).free
        if free < LEAST_FREE:
            advice = "Free some space; until then what is there can be read, and nothing be stored."
            return Check("data folder", "fail", f"the disk of {settings.home} is full: {free} bytes are free", advice)
    except OSError as error:
        advice = "Give yourself the right to write there, or set REFDESK_HOME to another folder."
        file = find_file(settings.store_url)
        found = f"{settings.home} cannot be written: {error.strerror}"
        if file is not None and file.is_file():
            return Check("data folder", "warn", f"{found}. What is there can be read, and nothing be stored.", advice)
        return Check("data folder", "fail", found, advice)
    return Check("data folder", "ok", str(settings.home))


async def _check_toolsets(desk: Desk) -> list[Check]:
    health = await desk.get_health()
    checks: list[Check] = []
    for name, one in health.toolsets.items():
        if one.documents is None:
            continue  # it is queried live and has checks of its own
        as_of = f", as of {one.as_of:%Y-%m-%d %H:%M} UTC" if one.as_of else ""
        found = f"{say_count(one.documents, 'document')}{as_of}"
        if one.problem:
            checks.append(Check(name, "warn", f"{found}; {one.problem}", f"Run refdesk sync {name}."))
        else:
            checks.append(Check(name, "ok", found))
    return checks


async def _check_quarantine(base: Base) -> Check:
    from refdesk.core.background.sync_log import DEAD_LETTER

    records = await base.knowledge_base.store.list_metadata(DEAD_LETTER)
    if not records:
        return Check("quarantine", "ok", "no record of a source is set aside")
    shown = "; ".join(f"{record.key.name}: {record.value.get('reason')}" for record in records[:MOST_SHOWN])
    advice = "They are read again by every full sync; nothing else is held up."
    return Check("quarantine", "warn", f"records that could not be read: {len(records)} ({shown})", advice)


async def check_backups(settings: Settings, base: Base) -> Check:
    """Return the state of the backups that the settings ask for."""
    import anyio.to_thread

    from refdesk.core.background.backups import find_problem, read_status
    from refdesk.factories.backups import choose_schedule, follow_files

    schedule, clock = choose_schedule(settings), base.knowledge_base.clock
    try:
        await anyio.to_thread.run_sync(follow_files, settings)
    except errors.ConfigurationError as error:
        if schedule is None:
            return Check("backups", "ok", "made by the store's own server", "docs/how-to/back-up.md says how.")
        advice = "Back it up by its server's own tools (docs/how-to/back-up.md), and unset REFDESK_BACKUP_EVERY."
        return Check("backups", "fail", error.message, advice)
    if schedule is None and settings.backup_to is not None:
        found = "none is made: REFDESK_BACKUP_TO is set without REFDESK_BACKUP_EVERY"
        return Check("backups", "warn", found, "Say in REFDESK_BACKUP_EVERY how often, or unset REFDESK_BACKUP_TO.")
    if schedule is not None and (obstacle := _find_obstacle(schedule.folder)) is not None:
        advice = "Name a folder in REFDESK_BACKUP_TO that can be written."
        return Check("backups", "fail", f"none can be made in {schedule.folder}: {obstacle}", advice)
    status, now = await read_status(base.knowledge_base.store), clock.now()
    problem = find_problem(status, schedule, now, status.made_at or now) if schedule is not None else None
    if problem is not None:
        return Check("backups", "warn", problem, "See that REFDESK_BACKUP_TO can be written and has room.")
    found = "none was made" if status.made_at is None else f"the last one {_tell_age(now - status.made_at)} ago"
    found += f" ({status.name})" if status.name else ""
    if schedule is None:
        return Check("backups", "ok", found, "Make one with refdesk backup FILE, or set REFDESK_BACKUP_EVERY.")
    return Check("backups", "ok", f"{found}; one is made every {settings.backup_every}")


def _find_obstacle(folder: Path) -> str | None:
    """Return why a folder, which is created when first needed, cannot be written to; `None` if it can."""
    nearest = next(each for each in (folder, *folder.absolute().parents) if os.path.exists(each))
    if not os.path.isdir(nearest):
        return f"{nearest} is no folder"
    return None if os.access(nearest, os.W_OK) else f"{nearest} cannot be written"


async def _check_embeddings(base: Base) -> AsyncIterator[Check]:
    from refdesk.core.background.health import measure_backlog

    backlog, now = await measure_backlog(base.indexer), base.knowledge_base.clock.now()
    failures = await base.indexer.list_failures()
    if failures:
        reasons = "; ".join(sorted({failure.reason for failure in failures})[:MOST_SHOWN])
        advice = "Only keyword search finds them. Once the cause is fixed, run refdesk embeddings retry."
        yield Check("embeddings", "warn", f"{say_count(len(failures), 'document')} failed: {reasons}", advice)
    if backlog.oldest is None:
        yield Check("embeddings", "ok", "no document waits for its vectors")
        return
    waiting = say_count(backlog.waiting, "document waits for its vectors", "documents wait for their vectors")
    found = f"{waiting}, the oldest for {_tell_age(now - backlog.oldest)}"
    if backlog.is_attended:
        yield Check("embeddings", "ok", f"{found}; a process is at it")
    else:
        advice = "Only keyword search finds them until a server or refdesk worker runs."
        yield Check("embeddings", "warn", f"{found}, and nobody makes any", advice)


def _tell_age(age: timedelta) -> str:
    seconds = max(0, int(age.total_seconds()))
    units = [(86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds")]
    size, word = next(((size, word) for size, word in units if seconds >= 2 * size), (1, "seconds"))
    return f"{seconds // size} {word}"


async def _check_model(base: Base) -> Check:
    from refdesk.core.search.breaker import find_trouble

    model = base.semantics.wanted.model
    try:
        await base.semantics.wanted.load()
    except errors.RefdeskError as error:
        return Check("model", "fail", error.message, "Keyword search goes on.")
    trouble = await find_trouble(base.semantics.wanted, MODEL_SECONDS)
    if trouble is not None:
        return Check("model", "fail", trouble, "Keyword search goes on.")
    missing = await base.semantics.find_missing()
    active = await base.semantics.get_active()
    if missing is not None:
        found = f"{model.name} works, but the vectors are those of {missing.name}, which these settings do not provide"
        return Check("model", "warn", found, "Search goes by words until a server or refdesk worker has embedded all.")
    if active is not None and active.model != model:
        counts = await base.indexer.count()
        done = f"{sum(one.embedded for one in counts):,} of {sum(one.documents for one in counts):,} documents"
        found = f"{model.name} works; {done} are embedded anew, and {active.model.name} is searched meanwhile"
        return Check("model", "ok", found)
    return Check("model", "ok", f"{model.name} loads and answers, {model.dimensions} wide")


def _check_language_model(settings: Settings) -> Check:
    from refdesk.factories.language_models import choose_language_model

    name = choose_language_model(settings).name
    if settings.language_model != "rules":
        return Check("language model", "ok", f"{name} is asked when a skill is learned; nothing was asked of it now")
    is_chosen = "language_model" in settings.model_fields_set
    advice = "" if is_chosen else "For a model, set REFDESK_LANGUAGE_MODEL to gemini or openai, and its key."
    return Check("language model", "ok", f"none: skills are learned by {name}, without a key", advice)


async def _check_console(issuer: str, base: str) -> Check:
    """Return whether people can sign in to the console through the issuer."""
    from refdesk.server.oauth.code_flow import RETURN
    from refdesk.server.oauth.issuer import Issuer

    try:
        endpoints = await Issuer(issuer).find_endpoints()
    except errors.RefdeskError as error:
        return Check("console", "fail", error.message, "People sign in to the console with keys alone.")
    advice = f"The client must be registered for the redirect URI {base}{RETURN}."
    return Check("console", "ok", f"people are sent to {endpoints.authorization}", advice)


async def check_sign_in(settings: Settings) -> list[Check]:
    """Return whether callers can sign in, that is, whether the issuer's keys can be read; nothing without an issuer."""
    from refdesk.server.oauth.configuration import find_host, read_oauth

    try:
        oauth = read_oauth(settings)
    except errors.ConfigurationError as error:
        return [Check("sign-in", "fail", error.message, "The server does not start like this.")]
    if oauth is None:
        return []
    from refdesk.server.oauth.issuer import Issuer

    try:
        published = await Issuer(oauth.issuer, oauth.jwks_url).fetch()
    except errors.RefdeskError as error:
        advice = "Nobody can sign in; API keys go on. Check REFDESK_OAUTH_ISSUER to the letter, the network, a proxy."
        return [Check("sign-in", "fail", error.message, advice)]
    found = f"{oauth.issuer} answers, {say_count(len(published.keys), 'key')} at {published.source}"
    checks = [Check("sign-in", "ok", found, f"Its tokens must be for {', '.join(sorted(oauth.audiences))}.")]
    if oauth.console is not None:
        checks.append(await _check_console(oauth.issuer, oauth.console.base))
    if (host := find_host(oauth)) not in (None, *(name.lower() for name in settings.allowed_hosts)):
        advice = f"Add {host} to REFDESK_ALLOWED_HOSTS, unless the proxy in front sends another Host."
        checks.append(Check("public address", "warn", f"requests that name {host} are refused", advice))
    return checks
