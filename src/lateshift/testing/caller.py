"""Running a worker from plain code: its loop has a thread of its own, and sync bodies run on the caller's. So they see
what belongs to that thread, such as a database connection with the test's open transaction, and no running loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

from lateshift.worker.executors.threads import Start

T = TypeVar("T")


def with_this_thread(make: Callable[[Start], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end on a loop beside, while this thread does what it is handed."""
    hands: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
    answer: Future[T] = Future()

    def loop() -> None:
        try:
            answer.set_result(asyncio.run(make(lambda work, name: hands.put(work))))
        except BaseException as error:
            answer.set_exception(error)
        finally:
            hands.put(None)

    context = copy_context()
    threading.Thread(target=context.run, args=(loop,), name="lateshift-test-loop", daemon=True).start()
    while (work := hands.get()) is not None:
        work()
    return answer.result()
