"""`refdesk models`: lists, installs, chooses and removes embedding models that run in the process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from refdesk import errors
from refdesk.cli import invocation, views_of_status
from refdesk.cli.groups import Group
from refdesk.core.counts import say_count

if TYPE_CHECKING:
    from refdesk.cli.progress import Show
    from refdesk.core.background.upkeep import EmbeddingState
    from refdesk.embedders.local.installed.manifest import Manifest
    from refdesk.model import EmbeddingModel
    from refdesk.settings import Settings


IN_USE = (
    "{} makes vectors from the next start of a server, desk or worker on (refdesk stop ends the desk); refdesk worker "
    "--until-idle embeds now."
)


@click.group(cls=Group)
def models() -> None:
    """Choose the embedding model: any sentence encoder in ONNX with its tokenizer."""


@models.command("list")
@invocation.json_option
def list_models(as_json: bool) -> None:
    """List the packaged model and those installed, and which of them makes vectors."""
    from refdesk.embedders.local import MODEL
    from refdesk.embedders.local.installed.manifest import PACKAGED, find_reranker, list_installed, read_in_use

    home = invocation.load().home
    in_use = read_in_use(home)
    packaged = {
        "name": PACKAGED,
        "dimensions": MODEL.dimensions,
        "languages": "latin",
        "known": ["en"],
        "source": "refdesk",
    }
    rows = [packaged, *(_to_json(manifest) for manifest in list_installed(home))]
    reranker = find_reranker(home)
    used = {in_use, reranker.name if reranker is not None else in_use}
    shown = [row | {"inUse": row["name"] in used} for row in rows]
    if as_json:
        invocation.print_json({"models": shown})
        return
    for row in shown:
        if row.get("kind") == "reranker":
            click.echo(f"{'*' if row['inUse'] else ' '} {row['name']}  re-ranker, from {row['source']}")
            continue
        script = "any script" if row["languages"] == "all" else "Latin script"
        mark = "*" if row["inUse"] else " "
        known = ", ".join(cast("list[str]", row["known"] or []))
        read = f"{script} (knows {known})" if known else script
        click.echo(f"{mark} {row['name']}  {row['dimensions']} dimensions, {read}, from {row['source']}")


@models.command()
@click.argument("source")
@click.option("--name", metavar="NAME", help="What to call it. Default: after its source.")
@click.option("--sha256", metavar="DIGEST", help="What the SHA-256 of the model's file must be.")
@invocation.json_option
def install(source: str, name: str | None, sha256: str | None, as_json: bool) -> None:
    """Install a model from SOURCE: a folder, an archive, or OWNER/NAME on Hugging Face.

    Its width, pooling and prefixes are read from its own files. It is tried before it counts as installed.
    """
    from refdesk.embedders.local.installed.installing import install as install_model

    manifest = install_model(source, invocation.load().home, name=name, sha256=sha256)
    if as_json:
        invocation.print_json(_to_json(manifest))
        return
    if manifest.kind == "reranker":
        click.echo(f"Installed {manifest.name}, a re-ranker: refdesk models use {manifest.name} lets it re-rank.")
        return
    click.echo(f"Installed {manifest.name}: {manifest.dimensions} dimensions, {manifest.pooling} pooling.")
    click.echo(f"refdesk models use {manifest.name} lets it make vectors.")


@models.command()
@click.argument("name")
@click.option("--wait", is_flag=True, help="Embed all documents anew now, and show how far that is.")
@invocation.json_option
def use(name: str, wait: bool, as_json: bool) -> None:
    """Let a model make vectors, or a re-ranker order the best entries of search_knowledge anew.

    Search goes on with the old vectors until all documents have new ones. Who removes a re-ranker ends its use.
    """
    from refdesk.core.search.reranking import RERANKED
    from refdesk.embedders.local.installed.manifest import (
        PACKAGED,
        check_files,
        find_installed,
        get_folder,
        write_in_use,
        write_reranker,
    )

    settings = invocation.load()
    manifest = find_installed(settings.home, name)
    if manifest is None and name != PACKAGED:
        raise errors.InvalidInputError(f"No model is called {name}: refdesk models list shows those there are.")
    if manifest is not None:
        check_files(get_folder(settings.home, name), manifest)
    if manifest is not None and manifest.kind == "reranker":
        write_reranker(settings.home, name)
        told = [f"{name} re-ranks the first {RERANKED} entries of search_knowledge from the next start on."]
    else:
        write_in_use(settings.home, name)
        _warn(settings)
        told = _embed_anew(name) if wait else [IN_USE.format(name), "Documents are embedded anew in the background."]
    if as_json:
        invocation.print_json({"inUse": name, "notes": told})
    else:
        click.echo("\n".join(told))


@models.command()
@click.argument("name")
@click.option(
    "--force", is_flag=True, help="Remove it although its vectors are searched; then there is only keyword search."
)
@invocation.json_option
def remove(name: str, force: bool, as_json: bool) -> None:
    """Remove an installed model. Vectors that it made stay until another model has made them anew.

    Refused while they are searched, as after `refdesk models use` of another model until all documents are embedded.
    """
    from refdesk.embedders.local.installed.installing import remove as remove_model
    from refdesk.embedders.local.installed.manifest import PACKAGED, find_installed, read_in_use

    settings = invocation.load()
    home = settings.home
    if name == PACKAGED:
        raise errors.InvalidInputError(f"{name} comes with refdesk and cannot be removed.")
    manifest = find_installed(home, name)
    if manifest is None:
        raise errors.InvalidInputError(f"No model is called {name}: refdesk models list shows those there are.")
    if read_in_use(home) == name:
        raise errors.ConflictError(f"{name} is in use: take another first, such as refdesk models use {PACKAGED}.")
    if not force and manifest.kind == "encoder":
        _require_not_searched(settings, manifest)
    remove_model(home, name)
    if as_json:
        invocation.print_json({"removed": name})
    else:
        click.echo(f"Removed {name}.")


def _require_not_searched(settings: Settings, manifest: Manifest) -> None:
    """Return if no store is searched by vectors of a model.

    Raises:
        ConflictError: One is.
        StoreError: One cannot be asked.
    """
    import anyio

    try:
        documents = anyio.run(_count_searched, settings, manifest.model)
    except errors.RefdeskError as error:
        raise errors.StoreError(
            f"Nobody knows whether vectors of {manifest.name} are still searched, so it was not removed (--force does "
            f"that): {error.message}"
        ) from None
    if documents:
        raise errors.ConflictError(
            f"{manifest.name} is still searched, by its vectors of {say_count(documents, 'document')}, until another "
            "model has embedded them all anew. A server does that, or refdesk worker --until-idle. --force removes it "
            "at once; then there is only keyword search until that is done."
        )


async def _count_searched(settings: Settings, model: EmbeddingModel) -> int:
    """Return how many documents are found by vectors of a model; errors as in opening the stores."""
    import anyio

    from refdesk.core.search.semantics import read_active
    from refdesk.factories.stores import choose_followed, find_file
    from refdesk.factories.toolsets import choose_own_stores, list_names

    count = 0
    places = [(settings.store_url, "REFDESK_STORE"), *choose_own_stores(settings, list_names()).values()]
    for url, variable in places:
        file = find_file(url)
        if file is not None and not await anyio.Path(file).is_file():
            continue
        async with choose_followed(url, variable)() as store:
            if await read_active(store) == model:
                count += sum(each.embedded for each in await store.count_embedded(model.name))
    return count


def _embed_anew(name: str) -> list[str]:
    """End the desks, which use the previous model, embed everything with the current one, and return how it went.

    Raises:
        ConflictError: A server runs over HTTP, which would go on embedding with the previous model.
    """
    import anyio

    from refdesk.cli import desk, progress

    ended = [desk.end(place, found, is_quiet=True) for place, found in desk.list_desks()]
    if not all(ended):
        raise errors.ConflictError(
            f"{name} is in use from the next start on: start the server again, and it embeds all documents anew. "
            "refdesk status says how far that is."
        )
    with progress.show_progress(f"Embedding anew by {name}") as show:
        state = anyio.run(_embed_all, show)
    said = views_of_status.describe_embedding(state.to_json()) or [f"All {state.documents:,} documents are embedded."]
    if not state.is_changing:
        return [*said, f"{state.active} is searched."]
    failed = f"{len(state.failures):,} could not be embedded: refdesk embeddings list says why."
    return [*said, *([failed] if state.failures else [])]


async def _embed_all(show: Show | None) -> EmbeddingState:
    from refdesk.app import open_desk
    from refdesk.cli.worker import embed_all
    from refdesk.factories.toolsets import load_toolsets

    settings = invocation.load()
    async with open_desk(settings, load_toolsets((), settings), in_background=False) as desk:
        base = await desk.get_base()
        for each in base.each():
            await embed_all(each, show)
        return await desk.get_upkeep(base).get_embedding()


def _warn(settings: Settings) -> None:
    if settings.embedder != "local":
        click.echo(f"REFDESK_EMBEDDER is {settings.embedder}, so that makes vectors as long as it is set.", err=True)
    elif settings.embedder_model_path is not None:
        click.echo("REFDESK_EMBEDDER_MODEL_PATH names a file, which goes first as long as it is set.", err=True)


def _to_json(manifest: Manifest) -> dict[str, Any]:
    return {
        "name": manifest.name,
        "kind": manifest.kind,
        "dimensions": manifest.dimensions,
        "languages": manifest.languages,
        "known": manifest.known,
        "source": manifest.source,
        "pooling": manifest.pooling,
        "pieces": manifest.most_pieces,
        "queryPrefix": manifest.query_prefix,
        "passagePrefix": manifest.passage_prefix,
        "sha256": manifest.sha256,
    }
