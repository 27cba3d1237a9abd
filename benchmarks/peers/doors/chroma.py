"""chroma-mcp over stdio, its default embedding function standing on the common encoder instead of a download."""

from __future__ import annotations

from chromadb.utils.embedding_functions import onnx_mini_lm_l6_v2
from encoder import encode

onnx_mini_lm_l6_v2.ONNXMiniLM_L6_V2.__call__ = lambda self, input: list(encode(input))

if __name__ == "__main__":
    from chroma_mcp import main

    main()
