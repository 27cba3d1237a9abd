"""In which thread a read is done."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw

from refdesk.protocols import Store
from refdesk.stores.sqlite.connections import Readers
from refdesk.stores.sqlite.driver import Connection
from refdesk.stores.sqlite.failures import Damage
from refdesk.stores.sqlite.presence import Presence


async def test_a_few_rows_are_read_in_this_thread_and_in_another_where_that_would_have_to_wait(
    sqlite: Store, tmp_path: Path
) -> None:
    path = tmp_path / "store.sqlite3"
    readers, threads, is_busy = Readers(path, Presence(path), Damage()), list[threading.Thread](), False

    def read(connection: Connection) -> int:
        threads.append(threading.current_thread())
        if is_busy and threads[-1] is threading.main_thread():
            raise apsw.BusyError
        return len(connection.execute("SELECT 1"))

    assert await readers.run(read) == 1
    assert await readers.run_here(read) == 1
    assert [each is threading.main_thread() for each in threads] == [False, True]
    is_busy = True
    assert await readers.run_here(read) == 1
    assert [each is threading.main_thread() for each in threads[2:]] == [True, False]
    readers.close()
