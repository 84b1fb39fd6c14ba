"""When the events of a job happened: no time goes back in the order in which they are told."""

from datetime import timedelta

import msgspec
from msgspec.structs import replace

from lateshift.clock import ManualClock
from lateshift.model.events import JobEvent, Kind, Told
from lateshift.model.ids import new_job_id
from lateshift.model.job import Note, Progress
from lateshift.model.outcome import Settlement
from lateshift.store.contract import Store
from lateshift.store.replying import sent
from tests.store_contract.driving import DONE, GUARDED, Worker, added
from tests.store_contract.test_replies import Courier, replying
from tests.store_contract.test_replies import courier as courier


def test_the_times_of_a_job_s_events_do_not_go_back(
    store: Store, worker: Worker, courier: Courier, clock: ManualClock
) -> None:
    """Progress waits for a courier, as all else does, and was told before the end."""
    added(store, replying(on=("started", "progress", "completed")))
    lease = worker.lease_one(GUARDED)
    clock.move(minutes=1)
    word = Note(lease, Progress(1), number=1, ago=timedelta(seconds=20))
    assert store.jobs.exchange(worker.id, [Settlement(lease, DONE, word)], []).lost == []
    clock.move(hours=1)

    started, told, completed = courier.read()
    assert timedelta(seconds=35) < told.at - started.at <= timedelta(seconds=45)
    assert timedelta(seconds=19) < completed.at - told.at < timedelta(seconds=25)


def test_progress_of_an_older_release_has_no_time_and_is_not_told_as_after_its_end(
    store: Store, worker: Worker, courier: Courier, clock: ManualClock
) -> None:
    now = clock.now()
    reply = replying(on=("progress", "completed")).spec.reply
    assert reply is not None
    told = Told(number=1, job=new_job_id(), kind=Kind.PROGRESS, queue="q", task="t", attempt=1, at=None,
                progress=b'{"done":1.0}', history=None, result=None, reason=None, reply=reply)  # fmt: skip
    ended = replace(told, number=2, kind=Kind.COMPLETED, at=now - timedelta(seconds=5), progress=None)
    messages = [
        msgspec.json.decode(event, type=JobEvent) for *_, event in sent([told, ended], now, (), ()).published
    ]

    assert [message.at for message in messages] == [ended.at, ended.at]
    assert messages[0].progress == Progress(1)
