"""Keeping: how values are stored in any engine, and how everything moves to another one."""
