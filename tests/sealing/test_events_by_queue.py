"""Events of jobs that are not sealed, in a queue that another program has marked: sent on, or in a channel already, they tell no more than what
became of the jobs."""

from datetime import timedelta

import msgspec
import pytest

from lateshift import Cancel, JobEvent, Lateshift
from lateshift.api.application import make_api
from lateshift.api.bounds import Bounds
from lateshift.model.job import JobFilter
from lateshift.model.sealed import MASK
from lateshift.testing import Kit
from tests.api.asking import asking
from tests.sealing.clinic import SECRETS, clinic, leaks

BRIEF = Bounds(stream=timedelta(seconds=0.3))


@pytest.fixture
def app(store_url: str) -> Lateshift:
    """It does not know that its queue is sensitive."""
    app = clinic(store_url, sensitive=False)
    app.queue("patients", events=True)

    @app.task(queue="patients")
    async def give_up(name: str) -> None:
        raise Cancel(SECRETS["cancel"])

    @app.task
    def hear(event: JobEvent) -> None: ...

    return app


def work(kit: Kit) -> None:
    for task in ("examine", "fail", "give_up"):
        kit.app.tasks[task].options(reply_to=kit.app.tasks["hear"]).enqueue(SECRETS["argument"])
    kit.drain()


def channel(app: Lateshift) -> bytes:
    return b"".join(message.told for message in app.store.replies.published(0, 1000))


def ends(told: list[JobEvent]) -> dict[str, tuple[str | None, str | None, bool]]:
    last = {event.task: event for event in told if event.kind in ("completed", "cancelled", "failed")}
    return {task: (event.reason, event.error, event.result_left_out) for task, event in last.items()}


ENDS = {
    "examine": (None, None, True),
    "fail": ("permanent", f"Permanent: {MASK}", False),
    "give_up": (MASK, None, False),
}


def test_what_the_courier_sends_on_is_hidden(kit: Kit) -> None:
    kit.app.store.queues.conceal({"patients"})
    work(kit)
    events = [
        msgspec.json.decode(each.told, type=JobEvent) for each in kit.app.store.replies.published(0, 1000)
    ]
    assert leaks(channel(kit.app)) == []
    assert ends(events) == ENDS
    jobs = kit.app.store.reports.jobs(JobFilter(task="hear"), 1000)
    assert len(jobs) >= len(ENDS)
    assert leaks(b"".join(job.payload for job in jobs)) == []


def test_what_is_in_a_channel_already_is_hidden_by_the_api(kit: Kit) -> None:
    work(kit)
    assert {"argument", "cancel", "error", "result"} <= set(leaks(channel(kit.app)))
    kit.app.store.queues.conceal({"patients"})
    with asking(kit.app, make_api(kit.app, bounds=BRIEF)) as web:
        heard = web("GET", "/v1/events?channel=*", headers={"Last-Event-ID": "0"})
    data = [line.removeprefix("data: ") for line in heard.text.splitlines() if line.startswith("data: {")]
    assert leaks(heard.content) == []
    shown = ends([msgspec.json.decode(line, type=JobEvent) for line in data])
    assert shown == ENDS | {"fail": ("permanent", MASK, False)}
