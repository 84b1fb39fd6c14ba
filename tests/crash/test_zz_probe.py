import os, signal, time
from tests.crash.scene import Scene, until
from tests.crash.test_postgres import postgres
import pytest
@pytest.mark.parametrize("point", ["sweep.mid_batch"])
def test_probe(tmp_path, postgres_url, point):
    short = Scene(tmp_path, postgres_url, heartbeat=3.0)
    try:
        host = short.host()
        jobs = short.send("slow", 1.0, count=5)
        short.until_started(*jobs)
        short.kill_group(host)
        r = short.rescuer(crash=f"{point}:1:stop")
        pid = short.hit(pauses=True)
        t=time.time()
        short.host()
        try:
            short.until_settled(seconds=100)
            print("settled after", time.time()-t)
        except AssertionError as e: print("NOT", e)
        os.kill(pid, signal.SIGCONT)
        short.until_settled()
        print("after cont", time.time()-t)
        short.check()
    finally: short.close()
