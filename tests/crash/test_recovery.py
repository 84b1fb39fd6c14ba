"""How long it takes until a job whose process was killed runs again. Measured from the ledger."""

from tests.crash.scene import Scene, until


def test_a_job_of_a_killed_worker_starts_again_within_two_seconds_while_its_host_lives(scene: Scene) -> None:
    host = scene.host()
    jobs = scene.send("slow", 1.0, count=3) + scene.send("slow_sync", 1.0, count=3)
    scene.until_started(*jobs)
    [worker] = host.workers()
    killed = scene.kill(worker)
    scene.until_settled()
    again = [line.at - killed for line in scene.lines("start") if line.fence == 2]
    print(f"again after {max(again):.2f} s at the most")
    assert len(again) == len(jobs)
    assert max(again) <= 2.0
    scene.check()


def test_a_job_of_a_machine_that_is_gone_starts_again_within_the_lease_and_two_seconds(short: Scene) -> None:
    host = short.host(2)  # the first host leads, so that leadership is to be taken over as well
    jobs = short.send("slow", 60.0, count=20) + short.send("slow_sync", 60.0, count=10)
    short.until_started(*jobs)
    standby = short.host()
    until(lambda: short.members() > set(host.workers()), "the other stands by")
    killed = short.kill_group(host)
    short.until_started(*jobs, times=2)
    again = [line for line in short.lines("start") if line.fence == 2]
    longest = max(line.at for line in again) - killed
    print(f"again after {longest:.2f} s at the most, with a lease of {short.heartbeat:g} s")
    assert longest <= short.heartbeat + 2.0
    assert len(again) == len(jobs)
    assert {line.parent for line in again} == {standby.pid}
