"""Builds the embedder that the settings select, without loading the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from refdesk import errors

if TYPE_CHECKING:
    from refdesk.embedders.hashing import HashingEmbedder
    from refdesk.embedders.hosted.gemini import GeminiEmbedder
    from refdesk.embedders.hosted.openai import OpenAIEmbedder
    from refdesk.embedders.local import LocalEmbedder
    from refdesk.embedders.local.installed.reranker import InstalledReranker
    from refdesk.model import EmbeddingModel
    from refdesk.settings import EmbedderName, Settings

    AnyEmbedder: TypeAlias = LocalEmbedder | HashingEmbedder | GeminiEmbedder | OpenAIEmbedder


def choose_embedder(settings: Settings, name: EmbedderName) -> AnyEmbedder:
    """Return the embedder of that name; nothing is loaded yet.

    Raises:
        ConfigurationError: It needs a setting that is missing.
    """
    match name:
        case "local":
            from refdesk.embedders.local.installed.manifest import read_in_use

            return _choose_local(settings, read_in_use(settings.home))
        case "hashing":
            from refdesk.embedders.hashing import HashingEmbedder

            return HashingEmbedder()
        case "gemini":
            return _choose_gemini(settings)
        case "openai":
            return _choose_openai(settings)


def _choose_local(settings: Settings, name: str) -> AnyEmbedder:
    from refdesk.embedders.local import LocalEmbedder
    from refdesk.embedders.local.installed.manifest import FOLDER, PACKAGED, find_installed

    if name == PACKAGED or settings.embedder_model_path is not None:
        return LocalEmbedder(settings.embedder_model_path, cache=settings.home / FOLDER)
    from refdesk.embedders.local.installed import InstalledEmbedder

    manifest = find_installed(settings.home, name)
    if manifest is None:
        raise errors.ConfigurationError(
            f"The embedding model in use, {name}, is not installed: install it with `refdesk models install`, or take "
            "another with `refdesk models use`."
        )
    return InstalledEmbedder(settings.home, manifest)


def choose_reranker(settings: Settings) -> InstalledReranker | None:
    """Return the re-ranker that was installed and is in use, not loaded yet; usually there is none."""
    from refdesk.embedders.local.installed.manifest import find_reranker

    manifest = find_reranker(settings.home)
    if manifest is None:
        return None
    from refdesk.embedders.local.installed.reranker import InstalledReranker

    return InstalledReranker(settings.home, manifest)


def _choose_gemini(settings: Settings) -> AnyEmbedder:
    from refdesk.embedders.hosted.gemini import GeminiEmbedder

    if settings.gemini_api_key is None:
        raise errors.ConfigurationError("REFDESK_EMBEDDER is gemini, which needs a key: set REFDESK_GEMINI_API_KEY.")
    return GeminiEmbedder(
        settings.gemini_api_key.get_secret_value(),
        model=settings.gemini_embedding_model,
        dimensions=settings.gemini_embedding_dimensions,
        base_url=settings.gemini_base_url,
    )


def _choose_openai(settings: Settings) -> AnyEmbedder:
    from refdesk.embedders.hosted.openai import OpenAIEmbedder

    key = settings.openai_api_key
    return OpenAIEmbedder(
        key.get_secret_value() if key else None,
        model=settings.openai_embedding_model,
        dimensions=settings.openai_embedding_dimensions,
        is_cut=settings.openai_embedding_is_cut,
        base_url=settings.openai_base_url,
    )


def find_embedder(settings: Settings, model: EmbeddingModel) -> AnyEmbedder | None:
    """Return the embedder of a model that vectors are kept of, or `None` when these settings do not provide it.

    Of a service the settings say where it is, and its key; which of its models is meant, the name of `model` says.
    """
    names: tuple[EmbedderName, ...] = ("local", "hashing", "gemini", "openai")
    for name in names:
        if name == "openai" and not _has_openai(settings):
            continue
        try:
            embedder = choose_embedder(_name_hosted(settings, name, model), name)
        except errors.ConfigurationError:
            continue
        if embedder.model == model:
            return embedder
    from refdesk.embedders.local.installed.manifest import PACKAGED, list_installed

    for name in (PACKAGED, *(manifest.name for manifest in list_installed(settings.home))):
        embedder = _choose_local(settings, name)
        if embedder.model == model:
            return embedder
    return None


def _has_openai(settings: Settings) -> bool:
    """Return whether the settings name such a service, by its address or by a key: nothing is sent to one unasked."""
    return settings.openai_api_key is not None or "openai_base_url" in settings.model_fields_set


def _name_hosted(settings: Settings, name: EmbedderName, model: EmbeddingModel) -> Settings:
    """Return the settings with that model of a service in place of theirs; unchanged where the service is another."""
    begin, end = f"{name}-", f"-{model.dimensions}"
    if name not in ("gemini", "openai") or not (model.name.startswith(begin) and model.name.endswith(end)):
        return settings
    called = model.name.removeprefix(begin).removesuffix(end)
    changes: dict[str, object] = {f"{name}_embedding_model": called, f"{name}_embedding_dimensions": model.dimensions}
    if called == settings.openai_embedding_model and model.dimensions != settings.openai_embedding_dimensions:
        changes["openai_embedding_is_cut"] = True  # a model has one width of its own
    return settings.model_copy(update=changes)
