"""Replies when those who run jobs, send on what they tell, and deliver it are killed: every event at least once, and in order."""

import json
from collections.abc import Iterator

import pytest

from tests.crash.ledger import read
from tests.crash.program import SECRET
from tests.crash.scene import Scene, until
from tests.unit.receiver import Receiver, receiving

JOBS = 4
ALL = ("received", "started", "progress", "retrying", "completed", "cancelled", "failed")

Told = tuple[str, str]
"""The id of an event, and its kind."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.mark.parametrize(
    ("point", "time"),
    [
        ("courier.before_commit", 1), ("courier.before_commit", 2), ("courier.after_commit", 1), ("courier.after_commit", 2),
        ("worker.after_claim_commit", 2), ("worker.before_settle", 1), ("worker.before_settle", 2),
        ("worker.after_settle_commit", 1), ("worker.after_settle_commit", 2),
    ],
)  # fmt: skip
def test_every_event_is_delivered_in_order_whoever_is_killed(
    short: Scene, receiver: Receiver, point: str, time: int
) -> None:
    url = f"http://127.0.0.1:{receiver.port}/"
    (short.folder / "webhook").write_text(url)
    short.app.reply_webhook(url, secret=SECRET, internal=True, name="crash")
    flaky = short.app.find_task("flaky").options(reply_to=["task:hear", url], reply_on=ALL)
    jobs = [flaky.enqueue(short.number()) for _ in range(JOBS)]
    short.host(crash=f"{point}:{time}:kill", ready=False)
    short.hit()
    short.host()

    def heard(job: str) -> tuple[list[Told], list[Told]]:
        by_task = [(id, kind) for about, id, kind in read(short.folder / "heard") if about == job]
        bodies = [json.loads(taken.body)["data"] for taken in list(receiver.taken)]
        by_webhook = [(it["id"], it["kind"]) for it in bodies if it["job_id"].replace("-", "") == job]
        return by_task, by_webhook

    for job in jobs:
        both = f"{job.id} was told of to its end, twice"
        until(lambda id=job.id.hex: all(told and told[-1][1] == "completed" for told in heard(id)), both)  # type: ignore[misc]
    for job in jobs:
        view = job.view()
        for told in heard(job.id.hex):
            numbers = [int(id.rpartition("-")[2]) for id, _ in told]
            assert numbers == sorted(numbers)  # one that is delivered again comes before the next
            kinds = [kind for _, kind in dict(told).items()]
            assert kinds[0] == "received"
            assert kinds.count("started") == view.fence
            assert kinds.count("retrying") == len(view.history)
            assert kinds.count("completed") == 1
