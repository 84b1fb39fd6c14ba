"""What every store does about limits, sessions and tenants. See contract.py for what holds of all verbs."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from lateshift.model.guard import Rule
from lateshift.model.ids import JobId

TENANT_COUNTED = 100  # ready jobs of one tenant and lane, up to which they are counted


class RuleBook(Protocol):
    """Limits on how many jobs run and start, over all machines."""

    def declare(self, rules: Sequence[Rule], *, by: str) -> None:
        """As the code of the app `by` has them now. One without any limit is withdrawn, if that app had declared it."""

    def list(self) -> list[Rule]: ...


class SessionView(Struct, frozen=True, kw_only=True):
    """A session, as operators see it. `since`: when it was last touched: of one that is held, when it was held."""

    queue: str
    name: str
    state: bytes | None
    expects: int | None
    held_by: JobId | None
    held_why: str | None
    since: datetime


class TenantView(Struct, frozen=True, kw_only=True):
    """How many jobs of a tenant are ready in a queue, up to TENANT_COUNTED in each lane, and how long the oldest of them has waited."""

    name: str
    ready: int
    oldest_ready: timedelta


class Sessions(Protocol):
    def get(self, queue: str, name: str) -> SessionView | None: ...

    def list(
        self, *, held: bool, limit: int, after: tuple[str, str] | None = None, whole: bool = True
    ) -> list[SessionView]:
        """Sessions that keep something, or only those that are held, by queue and name. `after`: behind this queue and name. `whole`: else
        without the state that they keep."""

    def release(self, queue: str, name: str, *, by: str) -> bool:
        """Let a held session go on, without its dead letter or its missing number."""
