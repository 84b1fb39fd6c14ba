"""`lateshift serve` as a real process on loopback, on both stores."""

import re
import socket
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from lateshift.api.application import matrix
from lateshift.api.binding import binding_of
from lateshift.api.serving import listening
from lateshift.model.access import Scope, new_token
from lateshift.store.open import open_store
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
    with started(
        "serve", "shop.py", "--port", "0", "--show-secrets", cwd=folder, LATESHIFT_STORE=store_url
    ) as process:
        eventually(lambda: "--matrix" in said(folder) or process.poll() is not None, "it serves")
        out = said(folder)
        url, link = re.findall(r"http://127\.0\.0\.1:\d+", out)
        assert link == url
        assert re.search(r"/sign-in\?code=[\w-]{22}\n", out)
        [token] = re.findall(r"lsh_[\w-]{64}", out)
        assert out.index(token) < out.index("lateshift serve --matrix")  # what one needs comes first
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
    with started(
        "serve", "shop.py", "--port", "0", "--show-secrets", cwd=folder, LATESHIFT_STORE=store_url
    ) as process:
        eventually(lambda: "--matrix" in said(folder) or process.poll() is not None, "it serves again")
        assert "lsh_" not in said(folder)


def test_what_may_be_a_log_gets_no_secret_and_no_token_is_made_that_nobody_sees(
    folder: Path, store_url: str
) -> None:
    settings = {"LATESHIFT_STORE": store_url, "LATESHIFT_LOG": "warning"}
    with started("serve", "shop.py", "--port", "0", cwd=folder, **settings) as process:
        eventually(lambda: "--matrix" in said(folder) or process.poll() is not None, "it serves")
        eventually(lambda: "lateshift tokens create" in said(folder), "it says what to do")
        out = said(folder)
        assert "lsh_" not in out
        assert "code=" not in out
        assert completed("tokens", "list", "--json", cwd=folder, **settings).document["tokens"] == []
        assert f"which of the {len(matrix())} routes: lateshift serve --matrix" in out
        name = re.findall(r"lateshift (tokens create .*)", out)[0].split()
        assert completed(*name, cwd=folder, **settings).code == 0
        assert interrupted(process, 20) == 0


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


def test_an_answer_does_not_wait_for_the_client_to_acknowledge_its_head() -> None:
    with listening(binding_of("127.0.0.1", 0)) as at, socket.create_connection(at.getsockname()):
        accepted, _ = at.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_token_that_is_revoked_or_expired_is_no_token(folder: Path, store_url: str) -> None:
    store = open_store(store_url)
    now = store.clock.now()
    for name, end in (("admin", now - timedelta(hours=1)), ("gone", None)):
        token, _ = new_token(name, [Scope.ADMIN], [], at=now - timedelta(days=1), by="ann", expires_at=end)
        store.tokens.create(token)
        if name == "gone":
            store.tokens.revoke(token.id, by="ann")
    elsewhere = ("--host", "0.0.0.0", "--behind-proxy", "10.0.0.1", "--allow-host", "jobs.example.com")

    refused = completed("serve", "shop.py", *elsewhere, cwd=folder, LATESHIFT_STORE=store_url)

    assert (refused.code, refused.out) == (2, "")
    assert "The store has no token that is good" in refused.err
    secrets = ("--port", "0", "--show-secrets")
    with started("serve", "shop.py", *secrets, cwd=folder, LATESHIFT_STORE=store_url) as process:
        eventually(lambda: "--matrix" in said(folder) or process.poll() is not None, "it serves")
        assert store.tokens.named("admin-2") is not None  # that of the one which has expired is its own still
        assert interrupted(process, 20) == 0
    store.close()


@pytest.mark.parametrize("everybody", ["0.0.0.0/0", "::/0"])
def test_a_proxy_that_is_everybody_is_refused(folder: Path, sqlite_url: str, everybody: str) -> None:
    for command in ("serve", "up"):
        answer = completed(
            command,
            "shop.py",
            "--host",
            "0.0.0.0",
            "--behind-proxy",
            everybody,
            cwd=folder,
            LATESHIFT_STORE=sqlite_url,
        )
        assert (answer.code, answer.out) == (2, "")
        assert "is everybody" in answer.err
