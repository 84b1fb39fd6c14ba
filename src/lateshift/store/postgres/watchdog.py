"""A deadline for calls that no timeout ends: a proxy that acknowledges all it gets and answers nothing keeps the
socket healthy for ever. Whoever waits too long has the socket shut down under him, and meets a broken connection."""

import os
import socket
import threading
import time
from contextlib import suppress
from typing import Any

import psycopg

from lateshift.store.forks import forks

Connection = psycopg.BaseConnection[Any]


class Watchdog:
    """Its thread is there while calls are under way, and goes with the last of them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._forget()

    def _forget(self) -> None:
        self._forks = forks()
        self._since: dict[Connection, float] = {}
        self._awake = False
        self._lock = threading.Lock()  # held by the watch while it looks and shuts down

    def begin(self, connection: Connection) -> None:
        """From now on it has so many seconds; again in the middle of a call gives it as many again."""
        if self._forks != forks():  # the thread stayed with the parent, and so did its calls
            self._forget()
        self._since[connection] = time.monotonic()
        if (
            not self._awake
        ):  # looked at after the line above, as the watch looks at the two the other way round
            with self._lock:
                start, self._awake = not self._awake, True
            if start:
                self._start()

    def _start(self) -> None:
        try:
            threading.Thread(target=self._watch, name="lateshift-watchdog", daemon=True).start()
        except BaseException:  # no thread to be had: the next call tries again
            self._awake = False
            self._since.clear()
            raise

    def end(self, connection: Connection) -> None:
        """Whoever takes the entry out has the socket: if that was the watch, it is let finish, so that it never shuts
        down one that was given back."""
        if self._since.pop(connection, None) is None:
            with self._lock:
                pass

    def _watch(self) -> None:
        while True:
            time.sleep(self._seconds / 10)
            with self._lock:
                self._awake = False
                if not self._since:
                    return
                self._awake = True
                latest = time.monotonic() - self._seconds
                for connection in [one for one, since in self._since.copy().items() if since < latest]:
                    if self._since.pop(connection, None) is not None:
                        shut_down(connection)


def shut_down(connection: Connection) -> None:
    """Whoever waits on it meets a broken connection. Of a copy of the descriptor: closing it is left to libpq, whose own it is."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)
