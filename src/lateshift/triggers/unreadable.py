"""Values of a database that Python has none for: `infinity` and the year 10000 among times, 24 o'clock, JSON that is too deep. They come as
their text, so that a row with one of them is refused, and keeps no other."""

from typing import Any

from msgspec import Struct

# Of PostgreSQL: those whose values are not all values of Python.
KINDS = ("date", "timestamp", "timestamptz", "time", "timetz", "interval", "json", "jsonb")
_TEXT = 0  # libpq's format


class Unreadable(Struct, frozen=True):
    """`kind`: the type, as PostgreSQL calls it. `why`: what the driver said."""

    kind: str
    text: str
    why: str

    @property
    def is_early(self) -> bool:
        """Whether it is a time before all that Python has, not after."""
        return self.text.startswith("-") or self.text.endswith("BC")


def read_any_value(connection: Any, _: object) -> None:
    """Has psycopg hand such values on, where it would raise, and with them lose the page in which they are."""
    adapters = connection.adapters
    for kind in KINDS:
        oid = adapters.types[kind].oid
        adapters.register_loader(oid, _careful(kind, adapters.get_loader(oid, _TEXT)))


def _careful(kind: str, loader: Any) -> type:
    class Careful:
        format = loader.format

        def __init__(self, oid: int, context: Any = None) -> None:
            self._load = loader(oid, context).load

        def load(self, data: Any) -> Any:
            try:
                return self._load(data)
            except Exception as error:  # whatever it is, the other rows are to come
                text = bytes(data).decode(errors="backslashreplace")
                return Unreadable(kind, text, f"{type(error).__name__}: {error}")

    return Careful
