"""Hints of the operating system about what changes below a folder, by watchfiles. They may be late, lost or wrong: a scan is the
truth."""

import threading
from typing import TYPE_CHECKING, Protocol

from lateshift.runtime.log import log

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

HINTS_KEPT = 10_000  # paths; if there are more, a scan finds them
STEP = 50  # milliseconds between two looks at what the system told
GATHER = 200  # milliseconds in which changes are gathered
TIMEOUT = 1000  # milliseconds of one wait
AGAIN = 5.0  # seconds until it watches anew, after an error
CLOSING = 1.0  # seconds


class Hints(Protocol):
    """Where hints come from."""

    def take(self) -> tuple[set[str], bool]:
        """The paths that changed since it was last asked, and whether there were more than could be kept."""

    def close(self) -> None: ...


class Watch:
    """Watches on a thread of its own: setting up takes long on a large tree, and what is told must be bounded though nobody
    asks for it. The thread ends with the main one, so that no program hangs on it."""

    def __init__(self, folder: str, *, deep: bool) -> None:
        """Raises ModuleNotFoundError where watchfiles is not installed."""
        from watchfiles._rust_notify import RustNotify

        self._notify = RustNotify
        self._folder = folder
        self._deep = deep
        self._lock = threading.Lock()
        self._paths: set[str] = set()
        self._more = True  # until it watches, what changes is not told
        self._stopping = threading.Event()
        self.ready = threading.Event()  # it watches, or will not
        self._thread = threading.Thread(target=self._run, name="lateshift-watch", daemon=False)
        self._thread.start()

    def take(self) -> tuple[set[str], bool]:
        with self._lock:
            paths, self._paths = self._paths, set()
            more = self._more and self.ready.is_set()
            self._more = self._more and not more
        return paths, more

    @property
    def ended(self) -> bool:
        """Whether it has failed: nothing more will be told."""
        return not self._thread.is_alive()

    def close(self) -> None:
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join(CLOSING)

    def is_set(self) -> bool:
        """Whether the thread is to end. watchfiles asks."""
        return self._stopping.is_set() or not threading.main_thread().is_alive()

    def _run(self) -> None:
        try:
            while not self.is_set():
                with self._open() as notify:
                    self.ready.set()
                    self._listen(notify)
        except Exception as error:  # more watches than the system allows, a folder that went
            if not self.is_set():
                log.warning("changes in %s are found by scans only: %s", self._folder, error)
        finally:
            self.ready.set()

    def _open(self) -> "RustNotify":
        try:
            return self._notify([self._folder], False, False, 0, self._deep, False)
        except PermissionError:  # of a folder below; told to ignore that, it ignores everything
            return self._notify([self._folder], False, False, 0, self._deep, True)

    def _listen(self, notify: "RustNotify") -> None:
        try:
            while not self.is_set():
                told = notify.watch(GATHER, STEP, TIMEOUT, self)
                if not isinstance(told, str):
                    self._keep({path for _, path in told})
        except RuntimeError as error:  # a name that is no UTF-8: it says nothing else from then on
            log.debug("changes in %s are watched anew: %s", self._folder, error)
            with self._lock:
                self._more = True
            self._stopping.wait(AGAIN)

    def _keep(self, paths: set[str]) -> None:
        with self._lock:
            room = HINTS_KEPT - len(self._paths)
            if len(paths) <= room:
                self._paths |= paths
            else:
                self._more = True
