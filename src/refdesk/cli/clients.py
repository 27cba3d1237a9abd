"""The MCP clients that `refdesk connect` knows: where each lists its servers, and in what form.

Sources are the clients' own documentation, as of November 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

KEY_VARIABLE = "REFDESK_KEY"
"""The environment variable that a client reads its key from."""

Entry: TypeAlias = dict[str, Any]
MakeLocal: TypeAlias = Callable[[str, Sequence[str], Mapping[str, str]], Entry]
MakeRemote: TypeAlias = Callable[[str, bool], Entry]


def _make_local(command: str, arguments: Sequence[str], variables: Mapping[str, str]) -> Entry:
    entry: Entry = {"command": command, "args": list(arguments)}
    return entry | ({"env": dict(variables)} if variables else {})


@dataclass(frozen=True, slots=True)
class Client:
    """An MCP client.

    Attributes:
        title: Its name, as people write it.
        find_file: Returns the path of the user's configuration file.
        project_file: The configuration file of a project, relative to its folder; `None` where projects have none.
        section: The key under which the file lists servers by name.
        make_remote: Returns the entry of a server at a URL, with or without a key; `None` where only local ones work.
        make_local: Returns the entry of a server that is started by a command, given its arguments and variables.
        then: What the user must do for the client to read the file.
        has_key: Whether the file can name an environment variable that holds the key.
    """

    title: str
    find_file: Callable[[], Path]
    section: str
    then: str
    project_file: str | None = None
    make_remote: MakeRemote | None = None
    make_local: MakeLocal = _make_local
    has_key: bool = True


def _make_typed_local(command: str, arguments: Sequence[str], variables: Mapping[str, str]) -> Entry:
    return {"type": "stdio", **_make_local(command, arguments, variables)}


def _bearer(reference: str) -> Callable[[bool], Entry]:
    return lambda has_key: {"headers": {"Authorization": f"Bearer {reference}"}} if has_key else {}


def _at(field: str, reference: str, **more: str) -> MakeRemote:
    header = _bearer(reference)
    return lambda url, has_key: {**more, field: url, **header(has_key)}


def _make_codex_remote(url: str, has_key: bool) -> Entry:
    return {"url": url} | ({"bearer_token_env_var": KEY_VARIABLE} if has_key else {})


def _in_settings(*parts: str) -> Callable[[], Path]:
    """Return a finder of a path in the user's settings: `%APPDATA%`, `~/Library/Application Support` or `~/.config`."""

    def find() -> Path:
        from platformdirs import user_config_path

        return user_config_path(roaming=True).joinpath(*parts)

    return find


def _at_home(*parts: str) -> Callable[[], Path]:
    return lambda: Path.home().joinpath(*parts)


def _find_zed() -> Path:
    import sys

    return _in_settings("Zed", "settings.json")() if sys.platform == "win32" else _at_home(*_ZED)()


_ZED = (".config", "zed", "settings.json")
_NEW_WINDOW = "Reload its window, or start it again."

CLIENTS: Mapping[str, Client] = {
    "claude-desktop": Client(
        "Claude Desktop",
        _in_settings("Claude", "claude_desktop_config.json"),
        "mcpServers",
        "Quit Claude Desktop and start it again.",
    ),
    "claude-code": Client(
        "Claude Code",
        _at_home(".claude.json"),
        "mcpServers",
        "Start Claude Code again; /mcp shows the server.",
        ".mcp.json",
        _at("url", f"${{{KEY_VARIABLE}}}", type="http"),
        _make_typed_local,
    ),
    "vscode": Client(
        "VS Code",
        _in_settings("Code", "User", "mcp.json"),
        "servers",
        "VS Code reads the file at once; `MCP: List Servers` shows the server.",
        ".vscode/mcp.json",
        _at("url", f"${{env:{KEY_VARIABLE}}}", type="http"),
        _make_typed_local,
    ),
    "cursor": Client(
        "Cursor",
        _at_home(".cursor", "mcp.json"),
        "mcpServers",
        _NEW_WINDOW,
        ".cursor/mcp.json",
        _at("url", f"${{env:{KEY_VARIABLE}}}"),
    ),
    "codex": Client(
        "Codex",
        _at_home(".codex", "config.toml"),
        "mcp_servers",
        "Start Codex again; /mcp shows the server.",
        ".codex/config.toml",
        _make_codex_remote,
    ),
    "windsurf": Client(
        "Windsurf",
        _at_home(".codeium", "windsurf", "mcp_config.json"),
        "mcpServers",
        "Press Refresh in Windsurf's list of MCP servers.",
        None,
        _at("serverUrl", f"${{env:{KEY_VARIABLE}}}"),
    ),
    "zed": Client(
        "Zed",
        _find_zed,
        "context_servers",
        "Zed reads the file at once.",
        ".zed/settings.json",
        lambda url, _: {"url": url},
        has_key=False,
    ),
    "gemini-cli": Client(
        "Gemini CLI",
        _at_home(".gemini", "settings.json"),
        "mcpServers",
        "Start Gemini CLI again; /mcp shows the server.",
        ".gemini/settings.json",
        _at("httpUrl", f"${KEY_VARIABLE}"),
    ),
}
"""Each client by the name that the command line uses for it."""
