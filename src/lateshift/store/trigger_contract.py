"""What every store does about triggers. See contract.py for what holds of all verbs."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from msgspec import Struct

from lateshift.model.ids import JobId
from lateshift.model.job import NewJob
from lateshift.model.triggering.in_database import RowTrigger
from lateshift.model.triggering.trigger import Arrival, NewTrigger, RefusedView, Subscription, TriggerView
from lateshift.store.schedule_contract import Declared


class Standing(Struct, frozen=True):
    """Where a trigger stands: how far it has read, as its source wrote it, whether it is paused, and whose it is."""

    position: bytes | None
    paused: bool
    app: str


class Taken(Struct, frozen=True):
    """What became of arrivals: jobs made, events that had arrived before, events refused."""

    made: int
    repeated: int
    refused: int


class Received(Struct, frozen=True):
    """What became of an event: a job, a refusal, or neither where the program passed it over. `new`: it had not arrived before."""

    new: bool
    job: JobId | None = None
    refused: UUID | None = None


class Triggers(Protocol):
    """Names, positions and receipts. An event, its receipt and its job are written in one commit, once."""

    def declare(self, triggers: Sequence[NewTrigger], *, app: str, whole: bool = True) -> Declared:
        """As the code of an app has them now. Positions and pauses stay. One that the code does not have any more goes; if
        these are not the `whole`, only what is missing is written. Its position and its receipts stay for TRIGGER_KEPT, so that nothing is lost or doubled when
        an older release was started by mistake, or for a moment. A name that another app has stays that app's while one of its
        workers lives; then it is taken over, with its position."""

    def install(self, trigger: RowTrigger, *, app: str) -> bool:
        """Have the database itself write the job of a row, in the transaction that changes the row. False if it does so already.
        Raises TriggerInvalid where that cannot be."""

    def uninstall(self, otherwise: list[str], *, app: str) -> list[str]:
        """What the database does for triggers of the app ends: at once for those that the code now has `otherwise`, and for those
        that no code has had for a while, so that a release without them, beside one with them, loses nothing. Gives their names;
        one whose table is in use is left for the next time."""

    def standing(self, name: str) -> Standing | None:
        """None if it is not declared."""

    def unseen(self, name: str, events: Sequence[tuple[str, str]]) -> list[bool]:
        """For each event and its mark, whether none such has arrived. A hint: `take` decides."""

    def take(
        self,
        name: str,
        arrivals: Sequence[Arrival],
        *,
        term: int,
        position: bytes | None = None,
        keep: timedelta | None = None,
        lag: int | None = None,
    ) -> Taken | None:
        """Write the receipts, the jobs, what is refused and how far it has read, in one commit. What has arrived before, with
        the same mark, makes nothing. Receipts go after `keep`; without it they stay until they are forgotten. `position`:
        None leaves it. None, and nothing is written, unless `term` is the present one of "trigger NAME"."""

    def receive(self, name: str, arrivals: Sequence[Arrival], *, keep: timedelta) -> list[Received] | None:
        """The same for what is brought to us: by any number of processes at once, under no term. An event that has arrived before,
        within `keep` and whatever it says, makes nothing: the answer is what became of it then. None, and nothing is written,
        if the trigger is not declared or is paused."""

    def receipts(self, name: str, after: str, limit: int) -> list[str]:
        """Events that have arrived, in their order (by bytes), after one."""

    def forget(self, name: str, events: Sequence[str] = (), *, before: str | None = None, term: int) -> int:
        """Receipts that are needed no more: of these events, and of all that sort before one. Gives how many went."""

    def tell(self, name: str, *, error: str | None, lag: int | None = None) -> None:
        """What keeps it from reading; None if nothing does: the last that did is kept, with when it was. Said when it
        changes, and now and then."""

    def pause(self, name: str, *, by: str) -> bool:
        """Raises TriggerInvalid if the database writes its jobs: what it passed over would be lost."""

    def resume(self, name: str, *, by: str) -> bool: ...

    def get(self, name: str) -> TriggerView | None: ...

    def all(self, limit: int | None = None, *, after: str = "") -> list[TriggerView]:
        """By name, the first `limit` of them behind this one."""

    def refused(self, name: str | None, after: UUID | None, limit: int) -> list[RefusedView]:
        """The oldest first; of one trigger or of all."""

    def which_refused(self, name: str, after: UUID | None, limit: int) -> list[UUID]:
        """The ids of what one trigger has refused, the oldest first."""

    def find_refused(self, id: UUID) -> RefusedView | None: ...

    def refused_ids(self, digits: str, limit: int) -> list[UUID]:
        """Ids of what was refused that begin with these hexadecimal digits, or end with them; endings among the newest
        ENDINGS_LOOKED_AT."""

    def accept(self, id: UUID, job: NewJob, *, by: str) -> bool:
        """What was refused becomes this job, in one commit. False if it is not there any more."""

    def discard(self, ids: Sequence[UUID], *, by: str) -> int:
        """What was refused goes. Gives how many."""

    def subscriptions(self) -> list[tuple[str, str, Subscription]]:
        """Of all apps: the app, the trigger's name, and what an event becomes."""
