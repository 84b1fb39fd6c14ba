"""What a worker counts for the figures, and that it tells each thing once."""

from lateshift import Lateshift
from lateshift.model.figures import Figures
from lateshift.model.ids import new_job_id
from lateshift.model.job import Lane, Lease
from lateshift.telemetry.measures import OTHERS, QUEUES_SPREAD
from lateshift.worker.attempt import Attempt
from lateshift.worker.counting import QUEUES_TOLD, Counting

app = Lateshift("counted", store="memory://counted")


@app.task
def work() -> None: ...


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def attempt(time: Time, *, queue: str = "mail", started: bool = True, waited: float = 0.0) -> Attempt:
    lease = Lease(new_job_id(), 1, work.name, b"{}", 1, 3, None, queue, Lane.THREAD, waited=waited)
    made = Attempt(lease, work, time.now, None)
    made.started = time.now if started else None
    return made


def test_what_started_is_counted_by_how_long_it_had_waited() -> None:
    time = Time()
    counting = Counting(time)
    for waited in (0.005, 0.5, 90.0, 4000.0):
        counting.start(attempt(time, waited=waited).lease)

    told = counting.telling([])

    assert told is not None
    mail = told.queues["mail"]
    assert (mail.started, mail.longest, mail.waits) == (4, 4000.0, [1, 0, 1, 0, 0, 1, 1])
    assert mail.waited == 4090.505


def test_what_runs_on_is_counted_up_to_now_and_its_rest_when_it_ends() -> None:
    time = Time()
    counting = Counting(time)
    running = attempt(time)
    counting.hold()
    time.now += 10
    first = counting.telling([running])
    counting.told()
    time.now += 5
    counting.close(running, time.now, last=True)
    counting.complete("mail")
    second = counting.telling([])

    assert first is not None
    assert second is not None
    assert (first.queues["mail"].ran, first.busy) == (10.0, 10.0)
    assert second.queues == {"mail": Figures(completed=1, ran=5.0)}
    assert second.busy == 5.0


def test_a_body_that_ended_before_the_loop_heard_of_it_ran_until_its_end() -> None:
    time = Time()
    counting = Counting(time)
    quick, told_between = attempt(time), attempt(time)
    quick.finished = told_between.finished = time.now + 0.25
    time.now += 3
    counting.close(quick, time.now, last=False)
    first = counting.telling([told_between])
    counting.told()
    time.now += 3
    counting.close(told_between, time.now, last=True)

    assert first is not None
    assert first.queues["mail"].ran == 0.5
    assert counting.telling([]) is None


def test_what_was_handed_back_before_it_began_has_not_run() -> None:
    time = Time()
    counting = Counting(time)
    waiting = attempt(time, started=False)
    counting.hold()
    time.now += 3
    counting.close(waiting, time.now, last=True)
    counting.end("mail", "snoozed")

    told = counting.telling([])

    assert told is not None
    assert (told.queues, told.busy) == ({}, 3.0)


def test_a_worker_that_did_nothing_tells_nothing() -> None:
    assert Counting(Time()).telling([]) is None


def test_what_may_not_have_been_heard_is_told_again_under_its_number_and_what_came_since_after_it() -> None:
    counting = Counting(Time())
    counting.end("mail", "retried")
    first = counting.telling([])
    counting.end("mail", "dead")
    counting.end("mail", "cancelled")

    assert counting.telling([]) is first
    counting.told()
    second = counting.telling([])

    assert first is not None
    assert second is not None
    assert (first.number, first.queues["mail"]) == (1, Figures(retried=1))
    assert (second.number, second.queues["mail"]) == (2, Figures(dead=1, cancelled=1))


def test_more_queues_than_are_told_at_once_are_told_the_next_time() -> None:
    counting = Counting(Time())
    for number in range(QUEUES_TOLD + 5):
        counting.complete(f"q{number}")
    sizes = []
    while (told := counting.telling([])) is not None:
        sizes.append(len(told.queues))
        counting.told()

    assert sizes == [QUEUES_TOLD, 5]


def test_how_long_jobs_waited_and_ran_is_told_since_the_worker_began_whatever_was_told_before() -> None:
    time = Time()
    counting = Counting(time)
    for waited in (0.005, 0.5):
        done = attempt(time, waited=waited)
        counting.start(done.lease)
        time.now += 2
        done.ended = True
        counting.close(done, time.now, last=True)
        counting.telling([])
        counting.told()
    counting.start(attempt(time, waited=90.0).lease)

    assert counting.starts() == {"mail": [1, 0, 1, 0, 0, 1, 0, 90.505]}
    assert counting.runs() == {"mail": [0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 4.0]}


def test_what_is_told_of_many_queues_is_bounded_and_never_goes_down() -> None:
    time = Time()
    counting = Counting(time)
    told = []
    for _ in range(2):
        for number in range(QUEUES_SPREAD + 5):
            done = attempt(time, queue=f"q{number}")
            counting.start(done.lease)
            done.ended = True
            counting.close(done, time.now, last=True)
        told.append((counting.starts(), counting.runs()))
        counting.telling([])
        counting.told()

    for first, second in zip(*told, strict=True):
        assert len(first) == len(second) == QUEUES_SPREAD + 1
        assert (sum(first[OTHERS][:-1]), sum(second[OTHERS][:-1])) == (5, 10)
        assert all(sum(second[queue][:-1]) == 2 for queue in second if queue != OTHERS)
