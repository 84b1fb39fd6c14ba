"""Queues, members and breakers: looked at, paused and resumed, opened and closed."""

import re
from datetime import timedelta

import pytest

from lateshift import Lateshift, Limit
from lateshift.dashboard.pages import breakers, members, queues
from lateshift.model.access import Scope
from lateshift.model.figures import Figures
from lateshift.model.guard import Rule
from lateshift.model.member import Program, Serves
from lateshift.testing import Kit
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser
from tests.dashboard.test_overview import joined


def test_a_list_of_queues_says_what_stands_in_each_and_when_it_is_done(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    shop.thumbnail.enqueue("cat.png")
    shop.thumbnail.options(delay=timedelta(hours=1)).enqueue("dog.png")
    kit.app.store.queues.pause("mail", by="ann")
    kit.app.store.figures.add(joined(kit), 1, {"images": Figures(completed=600)}, busy=1.0)

    said = browser.look("/queues")

    assert "images open 1 0 1 0 0" in said
    assert "mail paused 0 0 0 0 0 – 0 empty" in said


def test_a_queue_says_when_it_is_done_or_what_holds_it_up(browser: Browser, shop: Shop, kit: Kit) -> None:
    for queue in ("images", "mail", "orders", "pay"):
        shop.thumbnail.options(queue=queue).enqueue("cat.png")
    kit.app.store.queues.pause("mail", by="ann")
    assert re.search(r"images open 1 0 0 0 0 .{1,20} 0 no worker", browser.look("/queues"))
    member = joined(kit)
    kit.app.store.members.report(member, {"drains": {"images": 0.1, "mail": 0.2}})
    ended = {"images": Figures(completed=6), "mail": Figures(completed=11, dead=1)}
    kit.app.store.figures.add(member, 1, ended, busy=1.0)
    kit.app.store.rules.declare([Rule("queue", "orders", None, 3, timedelta(minutes=1))], by="code")

    said = browser.look("/queues")

    assert re.search(r"images open 1 0 0 0 0 .{1,20} 6 10 s", said)
    assert re.search(r"mail paused 1 0 0 0 0 .{1,20} 12 paused", said)
    assert re.search(r"orders open 1 0 0 0 0 .{1,20} 0 –", said)
    assert re.search(r"pay open 1 0 0 0 0 .{1,20} 0 –", said)
    assert "Drains in 10 s 6 done a minute in the last five" in browser.look("/queues/images")


def test_a_queue_without_jobs_is_listed_if_a_program_declares_it_or_it_ran_something(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    kit.app.store.figures.add(joined(kit), 1, {"reports": Figures(completed=2)}, busy=1.0)
    said = browser.look("/queues")
    for name in ("images", "mail", "orders", "pay", "tight", "reports"):
        assert f"{name} open 0 0 0 0 0 –" in said
    kit.clock.move(days=2)
    browser.sign_in()
    assert "reports" not in browser.look("/queues")


def test_a_queue_that_only_an_address_names_is_said_to_be_unknown(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    unknown = "no program that is there declares or serves it by this name"
    assert unknown in browser.look("/queues/imagse")
    assert unknown not in browser.look("/queues/images")
    shop.thumbnail.options(queue="imagse").enqueue("cat.png")
    assert unknown not in browser.look("/queues/imagse")


def test_only_so_many_queues_are_remembered_by_what_they_ran(
    browser: Browser, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lateshift.operating.queues.REMEMBERED_MOST", 1)
    ran = {"short": Figures(ran=1.0), "long": Figures(ran=2.0)}
    kit.app.store.figures.add(joined(kit), 1, ran, busy=1.0)
    said = browser.look("/queues")
    assert ("long open" in said, "short open" in said) == (True, False)


def test_nobody_is_shown_a_queue_that_is_not_theirs(stranger: Browser, shop: Shop) -> None:
    stranger.sign_in_as(Scope.READ, queues=("images",))
    said = stranger.look("/queues")
    assert "images open" in said
    assert "mail open" not in said


def test_queues_are_found_by_a_part_of_their_name_and_shown_page_by_page(
    browser: Browser, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "QUEUES_SHOWN", 2)
    for name in ("a1", "a2", "a3", "b1"):
        kit.app.store.queues.pause(name, by="ann")

    first = browser.look("/queues?name=a")
    assert browser.page is not None
    assert 'href="/queues?name=a&amp;after=a2"' in browser.page.text
    second = browser.look("/queues?name=a&after=a2")

    assert [name in first for name in ("a1", "a2", "a3", "b1")] == [True, True, False, False]
    assert [name in second for name in ("a1", "a2", "a3", "b1")] == [False, False, True, False]
    assert "No queue has this in its name." in browser.look("/queues?name=zzz")


def test_an_empty_list_says_what_to_do(browser: Browser) -> None:
    assert "No queue has this in its name." in browser.look("/queues?name=none")
    assert "Nobody is there. Start a worker: lateshift work PROGRAM" in browser.look("/members")


def test_a_queue_in_which_nothing_waits_does_not_say_since_when(browser: Browser, shop: Shop, kit: Kit) -> None:  # fmt: skip
    assert "– nothing is ready" in browser.look("/queues/images")
    shop.thumbnail.enqueue("cat.png")
    assert "since it was due" in browser.look("/queues/images")


def test_a_queue_is_paused_and_resumed_by_a_button(browser: Browser, kit: Kit) -> None:
    browser.look("/queues/images")
    browser.send("/queues/images/pause")
    assert "queue images: paused." in browser.text
    assert "by token sign-in-link" in browser.text
    assert kit.app.store.queues.list()[0].paused_at is not None

    browser.send("/queues/images/resume")
    assert "queue images: resumed." in browser.text
    assert kit.app.store.queues.list(of=["images"])[0].paused_at is None


def test_a_held_session_is_released_by_a_button(browser: Browser, shop: Shop, kit: Kit) -> None:
    kit.app.queue("mail", on_dead="hold")
    for to in ("nobody", "ann"):
        shop.send.options(session="ann & co").enqueue(to)
    kit.drain()
    assert "ann & co dead Release" in browser.look("/queues/mail")

    browser.send("/queues/mail/release", {"queue": "mail", "session": "ann & co"})
    assert "session ann & co of queue mail: released." in browser.text
    assert kit.app.store.sessions.list(held=True, limit=10) == []


def test_a_queue_shows_its_own_held_sessions_however_many_others_hold(
    browser: Browser, shop: Shop, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "SESSIONS_LOOKED_AT", 2)
    for queue in ("first", "mail"):
        kit.app.queue(queue, on_dead="hold")
        for name in ("ann", "bob"):
            shop.send.options(queue=queue, session=f"{name} of {queue}").enqueue("nobody")
    kit.drain()
    said = browser.look("/queues/mail")
    assert "ann of mail dead Release" in said
    assert "bob of mail dead Release" in said
    assert "of first" not in said


def test_a_session_of_another_queue_is_not_released(stranger: Browser, shop: Shop, kit: Kit) -> None:
    kit.app.queue("mail", on_dead="hold")
    shop.send.options(session="ann").enqueue("nobody")
    kit.drain()
    stranger.sign_in_as(Scope.OPERATE, queues=("images",))
    stranger.look("/queues/images")

    assert stranger.send("/queues/images/release", {"queue": "mail", "session": "ann"}).status_code == 403
    assert len(kit.app.store.sessions.list(held=True, limit=10)) == 1


def test_who_may_only_look_has_no_button(stranger: Browser, kit: Kit) -> None:
    kit.app.store.breakers.declare({}, [], tasks=[], by="shop")
    stranger.sign_in_as(Scope.READ)

    stranger.look("/queues/images")
    assert stranger.page is not None
    assert "/queues/images/pause" not in stranger.page.text
    assert stranger.send("/queues/images/pause").status_code == 403
    assert kit.app.store.queues.list() == []


def test_a_queue_of_others_is_not_shown(stranger: Browser, shop: Shop) -> None:
    shop.thumbnail.enqueue("cat.png")
    stranger.sign_in_as(Scope.OPERATE, queues=("mail",))

    assert stranger.ask("GET", "/queues/images").status_code == 403
    assert "images" not in stranger.look("/queues")
    stranger.look("/queues/mail")
    assert stranger.send("/queues/images/pause").status_code == 403


def test_a_queue_shows_its_limits_its_tenants_who_serves_it_and_what_is_held(
    browser: Browser, app: Lateshift, shop: Shop, kit: Kit
) -> None:
    app.queue("busy", limit=Limit(concurrency=3, rate="10/s"))

    @app.task(queue="busy")
    async def work() -> None: ...

    work.enqueue()
    kit.drain()
    member = joined(kit)
    program = Program(app="shop", version="1", tasks={})
    serves = Serves(
        app="shop", version="1", code=program.digest, queues=("busy",), slots={"thread": 4}, heartbeat=30.0
    )
    app.store.members.introduce(member, serves, program)
    for tenant in ("acme", "acme", "beta"):
        work.options(tenant=tenant).enqueue()

    said = browser.look("/queues/busy")

    assert "Run at once at most 3 Start at most 10 in 1 s" in said
    assert "worker 1 on rack-7 runs 0 in all its queues" in said
    assert "acme 2 " in said
    assert "beta 1 " in said
    assert "No worker that is there takes jobs from this queue." in browser.look("/queues/images")


def test_a_name_that_is_no_queue_is_refused_in_words(browser: Browser) -> None:
    answer = browser.ask("GET", "/queues/no%20queue")
    assert answer.status_code in (404, 422)
    assert "is no queue name" in answer.text


def test_members_are_shown_with_what_they_run_and_the_lost_first(browser: Browser, kit: Kit) -> None:
    store = kit.app.store
    alive, gone = joined(kit), joined(kit)
    program = Program(app="shop", version="1.4", tasks={})
    serves = Serves(
        app="shop", version="1.4", code=program.digest, queues=(), slots={"thread": 4}, heartbeat=30.0
    )
    store.members.introduce(alive, serves, program)
    store.members.report(
        alive, {"running": 2, "completed": 12_345, "retried": 3, "dead": 1, "late_loops": {"Worker": 17}}
    )
    store.members.bury([gone])

    said = browser.look("/members")

    assert said.index("lost") < said.index("1.4")
    assert "shop 1.4 all queues 2 12,345 4" in said
    assert "Has not turned well: Worker for 17 s." in said


def test_a_breaker_is_opened_and_closed_by_a_button(browser: Browser, shop: Shop, kit: Kit) -> None:
    shop.pay.enqueue()
    kit.drain()
    assert "pay closed" in browser.look("/breakers")

    browser.look("/breakers/pay")
    browser.send("/breakers/pay/open")
    assert "breaker pay: opened." in browser.text
    assert "it stays so until somebody closes it" in browser.text
    browser.send("/breakers/pay/close")
    assert "breaker pay: closed." in browser.text
    assert browser.ask("GET", "/breakers/payy").status_code == 404


def test_only_so_many_members_and_breakers_are_shown(
    browser: Browser, shop: Shop, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "MEMBERS_SHOWN", 1)
    monkeypatch.setattr(breakers, "BREAKERS_SHOWN", 0)
    for _ in range(3):
        joined(kit)
    shop.pay.enqueue()
    kit.drain()

    assert "and 2 more" in browser.look("/members")
    assert "No task has a breaker." in browser.look("/breakers")
