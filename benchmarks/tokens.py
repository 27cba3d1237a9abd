"""What refdesk costs a model's context, in tokens as o200k counts them: the tools as listed, and the instructions.

    python -m benchmarks.tokens

The vocabulary comes with a package for development; the server itself only estimates (`server/ceiling`).
"""

from __future__ import annotations

import warnings
from datetime import UTC, datetime

from refdesk.factories.toolsets import describe_toolsets
from refdesk.server import descriptions
from refdesk.server.answers import to_text

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of how it reads its own data
    import bpe_openai

    _ENCODING = bpe_openai.get_encoding("o200k_base")


def count_tokens(text: str) -> int:
    """Return how many tokens of o200k a text has."""
    return len(_ENCODING.encode(text))


def main() -> None:
    """Print the tokens of the tools of each toolset that are listed unasked, of each such tool, and of all."""
    total = 0
    for toolset in describe_toolsets():
        tools = [
            tool.model_dump(mode="json", by_alias=True, exclude_none=True)
            for tool in descriptions.describe_tools(toolset.listed)
        ]
        total += (tokens := count_tokens(to_text(tools)))
        print(f"{toolset.name:22} {tokens:5}   " + ", ".join(f"{t['name']} {count_tokens(to_text(t))}" for t in tools))
    print(f"{'all of them':22} {total:5}")
    today = datetime.now(UTC).date()
    print(f"{'instructions':22} {count_tokens(descriptions.instructions(describe_toolsets(), today)):5}")


if __name__ == "__main__":
    main()
