"""The headers of a request, by name: read once, at the door, and asked for many times. A name is in small letters, as HTTP servers give it."""

from collections.abc import Iterable, Sequence

from starlette.types import Scope

_KEPT = "lateshift.head"


class Head:
    """`count`: how many headers there are. `size`: bytes of their names and values together."""

    __slots__ = ("_values", "count", "size")

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[bytes, list[bytes]] = {}
        self.count = self.size = 0
        for name, value in raw:
            self.count += 1
            self.size += len(name) + len(value)
            if name in self._values:
                self._values[name].append(value)
            else:
                self._values[name] = [value]

    def __contains__(self, name: bytes) -> bool:
        return name in self._values

    @property
    def twice(self) -> Sequence[bytes]:
        """Names that stand more than once."""
        if self.count == len(self._values):
            return ()
        return [name for name, values in self._values.items() if len(values) > 1]

    def all(self, name: bytes) -> list[str]:
        """What stands under a name, as often as it stands there."""
        found = self._values.get(name)
        return [] if found is None else [value.decode("latin-1") for value in found]

    def first(self, name: bytes) -> str:
        """Empty if there is none."""
        found = self._values.get(name)
        return "" if found is None else found[0].decode("latin-1")


def head_of(scope: Scope) -> Head:
    """Of a request; read at the first call."""
    head = scope.get(_KEPT)
    if head is None:
        head = scope[_KEPT] = Head(scope["headers"])
    assert isinstance(head, Head)
    return head
