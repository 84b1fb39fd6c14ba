"""What a worker process tells its host of its loops, whatever becomes of either."""

import socket
from collections.abc import Iterator

import pytest

from lateshift.clock import SYSTEM
from lateshift.runtime.wire import LOOPS_TOLD, Hearing, Telling, own_loops
from lateshift.telemetry.liveness import living

pytestmark = pytest.mark.anyio


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


async def test_a_host_knows_how_old_the_loops_of_its_worker_are_also_when_that_says_nothing_any_more(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    hearing, telling = Hearing(ends[0]), Telling(ends[1])
    assert hearing.loops() == {}
    with living("Worker") as worker:
        worker.has_turned(2.0)
        await telling.turn()
    age, interval = hearing.loops()["Worker"]
    assert (interval, age < 5) == (2.0, True)

    now = SYSTEM.monotonic()
    monkeypatch.setattr(type(SYSTEM), "monotonic", lambda self: now + 60)

    assert 60 <= hearing.loops()["Worker"][0] < 65


async def test_the_newest_of_many_words_counts(ends: tuple[socket.socket, socket.socket]) -> None:
    hearing, telling = Hearing(ends[0]), Telling(ends[1])
    with living("Worker") as worker:
        for pause in range(100):
            worker.has_turned(float(pause))
            await telling.turn()

    assert hearing.loops()["Worker"][1] == 99.0


async def test_a_worker_does_not_wait_for_a_host_that_does_not_listen_nor_mind_one_that_is_gone(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    hearing, telling = Hearing(ends[0]), Telling(ends[1])
    with living("Worker"):
        for _ in range(20_000):  # more than the system keeps
            await telling.turn()
        assert "Worker" in hearing.loops()
        ends[0].close()
        await telling.turn()
    assert "Worker" in hearing.loops()  # as it was told last


@pytest.mark.parametrize(
    "said",
    [b"garbage\n", b'{"Worker": "x"}\n', b'{"Worker": [1]}\n', b"\xff\xfe\n", b"[]\n", b"x" * 300_000, b"\n"],
)
def test_what_cannot_be_read_is_not_heard(ends: tuple[socket.socket, socket.socket], said: bytes) -> None:
    hearing = Hearing(ends[0])
    ends[1].setblocking(False)
    ends[1].send(b'{"Worker": [0.0, 1.0]}\n')
    assert set(hearing.loops()) == {"Worker"}
    ends[1].send(said)

    assert set(hearing.loops()) == {"Worker"}


def test_of_many_loops_some_are_told(ends: tuple[socket.socket, socket.socket]) -> None:
    hearing = Hearing(ends[0])
    told = ", ".join(f'"{number}": [0.0, 1.0]' for number in range(LOOPS_TOLD + 5))
    ends[1].send(f"{{{told}}}\n".encode())

    assert len(hearing.loops()) == LOOPS_TOLD


def test_of_this_process_too() -> None:
    with living("Sweep") as sweep:
        sweep.has_turned(1.5)
        assert own_loops()["Sweep"][1] == 1.5
    assert "Sweep" not in own_loops()
