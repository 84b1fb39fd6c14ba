"""What every store does about its own upkeep. See contract.py for what holds of all verbs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from lateshift.model.ids import JobId


class Upkeep(Protocol):
    def purge(self, *, term: int, limit: int) -> int:
        """Delete up to `limit` rows of each kind: settled jobs past their retention, keys past their window,
        identities that name nothing any more; and dead members that hold nothing."""

    def erase(self, ids: Sequence[JobId]) -> int:
        """Delete settled jobs before their retention ends. Gives how many; one that is not settled stays."""

    def check(self) -> list[str]:
        """Look for damage and broken rules; what it found, in words. Empty is good."""

    def backup(self, target: Path) -> None:
        """A consistent copy while everything runs."""

    def roles(self, prefix: str) -> str:
        """A script that makes roles with the least rights; `apply_roles` runs it, and gives their names. Both raise RolesUnsupported where there
        are none."""

    def apply_roles(self, prefix: str) -> list[str]: ...
