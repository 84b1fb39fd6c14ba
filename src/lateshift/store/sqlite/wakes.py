"""Wake-ups between the processes that share a file: each listener has a named pipe in the folder FILE-wake, and
whoever makes a job ready writes a line into each. A pipe whose reader is gone is removed by the next writer."""

import contextlib
import errno
import os
import select
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from uuid import uuid4

from lateshift.clock import Clock
from lateshift.model.job import Line
from lateshift.store import hints
from lateshift.store.forks import forks
from lateshift.store.hints import Coalesced, written


class FifoWakes:
    """See contract.Wakes."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._folder = path.with_name(path.name + "-wake")
        self._due = Coalesced(clock)
        self._stops: list[Callable[[], None]] = []

    def hint(self, lines: Iterable[Line]) -> None:
        lines = self._due.of(lines)
        if not lines:
            return
        text = "".join(f"{written(line)}\n" for line in lines).encode()
        with contextlib.suppress(FileNotFoundError):
            for entry in list(self._folder.iterdir()):
                self._write(entry, text)

    def _write(self, pipe: Path, text: bytes) -> None:
        try:
            descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nobody reads it any more
                pipe.unlink(missing_ok=True)
            return
        try:
            os.write(descriptor, text)
        except OSError:
            pass  # a full pipe: its reader has hints enough
        finally:
            os.close(descriptor)

    def listen(self, heard: Callable[[Line], None]) -> Callable[[], None]:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        pipe = self._folder / f"{uuid4().hex}.fifo"
        os.mkfifo(pipe, 0o600)
        # Opened for both ways, so that it is never at end of file when the last writer closes.
        descriptor = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        awake, waker = os.pipe()
        made_in = forks()

        poller = select.poll()  # not select(), which knows no descriptor above 1023
        for number in (descriptor, awake):
            poller.register(number, select.POLLIN)

        def read() -> None:
            rest = b""
            while awake not in {number for number, _ in poller.poll()}:
                *texts, rest = (rest + os.read(descriptor, 65536)).split(b"\n")
                for text in set(texts):
                    line = hints.read(text.decode(errors="replace"))
                    if line is not None:
                        heard(line)

        thread = threading.Thread(target=read, name="lateshift-wakes", daemon=True)
        thread.start()

        def stop() -> None:
            if stop in self._stops:
                self._stops.remove(stop)
                if forks() != made_in:  # in a forked child: the listener and its pipe are the parent's
                    return
                os.write(waker, b"x")
                thread.join()
                pipe.unlink(missing_ok=True)
                for number in (descriptor, awake, waker):
                    os.close(number)

        self._stops.append(stop)
        return stop

    def close(self) -> None:
        for stop in list(self._stops):
            stop()
        with contextlib.suppress(OSError):
            self._folder.rmdir()
