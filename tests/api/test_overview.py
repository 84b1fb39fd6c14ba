"""The overview and the history by the API: the same as the pages have."""

from datetime import timedelta

import pytest

from lateshift.model.access import Scope
from lateshift.model.figures import Figures
from lateshift.model.ids import new_member_id
from lateshift.operating.overview import QUEUES_SUMMED
from lateshift.testing import Kit
from lateshift.worker.service import introduce
from tests.api.asking import Web, token_of
from tests.api.shop import Shop
from tests.clocks import midway


def worked(kit: Kit) -> None:
    midway(kit.clock)
    member = new_member_id()
    kit.app.store.members.join(introduce(member, "worker", "w", kit.app.clock), timedelta(days=1))
    mail = Figures(
        started=4, completed=3, dead=1, waited=2.0, longest=0.9, ran=6.0, waits=[0, 0, 4, 0, 0, 0, 0]
    )
    kit.app.store.figures.add(member, 1, {"mail": mail, "images": Figures(completed=1, ran=2.0)}, busy=5.0)


def test_the_overview_tells_what_needs_somebody_the_pace_and_the_cost(web: Web, kit: Kit, shop: Shop) -> None:
    worked(kit)
    kit.app.store.queues.pause("mail", by="ann")
    shop.send.enqueue("bob")

    told = web("GET", "/v1/overview?over=day").json()

    assert [(it["kind"], it["subject"], it["page"]) for it in told["attention"]] == [
        ("queue", "mail", "/queues/mail")
    ]
    assert told["now"]["failed"] == 1
    assert told["now"]["failed_share"] == 0.2
    assert (told["now"]["backlog"], told["now"]["idle_workers"]) == (1, 1)
    assert (told["now"]["drains_in_seconds"], told["now"]["held_up"], told["now"]["held_up_why"]) == (
        None,
        1,
        "paused",
    )
    assert [(it["queue"], it["seconds"], it["share"]) for it in told["cost"]] == [
        ("mail", 6.0, 0.75),
        ("images", 2.0, 0.25),
    ]


@pytest.mark.parametrize(
    ("over", "ago"), [("hour", timedelta(minutes=59)), ("day", timedelta(hours=23, minutes=55))]
)
def test_the_cost_leaves_out_nothing_that_the_charts_show(
    web: Web, kit: Kit, over: str, ago: timedelta
) -> None:
    """It is read in coarser steps than they are drawn in, and the first of these has begun before they do."""
    midway(kit.clock)
    kit.clock.move(minutes=3)
    member = new_member_id()
    kit.app.store.members.join(introduce(member, "worker", "w", kit.app.clock), timedelta(days=2))
    kit.app.store.figures.add(member, 1, {"mail": Figures(completed=1, ran=8.0)}, busy=8.0)
    kit.clock.move(seconds=ago.total_seconds())

    told = web("GET", f"/v1/overview?over={over}").json()
    periods = web("GET", f"/v1/history?over={over}").json()["periods"]

    assert sum(it["worker_seconds"] for it in periods) == 8.0
    assert sum(it["seconds"] for it in told["cost"]) == 8.0


def test_a_backlog_takes_as_long_as_its_slowest_queue(web: Web, kit: Kit, shop: Shop) -> None:
    worked(kit)
    [member] = kit.app.store.reports.members()
    kit.app.store.members.report(member.id, {"running": 1, "drains": {"": 6.0, "mail": 0.5, "images": 20.0}})
    for _ in range(3):
        shop.send.enqueue("bob")
    shop.thumbnail.enqueue("cat.png")

    now = web("GET", "/v1/overview").json()["now"]

    assert (now["drains_in_seconds"], now["held_up"], now["held_up_why"]) == (6.0, 0, None)


def test_jobs_in_a_second_are_those_that_were_counted_whatever_a_moment_was_like(
    web: Web, kit: Kit, shop: Shop
) -> None:
    """The clock is midway in a minute; four jobs were completed since the worker came."""
    worked(kit)
    [member] = kit.app.store.reports.members()
    kit.app.store.members.report(member.id, {"running": 1, "drains": {"": 600.0, "mail": 600.0}})
    shop.send.enqueue("bob")
    own = token_of(kit.app, "own", [Scope.READ], ("mail",))

    def told(token: str | None = None) -> float:
        asked = (web("GET", "/v1/overview", token=token) if token else web("GET", "/v1/overview")).json()
        return float(asked["now"]["completed_per_second"])

    first, mine = told(), told(own)
    kit.clock.move(minutes=4)
    later = told()

    assert (round(first * 60, 2), round(mine * 60, 2), round(later * 60, 2)) == (4, 3, 1)


def test_an_overview_that_has_not_changed_is_not_sent_again_though_time_has_passed(
    web: Web, kit: Kit, shop: Shop
) -> None:
    first = web("GET", "/v1/overview")
    kit.clock.move(seconds=1)
    assert web("GET", "/v1/overview").json()["at"] > first.json()["at"]
    tag = {"If-None-Match": first.headers["etag"]}
    assert tag["If-None-Match"].startswith('W/"')
    same = web("GET", "/v1/overview", headers=tag)
    assert (same.status_code, same.headers["etag"], same.content) == (304, first.headers["etag"], b"")
    kit.app.store.queues.pause("mail", by="ann")
    shop.send.enqueue("bob")
    assert web("GET", "/v1/overview", headers=tag).status_code == 200


def test_the_history_of_a_queue_has_a_period_for_each_step(web: Web, kit: Kit) -> None:
    worked(kit)

    mail = web("GET", "/v1/history?queue=mail").json()
    everything = web("GET", "/v1/history?over=week").json()

    assert (mail["queue"], mail["over"], mail["step_seconds"], len(mail["periods"])) == (
        "mail",
        "hour",
        60,
        60,
    )
    [busy] = [it for it in mail["periods"] if it["started"]]
    assert (busy["completed"], busy["failed"], busy["start_mean_seconds"], busy["worker_seconds"]) == (
        3,
        1,
        0.5,
        6.0,
    )
    assert (everything["queue"], everything["step_seconds"], len(everything["periods"])) == (None, 3600, 168)
    assert sum(it["completed"] for it in everything["periods"]) == 4


def test_who_may_see_one_queue_is_told_of_that_alone(web: Web, kit: Kit) -> None:
    worked(kit)
    kit.app.store.queues.pause("images", by="ann")
    token = token_of(kit.app, "narrow", [Scope.READ], ("images",))

    told = web("GET", "/v1/overview", token=token).json()

    assert [it["queue"] for it in told["cost"]] == ["images"]
    assert told["idle_share"] is None
    assert web("GET", "/v1/history?queue=images", token=token).status_code == 200
    assert web("GET", "/v1/history?queue=mail", token=token).status_code == 403
    assert web("GET", "/v1/history", token=token).status_code == 403


def test_what_cannot_be_asked_is_refused_with_its_field(web: Web) -> None:
    for path in ("/v1/overview?over=year", "/v1/history?over=", "/v1/history?queue=no+queue"):
        assert web("GET", path).status_code == 422, path


def test_one_who_sees_some_queues_is_told_of_them_however_much_others_ran(
    web: Web, kit: Kit, shop: Shop
) -> None:
    midway(kit.clock)
    member = new_member_id()
    kit.app.store.members.join(introduce(member, "worker", "w", kit.app.clock), timedelta(days=1))
    busy = {f"other-{number}": Figures(completed=9, ran=900.0) for number in range(QUEUES_SUMMED + 5)}
    kit.app.store.figures.add(member, 1, busy | {"mail": Figures(completed=3, ran=0.1)}, busy=5.0)
    shop.send.enqueue("bob")

    own = token_of(kit.app, "own", [Scope.READ], ("mail",))
    now = web("GET", "/v1/overview", token=own).json()["now"]

    assert now["completed_per_second"] > 0
