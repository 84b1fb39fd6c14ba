"""A program with a sensitive queue, and a look at every byte that a store has kept."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import psycopg

from lateshift import Lateshift, acheckpoint, progress, session
from lateshift.config import load
from lateshift.errors import Permanent
from lateshift.sealing.ring import new_key

SECRETS = {
    name: f"canary-{name}-7f3a91"
    for name in (
        "argument",
        "result",
        "error",
        "log",
        "note",
        "checkpoint",
        "state",
        "key",
        "cancel",
        "batch",
    )
}
OLD, NEW, DIGEST = new_key("2026-10"), new_key("2026-11"), new_key("digest")


def clinic(url: str, *keys: str, sensitive: bool = True) -> Lateshift:
    """An app whose queue `patients` is sensitive, with these keys in its ring; or one that knows nothing of that."""
    app = Lateshift("clinic", store=url)
    app.settings = load(store=url, keys=keys, unknown_delay=app.settings.unknown_delay)
    if sensitive:
        app.queue("patients", sensitive=True)
    ran: list[str] = []
    app.ran = ran  # type: ignore[attr-defined]

    @app.task(queue="patients")
    async def examine(name: str) -> str:
        ran.append(name)
        logging.getLogger("clinic").warning("looking at %s", SECRETS["log"])
        progress(1, 2, SECRETS["note"])
        await acheckpoint({"seen": SECRETS["checkpoint"]})
        await asyncio.sleep(0)
        return SECRETS["result"]

    @app.task(queue="patients")
    async def fail(name: str) -> None:
        raise Permanent(f"{SECRETS['error']} of {name}")

    @app.task(queue="patients")
    def remember(name: str) -> str:
        before: str = session.get_state("")
        session.set_state(SECRETS["state"])
        return before

    @app.task(queue="patients", process=True)
    def compute(name: str) -> str:
        return name.upper()

    return app


def kept(url: str) -> Iterator[tuple[str, bytes]]:
    """All that a store has kept, by where: every file of SQLite with its log, every row of PostgreSQL."""
    if url.startswith("sqlite"):
        file = Path(url.removeprefix("sqlite:///").partition("?")[0])
        for path in file.parent.glob(f"{file.name}*"):
            if path.is_file():
                yield path.name, path.read_bytes()
        return
    with psycopg.connect(url) as server:
        tables = server.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'lateshift'"
        ).fetchall()
        for (table,) in tables:
            copying = f"COPY lateshift.{table} TO STDOUT (FORMAT binary)"
            with server.cursor() as cursor, cursor.copy(copying.encode()) as copy:
                yield table, b"".join(bytes(block) for block in copy)


def leaks(told: bytes) -> list[str]:
    return [name for name, secret in SECRETS.items() if secret.encode() in told]
