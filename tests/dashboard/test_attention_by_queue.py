"""Who may see some queues is told what needs somebody in those, of every kind, and nothing of the others. A new kind has to be judged here."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from lateshift import Breaker, Flow, Permanent
from lateshift.model.access import Scope
from lateshift.model.ids import new_member_id
from lateshift.model.member import Program, Serves
from lateshift.operating import attention
from lateshift.operating.attention import KINDS, OF_NO_QUEUE
from lateshift.store.open import open_store
from lateshift.task import Task
from lateshift.testing import Kit
from lateshift.worker.service import introduce
from tests.api.asking import Web, token_of
from tests.api.conftest import web
from tests.dashboard.test_attention import fire

__all__ = ["web"]

MINE, OTHERS = "images", "mail"
DAY = timedelta(days=1)
SEALED = b'"sealed:1:lost:payload:AAAA"'


def failing(kit: Kit, queue: str) -> Task[[], None]:
    def fail() -> None:
        raise Permanent("it cannot be")

    return kit.app.task(queue=queue, name=f"fail-{queue}")(fail)


def plain(kit: Kit, queue: str) -> Task[[], None]:
    def nothing() -> None: ...

    return kit.app.task(queue=queue, name=f"do-{queue}")(nothing)


def worker(kit: Kit, *, dead: bool = False, name: str = "worker") -> None:
    """Of a queue that nobody has."""
    member = introduce(new_member_id(), "worker", name, kit.clock)
    kit.app.store.members.join(member, 100 * DAY)
    program = Program(app="shop", version="1", tasks={})
    serves = Serves(app="shop", version="1", code=program.digest, queues=("else",), slots={}, heartbeat=60)
    kit.app.store.members.introduce(member.id, serves, program)
    if dead:
        kit.app.store.members.bury([member.id])


# Each makes something of a kind that is of this queue, and gives the subject by which it is told.


def unserved(kit: Kit, queue: str) -> str:
    worker(kit)
    plain(kit, queue).enqueue()
    return queue


def keyless(kit: Kit, queue: str) -> str:
    worker(kit)
    kit.app.store.queues.conceal([queue])
    call = plain(kit, queue).call().take()
    store = open_store(kit._url, kit.clock)  # by itself: what the kit keeps books of, it reads
    store.jobs.enqueue([replace(call, payload=SEALED)])
    store.close()
    return queue


def letters(kit: Kit, queue: str) -> str:
    """More than are looked at: the others are looked for by queue and task."""
    task = failing(kit, queue)
    for _ in range(2):
        task.enqueue()
    kit.drain()
    return task.name


def breakers(kit: Kit, queue: str) -> str:
    name = f"pay-{queue}"

    @kit.app.task(queue=queue, name=name, breaker=Breaker(failures=2, open_for=DAY))
    def pay() -> None: ...

    pay.enqueue()
    kit.drain()
    assert kit.app.store.breakers.open(name, by="ann")
    return name


def held(kit: Kit, queue: str) -> str:
    async def body(flow: Flow) -> None:
        await flow.step(failing_step)

    def failing_step() -> None:
        raise Permanent("it cannot be")

    kit.app.workflow(queue=queue, name=f"run-{queue}", on_failure="hold")(body).enqueue()
    kit.drain()
    return f"run-{queue}"


def late_steps(kit: Kit, queue: str) -> str:
    step = plain(kit, queue)

    async def body(flow: Flow) -> None:
        await flow.step(step, time_limit=timedelta(hours=1))

    run = kit.app.workflow(queue="orders", name=f"run-{queue}")(body)
    kit.app.store.queues.pause(queue, by="ann")
    run.enqueue()
    kit.drain()
    kit.clock.move(hours=1, seconds=1)
    return step.name


def triggers(kit: Kit, queue: str) -> str:
    kit.app.on_file(f"/nowhere/{queue}/*.csv", name=f"files-{queue}")(reader(kit, queue))
    kit.app.store.triggers.declare([it.declared for it in kit.app.triggers.values()], app="shop")
    kit.clock.move(minutes=5)
    return f"files-{queue}"


def reader(kit: Kit, queue: str) -> Task[[str], None]:
    def read(path: str) -> None: ...

    return kit.app.task(queue=queue, name=f"read-{queue}")(read)


def schedules(kit: Kit, queue: str) -> str:
    if queue == OTHERS:  # the first: both are there before the time goes on
        for each in (OTHERS, MINE):
            task = plain(kit, each)
            kit.app.schedule(task, name=f"nightly-{each}", cron="0 2 * * *", catch_up="none")
        kit.travel(seconds=1)
        kit.clock.move(hours=25)
    return f"nightly-{queue}"


def missed(kit: Kit, queue: str) -> str:
    name = schedules(kit, queue)
    fire(kit)
    return name


def replies(kit: Kit, queue: str) -> str:
    plain(kit, queue).options(reply_to="channel:c").enqueue()
    kit.clock.move(minutes=5)
    return "events of jobs"


def members(kit: Kit, queue: str) -> str:
    worker(kit, dead=True, name=f"worker-{queue}")
    return f"worker-{queue}"


def paused(kit: Kit, queue: str) -> str:
    kit.app.store.queues.pause(queue, by="ann")
    return queue


def sessions(kit: Kit, queue: str) -> str:
    kit.app.queue(queue, on_dead="hold")
    failing(kit, queue).options(session=f"ann-{queue}").enqueue()
    kit.drain()
    return f"ann-{queue}"


SCENES: dict[Any, Callable[[Kit, str], str]] = {
    attention._unserved: unserved, attention._keyless: keyless, attention._letters: letters, attention._breakers: breakers,
    attention._held: held, attention._late_steps: late_steps, attention._triggers: triggers, attention._schedules: schedules,
    attention._missed: missed, attention._replies: replies, attention._members: members, attention._paused: paused,
    attention._sessions: sessions,
}  # fmt: skip


def subjects(web: Web, token: str) -> str:
    answer = web("GET", "/v1/overview", token=token)
    return " ".join(f"{it['subject']} {it['what']}" for it in answer.json()["attention"])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.strip("_"))
def test_who_may_see_some_queues_is_told_of_those_alone(
    web: Web, kit: Kit, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    monkeypatch.setattr(attention, "LETTERS_LOOKED_AT", 1)
    assert kind in SCENES, "make something of it in two queues, and name it by its queue"
    theirs = SCENES[kind](kit, OTHERS)
    mine = SCENES[kind](kit, MINE)

    everybodys = subjects(web, token_of(kit.app, "whole", [Scope.READ]))
    some = subjects(web, token_of(kit.app, "some", [Scope.READ], (MINE,)))

    assert theirs in everybodys
    assert mine in everybodys
    assert theirs not in some
    assert (mine in some) == (kind not in OF_NO_QUEUE)
