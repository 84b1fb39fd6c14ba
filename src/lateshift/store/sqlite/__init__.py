"""The store in one SQLite file: WAL, synchronous=FULL, one writer at a time. Or, for tests, in memory."""

from lateshift.store.sqlite.database import Database
from lateshift.store.sqlite.memory import MemoryStore
from lateshift.store.sqlite.store import SqliteStore
from lateshift.store.sqlite.wakes import FifoWakes

__all__ = ["Database", "FifoWakes", "MemoryStore", "SqliteStore"]
