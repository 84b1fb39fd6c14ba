"""`lateshift serve` as a real process, on both stores: whatever is sent to it, its memory stays flat."""

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from lateshift.api.bounds import UNKNOWN_BODIES
from tests.api.running import answered, connected, heard
from tests.walks.commands import eventually, interrupted, started

PROGRAM = """
from lateshift import Lateshift, Message
from lateshift.webhooks import github

app = Lateshift("shop")


@app.on_webhook("github", verify=github("env:HOOK_SECRET"))
def build(message: Message) -> None: ...


@app.task(queue="images")
def thumbnail(path: str) -> str:
    return path
"""
START = "/v1/tasks/thumbnail/jobs"
GROWTH = 24 * 2**20  # bytes that it may be larger after twice as much of the same
WARM, MORE = 3, 6  # times
JSON = {"Content-Type": "application/json"}
BODIES = (
    b"[" * 500_000 + b"]" * 500_000,
    b'{"arguments": {%s}}' % b",".join(b'"a%d": 1' % n for n in range(80_000)),
    b'{"arguments": {"path": "%s"}}' % (b"a" * 1_000_000),
    b"x" * 3_000_000,
    b"[" * 1_000_000,
    b'{"arguments": {"path": "\\ud800"}}' + b" " * 500_000,
    b'{"arguments": {"path": %s}}' % (b"9" * 500_000),
)
SLOW = 40  # bodies of which only the half comes
TAMPERED = 60  # cursors
STRANGERS = 120  # bodies that come together, of as many as may be large
GUESSED = "X-Hub-Signature-256: sha256=0\r\nX-GitHub-Delivery: 1\r\n"
FORM = "Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n"


class Server:
    """Asked by a client with the token that it showed first."""

    def __init__(self, url: str, token: str, pid: int) -> None:
        self.port = int(url.rpartition(":")[2])
        self.token = token
        self.pid = pid
        self.client = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=60
        )
        self._process = psutil.Process(pid)
        self.begun_with = self.memory

    @property
    def memory(self) -> int:
        return int(self._process.memory_info().rss)


@contextmanager
def serving(folder: Path, store_url: str, program: str = PROGRAM) -> Iterator[Server]:
    (folder / "shop.py").write_text(program)
    output = folder / "output"
    with started(
        "serve", "shop.py", "--port", "0", "--show-secrets", cwd=folder, LATESHIFT_STORE=store_url
    ) as process:
        eventually(
            lambda: "http://127.0.0.1:" in output.read_text() or process.poll() is not None, "it serves"
        )
        url, *_ = re.findall(r"http://127\.0\.0\.1:\d+", output.read_text())
        [token] = re.findall(r"lsh_[\w-]{64}", output.read_text())
        server = Server(url, token, process.pid)
        with server.client:
            yield server
        assert interrupted(process, 20) == 0


def send_bodies(server: Server, key: int) -> None:
    """Too large, too deep, too wide, no JSON; with a key and without."""
    for number, body in enumerate(BODIES):
        for headers in (JSON, JSON | {"Idempotency-Key": f"{key}-{number}"}):
            assert 400 <= server.client.post(START, content=body, headers=headers).status_code < 500
    assert server.client.post("/v1/queues/images/pause", content=b"x" * 3_000_000).status_code == 413


def send_slowly(server: Server, key: int) -> None:
    """Bodies that stop half way, all of them open together; then their clients are gone."""
    head = (
        f"POST {START} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
    ).encode()
    connections: list[socket.socket] = []
    with ExitStack() as stack:
        for _ in range(SLOW):
            connection = stack.enter_context(connected(server.port))
            connection.sendall(head + b'{"arguments": {"path": "' + b"a" * 500_000)
            connections.append(connection)
        for connection in connections:
            connection.shutdown(socket.SHUT_WR)
            assert b" 202 " not in heard(connection)  # until the server has closed it too


def send_no_http(server: Server, key: int) -> None:
    for request in (b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n", b"\x00" * 100_000, b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 9_000 + b"\r\n"):  # fmt: skip
        assert b" 200 " not in answered(server.port, request)


def send_cursors(server: Server, key: int) -> None:
    """Of a real one each letter changed, and some that never were one."""
    good = server.client.get("/v1/jobs", params={"limit": 1}).json()["next"]
    assert server.client.get("/v1/jobs", params={"cursor": good}).status_code == 200
    for place in range(TAMPERED):
        at = place % len(good)
        other = chr((ord(good[at]) + 1 + key + place) % 26 + ord("a"))
        wrong = good[:at] + other + good[at + 1 :] if other != good[at] else "A" * (key + place)
        assert server.client.get("/v1/jobs", params={"cursor": wrong}).status_code in (200, 400), wrong
    for cursor in ("A" * 3_000, "\x00", "%ff"):
        assert 400 <= server.client.get("/v1/jobs", params={"cursor": cursor}).status_code < 500


def send_names(server: Server, key: int) -> None:
    """Of tasks, queues, jobs and tokens that are not there, each a new one."""
    for number in range(20):
        name = f"{key}-{number}-" + "a" * 150
        for path in (f"/v1/tasks/{name}/jobs", f"/v1/jobs/{name}/cancel", f"/v1/schedules/{name}/fire"):
            assert server.client.post(path, json={}).status_code in (404, 422)
        wrong = {"Authorization": f"Bearer lsh_{name}"}
        assert server.client.get("/v1/queues", headers=wrong).status_code in (401, 429)


@pytest.mark.parametrize("send", [send_bodies, send_slowly, send_no_http, send_cursors, send_names])
def test_the_memory_of_a_server_stays_flat_whatever_is_sent_to_it(
    tmp_path: Path, store_url: str, send: Callable[[Server, int], None]
) -> None:
    with serving(tmp_path, store_url) as server:
        for number in range(2):
            made = server.client.post(START, json={"arguments": {"path": f"{number}.png"}})
            assert made.status_code == 202
        for turn in range(WARM):
            send(server, turn)
        before = server.memory
        for turn in range(MORE):
            send(server, WARM + turn)
        grown = server.memory - before
        print(f"{before / 2**20:.1f} MiB, and {grown / 2**20:.1f} more")
        assert grown < GROWTH
        assert server.client.get("/health/ready").status_code == 200
        assert len(server.client.get("/v1/jobs").json()["jobs"]) == 2


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/hooks/nosuch", ""),
        ("/hooks/github", ""),
        ("/hooks/github", GUESSED),
        ("/sign-in", FORM),
        ("/sign-out", FORM),
    ],
)
def test_the_memory_of_a_server_stays_flat_while_strangers_send_it_bodies(
    tmp_path: Path, path: str, headers: str
) -> None:
    """All of them open together, each short of its last byte. Nothing of it is a matter of the store."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1048576\r\n{headers}\r\n".encode()
    with serving(tmp_path, f"sqlite:///{tmp_path}/jobs.db") as server, ExitStack() as stack:
        assert server.client.get("/health/ready").status_code == 200
        before = most = server.memory
        for _ in range(STRANGERS):
            connection = stack.enter_context(connected(server.port))
            with suppress(ConnectionError):  # it was answered, and closed
                connection.sendall(head + b"a" * 1_048_575)
            most = max(most, server.memory)
        last = {name: value for name, _, value in (line.partition(": ") for line in headers.splitlines())}
        with suppress(httpx.TransportError):  # by when one of them is read to its end, all others are too
            server.client.post(path, headers=last, content=b"a" * 1_048_576)
        assert server.client.get("/health/ready").status_code == 200
        grown = max(most, server.memory) - before
        print(f"{before / 2**20:.1f} MiB, and {grown / 2**20:.1f} more")
        assert grown < UNKNOWN_BODIES + 2 * GROWTH  # and far less than all of them
