"""What needs somebody, one kind after the other: what is told, and when it is not told any more."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from lateshift import NO_RETRY, Flow, Retry
from lateshift.api.application import make_api
from lateshift.model.ids import MemberId, new_member_id
from lateshift.model.member import Program, Serves
from lateshift.operating import attention
from lateshift.operating.attention import Attention
from lateshift.testing import Kit
from lateshift.worker.service import introduce
from tests.api.asking import asking
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser

DAY = timedelta(days=1)


def told(kit: Kit, kind: str, queues: tuple[str, ...] | None = None) -> list[Attention]:
    """`queues`: those that one may see who may not see all."""
    store = kit.app.store
    seen = attention.Seen(
        store, store.queues.list(), store.reports.members(), lambda name: queues is None or name in queues, queues is None,
        kit.clock.now(),
    )  # fmt: skip
    return [it for it in attention.attention(seen) if it.kind == kind]


def worker(kit: Kit, *queues: str, says: bool = True) -> MemberId:
    """One that lives for days, and serves these queues or all."""
    member = new_member_id()
    kit.app.store.members.join(introduce(member, "worker", "worker 1", kit.clock), 100 * DAY)
    if says:
        program = Program(app="shop", version="1", tasks={})
        serves = Serves(app="shop", version="1", code=program.digest, queues=queues, slots={}, heartbeat=60)
        kit.app.store.members.introduce(member, serves, program)
    return member


def at(kit: Kit, hour: int, minute: int = 0) -> datetime:
    """The clock goes on to then, today or tomorrow."""
    now = kit.clock.now()
    then = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    kit.clock.move(seconds=((then if then > now else then + DAY) - now).total_seconds())
    return kit.clock.now()


def fire(kit: Kit) -> None:
    while kit.app.store.schedules.fire(100).count:
        pass


def test_what_is_left_out_of_a_kind_is_counted_with_the_page_that_has_it(kit: Kit, shop: Shop) -> None:
    for number in range(8):
        kit.app.store.queues.pause(f"q{number}", by="ann")
    found = told(kit, "queue")
    assert len(found) == attention.OF_EACH
    assert [it.more for it in found[:-1]] == [None] * 4
    assert found[-1].more == attention.More(count=3, cut=False, page="/queues")
    for number in range(attention.OF_EACH + attention.MORE_COUNTED + 1):
        shop.order.enqueue(number, "bad")
    kit.drain()
    held = told(kit, "workflow")
    assert held[-1].more == attention.More(
        count=attention.MORE_COUNTED, cut=True, page="/workflows?state=held"
    )


def test_each_kind_is_marked_as_what_it_weighs(kit: Kit, browser: Browser, shop: Shop) -> None:
    kinds = set(re.findall(r'kind="([a-z ]+)"', Path(attention.__file__).read_text()))
    assert kinds == attention.WEIGHTS.keys()
    assert {*attention.WEIGHTS.values()} == {"bad", "late"}
    shop.send.enqueue("nobody")
    kit.drain()
    kit.app.store.queues.pause("mail", by="ann")
    browser.look("/")
    assert browser.page is not None
    for weight, kind in (("bad", "dead letters"), ("late", "queue")):
        assert f'<span class="state {weight}">{kind}</span>' in browser.page.text


def test_groups_of_dead_letters_that_are_left_out_are_told_with_a_link(kit: Kit, browser: Browser) -> None:
    def task(name: str) -> None:
        @kit.app.task(name=name, retry=NO_RETRY)
        def fails() -> None:
            raise ValueError("no")

        fails.enqueue()

    for number in range(7):
        task(f"t{number}")
    kit.drain()
    assert "and 2 more" in browser.look("/")
    assert browser.page is not None
    assert '<a href="/dead-letters">and 2 more</a>' in browser.page.text


@pytest.fixture
def scheduled(kit: Kit, shop: Shop) -> Kit:
    """One that fires each night, one that fires often, and the shop's own, which makes up for what it missed: five to two, and all
    is well."""
    kit.app.schedule(shop.send, args=["all"], name="nightly", cron="0 2 * * *", catch_up="none")
    kit.app.schedule(shop.thumbnail, args=["x"], name="often", cron="*/10 * * * *", catch_up="none")
    at(kit, 1, 54)
    kit.travel(minutes=1)
    assert told(kit, "schedule") == []
    return kit


def test_what_a_scheduler_missed_that_was_away_for_hours_is_told(scheduled: Kit) -> None:
    away = at(scheduled, 6, 55)
    fire(scheduled)

    found = {it.subject: it for it in told(scheduled, "schedule")}

    assert set(found) == {"nightly", "often"}
    assert found["nightly"].what == "missed 1 tick, found too late, and has not fired since"
    assert found["nightly"].since == away.replace(hour=2, minute=0)
    assert found["often"].count == 30
    assert found["often"].do == "Fire it now, if the work is still wanted."


def test_a_schedule_that_has_fired_again_is_not_told_any_more_and_a_nightly_one_is_seen_in_the_morning(
    scheduled: Kit,
) -> None:
    at(scheduled, 6, 55)
    fire(scheduled)
    for minute in (0, 10):
        at(scheduled, 7, minute)
        fire(scheduled)
    at(scheduled, 9, 30)

    assert [it.subject for it in told(scheduled, "schedule") if it.what.startswith("missed")] == ["nightly"]

    scheduled.app.store.schedules.fire_now("nightly", by="ann")
    assert [it for it in told(scheduled, "schedule") if it.what.startswith("missed")] == []


def test_what_is_months_old_is_history(scheduled: Kit) -> None:
    at(scheduled, 6, 55)
    fire(scheduled)
    scheduled.clock.move(days=32)

    assert [it for it in told(scheduled, "schedule") if it.what.startswith("missed")] == []


def test_who_may_see_some_queues_is_told_of_their_schedules(scheduled: Kit) -> None:
    at(scheduled, 6, 55)
    fire(scheduled)

    assert [it.subject for it in told(scheduled, "schedule", ("images",))] == ["often"]
    assert [it.subject for it in told(scheduled, "schedule", ("mail",))] == ["nightly"]


def test_a_task_that_dies_often_hides_no_other(kit: Kit, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task that has dead letters is told of, whichever died last and however often."""

    @kit.app.task(queue="quiet", retry=Retry(attempts=1))
    def quiet() -> None:
        raise KeyError("rare")

    @kit.app.task(retry=Retry(attempts=1))
    def noisy(number: int) -> None:
        raise [ValueError, KeyError, TypeError, OSError, LookupError, RuntimeError][number % 6]("again")

    monkeypatch.setattr(attention, "LETTERS_LOOKED_AT", 12)
    quiet.enqueue()
    kit.drain()
    for number in range(12):
        noisy.enqueue(number)
    kit.drain()

    found = {it.subject: it for it in told(kit, "dead letters")}
    assert set(found) == {"quiet", "noisy"}
    assert found["quiet"].what == "1 job died of KeyError: 'rare'"
    assert found["quiet"].page.endswith("&task=quiet")
    monkeypatch.setattr(attention, "LETTERS_KINDS", 1)
    assert "more than 1 tasks have dead letters" in told(kit, "dead letters")[0].what


def test_a_step_that_is_past_its_complete_by_is_told_until_a_supervisor_has_seen_it(
    kit: Kit, shop: Shop
) -> None:
    @kit.app.workflow(queue="orders")
    async def ship(flow: Flow) -> None:
        await flow.step(shop.thumbnail, "x", time_limit=timedelta(hours=1))

    kit.app.store.queues.pause("images", by="ann")
    run = ship.enqueue()
    kit.drain()
    assert told(kit, "workflow") == []
    kit.clock.move(hours=1, seconds=1)

    [late] = told(kit, "workflow")

    assert (late.subject, late.page) == ("thumbnail", f"/workflows/{run.id}")
    assert late.what == "a step is past its complete-by, and no supervisor has seen it"
    assert told(kit, "workflow", ("orders",)) == []
    kit.drain()
    assert not [it for it in told(kit, "workflow") if "complete-by" in it.what]


def test_jobs_of_a_queue_that_no_worker_serves_are_told_by_queue(kit: Kit, shop: Shop) -> None:
    worker(kit, "images", "ima*")
    shop.thumbnail.enqueue("x")
    for _ in range(2):
        shop.send.enqueue("bob")
    kit.clock.move(minutes=5)

    [found] = told(kit, "no worker")

    assert (found.subject, found.count, found.page) == ("mail", 2, "/queues/mail")
    assert found.what == "2 jobs ready, and no worker serves this queue"
    assert found.do == "Start one: lateshift work PROGRAM --queues mail."
    assert found.since is not None
    assert timedelta(minutes=5) <= kit.clock.now() - found.since < timedelta(minutes=6)


def test_of_jobs_for_which_no_worker_is_there_it_is_told_since_when_the_oldest_waits(
    kit: Kit, shop: Shop
) -> None:
    shop.send.enqueue("bob")
    kit.clock.move(minutes=5)
    shop.thumbnail.enqueue("x")
    kit.clock.move(minutes=1)

    [found] = told(kit, "no worker")

    assert found.what == "2 jobs ready, and no worker is there"
    assert found.since is not None
    assert timedelta(minutes=5) < kit.clock.now() - found.since < timedelta(minutes=7)


def test_of_events_that_were_refused_it_is_told_since_when(kit: Kit) -> None:
    @kit.app.on_webhook("orders", verify=lambda headers, body, now: headers["x-id"])
    @kit.app.task
    def place(order: dict[str, int]) -> None: ...

    kit.app.declare_webhooks()
    with asking(kit.app, make_api(kit.app)) as web:
        for number in range(2):
            web("POST", "/hooks/orders", content=b'"none"', headers={"X-Id": f"d{number}"}, token=None)
            kit.clock.move(minutes=5)

    [found] = [it for it in told(kit, "trigger") if it.what == "2 events refused"]

    assert found.since is not None
    assert timedelta(minutes=9) < kit.clock.now() - found.since < timedelta(minutes=11)


@pytest.mark.parametrize("queues", [(), ("mail",), ("m*",)], ids=["all", "named", "pattern"])
def test_a_worker_that_serves_it_is_enough(kit: Kit, shop: Shop, queues: tuple[str, ...]) -> None:
    worker(kit, "images")
    worker(kit, *queues)
    shop.send.enqueue("bob")

    assert told(kit, "no worker") == []


def test_nothing_is_told_of_a_worker_that_has_not_said_what_it_serves_nor_of_a_queue_that_is_paused(
    kit: Kit, shop: Shop
) -> None:
    worker(kit, "images")
    kit.app.store.queues.pause("mail", by="ann")
    shop.send.enqueue("bob")
    assert told(kit, "no worker") == []

    kit.app.store.queues.resume("mail", by="ann")
    assert len(told(kit, "no worker")) == 1
    worker(kit, says=False)
    assert told(kit, "no worker") == []


def test_jobs_of_a_paused_queue_do_not_want_a_worker_though_there_is_none(kit: Kit, shop: Shop) -> None:
    kit.app.store.queues.pause("mail", by="ann")
    shop.send.enqueue("bob")
    assert told(kit, "no worker") == []

    shop.thumbnail.enqueue("cat.png")
    assert [(it.subject, it.count) for it in told(kit, "no worker")] == [("all queues", 1)]


def test_a_host_that_was_lost_is_told_of_by_its_workers(kit: Kit) -> None:
    for kind in ("host", "worker"):
        member = new_member_id()
        kit.app.store.members.join(introduce(member, kind, f"{kind} 1", kit.clock), DAY)
        kit.app.store.members.bury([member])
    assert [it.subject.split(" on ")[0] for it in told(kit, "member")] == ["worker 1"]


def test_a_worker_that_is_dead_serves_nothing(kit: Kit, shop: Shop) -> None:
    worker(kit, "images")
    kit.app.store.members.bury([worker(kit, "mail")])
    shop.send.enqueue("bob")

    assert [it.subject for it in told(kit, "no worker")] == ["mail"]


def test_a_trigger_that_nobody_reads_is_told_in_the_words_of_its_list(
    kit: Kit, shop: Shop, tmp_path: Path
) -> None:
    Shop.watch_files(kit.app, tmp_path)
    kit.app.store.triggers.declare([it.declared for it in kit.app.triggers.values()], app="shop")
    [view] = [it for it in kit.app.store.triggers.all() if it.name == "files"]
    kit.clock.move(minutes=5)

    [found] = told(kit, "trigger")

    assert (found.subject, found.page) == ("files", "/triggers/files")
    assert found.what.startswith("nobody has ")
    assert found.since == view.looked_at
    kit.app.store.triggers.pause("files", by="ann")
    assert told(kit, "trigger") == []
