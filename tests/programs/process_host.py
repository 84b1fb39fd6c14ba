"""A worker's bare bones, for a test to kill: runs one task of cpu_tasks.py in a child, and prints the child's pid."""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from lateshift.model.ids import new_job_id
from lateshift.model.job import Lane, Lease
from lateshift.worker.attempt import Attempt
from lateshift.worker.executors.processes import Processes
from lateshift.worker.program import find_app

PROGRAM = str(Path(__file__).with_name("cpu_tasks.py"))


class PrintingDesk:
    async def asave_checkpoint(self, lease: Lease, state: bytes) -> bool:
        print(state.decode(), flush=True)
        return True


class Ignored:
    def returned(self, attempt: Attempt, result: Any) -> None: ...
    def returned_encoded(self, attempt: Attempt, result: bytes | None) -> None: ...
    def ended(self, attempt: Attempt, how: object) -> None: ...
    def decided(self, attempt: Attempt, how: object) -> None: ...


async def main(name: str) -> None:
    task = find_app(PROGRAM).tasks[name]
    lease = Lease(new_job_id(), 1, name, b"{}", 1, 1, None, "default", Lane.PROCESS)
    processes = Processes(PROGRAM, 1, Ignored(), time.monotonic)
    processes.submit([Attempt(lease, task, time.monotonic(), PrintingDesk())])
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
