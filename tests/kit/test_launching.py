from __future__ import annotations

import pytest

from refdesk.kit.launching import to_command


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


def test_without_a_name_all_toolsets_are_served() -> None:
    assert to_command(None, ["--sse"]) == ["serve", "--sse"]
