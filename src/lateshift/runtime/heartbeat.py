"""Keeps members alive from a thread of its own, so that blocking code on the loop costs no lease. A host beats for its
worker processes too, so that not even code that holds the interpreter lock does."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from lateshift.errors import StoreError
from lateshift.model.ids import MemberId
from lateshift.model.member import Loops
from lateshift.runtime.log import log
from lateshift.store.contract import Members
from lateshift.telemetry.liveness import has_failed, living

BEATS = 3  # in each lifetime
SOONER = 10  # parts of a beat after which one that failed is tried again


@dataclass(slots=True)
class _Kept:
    alive: Callable[[], bool]
    lost: Callable[[], None]
    until: float  # monotonic: the store's word holds at least so long
    loops: Callable[[], Loops]


class Heartbeat:
    """Add members; those that are lost are told, once, and forgotten.

    `one_machine`: whoever could declare them dead writes to the same file. While that cannot be written (a body that holds the
    interpreter lock may keep another thread in the middle of its transaction), nobody is dead: only the store's word counts.
    """

    def __init__(self, members: Members, ttl: timedelta, *, one_machine: bool = False) -> None:
        self.ttl = ttl
        self._members = members
        self._one_machine = one_machine
        self._failed = False
        self._kept: dict[MemberId, _Kept] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lateshift-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def pause(self) -> float:
        """Seconds until the next beat."""
        beat = self.ttl.total_seconds() / BEATS
        return beat / SOONER if self._failed else beat

    def add(
        self, member: MemberId, *, alive: Callable[[], bool], lost: Callable[[], None], loops: Callable[[], Loops] = dict
    ) -> None:  # fmt: skip
        """`member` has just joined. `alive` is asked before each beat, and `loops`, how old its loops are, which is told with it; `lost` is
        called on the heartbeat's thread."""
        with self._lock:
            self._kept[member] = _Kept(alive, lost, time.monotonic() + self.ttl.total_seconds(), loops)

    def remove(self, member: MemberId) -> None:
        with self._lock:
            self._kept.pop(member, None)

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def beat(self) -> None:
        """One beat for all."""
        with self._lock:
            beating = [member for member, kept in self._kept.items() if _is_alive(kept)]
            loops = {member: some for member in beating if (some := _loops(self._kept[member]))}
        asked = time.monotonic()
        try:
            answered = set(self._members.beat(beating, self.ttl, loops)) if beating else set()
            self._failed = False
        except StoreError as error:
            log.warning("no heartbeat: %s", error)
            beating, answered, self._failed = [], set(), True
        except Exception:
            log.exception("no heartbeat")
            beating, answered, self._failed = [], set(), True
        now = time.monotonic()
        lost: list[_Kept] = []
        with self._lock:
            for member, kept in list(self._kept.items()):
                if member in answered:
                    kept.until = asked + self.ttl.total_seconds()
                elif member in beating or (now >= kept.until and not (self._failed and self._one_machine)):
                    lost.append(self._kept.pop(member))
        for kept in lost:
            try:
                kept.lost()
            except Exception:
                log.exception("a member that was lost could not be told")

    def _run(self) -> None:
        with living("Heartbeat") as loop:
            loop.has_turned(self.pause)
            while not self._stopping.wait(self.pause):
                try:
                    self.beat()
                    if self._failed:
                        has_failed()
                except Exception:  # whatever it is, the others' leases hang on the next beat
                    log.exception("a heartbeat failed; the next one follows")
                    has_failed()
                loop.has_turned(self.pause)


def _is_alive(kept: _Kept) -> bool:
    """Who cannot be looked at is not held for dead: the store's word decides."""
    try:
        return kept.alive()
    except Exception:
        log.exception("cannot see whether a member is alive; it is held for alive")
        return True


def _loops(kept: _Kept) -> Loops:
    """Not worth a beat: whoever cannot be asked tells nothing."""
    try:
        return kept.loops()
    except Exception:
        log.exception("cannot see how old the loops of a member are")
        return {}
