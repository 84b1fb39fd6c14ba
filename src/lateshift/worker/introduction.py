"""What a worker says of itself when it begins: its program, its queues, its room. Said once, beside the heartbeat and the
counts, so that a program of thousands of tasks costs nothing while it works."""

from collections.abc import Callable, Mapping
from typing import Any

from lateshift.config import Settings
from lateshift.model.ids import MemberId
from lateshift.model.member import Program, Serves
from lateshift.sealing.ring import ring_of
from lateshift.store.contract import Members


class Introduction:
    """Due until it was heard, and again when tasks have been added since."""

    def __init__(
        self, members: Members, tasks: Mapping[str, Any], settings: Settings, program: Callable[[], Program]
    ) -> None:
        self._members = members
        self._tasks = tasks
        self._settings = settings
        self._program = program
        self._told = -1

    @property
    def due(self) -> bool:
        return self._told != len(self._tasks)

    def give(self, member: MemberId, slots: dict[str, int]) -> None:
        """Not heard if the member has not joined yet: its host does that, once the process has started."""
        count = len(self._tasks)
        program = self._program()
        serves = Serves(
            app=program.app, version=program.version, code=program.digest, queues=self._settings.queues, slots=slots,
            heartbeat=self._settings.heartbeat.total_seconds(), keys=ring_of(self._settings).ids,
        )  # fmt: skip
        if self._members.introduce(member, serves, program):
            self._told = count
