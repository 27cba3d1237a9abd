"""mcp-memory-service over stdio with the common encoder; `fill FILE` puts the notes of a file in."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import extensions  # noqa: F401  before anything imports sqlite3
import mcp_memory_service.embeddings as embeddings
import mcp_memory_service.embeddings.onnx_embeddings as onnx_embeddings
from encoder import DIMENSIONS, encode

BATCH = 200


class Common:
    """The common encoder as this server wants one."""

    embedding_dimension = DIMENSIONS
    device = "cpu"

    def encode(self, texts: str | list[str], convert_to_numpy: bool = True, **_: Any) -> Any:
        """Return a row for each, or one vector for one text."""
        return encode([texts] if isinstance(texts, str) else texts)


onnx_embeddings.ONNX_AVAILABLE = True
embeddings.get_onnx_embedding_model = lambda *_, **__: Common()


async def fill(notes: list[dict[str, str]]) -> None:
    """Put the notes in, in batches."""
    from mcp_memory_service.config import SQLITE_VEC_PATH
    from mcp_memory_service.models.memory import Memory
    from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage
    from mcp_memory_service.utils.hashing import generate_content_hash

    storage = SqliteVecMemoryStorage(db_path=SQLITE_VEC_PATH)
    await storage.initialize()
    for start in range(0, len(notes), BATCH):
        contents = [(note["key"], f"{note['title']}\n\n{note['body']}") for note in notes[start : start + BATCH]]
        await storage.store_batch(
            [
                Memory(content=content, content_hash=generate_content_hash(content), tags=[key])
                for key, content in contents
            ]
        )
    await storage.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["fill"]:
        asyncio.run(fill([json.loads(line) for line in Path(sys.argv[2]).read_text().splitlines()]))
    else:
        from mcp_memory_service.cli.main import memory_server_main

        sys.argv = sys.argv[:1]
        memory_server_main()
