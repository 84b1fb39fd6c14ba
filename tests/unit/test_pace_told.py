"""How much waits and how long that takes, where counting stops."""

from datetime import timedelta

import pytest
from msgspec import structs

from lateshift.cli.progress import alive_and_dead_in
from lateshift.cli.queues import _row
from lateshift.clock import SYSTEM
from lateshift.dashboard.pages.queues import _shown
from lateshift.model.figures import BACKLOG_COUNTED, Figures
from lateshift.model.ids import new_member_id
from lateshift.operating.attention import COUNTED_NOW
from lateshift.operating.pace import Recent, of_all, of_queue, waiting
from lateshift.operating.queues import empty
from lateshift.store.contract import MemberView, QueueView
from lateshift.telemetry.of_members import told_by
from lateshift.worker.service import introduce


def queue(ready: int, *, blocked: int = 0, dead: int = 0) -> QueueView:
    return structs.replace(empty("mail"), ready=ready, blocked=blocked, dead=dead)


def recent(mail: Figures, seconds: float, workers: list[MemberView]) -> Recent:
    return Recent(
        queues={"mail": mail}, counted=mail, seconds=seconds, left={}, completed=0.0, workers=workers, told=told_by(workers), limits={}
    )  # fmt: skip


def test_few_jobs_are_told_as_they_are_counted_now() -> None:
    assert waiting([queue(7, blocked=2), queue(1)], sampled=500) == (10, False)


def test_where_the_count_stops_it_is_told_what_was_sampled() -> None:
    many = queue(COUNTED_NOW)
    assert waiting([many], sampled=54_321) == (54_321, False)
    assert waiting([queue(0, blocked=COUNTED_NOW)], sampled=2_000) == (2_000, False)


def test_more_than_was_ever_counted_may_be_still_more() -> None:
    many = queue(COUNTED_NOW)
    assert waiting([many], sampled=0) == (COUNTED_NOW, True)
    assert waiting([many], sampled=BACKLOG_COUNTED) == (BACKLOG_COUNTED, True)


def test_counts_that_stopped_say_so() -> None:
    many, few = queue(COUNTED_NOW), queue(3, dead=1)

    assert (_shown(few, 3, False)["ready"], _shown(few, 3, False)["dead"]) == ("3", "1")
    assert _shown(many, 54_321, False)["ready"] == "about 54,321"
    assert _shown(many, COUNTED_NOW, True)["ready"] == "1,000+"
    assert _shown(queue(0, blocked=COUNTED_NOW), 0, True)["blocked"] == "1,000+"
    assert _shown(few, 3, False)["running"] == "0"
    assert _shown(structs.replace(few, more_running=True), 3, False)["running"] == "0+"
    assert _row(structs.replace(few, running=7, more_running=True))[3] == "7+"
    assert _row(few)[3] == "0"
    assert (alive_and_dead_in([few]), alive_and_dead_in([structs.replace(few, more_running=True)])) == (
        4,
        None,
    )


def test_more_parked_jobs_than_are_counted_do_not_move_either() -> None:
    member = structs.replace(
        introduce(new_member_id(), "worker", "w", SYSTEM), stats={"drains": {"mail": 5.0}}
    )
    seen = recent(Figures(backlog=5_000), 60.0, [member])
    view = structs.replace(queue(10, blocked=COUNTED_NOW), parked=COUNTED_NOW)

    found = of_queue(view, seen).drain

    assert (found.moving, found.held_up, found.why) == (10, 4_990, "parked")
    assert found.takes == timedelta(seconds=2)


def test_beside_a_worker_of_an_older_release_it_is_told_what_was_counted_of_all() -> None:
    telling = structs.replace(
        introduce(new_member_id(), "worker", "w", SYSTEM), stats={"drains": {"mail": 5.0}, "completed": 300}
    )
    older = structs.replace(introduce(new_member_id(), "worker", "w", SYSTEM), stats={"completed": 900})
    seen = recent(Figures(completed=1_200), 60.0, [telling])

    assert of_queue(queue(100), seen).drain.takes == timedelta(seconds=20)
    both = structs.replace(seen, told=told_by([telling, older]))
    assert of_queue(queue(100), both).drain.takes == timedelta(seconds=5)


@pytest.mark.parametrize("ready", [0, 5])
def test_a_few_jobs_that_were_done_in_a_moment_are_not_told_as_thousands_a_minute(ready: int) -> None:
    """Whatever workers tell of that moment, and whether more wait: only until when those are done goes by it."""
    telling = structs.replace(
        introduce(new_member_id(), "worker", "w", SYSTEM), stats={"drains": {"mail": 40.0, "": 40.0}}
    )
    seen = structs.replace(
        recent(Figures(completed=20), 20.0, [telling]), left={"mail": 20 / 60}, completed=20 / 60
    )

    assert of_queue(queue(ready), seen).per_second == 20 / 60
    assert of_all([queue(ready)], seen, whole=True).completed_per_second == 20 / 60
    assert of_queue(queue(ready), seen).drain.takes == timedelta(seconds=ready / 40)
