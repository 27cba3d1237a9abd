"""Sixteen everyday tasks of an agent that knows of the desk only what the server says of itself."""
