"""Lets a rival load its SQLite extension though this Python was built without: pysqlite3 in the place of sqlite3."""

from __future__ import annotations

import sqlite3
import sys

if not hasattr(sqlite3.Connection, "enable_load_extension"):
    import pysqlite3

    sys.modules["sqlite3"] = pysqlite3
    sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2
