"""The transports: MCP and REST, and who may call them."""
