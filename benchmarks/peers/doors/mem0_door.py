"""mem0 without inference, over the line protocol: its own Qdrant files and history, the common encoder."""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"

from encoder import DIMENSIONS, encode
from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase
from mem0.utils.factory import EmbedderFactory
from served import serve

FOLDER = os.environ["PEER_HOME"]
USER = "bench"


class Common(EmbeddingBase):
    """The common encoder as mem0 wants one."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Return its vector."""
        return encode([text])[0].tolist()

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        """Return a vector for each."""
        return encode(texts).tolist()


EmbedderFactory.provider_to_class["huggingface"] = f"{__name__}.Common"
sys.modules.setdefault("mem0_door", sys.modules[__name__])

memory = Memory.from_config(
    {
        "embedder": {"provider": "huggingface", "config": {"embedding_dims": DIMENSIONS}},
        "llm": {"provider": "openai", "config": {"api_key": "none"}},
        "vector_store": {
            "provider": "qdrant",
            "config": {"path": f"{FOLDER}/qdrant", "on_disk": True, "embedding_model_dims": DIMENSIONS},
        },
        "history_db_path": f"{FOLDER}/history.db",
    }
)


def store(key: str, title: str, body: str) -> dict[str, Any]:
    """Keep a note as it is."""
    [made] = memory.add(f"{title}\n\n{body}", user_id=USER, metadata={"key": key}, infer=False)["results"]
    return {"id": made["id"]}


def replace(id: str, key: str, title: str, body: str) -> dict[str, Any]:
    """Put another text in a note's place."""
    memory.update(id, f"{title}\n\n{body}")
    return {"id": id}


def search(query: str, limit: int) -> dict[str, Any]:
    """Return the texts found, best first."""
    found = memory.search(query, filters={"user_id": USER}, top_k=limit)["results"]
    return {"found": [[each.get("metadata", {}).get("key", ""), each["memory"]] for each in found]}


def everything() -> dict[str, Any]:
    """Return the keys of all notes."""
    found = memory.get_all(filters={"user_id": USER}, top_k=1_000_000)["results"]
    return {"keys": [each.get("metadata", {}).get("key", "") for each in found]}


def fill(notes: list[dict[str, str]]) -> dict[str, Any]:
    """Keep notes one after the other: without inference there is no other way."""
    for note in notes:
        store(**note)
    return {}


if __name__ == "__main__":
    serve({"store": store, "replace": replace, "search": search, "everything": everything, "fill": fill})
