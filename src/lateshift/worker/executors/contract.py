"""What an executor does, and what it tells the worker."""

from typing import Any, Protocol

from lateshift.model.outcome import Decided, Ended
from lateshift.worker.attempt import Attempt


class Report(Protocol):
    """The worker's ear. Called on the worker's loop."""

    def returned(self, attempt: Attempt, result: Any) -> None:
        """The body returned this value."""

    def returned_encoded(self, attempt: Attempt, result: bytes | None) -> None:
        """The body returned, in another process, and this is its result as JSON."""

    def ended(self, attempt: Attempt, how: Ended) -> None:
        """The body did not return."""

    def decided(self, attempt: Attempt, how: Decided) -> None:
        """A workflow said itself how its attempt ends."""


class Executor(Protocol):
    """Runs attempts, as many at once as it has slots; the rest wait in it."""

    def submit(self, attempts: list[Attempt]) -> None: ...

    def cancel(self, attempt: Attempt) -> None:
        """Tell the body to stop; `cancelled_by`, `lost` or the deadline say why."""

    def overdue(self, attempt: Attempt) -> None:
        """Its complete-by has passed: end it as far as this executor can, and report it killed."""

    def give_back(self, older_than: float | None) -> list[Attempt]:
        """Attempts that wait and have not begun, taken out of the executor again; those received before a time."""

    async def close(self) -> None: ...
