"""The program that `lateshift bench` has its worker run: tasks that do nothing but look at the clock."""

import os
import time
from datetime import timedelta
from pathlib import Path

from lateshift.app.app import Lateshift

FILE = "LATESHIFT_BENCH_FILE"
JOBS = "LATESHIFT_BENCH_JOBS"


def make_app(store: str | None = None) -> Lateshift:
    """The clock is the monotonic one, which the processes of one machine share."""
    app = Lateshift("bench", store=store)
    jobs = int(os.environ.get(JOBS, "0"))
    begun: list[float] = []

    def write(line: str) -> None:
        with Path(os.environ[FILE]).open("a") as file:
            file.write(line + "\n")

    @app.task(keep=timedelta(0))
    async def noop() -> None:
        """The last of all writes how long they took together."""
        begun.append(time.monotonic())
        if len(begun) == jobs:
            write(f"drained {begun[-1] - begun[0]:.6f}")

    @app.task(keep=timedelta(0))
    async def stamp(sent: float) -> None:
        write(f"started {time.monotonic() - sent:.6f}")

    return app


app = make_app()
