"""Carries messages between a client's stdin and stdout and a desk, and continues with another desk when that one
ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType

from refdesk.forwarder import hello, journal
from refdesk.forwarder.hello import RefusedError, Wire
from refdesk.forwarder.journal import Journal, Parcel
from refdesk.forwarder.rendezvous import UnusableError
from refdesk.forwarder.snapshot import Snapshot
from refdesk.forwarder.starting import Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

if sys.platform == "win32":
    import msvcrt

PIECE_BYTES = 65536
MOST_LINE_BYTES = 8_000_000
"""More than any request may have; the beginning of a longer line is enough for the desk to refuse it."""

MOST_TRIES = 5
"""How many attempts to reach a desk are made before the requests that wait for one are answered with an error."""

END_SECONDS = 5.0
"""How long a desk may take to end the connection of a client that has gone."""

FIRST_SECONDS = 60.0
"""How long the first desk may take to serve a client that has already gone, or to say why it serves nobody."""

UNREACHABLE = "The desk could not be started again: {}. Try again, or let whoever runs it look at `refdesk status`."


class Carrier:
    """One client's connection.

    The main thread reads from stdin, another one from the desk. `_sending` is held while sending to the desk, `_state`
    while reading or writing the journal.

    Args:
        client: Finds or starts the desk, and says what to ask it for.
        snapshot: Provides answers while the first desk starts.
        wire: A connection to the desk, if one runs.
    """

    def __init__(self, client: Client, snapshot: Snapshot, wire: Wire | None) -> None:
        self._client = client
        self._snapshot = snapshot
        self._first = wire
        self._wire: Wire | None = None
        self._journal = Journal(snapshot.learn)
        self._state = threading.Condition()
        self._sending = threading.Lock()
        self._is_starting = wire is None
        self._has_begun = False
        self._has_left = False

    def run(self) -> NoReturn:
        """Carry messages until the client leaves; then end the process."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _leave)
        if sys.platform == "win32":
            msvcrt.setmode(0, os.O_BINARY)
            msvcrt.setmode(1, os.O_BINARY)
        self._sending.acquire()  # until the first desk serves this client
        reader = threading.Thread(target=self._keep_reading_desk, daemon=True)
        reader.start()
        for line in _read_lines(0):
            if not self._answer_at_once(line):
                self._carry(line)
        # Wait, so that a desk that refuses to serve can say why first.
        self._sending.acquire(timeout=END_SECONDS if self._has_begun else FIRST_SECONDS)
        with self._state:
            self._has_left = True
            self._state.notify_all()
            wire = self._wire
        if wire is not None:
            wire.end_sending()
            reader.join(END_SECONDS)
        os._exit(0)

    def _answer_at_once(self, line: bytes) -> bool:
        """Answer a line from the client before there is a desk; return whether that was possible."""
        with self._state:
            answer = self._journal.answer_here(line, self._snapshot.answer) if self._is_starting else None
            if answer:
                _write(answer)
        return answer is not None

    def _carry(self, line: bytes) -> None:
        with self._sending:
            with self._state:
                parcel, wire = self._journal.note_client(line), self._wire
                if parcel is not None and wire is not None:
                    self._journal.note_sent(parcel)
                self._state.notify_all()
            if parcel is not None and wire is not None:
                _send(wire, [parcel])

    def _keep_reading_desk(self) -> None:
        try:
            wire = self._begin()
            self._has_begun = True
            while True:
                self._read(wire)
                self._wait_until_needed()
                wire = self._reconnect()
        except BrokenPipeError:
            os._exit(0)  # the client is gone
        except BaseException as error:
            sys.stderr.write(f"refdesk: {type(error).__name__}: {error}\n")
            os._exit(70)  # a bug must not make a client wait for ever

    def _begin(self) -> Wire:
        """Return the connection to the first desk, once it serves this client."""
        tries, wire = 0, self._first
        while True:
            tries += 1
            try:
                wire = wire or self._client.reach()
                self._go_on(wire, hello.greet(wire, self._client.place, self._client.asked))
            except OSError:
                wire = None
                if tries == MOST_TRIES:
                    _end(f"the desk ends as soon as it starts; {self._client.place.path('.log')} says why")
            except RefusedError as error:
                _end(str(error))
            except UnusableError as error:
                return self._serve_alone(str(error))
            else:
                return wire

    def _serve_alone(self, reason: str) -> Wire:
        """Return a connection to a server for this client alone, since there is no desk and reading from stdin has
        begun."""
        from refdesk.forwarder.spawning import spawn_isolated

        sys.stderr.write(f"refdesk: served in a process of its own: {reason}\n")
        wire = spawn_isolated(sys.argv[1:])
        self._go_on(wire, {})
        return wire

    def _read(self, wire: Wire) -> None:
        """Pass on to the client what the desk sends, until the desk ends."""
        read: int | None = None
        while line := wire.read_line():
            end = journal.read_end(line)
            if end is not None:
                read = end
                continue
            self._show(line)
        wire.close()
        with self._state:
            self._wire = None
            for each in self._journal.lose(read):
                _write(each)

    def _show(self, line: bytes) -> None:
        """Pass on to the client what it is to see of a line from the desk."""
        with self._state:
            shown = self._journal.note_desk(line)
            if shown is not None:
                _write(shown)

    def _wait_until_needed(self) -> None:
        with self._state:
            while not self._journal.is_waiting and not self._has_left:
                self._state.wait()
        if self._has_left:
            os._exit(0)

    def _reconnect(self) -> Wire:
        """Return a connection to the desk or its successor, on which the client's session continues."""
        while True:
            reason = ""
            for tries in range(MOST_TRIES):
                self._sending.acquire()
                try:
                    wire = self._client.reach()
                    self._go_on(wire, hello.greet(wire, self._client.place, self._client.asked))
                except (OSError, UnusableError, RefusedError) as error:
                    reason = str(error)
                    self._sending.release()
                    time.sleep(0.05 * 2**tries)
                else:
                    return wire
            with self._state:
                for each in self._journal.fail(UNREACHABLE.format(reason)):
                    _write(each)
            self._wait_until_needed()

    def _go_on(self, wire: Wire, said: dict[str, object]) -> None:
        """Bring a desk to the state of the last one: replay the handshake first and, once it is answered, the rest.

        Call it with `_sending` held; it is released when everything is sent.

        Raises:
            OSError: The desk ended meanwhile; `_sending` is still held.
        """
        with self._state:
            self._is_starting = False
            self._journal.calls = journal.Calls.read(said)
            opening = self._journal.replay_opening()
            for parcel in opening:
                self._journal.note_sent(parcel)
        try:
            for parcel in opening:
                wire.send(parcel.line)
                if parcel is opening[0]:
                    self._await_opening(wire)
        except OSError:
            with self._state:
                self._journal.lose(0)
            raise
        with self._state:
            rest = self._journal.replay_rest()
            for parcel in rest:
                self._journal.note_sent(parcel)
            self._wire = wire
        # The desk may answer the first requests before it reads the last, so they are sent in a thread while this one
        # reads.
        threading.Thread(target=self._send_rest, args=(wire, rest), daemon=True).start()

    def _await_opening(self, wire: Wire) -> None:
        """Wait until the desk has answered the handshake; raise OSError if it ends first."""
        while line := wire.read_line():
            with self._state:
                is_answer = self._journal.is_own_answer(line)
            self._show(line)
            if is_answer:
                return
        raise ConnectionResetError("the desk ended")

    def _send_rest(self, wire: Wire, rest: Sequence[Parcel]) -> None:
        try:
            _send(wire, rest)
        finally:
            self._sending.release()


def _send(wire: Wire, parcels: Sequence[Parcel]) -> None:
    """Send to a desk. If the desk is gone, the thread that reads from it finds out."""
    try:
        for parcel in parcels:
            wire.send(parcel.line)
    except OSError:
        return


def _read_lines(number: int) -> Iterator[bytes]:
    """Yield the lines of a file, each with its newline; a line that is too long to be a message is cut."""
    buffer, is_cut = bytearray(), False
    while piece := os.read(number, PIECE_BYTES):
        *whole, rest = piece.split(b"\n")
        for part in whole:
            if not is_cut:
                yield bytes(buffer) + part + b"\n"
            buffer.clear()
            is_cut = False
        if not is_cut:
            buffer += rest
        if len(buffer) > MOST_LINE_BYTES:
            yield bytes(buffer) + b"\n"
            buffer.clear()
            is_cut = True


def _write(line: bytes) -> None:
    """Write to the client; raise BrokenPipeError if it is gone."""
    view = memoryview(line)
    while view:
        view = view[os.write(1, view) :]


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    os._exit(0)


def _end(message: str) -> NoReturn:
    """Print why nothing can be served, as commands do, and end the process."""
    sys.stderr.write(f"Error: {message}\n")
    sys.stderr.flush()
    os._exit(1)
