"""From a URL to a store: the one module that knows both implementations."""

from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from lateshift.clock import SYSTEM, Clock
from lateshift.errors import StoreUrlInvalid
from lateshift.store.contract import Store
from lateshift.store.urls import shown

EXAMPLES = "sqlite:///jobs.db (a file here), sqlite:////var/lib/shop/jobs.db (an absolute path), postgresql://user@host/db, memory:// (for tests)"


def open_store(url: str, clock: Clock = SYSTEM) -> Store:
    """A store that has not connected yet. Drivers are imported only when they are asked for."""
    scheme, separator, _ = url.partition("://")
    match scheme:
        case "sqlite" if separator:
            return _sqlite(url, clock)
        case "memory" if separator:
            return _memory(url, clock)
        case "postgresql" | "postgres" if separator:
            from lateshift.store.postgres import PostgresStore

            return PostgresStore(url, clock)
        case _:
            raise StoreUrlInvalid(f"{shown(url)!r} is no store URL. Examples: {EXAMPLES}.")


def _sqlite(url: str, clock: Clock) -> Store:
    from lateshift.store.sqlite import Database, FifoWakes, SqliteStore

    parts = urlsplit(url)
    if parts.netloc or len(parts.path) < 2:
        raise StoreUrlInvalid(
            f"{url!r} names no file: sqlite:// is followed by a slash and a path. Examples: {EXAMPLES}."
        )
    options = dict(parse_qsl(parts.query))
    network, driver = options.pop("network", None), options.pop("driver", "apsw")
    if options or network not in (None, "allow") or driver not in ("apsw", "sqlite3"):
        raise StoreUrlInvalid(
            f"{url!r}: the options of a SQLite store are ?network=allow and ?driver=sqlite3."
        )
    path = Path(unquote(parts.path[1:])).absolute()
    database = Database(path, clock, allow_network=network is not None, driver=driver)
    return SqliteStore(url, database, FifoWakes(path, clock))


def _memory(url: str, clock: Clock) -> Store:
    from lateshift.store.sqlite import MemoryStore

    parts = urlsplit(url)
    if parts.path or parts.query or parts.fragment:
        raise StoreUrlInvalid(
            f"{url!r}: after memory:// comes nothing, or a name for stores of this process that share their jobs: memory://shop."
        )
    return MemoryStore(url, parts.netloc, clock)
