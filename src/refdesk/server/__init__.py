"""The faces: MCP, REST and who may call them."""
