"""`lateshift serve` as a real process: whatever clients do with what it sends them, and with what they send it, its memory stays flat."""

import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx

from lateshift.api.bounds import BODIES_OF_TOKEN, BODY_LIMIT, PAGE_BYTES, UNREAD_OF_TOKEN
from lateshift.testing import testing
from tests.api.running import connected
from tests.api.test_flat_memory import GROWTH, START, Server, serving
from tests.api.test_flat_reading import PROGRAM, make_schedules, shop
from tests.walks.commands import eventually

AT_ONCE = UNREAD_OF_TOKEN // PAGE_BYTES  # pages that one token may leave unread
ROUNDS = 8
SILENT = 100  # clients that read nothing
BODIES = 300  # that come together, of as many as may be large


def stock(url: str) -> None:
    app = shop(url)
    with testing(app, store=url):
        make_schedules(app)


def asked(stack: ExitStack, server: Server) -> bytes:
    """The beginning of the answer to a client that has asked for a large page, and reads no more of it until it goes."""
    connection = stack.enter_context(socket.socket())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", server.port))
    head = f"GET /v1/schedules?limit=200 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    connection.sendall(head.encode())
    return connection.recv(12)


def cut(server: Server) -> int:
    """How many of some that came together were sent a page, of which each read only the beginning."""
    with ExitStack() as stack:
        answers = [asked(stack, server) for _ in range(AT_ONCE)]
    assert set(answers) <= {b"HTTP/1.1 200", b"HTTP/1.1 429"}  # those before may not be known to be gone
    return answers.count(b"HTTP/1.1 200")


def test_the_memory_that_large_answers_took_is_given_back_when_clients_have_cut_them(
    tmp_path: Path, store_url: str
) -> None:
    stock(store_url)
    with serving(tmp_path, store_url, PROGRAM) as server:
        sent = sum(cut(server) for _ in range(ROUNDS))
        assert sent > ROUNDS * AT_ONCE // 2
        assert server.client.get("/health/ready").status_code == 200
        eventually(lambda: server.memory - server.begun_with < 2 * GROWTH, "it is given back")


def test_the_memory_of_a_server_has_a_bound_while_clients_read_nothing_of_large_answers(
    tmp_path: Path,
) -> None:
    """Small ones are answered all the while. Nothing of it is a matter of the store."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    stock(url)
    with serving(tmp_path, url, PROGRAM) as server, ExitStack() as stack:
        before = server.memory
        answers = [asked(stack, server) for _ in range(SILENT)]
        assert {b"HTTP/1.1 200", b"HTTP/1.1 429"} == set(answers)
        assert server.client.get("/v1/schedules?limit=200").status_code == 429
        assert server.client.get("/v1/queues").status_code == 200
        grown = server.memory - before
        print(f"{before / 2**20:.1f} MiB, and {grown / 2**20:.1f} more")
        assert grown < UNREAD_OF_TOKEN + 2 * GROWTH


def test_the_memory_of_a_server_has_a_bound_while_one_token_sends_bodies(tmp_path: Path) -> None:
    """All of them open together, each short of its last byte; small ones are taken all the while."""
    with serving(tmp_path, f"sqlite:///{tmp_path}/jobs.db") as server, ExitStack() as stack:
        head = (
            f"POST {START} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {BODY_LIMIT}\r\n\r\n"
        ).encode()
        assert server.client.get("/health/ready").status_code == 200
        before = most = server.memory
        for _ in range(BODIES):
            connection = stack.enter_context(connected(server.port))
            with suppress(ConnectionError):  # it was answered, and closed
                connection.sendall(head + b"a" * (BODY_LIMIT - 1))
            most = max(most, server.memory)
        with suppress(httpx.TransportError):  # by when one of them is read to its end, all others are too
            large = server.client.post(START, content=b"a" * BODY_LIMIT)
            assert (large.status_code, large.headers["retry-after"]) == (429, "1")
        small = server.client.post(START, json={"arguments": {"path": "a.png"}})
        assert small.status_code == 202
        grown = max(most, server.memory) - before
        print(f"{before / 2**20:.1f} MiB, and {grown / 2**20:.1f} more")
        assert grown < BODIES_OF_TOKEN + 2 * GROWTH  # and far less than all of them
