"""basic-memory with the common encoder in the place of a downloaded one: its own command line otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import extensions  # noqa: F401  before anything imports sqlite3
import numpy as np
from basic_memory.repository.fastembed_provider import FastEmbedEmbeddingProvider
from encoder import encode


class Common:
    """The common encoder as fastembed's class would behave."""

    def embed(self, texts: list[str], **_: Any) -> Iterator[np.ndarray]:
        """Yield a vector for each."""
        yield from encode(list(texts))


FastEmbedEmbeddingProvider._create_model = lambda self: Common()

if __name__ == "__main__":
    from basic_memory.cli.main import app

    sys.exit(app())
