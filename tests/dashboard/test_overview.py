"""The overview: what needs somebody is on top with what to do, figures are drawn, and nobody sees what is not theirs."""

import re
from datetime import timedelta

import pytest
from msgspec import structs

from lateshift.model.access import Scope
from lateshift.model.figures import Figures
from lateshift.model.ids import MemberId, new_member_id
from lateshift.operating import attention
from lateshift.store.contract import Store
from lateshift.testing import Kit
from lateshift.worker.service import introduce
from tests.api.shop import Shop
from tests.clocks import midway
from tests.dashboard.browsing import Browser


def joined(kit: Kit) -> MemberId:
    """A member that lives for a day."""
    midway(kit.clock)
    member = new_member_id()
    view = introduce(member, "worker", "worker 1", kit.app.clock)
    kit.app.store.members.join(structs.replace(view, host="rack-7"), timedelta(days=1))
    return member


def worked(store: Store, member: MemberId) -> None:
    """Half a minute's work in two queues."""
    mail = Figures(
        started=30,
        completed=27,
        retried=2,
        dead=1,
        waited=6.0,
        longest=0.4,
        ran=12.0,
        waits=[0, 10, 20, 0, 0, 0, 0],
    )
    store.figures.add(member, 1, {"mail": mail, "images": Figures(completed=3, ran=36.0)}, busy=20.0)


def test_where_nothing_was_ever_asked_for_nobody_is_needed(browser: Browser) -> None:
    said = browser.look("/")

    assert "Nothing needs somebody now." in said
    assert "No job has run in this time." in said
    assert "nothing waits" in said


def test_dead_letters_are_told_by_what_they_died_of_with_a_link_to_them(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    for _ in range(3):
        shop.send.enqueue("nobody")
    kit.drain()

    said = browser.look("/")

    assert (
        "dead letters send : 3 jobs died of Permanent: there is nobody. Mend the cause, then resubmit them; or discard them."
        in said
    )
    assert browser.page is not None
    assert 'href="/dead-letters?like=' in browser.page.text


def test_events_that_nobody_sends_on_are_told_after_a_minute(shop: Shop, kit: Kit) -> None:
    store = kit.app.store
    shop.send.options(reply_to="channel:orders").enqueue("ann")
    kit.clock.move(seconds=50)
    assert "replies" not in {it.kind for it in attention.attention(seen(store, kit))}
    kit.clock.move(seconds=20)

    [late] = [it for it in attention.attention(seen(store, kit)) if it.kind == "replies"]

    assert (late.count, late.what) == (1, "1 event told, and nobody sends them on")


def test_everything_that_needs_somebody_is_told(browser: Browser, shop: Shop, kit: Kit) -> None:
    store = kit.app.store
    shop.order.enqueue(7, card="bad")
    kit.drain()
    joined(kit)
    gone = joined(kit)
    store.members.bury([gone])
    store.queues.pause("mail", by="ann")
    store.breakers.open("pay", by="ann")
    kit.travel(seconds=1)
    kit.clock.move(days=2)
    browser.sign_in()

    kinds = {it.kind for it in attention.attention(seen(store, kit))}
    said = browser.look("/")

    assert {"workflow", "breaker", "queue", "schedule", "member"} <= kinds
    assert "mail : paused by ann, 0 jobs ready. Resume it when it may go on." in said
    assert "pay : open, 0 jobs parked: opened by ann. Close it when the service is well." in said
    assert "order : a run is held" in said
    assert "news : a tick is due, and nobody fires it" in said
    assert "on rack-7 : was lost without a word" in said


def seen(store: Store, kit: Kit) -> attention.Seen:
    return attention.Seen(
        store, store.queues.list(), store.reports.members(), lambda queue: True, True, kit.clock.now()
    )


def test_jobs_that_no_worker_is_there_for_come_first(kit: Kit, shop: Shop) -> None:
    shop.send.enqueue("bob")

    [first, *_] = attention.attention(seen(kit.app.store, kit))

    assert (first.kind, first.what) == ("no worker", "1 job ready, and no worker is there")


def test_of_each_kind_a_few_are_told_whatever_there_is(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(attention.OF_EACH + 3):
        kit.app.store.queues.pause(f"q{number}", by="ann")

    assert len(attention.attention(seen(kit.app.store, kit))) == attention.OF_EACH


def test_dead_letters_are_looked_at_up_to_a_limit_which_is_told(
    kit: Kit, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "LETTERS_LOOKED_AT", 2)
    for _ in range(3):
        shop.send.enqueue("nobody")
    kit.drain()

    [letters] = [it for it in attention.attention(seen(kit.app.store, kit)) if it.kind == "dead letters"]

    assert letters.count == 2
    assert letters.what.startswith("2 jobs among the newest 2 died of")


def test_dead_letters_that_need_nobody_are_said_to_be_left_out(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    said = "runs that were undone"
    assert said not in browser.look("/")
    assert said not in browser.look("/queues")
    shop.send.enqueue("nobody")
    kit.drain()
    assert said in browser.look("/")
    assert said in browser.look("/queues")


def test_the_pace_the_charts_and_the_cost_are_of_what_workers_told(browser: Browser, kit: Kit) -> None:
    worked(kit.app.store, joined(kit))

    said = browser.look("/")

    assert re.search(r"Failed attempts \d+(\.\d)? % 3 in 5 min", said)
    assert "images 36 s 75 %" in said
    assert "mail 12 s 25 %" in said
    assert "Workers 0 of 1 busy now" in said
    assert browser.page is not None
    assert browser.page.text.count('<svg viewBox="0 0 600 100"') == 4
    assert "Jobs in a minute over the last hour: completed, at most" in browser.page.text
    for over, width in (("day", 960), ("week", 840)):
        browser.look(f"/?over={over}")
        assert f'<svg viewBox="0 0 {width} 100"' in browser.page.text


def test_every_figure_of_a_chart_stands_in_a_table(browser: Browser, kit: Kit) -> None:
    worked(kit.app.store, joined(kit))

    assert "All queues: the last hour" in browser.look("/overview/table")
    mail = browser.look("/overview/table?over=day&queue=mail")

    assert "mail: the last day" in mail
    assert " 30 27 3 1 " in mail


def test_who_may_see_one_queue_sees_its_figures_alone(stranger: Browser, kit: Kit, shop: Shop) -> None:
    worked(kit.app.store, joined(kit))
    for _ in range(2):
        shop.send.enqueue("nobody")
    kit.drain()
    kit.app.store.queues.pause("images", by="ann")
    stranger.sign_in_as(Scope.READ, queues=("images",))

    said = stranger.look("/")

    assert "images 36 s 100 %" in said
    assert "paused by ann" in said
    assert "mail" not in said.partition("Sign out")[2].partition("Keys j k")[0]
    assert "Workers" not in said
    table = stranger.look("/overview/table")
    assert "images: the last hour" in table
    assert re.search(r" 0 3 0 0 – – – 36 s 0 ", table)
    assert stranger.ask("GET", "/overview/table?queue=mail").status_code == 403


def test_dead_letters_of_other_queues_do_not_crowd_out_ones_own(
    stranger: Browser, kit: Kit, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "LETTERS_LOOKED_AT", 2)
    kit.app.enqueue_many([shop.send.options(queue="images").call("nobody")])
    kit.drain()
    for _ in range(3):
        shop.send.enqueue("nobody")
    kit.drain()
    stranger.sign_in_as(Scope.READ, queues=("images",))
    assert "send : 1 job died of Permanent" in stranger.look("/")
    stranger.sign_in_as(Scope.READ, queues=("mail",))
    assert "send : 2 jobs among the newest 2 died of Permanent" in stranger.look("/")


def test_a_queue_that_is_empty_now_is_in_the_figures_of_who_may_see_it(
    stranger: Browser, kit: Kit, shop: Shop
) -> None:
    worked(kit.app.store, joined(kit))
    stranger.sign_in_as(Scope.READ, queues=("mail",))
    assert re.search(r" 30 27 3 1 ", stranger.look("/overview/table"))


def test_a_length_that_there_is_none_of_is_refused(browser: Browser) -> None:
    assert browser.ask("GET", "/?over=century").status_code == 422
