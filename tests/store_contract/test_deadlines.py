"""PostgreSQL: a server, or a proxy before it, that acknowledges everything and answers nothing is given up on."""

import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from lateshift.clock import ManualClock
from lateshift.errors import StoreUnavailable
from lateshift.model.job import State
from lateshift.store.open import open_store
from lateshift.store.postgres import PostgresStore, database
from tests.store_contract.driving import added, make_job, see

DEADLINE = 0.3


class Proxy:
    """Carries bytes to the server and back; while silent, it takes them and keeps the answers to itself."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as connection:
            info = connection.info
            self._server = (info.host, info.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        parts = urlsplit(url)
        who = parts.netloc.rpartition("@")[0]
        port = self._listener.getsockname()[1]
        self.url = f"postgresql://{who}{'@' if who else ''}127.0.0.1:{port}{parts.path}"
        self.silent = False
        self._sockets: list[socket.socket] = [self._listener]
        self._start(self._accept)

    def _start(self, target: object, *args: object) -> None:
        threading.Thread(target=target, args=args, daemon=True).start()  # type: ignore[arg-type]

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            server = self._connect()
            self._sockets += [caller, server]
            self._start(self._carry, caller, server, False)
            self._start(self._carry, server, caller, True)

    def _connect(self) -> socket.socket:
        host, port = self._server
        if host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{host}/.s.PGSQL.{port}")
            return server
        return socket.create_connection((host, port))

    def _carry(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        try:
            while data := source.recv(65536):
                if not (answers and self.silent):
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        for one in self._sockets:
            one.close()


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    proxy = Proxy(postgres_url)
    yield proxy
    proxy.close()


@pytest.fixture
def store(proxy: Proxy, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresStore]:
    monkeypatch.setattr(database, "CALL_SECONDS", DEADLINE)
    store = open_store(proxy.url, clock)
    assert isinstance(store, PostgresStore)
    store.ready()
    yield store
    store.close()


@pytest.mark.timeout(20)
def test_a_call_that_gets_no_answer_ends(
    store: PostgresStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "GIVE_UP_SECONDS", 0.0)
    proxy.silent = True
    begun = time.monotonic()
    with pytest.raises(StoreUnavailable):
        store.jobs.enqueue([make_job()])

    assert DEADLINE <= time.monotonic() - begun < 10


@pytest.mark.timeout(20)
def test_a_call_that_got_no_answer_is_made_again_once_there_are_answers(
    store: PostgresStore, proxy: Proxy
) -> None:
    proxy.silent = True
    threading.Timer(DEADLINE / 2, setattr, (proxy, "silent", False)).start()
    [id] = added(store, make_job())

    assert see(store, id).state is State.READY


@pytest.mark.timeout(20)
def test_a_connection_that_waits_for_its_next_call_is_left_alone(store: PostgresStore) -> None:
    [before] = store._database._idle
    time.sleep(DEADLINE * 2)
    added(store, make_job())

    assert store._database._idle == [before]
    assert not before.broken
