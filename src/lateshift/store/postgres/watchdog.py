"""A deadline for calls that no timeout ends: a proxy that acknowledges all it gets and answers nothing keeps the
socket healthy for ever. Whoever waits too long has the socket shut down under him, and meets a broken connection."""

import os
import socket
import threading
import time
from contextlib import suppress
from typing import Any

import psycopg

Connection = psycopg.Connection[Any]


class Watchdog:
    """Its thread is there while calls are under way, and goes with the last of them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._since: dict[Connection, float] = {}
        self._awake = False
        # Taken to end a watch too: a socket is shut down only while its call still has it, never one given back.
        self._lock = threading.Lock()

    def begin(self, connection: Connection) -> None:
        """From now on it has so many seconds; again in the middle of a call gives it as many again."""
        if self._pid != os.getpid():  # the thread stayed with the parent, and so did its calls
            self._forget()
        with self._lock:
            self._since[connection] = time.monotonic()
            start, self._awake = not self._awake, True
        if start:
            threading.Thread(target=self._watch, name="lateshift-watchdog", daemon=True).start()

    def end(self, connection: Connection) -> None:
        with self._lock:
            self._since.pop(connection, None)

    def _watch(self) -> None:
        while True:
            time.sleep(self._seconds / 10)
            with self._lock:
                if not self._since:
                    self._awake = False
                    return
                latest = time.monotonic() - self._seconds
                for connection in [one for one, since in self._since.items() if since < latest]:
                    del self._since[connection]
                    _shut_down(connection)


def _shut_down(connection: Connection) -> None:
    """Of a copy of the descriptor: closing it is left to libpq, whose own it is."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)
