"""`lateshift serve` as a real process on loopback, on both stores."""

import re
import socket
from pathlib import Path

import httpx
import psutil
import pytest

from lateshift.api.application import matrix
from lateshift.api.binding import binding_of
from lateshift.api.serving import listening
from tests.walks.commands import completed, eventually, interrupted, started

PROGRAM = """
from lateshift import Lateshift

app = Lateshift("shop")


@app.task(queue="images")
def thumbnail(path: str) -> str:
    return path
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(PROGRAM)
    return tmp_path


def said(folder: Path) -> str:
    return (folder / "output").read_text()


def test_a_server_starts_shows_its_first_token_once_answers_and_stops_gracefully(
    folder: Path, store_url: str
) -> None:
    with started("serve", "shop.py", "--port", "0", cwd=folder, LATESHIFT_STORE=store_url) as process:
        eventually(lambda: "http://127.0.0.1:" in said(folder) or process.poll() is not None, "it serves")
        out = said(folder)
        url, link = re.findall(r"http://127\.0\.0\.1:\d+", out)
        assert link == url
        assert re.search(r"/sign-in\?code=[\w-]{43}\n", out)
        [token] = re.findall(r"lsh_[\w-]{64}", out)
        assert re.search(
            r"^\d+ routes, by who may use them: \d+ public, \d+ enqueue, \d+ read, ", out, re.MULTILINE
        )
        assert len(out.splitlines()) < 12
        with httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, trust_env=False
        ) as client:
            made = client.post("/v1/tasks/thumbnail/jobs", json={"arguments": {"path": "cat.png"}})
            assert made.status_code == 202
            assert client.get(made.headers["location"]).json()["state"] == "ready"
            assert client.get("/v1/queues", headers={"Host": "evil.example"}).status_code == 421
            assert client.get("/v1/queues", headers={"Authorization": ""}).status_code == 401
            assert "server" not in client.get("/health/live").headers
            assert client.post("/v1/queues/images/pause", content=b"x" * 2_000_000).status_code == 413
        host, _, port = url.removeprefix("http://").partition(":")
        assert b"400" in raw(host, int(port), b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
        assert b"400" in raw(host, int(port), b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")
        assert interrupted(process, 20) == 0
    with started("serve", "shop.py", "--port", "0", cwd=folder, LATESHIFT_STORE=store_url) as process:
        eventually(
            lambda: "http://127.0.0.1:" in said(folder) or process.poll() is not None, "it serves again"
        )
        assert "lsh_" not in said(folder)


def test_who_may_use_which_route_is_told_in_full_without_a_program(folder: Path) -> None:
    told = completed("serve", "--matrix", cwd=folder)
    assert (told.code, told.err) == (0, "")
    assert re.search(r"POST +/v1/tasks/{name}/jobs +enqueue +one queue", told.out)
    lines = [line.split()[:2] for line in told.out.splitlines()[1:] if line.strip()]
    assert [[method, path] for method, path, _, _ in matrix()] == [
        line for line in lines if line[0] in ("GET", "POST")
    ]


def raw(host: str, port: int, request: bytes) -> bytes:
    with socket.create_connection((host, port), timeout=10) as connection:
        connection.sendall(request)
        return connection.recv(4096)


def test_a_server_for_elsewhere_is_refused_before_it_listens(folder: Path, store_url: str) -> None:
    bare = completed("serve", "shop.py", "--host", "0.0.0.0", cwd=folder, LATESHIFT_STORE=store_url)
    assert (bare.code, bare.out) == (2, "")
    assert "--behind-proxy" in bare.err
    proxied = completed(
        "serve", "shop.py", "--host", "0.0.0.0", "--behind-proxy", "10.0.0.1", "--allow-host", "jobs.example.com", cwd=folder,
        LATESHIFT_STORE=store_url,
    )  # fmt: skip
    assert (proxied.code, proxied.out) == (2, "")
    assert "has no token" in proxied.err


def test_a_port_that_is_taken_and_a_certificate_that_is_none_are_told(folder: Path, sqlite_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        answer = completed("serve", "shop.py", "--port", port, cwd=folder, LATESHIFT_STORE=sqlite_url)
    assert answer.code == 2
    assert "cannot be listened on" in answer.err
    (folder / "x.pem").write_text("x")
    answer = completed(
        "serve",
        "shop.py",
        "--port",
        "0",
        "--tls-cert",
        "x.pem",
        "--tls-key",
        "x.pem",
        cwd=folder,
        LATESHIFT_STORE=sqlite_url,
    )
    assert answer.code == 2
    assert "cannot be used" in answer.err


def test_the_memory_of_a_server_stays_flat_whatever_is_sent_to_it(folder: Path, sqlite_url: str) -> None:
    with started("serve", "shop.py", "--port", "0", cwd=folder, LATESHIFT_STORE=sqlite_url) as process:
        eventually(lambda: "http://127.0.0.1:" in said(folder) or process.poll() is not None, "it serves")
        url, *_ = re.findall(r"http://127\.0\.0\.1:\d+", said(folder))
        [token] = re.findall(r"lsh_[\w-]{64}", said(folder))
        head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        deep, wide = (
            b"[" * 500_000 + b"]" * 500_000,
            b'{"arguments": {%s}}' % b",".join(b'"a%d": 1' % n for n in range(80_000)),
        )
        bodies = [
            deep,
            wide,
            b'{"arguments": {"path": "%s"}}' % (b"a" * 1_000_000),
            b"x" * 3_000_000,
            b"[" * 1_000_000,
        ]
        with httpx.Client(base_url=url, headers=head, trust_env=False, timeout=60) as client:

            def send(times: int) -> int:
                for _ in range(times):
                    for body in bodies:
                        answer = client.post("/v1/tasks/thumbnail/jobs", content=body)
                        assert 400 <= answer.status_code < 500
                    client.get("/v1/jobs", params={"task": "a" * 150})
                return int(psutil.Process(process.pid).memory_info().rss)

            before = send(3)
            assert send(6) - before < 24 * 2**20
        assert interrupted(process, 20) == 0


def test_an_answer_does_not_wait_for_the_client_to_acknowledge_its_head() -> None:
    with listening(binding_of("127.0.0.1", 0)) as at, socket.create_connection(at.getsockname()):
        accepted, _ = at.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
