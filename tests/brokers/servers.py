"""Real servers for triggers, on the loopback address: RabbitMQ and Redis as they run on their usual ports or are started
here, and Azurite and moto, which stand in for Azure Storage and AWS and are always started here.

A server that is not to be had raises Missing, with its name and what to do. Whatever is started is ended with the block.
Nothing here needs the extras to be imported.
"""

import contextlib
import importlib.util
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AZURITE = ROOT / ".cache" / "azurite" / "node_modules" / "azurite" / "dist" / "src" / "azurite.js"
STARTS_WITHIN = 60.0  # seconds
HOST = "127.0.0.1"


class Missing(Exception):
    """This server cannot be had here. The message names it."""


@dataclass(frozen=True)
class Azurite:
    """Azure Storage with the account that every Azurite has."""

    blob: str  # http://127.0.0.1:PORT/devstoreaccount1
    queue: str
    account: str = "devstoreaccount1"
    key: str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

    @property
    def connection_string(self) -> str:
        return (
            f"DefaultEndpointsProtocol=http;AccountName={self.account};AccountKey={self.key};"
            f"BlobEndpoint={self.blob};QueueEndpoint={self.queue};"
        )


@contextlib.contextmanager
def rabbitmq() -> Iterator[str]:
    """An amqp:// URL. The server may be another's too: use names that nobody has, and delete what you made."""
    named = os.environ.get("LATESHIFT_TEST_RABBITMQ")
    if named or _listens(5672):
        yield named or f"amqp://guest:guest@{HOST}:5672//"
        return
    # Packages put a script in front of it on the PATH, which changes user and folder.
    program = shutil.which("rabbitmq-server", path="/usr/lib/rabbitmq/bin") or shutil.which("rabbitmq-server")
    if program is None:
        raise Missing(
            "RabbitMQ: none listens on 127.0.0.1:5672, and rabbitmq-server is not installed. Install it, or name one in "
            "LATESHIFT_TEST_RABBITMQ=amqp://…"
        )
    port, between = free_port(), free_port()
    with _folder() as folder:
        settings, variables = folder / "rabbitmq.conf", folder / "variables"
        settings.write_text(f"listeners.tcp.1 = {HOST}:{port}\n")
        variables.write_text("")
        environment = {
            "HOME": str(folder),  # a cookie of its own
            "RABBITMQ_NODENAME": f"lateshift-{port}@localhost",
            "RABBITMQ_CONFIG_FILE": str(settings),  # not the machine's
            "RABBITMQ_CONF_ENV_FILE": str(variables),
            "RABBITMQ_DIST_PORT": str(between),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
        }
        with running(
            "RabbitMQ", [program], folder, lambda: _greets(port, b"AMQP\x00\x00\x09\x01"), environment
        ):
            yield f"amqp://guest:guest@{HOST}:{port}//"


@contextlib.contextmanager
def redis() -> Iterator[str]:
    """A redis:// URL of a database that was empty, and is emptied."""
    named = os.environ.get("LATESHIFT_TEST_REDIS")
    if named or _listens(6379):
        with _database(named or f"redis://{HOST}:6379") as url:
            yield url
        return
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        raise Missing(
            "Redis: none listens on 127.0.0.1:6379, and redis-server is not installed. Install it, or name one in "
            "LATESHIFT_TEST_REDIS=redis://HOST:PORT"
        )
    port = free_port()
    with _folder() as folder:
        command = [program, "--bind", HOST, "--port", str(port), "--save", "", "--dir", str(folder)]
        with running("Redis", command, folder, lambda: _greets(port, b"PING\r\n")):
            yield f"redis://{HOST}:{port}/0"


@contextlib.contextmanager
def azurite() -> Iterator[Azurite]:
    node = shutil.which("node")
    if node is None or not AZURITE.is_file():
        raise Missing(
            "Azurite: it is not installed. `make test-brokers` installs it, with npm, into .cache/azurite"
        )
    blob, queue, table = free_port(), free_port(), free_port()
    with _folder() as folder:
        command = [
            node, str(AZURITE), "--silent", "--skipApiVersionCheck", "--disableTelemetry", "--inMemoryPersistence",
            "--blobHost", HOST, "--blobPort", str(blob), "--queueHost", HOST, "--queuePort", str(queue),
            "--tableHost", HOST, "--tablePort", str(table),
        ]  # fmt: skip
        with running("Azurite", command, folder, lambda: _answers(blob) and _answers(queue)):
            account = Azurite.account
            yield Azurite(f"http://{HOST}:{blob}/{account}", f"http://{HOST}:{queue}/{account}")


@contextlib.contextmanager
def moto() -> Iterator[str]:
    """The address of a server that answers as S3 and SQS do. It takes any credentials."""
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask") is None:
        raise Missing("moto: it is not installed. `make test-brokers` installs it")
    port = free_port()
    with _folder() as folder:
        command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
        with running("moto", command, folder, lambda: _answers(port)):
            yield f"http://{HOST}:{port}"


def free_port() -> int:
    with socket.create_server((HOST, 0)) as listener:
        return int(listener.getsockname()[1])


# -- how it is done -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def running(
    name: str,
    command: list[str],
    folder: Path,
    ready: Callable[[], bool],
    environment: dict[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    log = folder / "output"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=os.environ | (environment or {}), stdin=subprocess.DEVNULL, stdout=output,
            stderr=output,
        )  # fmt: skip
    try:
        end = time.monotonic() + STARTS_WITHIN
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                raise Missing(f"{name}: it did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def _database(server: str) -> Iterator[str]:
    """One with nothing in it, marked as taken so that no other run takes it."""
    try:
        import redis as client
    except ModuleNotFoundError:
        raise Missing("Redis: its client is not installed. `make test-brokers` installs it") from None
    mark = "lateshift tests use this database"
    for number in range(15, 0, -1):
        url = f"{server.rstrip('/')}/{number}"
        connection = client.Redis.from_url(url, socket_timeout=10)
        try:
            if connection.dbsize() or not connection.set(mark, os.getpid(), nx=True):
                continue
            try:
                yield url
            finally:
                connection.flushdb()
            return
        finally:
            connection.close()
    raise Missing("Redis: the databases 1 to 15 have something in them, each. Empty one")


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lateshift-server-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=2):
        return True
    return False


def _greets(port: int, greeting: bytes) -> bool:
    """Whether there is an answer to the first bytes that a client of it says."""
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=2) as connection:
        connection.sendall(greeting)
        return bool(connection.recv(1))
    return False


def speaks_tls(port: int, trusted: Path) -> bool:
    context = ssl.create_default_context(cafile=str(trusted))
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=2) as connection:
        with context.wrap_socket(connection, server_hostname=HOST):
            return True
    return False


def _answers(port: int) -> bool:
    """Whether there is any answer to HTTP."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{HOST}:{port}/", timeout=2):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except OSError:
        return False
