"""What a sensitive queue costs: `python -m bench.sealing`. Values sealed and opened, and jobs through their life beside plain ones."""

import asyncio
import tempfile
import time
from collections.abc import Callable
from uuid import uuid4

from lateshift import Lateshift
from lateshift.config import load
from lateshift.sealing.ring import Ring, new_key

ROUNDS = 5
VALUES = 5_000
JOBS = 5_000
SIZES = (100, 10_000)


def best(work: Callable[[], object], times: int) -> float:
    """Microseconds for one, in the quickest round."""
    rounds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(times):
            work()
        rounds.append((time.perf_counter() - begun) / times * 1e6)
    return min(rounds)


def values() -> None:
    ring, id = Ring([new_key("a")]), uuid4()
    for size in SIZES:
        plain = b'"' + b"x" * size + b'"'
        sealed = ring.of_job(id).close("payload", plain)
        seal = best(lambda plain=plain: ring.of_job(id).close("payload", plain), VALUES)  # type: ignore[misc]
        opened = best(lambda sealed=sealed: ring.of_job(id).open("payload", sealed), VALUES)  # type: ignore[misc]
        print(
            f"{size:>6,} bytes: seal {seal:5.1f} µs, open {opened:5.1f} µs, {len(sealed) / len(plain):.2f} times as long"
        )


async def life(*, sensitive: bool) -> tuple[float, float]:
    """Microseconds for each job: to enqueue it in bulk, and to run it."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/jobs.db"
        app = Lateshift("bench", store=url)
        app.settings = load(store=url, keys=(new_key("a"),))
        app.queue("q", sensitive=sensitive)
        done, left = asyncio.Event(), JOBS

        @app.task(queue="q")
        async def noop(number: int) -> int:
            nonlocal left
            left -= 1
            if not left:
                done.set()
            return number

        begun = time.perf_counter()
        app.enqueue_many(noop.call(number) for number in range(JOBS))
        enqueued = time.perf_counter()
        async with app.running():
            await done.wait()
            ran = time.perf_counter()
        app.close()
        return (enqueued - begun) / JOBS * 1e6, (ran - enqueued) / JOBS * 1e6


def main() -> None:
    values()
    for sensitive in (False, True):
        rounds = [asyncio.run(life(sensitive=sensitive)) for _ in range(ROUNDS)]
        enqueue, run = (min(column) for column in zip(*rounds, strict=True))
        print(
            f"{'sensitive' if sensitive else 'plain':>9} jobs: enqueue {enqueue:5.0f} µs, run {run:5.0f} µs each"
        )


if __name__ == "__main__":
    main()
