"""The pages about dead letters and batches: together by what they died of, run again together, a batch as a whole."""

import re
from html import unescape

import pytest

from lateshift import Lateshift, Permanent
from lateshift.dashboard import answering
from lateshift.dashboard.pages import dead_letters
from lateshift.model.access import Scope
from lateshift.model.job import JobFilter, State
from lateshift.model.workflow.run import Phase
from lateshift.store import searching
from lateshift.testing import Kit
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser


@pytest.fixture
def shop(app: Lateshift) -> Shop:
    made = Shop(app)

    @app.task
    def resize(path: str, width: int) -> None:
        if width > 100:
            raise Permanent(f"{path} is too wide: {width}")

    return made


def buried(kit: Kit, count: int) -> None:
    for number in range(count):
        kit.app.tasks["resize"].enqueue(f"{number}.png", 300)
    kit.drain()


def fingerprint(browser: Browser) -> str:
    assert browser.page is not None
    [found, *_] = re.findall(r'data-href="/dead-letters/([0-9a-f]{8})"', browser.page.text)
    return str(found)


def test_the_page_of_a_group_has_the_whole_traceback_of_the_newest(
    browser: Browser, kit: Kit, shop: Shop
) -> None:
    buried(kit, 2)
    browser.look("/dead-letters")
    said = browser.look(f"/dead-letters/{fingerprint(browser)}")
    assert "raceback (most recent call last)" in said
    assert "aise Permanent(f" in said  # of the line, as it is in the code


def test_steps_are_not_offered_to_be_resubmitted_but_lead_to_the_run_that_they_hold(
    browser: Browser, kit: Kit, shop: Shop
) -> None:
    run = shop.order.enqueue(1, "task")
    kit.drain()
    [step] = kit.dead_letters(shop.send)
    browser.look("/dead-letters")
    assert browser.page is not None
    assert "Steps of workflows: each is run again on the page of its run." in browser.text
    assert "Resubmit those of send" not in browser.page.text
    like, *_ = re.findall(r'href="/dead-letters/(\w{8})"', browser.page.text)
    assert "They were steps of workflows" in browser.look(f"/dead-letters/{like}")
    assert "Resubmit…" not in browser.text
    assert "This step holds its run" in browser.look(f"/jobs/{step.id}")
    assert (
        f'<a href="/workflows/{run.id}#step-2">run it again on the page of the run</a>' in browser.page.text
    )
    shop.send.enqueue("nobody")
    kit.drain()
    browser.look("/dead-letters")
    assert "Resubmit those of send" in browser.page.text  # one of them can
    kit.app.store.jobs.cancel([run.id], by="ann")
    kit.drain()
    assert "This step holds its run" not in browser.look(f"/jobs/{step.id}")
    assert "It is not resubmitted by itself: it was step 2 send of the run" in browser.text
    assert f'<a href="/workflows/{run.id}#step-2">' in browser.page.text


def decided(browser: Browser) -> dict[str, str]:
    """What the page of a preview sends when its button is pressed."""
    assert browser.page is not None
    [form] = re.findall(r'action="/dead-letters/resubmit">(.*?)</form>', browser.page.text, re.DOTALL)
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form)
    return {name: unescape(value) for name, value in fields if name != "proof"}


def test_dead_letters_stand_in_groups_of_what_they_died_of(browser: Browser, shop: Shop, kit: Kit) -> None:
    assert "No dead letters." in browser.look("/dead-letters")
    buried(kit, 3)
    shop.send.enqueue("nobody")
    kit.drain()
    text = browser.look("/dead-letters")
    assert "is too wide" in text
    assert "there is nobody" in text
    assert len(re.findall(r'data-href="/dead-letters/', browser.page.text)) == 2  # type: ignore[union-attr]
    assert "No dead letter fits this." in browser.look("/dead-letters?task=thumbnail")


def test_a_group_is_resubmitted_after_a_look(browser: Browser, shop: Shop, kit: Kit) -> None:
    buried(kit, 3)
    browser.look("/dead-letters")
    like = fingerprint(browser)
    assert browser.send("/dead-letters/preview", {"like": like}).status_code == 200
    assert "Resubmit 3 dead letters?" in browser.text
    assert browser.send("/dead-letters/resubmit", decided(browser)).headers["location"] == "/dead-letters"
    assert "3 jobs ready again." in browser.text
    assert len(kit.app.store.reports.jobs(JobFilter(state=State.READY), 10)) == 3


def test_a_few_of_a_group_go_first_to_see_how_they_fare(browser: Browser, shop: Shop, kit: Kit) -> None:
    buried(kit, 3)
    browser.look("/dead-letters")
    like = fingerprint(browser)
    browser.look(f"/dead-letters/{like}")
    for wrong in ("x", "-1", "0", "1.5", "9" * 20):
        answer = browser.send(f"/dead-letters/{like}/preview", {"like": like, "limit": wrong})
        assert (wrong, answer.status_code) == (wrong, 422)
    browser.send(f"/dead-letters/{like}/preview", {"like": like, "limit": "1"})
    assert "Resubmit 1 dead letter?" in browser.text
    browser.send("/dead-letters/resubmit", decided(browser))
    assert len(kit.app.store.reports.jobs(JobFilter(state=State.DEAD), 10)) == 2


def test_a_group_is_resubmitted_at_a_rate(browser: Browser, shop: Shop, kit: Kit) -> None:
    buried(kit, 3)
    browser.look("/dead-letters")
    like = fingerprint(browser)
    browser.look(f"/dead-letters/{like}")
    for wrong in ("fast", "0/s", "1/year", "99999/s"):
        answer = browser.send(f"/dead-letters/{like}/preview", {"like": like, "rate": wrong})
        assert (wrong, answer.status_code) == (wrong, 422)
        assert f'name="rate" size="10" value="{wrong}" aria-invalid="true"' in answer.text
    browser.send(f"/dead-letters/{like}/preview", {"like": like, "rate": "30/min"})
    assert "The first is due now, the others at 30/min." in browser.text
    browser.send("/dead-letters/resubmit", decided(browser))
    assert "3 jobs ready again, the last due in 4.0s." in browser.text
    assert len(kit.app.store.reports.jobs(JobFilter(state=State.SCHEDULED), 10)) == 2


def test_a_group_is_resubmitted_with_other_arguments_that_are_checked(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    buried(kit, 2)
    browser.look("/dead-letters")
    like = fingerprint(browser)
    text = browser.look(f"/dead-letters/{like}")
    assert "too wide" in text
    for typed in ('{"width": "wide"}', "{", "[]"):
        answer = browser.send(f"/dead-letters/{like}/preview", {"like": like, "change": typed})
        assert answer.status_code == 422, typed
        assert typed in browser.text
    deep = {"like": like, "change": f'{{"width": {"[" * 70}{"]" * 70}}}'}
    assert browser.send(f"/dead-letters/{like}/preview", deep).status_code == 422
    assert "deep inside one another" in browser.text
    change = {"like": like, "change": '{"width": 50}'}
    browser.send(f"/dead-letters/{like}/preview", change)
    assert "2 of them with other arguments" in browser.text
    browser.send("/dead-letters/resubmit", decided(browser))
    kit.drain()
    assert kit.app.store.reports.jobs(JobFilter(state=State.DEAD), 10) == []


def test_those_that_were_seen_are_resubmitted_and_none_that_died_since(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    buried(kit, 4)
    seen = {view.id for view in kit.app.dead_letters()}
    browser.look("/dead-letters")
    browser.send("/dead-letters/preview", {"like": fingerprint(browser), "change": '{"width": 50}'})
    assert "Resubmit 4 dead letters?" in browser.text
    buried(kit, 3)
    browser.send("/dead-letters/resubmit", decided(browser))
    assert "4 jobs ready again, 4 of them with other arguments." in browser.text
    left = {view.id for view in kit.app.dead_letters()}
    assert len(left) == 3
    assert not left & seen


def test_a_form_that_is_sent_twice_resubmits_what_was_seen_once(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    buried(kit, 4)
    browser.look("/dead-letters")
    browser.send("/dead-letters/preview", {"like": fingerprint(browser), "limit": "1"})
    form, page = decided(browser), browser.page
    browser.send("/dead-letters/resubmit", form)
    browser.page = page
    browser.send("/dead-letters/resubmit", form)
    assert "0 jobs ready again. 1 job had changed meanwhile." in browser.text
    assert len(list(kit.app.dead_letters())) == 3


def test_a_group_is_discarded_after_a_look_and_no_other_goes_with_it(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    buried(kit, 3)
    kit.clock.move(minutes=5)
    browser.look("/dead-letters")
    like = fingerprint(browser)
    assert "Discard them" in browser.look(f"/dead-letters/{like}")
    for path in ("/dead-letters/discard-preview", f"/dead-letters/{like}/discard-preview"):
        assert browser.send(path, {"like": like}).status_code == 200
        assert "Discard 3 dead letters?" in browser.text
    [ids] = re.findall(r'name="ids" value="([^"]*)"', browser.page.text)  # type: ignore[union-attr]
    assert len(kit.app.store.reports.jobs(JobFilter(state=State.DEAD), 10)) == 3
    buried(kit, 1)
    assert browser.send("/dead-letters/discard", {"ids": ids}).headers["location"] == "/dead-letters"
    assert "3 jobs discarded." in browser.text
    assert len(kit.app.store.reports.jobs(JobFilter(state=State.DEAD), 10)) == 1


def test_one_dead_letter_is_discarded_from_its_page_after_a_look(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    job = shop.send.enqueue("nobody")
    kit.drain()
    assert "Discard…" in browser.look(f"/jobs/{job.id}")
    seen = browser.send(f"/jobs/{job.id}/discard-preview", {"ids": str(job.id)})
    assert seen.status_code == 200
    assert "Nothing to discard yet" in browser.text
    assert re.search(
        r"It stays for now: 1 \( \w+ \): was made less than five minutes ago: whoever enqueued it may have lost the answer and repeat that, which "
        r"would make it anew; it can be discarded when they are over, in (5 min|4 min 5\d s)",
        browser.text,
    ), browser.text
    kit.clock.move(minutes=5)
    browser.send(f"/jobs/{job.id}/discard-preview", {"ids": str(job.id)})
    assert "Discard this job" in browser.text
    browser.send("/dead-letters/discard", {"ids": str(job.id)})
    assert "1 job discarded." in browser.text
    assert kit.app.store.reports.job(job.id) is None
    browser.send("/dead-letters/discard", {"ids": str(job.id)})
    assert "0 jobs discarded. 1 job not: each is no dead letter" in browser.text


def test_previews_show_what_died_of_what_and_lead_back_to_the_list_one_came_from(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    jobs = [shop.send.enqueue("nobody") for _ in range(7)]
    kit.drain()
    kit.clock.move(minutes=5)
    browser.look("/dead-letters?queue=mail")
    assert browser.page is not None
    assert 'name="queue" value="mail"><button aria-label="Discard' in browser.page.text
    for preview in ("preview", "discard-preview"):
        browser.send(f"/dead-letters/{preview}", {"queue": "mail"})
        assert browser.text.count("Permanent: there is nobody") == len(jobs)
        assert browser.text.count('{"to": "nobody"}') == len(jobs)
        assert '<a class="button" href="/dead-letters?queue=mail">' in browser.page.text
    for action in ("resubmit", "discard"):
        sent = {"ids": str(jobs.pop().id), "queue": "mail"}
        assert browser.send(f"/dead-letters/{action}", sent).headers["location"] == "/dead-letters?queue=mail"


def test_who_may_only_look_has_no_button_to_discard(stranger: Browser, shop: Shop, kit: Kit) -> None:
    job = shop.send.enqueue("nobody")
    kit.drain()
    kit.clock.move(minutes=5)
    stranger.sign_in_as(Scope.READ)
    for path in ("/dead-letters", f"/jobs/{job.id}"):
        assert "Discard" not in stranger.look(path)
    assert stranger.send("/dead-letters/discard", {"ids": str(job.id)}).status_code == 403
    assert kit.app.store.reports.job(job.id) is not None


def test_a_group_that_is_gone_says_so(browser: Browser) -> None:
    answer = browser.ask("GET", "/dead-letters/00000000")
    assert answer.status_code == 404
    assert "They may run again" in answer.text
    assert browser.ask("GET", "/dead-letters/xyz").status_code == 422


def test_a_page_groups_so_many_of_the_newest(
    browser: Browser, shop: Shop, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "DEAD_ON_A_PAGE", 2)
    buried(kit, 4)
    assert "of the newest 2 dead letters" in browser.look("/dead-letters")
    browser.look(f"/dead-letters/{fingerprint(browser)}")
    assert "there may be more" in browser.text


def test_a_page_looks_at_so_many_dead_letters_however_few_fit_and_says_so(
    browser: Browser, shop: Shop, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "STRIDE", 2)
    monkeypatch.setattr(searching, "LOOKED_AT", 2)
    buried(kit, 4)
    shop.send.enqueue("nobody")
    kit.drain()
    said = browser.look("/dead-letters?reason=nope")
    assert "No dead letter fits this." in said
    assert "Of the newest 10,000 dead letters or so." in said
    assert "or so" not in browser.look("/dead-letters?queue=nope")
    assert "or so" not in browser.look("/dead-letters?task=send")


def test_a_token_for_some_queues_sees_no_letters_of_others(browser: Browser, shop: Shop, kit: Kit) -> None:
    buried(kit, 1)
    browser.sign_in_as(Scope.OPERATE, queues=("mail", "pay"))
    assert "This sign-in is for some queues" in browser.look("/dead-letters")
    assert "No dead letters in the queue mail." in browser.look("/dead-letters?queue=mail")
    assert browser.ask("GET", "/dead-letters?queue=default").status_code == 403


def test_a_batch_is_shown_as_a_whole_with_what_failed(browser: Browser, shop: Shop, kit: Kit) -> None:
    assert "No batches." in browser.look("/batches")
    calls = [shop.send.call("ann"), shop.send.call("nobody"), shop.send.call("nobody")]
    batch = kit.app.batch(calls, name="greetings", then=shop.thumbnail.call("done.png"))
    kit.drain()
    assert "greetings" in browser.look("/batches")
    text = browser.look(f"/batches/{batch.id}")
    assert "3 of 3 have ended, 100 %" in text
    assert "there is nobody" in text
    browser.send("/jobs/preview", {"action": "resubmit", "batch": str(batch.id), "state": "dead"})
    assert "Resubmit 2 jobs?" in browser.text
    [ids] = re.findall(r'name="ids" value="([^"]+)"', browser.page.text)  # type: ignore[union-attr]
    browser.send("/jobs/bulk", {"action": "resubmit", "ids": ids})
    assert batch.progress().failed == 0
    browser.look(f"/batches/{batch.id}")
    assert browser.send(f"/batches/{batch.id}/cancel").status_code == 303
    assert batch.progress().cancelled == 2
    assert browser.ask("GET", f"/batches/{calls[0].id}").status_code == 404


def test_runs_that_were_undone_need_nobody_and_neither_lead_the_list_nor_fill_it(
    browser: Browser, shop: Shop, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The menu does not count them, and one link leads to them."""
    monkeypatch.setattr(dead_letters, "DEAD_ON_A_PAGE", 2)
    shop.send.enqueue("nobody")
    for number in range(3):
        run = shop.order.enqueue(number)
        kit.drain()
        kit.app.store.workflows.direct(run.id, Phase.UNDOING, why="a mistake", by="ann")
        kit.drain()
    said = browser.look("/dead-letters")
    assert "Permanent there is nobody" in said
    assert "Left out: 3 runs of workflows that were undone, and need nobody. Show them" in said
    assert "order" not in said.partition("Died of")[2].partition("Left out")[0]
    assert "Dead letters 1 that need somebody, with those of steps Workflows" in said
    assert "order" in browser.look("/dead-letters?reason=undone").partition("Died of")[2]
    assert "Left out" not in browser.text
    monkeypatch.setattr(answering, "LETTERS_COUNTED", 3)
    assert "Dead letters 0+ that need somebody" in browser.look("/queues"), (
        "the newest need nobody, and there is an older one"
    )


def test_the_menu_tells_how_many_dead_letters_there_are_to_those_who_may_see_all(
    stranger: Browser, shop: Shop, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "LETTERS_COUNTED", 2)
    stranger.sign_in_as(Scope.READ)
    assert "Dead letters Workflows" in stranger.look("/queues")
    shop.send.enqueue("nobody")
    kit.drain()
    assert "Dead letters 1 that need somebody, with those of steps Workflows" in stranger.look("/queues")
    shop.send.enqueue("nobody")
    kit.drain()
    assert "Dead letters 2+ that need somebody, with those of steps Workflows" in stranger.look("/queues")
    looked_again = stranger.ask("GET", "/queues", headers={"HX-Request": "true"})
    assert 'class="count"' not in looked_again.text
    stranger.sign_in_as(Scope.READ, queues=("mail",))
    assert "Dead letters Workflows" in stranger.look("/queues")


def test_the_step_of_a_run_that_has_ended_needs_nobody_and_is_told_to_be_discarded(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    run = shop.order.enqueue(0, "task")
    kit.drain()
    assert "Steps of workflows: each is run again on the page of its run." in browser.look("/dead-letters")
    assert "Dead letters 1 that need somebody" in browser.text
    kit.app.store.workflows.direct(run.id, Phase.UNDOING, why="a mistake", by="ann")
    kit.drain()
    said = browser.look("/dead-letters")
    assert "Steps of runs that have ended: nothing runs them again, and nobody needs to." in said
    assert "Dead letters Workflows" in said
    assert "Discard" in said
    [at] = re.findall(r'<a href="(/dead-letters/[0-9a-f]{8})"', browser.page.text)  # type: ignore[union-attr]
    said = browser.look(at)
    assert "They were steps of runs that have ended: nothing runs them again" in said
    assert "Runs that are held" not in said
