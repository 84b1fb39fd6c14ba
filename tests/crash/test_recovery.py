"""How long it takes until a job whose process was killed runs again. Measured from the ledger, in seconds of a machine that has
nothing else to do: where it has, a process beside tells how much slower everything goes."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import mean

from tests.crash.scene import PATH, PROGRAM, ROOT, Scene, until

# A start, as a worker has one: how long it took for each second that it had a processor.
START = f"""
import time
begun = time.monotonic() - time.process_time()
import {PROGRAM.partition(":")[0]}
print((time.monotonic() - begun) / time.process_time())
"""


@contextmanager
def slowness() -> Iterator[list[float]]:
    """Measured over and over while the block runs; 1 on an idle machine."""
    found: list[float] = []
    over = threading.Event()

    def measure() -> None:
        while not over.is_set():
            said = subprocess.check_output([sys.executable, "-c", START], cwd=ROOT, env={"PYTHONPATH": PATH})
            found.append(max(1.0, float(said)))

    measuring = threading.Thread(target=measure)
    measuring.start()
    try:
        yield found
    finally:
        over.set()
        measuring.join()


def test_a_job_of_a_killed_worker_starts_again_within_two_seconds_while_its_host_lives(scene: Scene) -> None:
    host = scene.host()
    jobs = scene.send("slow", 1.0, count=3) + scene.send("slow_sync", 1.0, count=3)
    scene.until_started(*jobs)
    [worker] = host.workers()
    with slowness() as slower:
        killed = scene.kill(worker)
        scene.until_started(*jobs, times=2)
    scene.until_settled()
    again = [line.at - killed for line in scene.lines("start") if line.fence == 2]
    print(f"again after {max(again):.2f} s at the most, {mean(slower):.1f} times slower than idle")
    assert len(again) == len(jobs)
    assert max(again) <= 2.0 * mean(slower)
    scene.check()


def test_a_job_of_a_machine_that_is_gone_starts_again_within_the_lease_and_two_seconds(short: Scene) -> None:
    host = short.host(2)  # the first host leads, so that leadership is to be taken over as well
    jobs = short.send("slow", 60.0, count=20) + short.send("slow_sync", 60.0, count=10)
    short.until_started(*jobs)
    standby = short.host()
    until(lambda: short.members() > set(host.workers()), "the other stands by")
    with slowness() as slower:
        killed = short.kill_group(host)
        short.until_started(*jobs, times=2)
    again = [line for line in short.lines("start") if line.fence == 2]
    longest = max(line.at for line in again) - killed
    print(f"again after {longest:.2f} s at the most, with a lease of {short.heartbeat:g} s")
    assert longest <= short.heartbeat + 2.0 * mean(slower)
    assert len(again) == len(jobs)
    assert {line.parent for line in again} == {standby.pid}
