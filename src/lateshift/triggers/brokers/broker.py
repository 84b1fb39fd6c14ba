"""What a trigger needs of a broker. All of it blocks; any error means that the broker is away."""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct


class Delivery(Struct, frozen=True, kw_only=True):
    """One message as the broker gave it. `body`: out of its envelope, if it had one, and not unpacked yet: see envelopes.body_of.
    `id`: the publisher's or the broker's own, the same when it is delivered again. `wrong`: why it cannot be read."""

    tag: Any  # what acknowledges it
    raw: bytes  # as it came
    body: bytes
    wrapped: bool = False  # whether the raw is looked into for an envelope
    id: str | None = None
    headers: dict[str, Any] = {}
    content_type: str | None = None
    encoding: str | None = None  # of the body, as its publisher says
    packed: str | None = None  # how the body is compressed, as kombu says
    wrong: str | None = None


class Broker(Protocol):
    """A queue, connected."""

    pause: float  # seconds between looks at a quiet queue; 0 if `receive` itself waits

    def receive(self, most: int, wait: float) -> list[Delivery]:
        """Up to `most`, which nobody else is given until they are acknowledged, released, or held for too long."""

    def acknowledge(self, tags: Sequence[Any]) -> None:
        """They are gone from the broker after this."""

    def waiting(self) -> int:
        """How many there are to be received, about."""

    def close(self) -> None:
        """What was received and not acknowledged can be received again."""
