"""mcp-server-qdrant over stdio with the common encoder; `fill FILE` puts the notes of a file in."""

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path

from encoder import DIMENSIONS, encode
from mcp_server_qdrant.embeddings.base import EmbeddingProvider
from mcp_server_qdrant.mcp_server import QdrantMCPServer
from mcp_server_qdrant.settings import QdrantSettings, ToolSettings

BATCH = 500


class Common(EmbeddingProvider):
    """The common encoder as this server wants one."""

    async def embed_documents(self, documents: list[str]) -> list[list[float]]:
        """Return a vector for each."""
        return encode(documents).tolist()

    async def embed_query(self, query: str) -> list[float]:
        """Return its vector."""
        return encode([query])[0].tolist()

    def get_vector_name(self) -> str:
        """Return the name that its own provider would give."""
        return "fast-all-minilm-l6-v2"

    def get_vector_size(self) -> int:
        """Return the dimensions."""
        return DIMENSIONS


def fill(path: Path) -> None:
    """Put the notes in, as the server would, in batches."""
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=os.environ["QDRANT_LOCAL_PATH"])
    name, vector = os.environ["COLLECTION_NAME"], Common().get_vector_name()
    if not client.collection_exists(name):
        size = models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE)
        client.create_collection(name, vectors_config={vector: size})
    notes = [json.loads(line) for line in path.read_text().splitlines()]
    for start in range(0, len(notes), BATCH):
        part = notes[start : start + BATCH]
        vectors = encode([f"{note['title']}\n\n{note['body']}" for note in part]).tolist()
        client.upsert(
            name,
            [
                models.PointStruct(
                    id=uuid.uuid4().hex,
                    vector={vector: made},
                    payload={"document": f"{note['title']}\n\n{note['body']}", "metadata": {"key": note["key"]}},
                )
                for note, made in zip(part, vectors, strict=True)
            ],
        )
    client.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["fill"]:
        fill(Path(sys.argv[2]))
    else:
        QdrantMCPServer(
            tool_settings=ToolSettings(), qdrant_settings=QdrantSettings(), embedding_provider=Common()
        ).run(transport="stdio")
