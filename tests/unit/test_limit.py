"""Limits and places as a program gives them: what is wrong is named before anything is written."""

from datetime import timedelta
from typing import Any

import pytest

from lateshift import Lateshift, Limit
from lateshift.errors import OptionInvalid
from lateshift.model.guard import Rule
from lateshift.model.job import Holds, Lane, Place


@pytest.fixture
def app() -> Lateshift:
    app = Lateshift("shop", store="memory://limits")
    app.limit("vendor", Limit(concurrency=5))
    return app


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "limits something"),
        ({"concurrency": 0}, "concurrency must be a whole number from 1 up, not 0"),
        ({"concurrency": -3}, "from 1 up, not -3"),
        ({"concurrency": True}, "from 1 up"),
        ({"concurrency": 2.5}, "from 1 up"),
        ({"rate": "fast"}, "is no rate"),
        ({"concurrency": 3_000_000_000}, "at most 1,000,000,000"),
        ({"rate": "5000000000/h"}, "at most 1,000,000,000"),
        ({"rate": "0/s"}, "is no rate"),
        ({"rate": 10}, "rate is text"),
        ({"rate": "0.5/s"}, "whole number"),
        ({"rate": "5/s", "burst": 0}, "burst must be"),
        ({"concurrency": 1, "burst": 5}, "give a rate too"),
    ],
)
def test_a_limit_that_limits_nothing_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionInvalid, match=message):
        Limit(**options)


def test_a_rate_allows_a_seconds_worth_at_once_unless_said_otherwise() -> None:
    assert Limit(rate="600/min").rule("task", "t") == Rule("task", "t", None, 600, timedelta(minutes=1), 10)
    assert Limit(rate="6/min").rule("task", "t").burst == 1
    assert Limit(rate="6/min", burst=3).rule("task", "t").burst == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"session": ""}, "session must have 1 to 200"),
        ({"session": 7}, "session is text"),
        ({"sequence": 1}, "give session= too"),
        ({"on_dead": "hold"}, "give session= too"),
        ({"session": "s", "on_dead": "stop"}, 'on_dead is "go_on" or "hold"'),
        ({"session": "s", "on_dead": ""}, 'on_dead is "go_on" or "hold"'),
        ({"session": "s", "sequence": 1, "on_gap": "wait"}, 'on_gap is "go_on" or "hold"'),
        ({"session": "s", "sequence": 0}, "sequence must be a whole number from 1 up, not 0"),
        ({"session": "s", "sequence": "1"}, "sequence must be"),
        ({"session": "s", "gap_after": timedelta(seconds=1)}, "give sequence= too"),
        ({"session": "s", "sequence": 1, "gap_after": timedelta(0)}, "longer than nothing"),
        ({"session": "s", "sequence": 1, "gap_after": 5}, "gap_after is a timedelta"),
        ({"tenant": "x" * 201}, "tenant must have 1 to 200"),
        ({"limit_key": "tenant:7"}, r"no limit 'tenant' \(it has: vendor\)"),
        ({"limit_key": ""}, "limit_key must have"),
    ],
)
def test_a_place_that_makes_no_sense_is_refused(
    app: Lateshift, options: dict[str, Any], message: str
) -> None:
    @app.task
    async def work() -> None: ...

    with pytest.raises(OptionInvalid, match=message):
        work.options(**options)


def test_a_place_as_asked_for_is_in_the_guarded_lane_of_its_room(app: Lateshift) -> None:
    @app.task
    def work() -> None: ...

    gap = timedelta(minutes=5)
    bound = work.options(session="s", sequence=3, gap_after=gap, on_gap="hold", on_dead="hold", tenant="t")
    job = bound.call().job
    assert job.place == Place("s", 3, gap, Holds.ON_DEAD | Holds.ON_GAP, "t")
    assert job.spec.lane is Lane.GUARDED_THREAD
    assert work.call().job.place is None
    assert work.call().job.spec.lane is Lane.THREAD
    assert work.options(limit_key="vendor:acme").call().job.place == Place(limit_key="vendor:acme")


def test_a_task_has_one_kind_of_limit(app: Lateshift) -> None:
    with pytest.raises(OptionInvalid, match="singleton or limit, not both"):
        app.task(singleton=True, limit=Limit(concurrency=2))(lambda_named)
    with pytest.raises(OptionInvalid, match="limit is a Limit"):
        app.task(limit=5)(lambda_named)  # type: ignore[call-overload]


def lambda_named() -> None: ...


def test_a_singleton_has_no_session(app: Lateshift) -> None:
    @app.task(singleton=True)
    async def alone() -> None: ...

    with pytest.raises(OptionInvalid, match="one at a time as it is"):
        alone.options(session="s")


def test_a_limit_is_declared_once(app: Lateshift) -> None:
    app.limit("vendor", Limit(concurrency=5))
    with pytest.raises(OptionInvalid, match="declared already"):
        app.limit("vendor", Limit(concurrency=6))
    with pytest.raises(OptionInvalid, match="no name for a limit"):
        app.limit("a:b", Limit(concurrency=6))
    with pytest.raises(OptionInvalid, match="takes a Limit"):
        app.limit("other", 5)  # type: ignore[arg-type]


def test_a_queue_gives_its_sessions_their_rules_where_a_call_says_nothing(app: Lateshift) -> None:
    app.queue("orders", on_dead="hold", on_gap="hold", gap_after=timedelta(minutes=9))

    @app.task(queue="orders")
    async def work() -> None: ...

    def place(**options: Any) -> Place | None:
        return work.options(**options).call().job.place

    assert place() is None
    assert place(session="s") == Place("s", holds=Holds.ON_DEAD)
    assert place(session="s", sequence=1) == Place("s", 1, timedelta(minutes=9), Holds.ON_DEAD | Holds.ON_GAP)
    assert place(session="s", on_dead="go_on") == Place("s")
    assert place(session="s", queue="other") == Place("s")


def test_a_queue_is_limited_before_its_first_job(app: Lateshift) -> None:
    @app.task(queue="mail")
    async def send() -> None: ...

    send.call()
    with pytest.raises(OptionInvalid, match="declared after send was enqueued"):
        app.queue("mail", limit=Limit(concurrency=1))
    with pytest.raises(OptionInvalid, match="limit is a Limit"):
        app.queue("fax", limit=5)  # type: ignore[arg-type]
    with pytest.raises(OptionInvalid, match='on_gap is "go_on" or "hold"'):
        app.queue("fax", on_gap="stop")  # type: ignore[arg-type]
    app.queue("post", limit=Limit(concurrency=1))
    assert send.options(queue="post").call().job.spec.lane is Lane.GUARDED
