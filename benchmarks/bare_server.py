"""The least that a server on the same SDK can be: one tool, one resource, over stdio. What start-up is measured by."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("bare")


@server.tool()
def search(query: str = "", limit: int = 10) -> list[str]:
    """Search."""
    return [query] * limit


@server.resource("bare://guide")
def guide() -> str:
    """Guide."""
    return "{}"


if __name__ == "__main__":
    server.run("stdio")
