from __future__ import annotations

import pytest

from refdesk.core.launching import to_command


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ([], ["--stdio"]),
        (["--http"], []),
        (["--sse"], ["--sse"]),
        (["--http", "--port", "0"], ["--port", "0"]),
        (["--org", "acme"], ["--stdio", "--org", "acme"]),
    ],
)
def test_the_toolset_serves_itself_alone(arguments: list[str], command: list[str]) -> None:
    assert to_command("azure-updates", arguments) == ["serve", "--toolset", "azure-updates", *command]
