"""The pages about jobs: found by whatever they have, many cancelled or run again at once after a look, one with its whole life."""

import logging
import re
from urllib.parse import urlencode

import pytest

from lateshift import Lateshift, Retry
from lateshift.dashboard.rendering import brief, plain
from lateshift.dashboard.rendering import short as page_short
from lateshift.model.access import Scope
from lateshift.model.job import JobFilter, State
from lateshift.model.words import short
from lateshift.operating import bulk
from lateshift.operating.written import LEAST_DIGITS
from lateshift.store import searching
from lateshift.testing import Kit
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser


@pytest.fixture
def shop(app: Lateshift) -> Shop:
    """With a task that enqueues another, logs and fails."""
    made = Shop(app)

    @app.task(queue="images", retry=Retry(attempts=1), tags=["pictures"])
    def album(path: str) -> None:
        logging.getLogger("shop").warning("\x1b[31mreading\x1b[0m %s \x07", path)
        made.thumbnail.enqueue(path)
        raise ConnectionError(f"the disk of {path} is full")

    return made


def rows(browser: Browser) -> int:
    assert browser.page is not None
    return len(re.findall(r'<tr data-href="/jobs/', browser.page.text))


def test_jobs_are_found_by_each_of_their_filters(browser: Browser, shop: Shop, kit: Kit) -> None:
    job = shop.thumbnail.options(tags=["eu"], key="cat-1", session="s", tenant="acme").enqueue(
        "cat.png", width=7
    )
    shop.send.enqueue("nobody")
    kit.drain()
    fits = [
        "task=thumbnail", "queue=images", "state=completed", "tag=eu", "argument=cat.png", "argument=width%3D7", "key=cat-1",
        "session=s", "tenant=acme", "since=1h", "until=",
    ]  # fmt: skip
    for query in fits:
        browser.look(f"/jobs?{query}")
        assert f"/jobs/{job.id}" in browser.page.text, query  # type: ignore[union-attr]
    for query in ("tag=us", "argument=dog.png", "error=never", "until=1h", "since=2199-01-01", "key=cat-2"):
        assert "No job fits this." in browser.look(f"/jobs?{query}"), query
    assert "there is nobody" in browser.look("/jobs?error=nobody&state=dead")
    assert rows(browser) == 1
    assert "No jobs yet." not in browser.look("/jobs")


def test_a_job_is_gone_to_by_the_digits_that_listings_show(browser: Browser, shop: Shop, kit: Kit) -> None:
    """As the command line shows them, as a page does, and as a person copies them. A list of one row would be one step more."""
    job = shop.thumbnail.enqueue("cat.png")
    shop.send.enqueue("nobody")
    kit.drain()
    whole = str(job.id)
    for text in (
        short(job.id),
        short(job.id).upper(),
        page_short(job.id),
        whole[:18],
        whole,
        job.id.hex,
        f"…{whole[-6:]} ",
    ):
        answer = browser.ask("GET", f"/jobs?{urlencode({'id': text})}")
        assert (answer.status_code, answer.headers.get("location")) == (303, f"/jobs/{job.id}"), text
    assert "No job has an id that begins or ends so" in browser.look("/jobs?id=ffffffff")


def test_digits_that_several_jobs_have_list_them(browser: Browser, shop: Shop) -> None:
    jobs = [shop.thumbnail.enqueue(f"{number}.png") for number in range(3)]
    browser.look(f"/jobs?id={str(jobs[0].id)[:LEAST_DIGITS]}")
    assert rows(browser) == 3


def test_digits_find_no_job_of_a_queue_that_is_not_ones_own(stranger: Browser, shop: Shop) -> None:
    job = shop.thumbnail.enqueue("cat.png")
    stranger.sign_in_as(Scope.READ, queues=("mail",))
    stranger.look(f"/jobs?id={short(job.id)}")
    assert rows(stranger) == 0
    stranger.sign_in_as(Scope.READ, queues=("images",))
    answer = stranger.ask("GET", f"/jobs?{urlencode({'id': short(job.id)})}")
    assert answer.headers["location"] == f"/jobs/{job.id}"


def test_a_filter_that_cannot_be_is_a_page_that_says_so(browser: Browser) -> None:
    answer = browser.ask("GET", "/jobs?since=whenever")
    assert answer.status_code == 422
    assert "is no moment" in answer.text
    assert browser.ask("GET", "/jobs?batch=x").status_code == 422


def test_a_batch_is_named_by_its_last_digits_as_on_the_command_line(browser: Browser, shop: Shop) -> None:
    batch = browser.app.batch([shop.thumbnail.call("cat.png")])
    shop.thumbnail.enqueue("dog.png")
    for digits in (str(batch.id), batch.id.hex[-6:], f"…{batch.id.hex[-6:]}"):
        browser.look(f"/jobs?batch={digits}")
        assert rows(browser) == 1, digits
    browser.look("/jobs?batch=0000ffff0000")
    assert rows(browser) == 0
    assert "its first or last 4 digits or more" in browser.ask("GET", "/jobs?batch=fa0").text


def test_a_search_that_looked_at_enough_says_so_and_older_goes_on(
    browser: Browser, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "STRIDE", 2)
    monkeypatch.setattr(searching, "LOOKED_AT", 4)
    first = shop.thumbnail.enqueue("wanted.png")
    for _ in range(6):
        shop.thumbnail.enqueue("other.png")

    assert "There may be more further back" in browser.look("/jobs?argument=wanted.png")
    assert 'name="since" value="7d"' in browser.page.text  # type: ignore[union-attr]  # where nobody said how far back
    assert "looked for in the jobs of the last 7 days" in browser.text
    assert rows(browser) == 0
    [older] = re.findall(r'rel="next" href="([^"]+)"', browser.page.text)  # type: ignore[union-attr]
    browser.look(older.replace("&amp;", "&"))
    assert f"/jobs/{first.id}" in browser.page.text  # type: ignore[union-attr]
    assert "of the last 7 days" not in browser.look("/jobs?argument=cat.png&since=1h")


def test_the_ticked_jobs_are_cancelled_after_a_look_at_them(browser: Browser, shop: Shop, kit: Kit) -> None:
    one, two, three = [shop.thumbnail.enqueue(f"{number}.png") for number in range(3)]
    browser.look("/jobs")
    answer = browser.send("/jobs/preview", {"action": "cancel", "ids": f"{one.id},{two.id}"})
    assert answer.status_code == 200
    assert "Cancel 2 jobs?" in browser.text
    assert one.view().state is State.READY
    [ids] = re.findall(r'name="ids" value="([^"]+)"', answer.text)
    assert browser.send("/jobs/bulk", {"action": "cancel", "ids": ids}).status_code == 303
    assert "2 jobs cancelled, or told to stop." in browser.text
    assert [job.view().state for job in (one, two, three)] == [State.CANCELLED, State.CANCELLED, State.READY]
    assert [line.action for line in kit.app.store.audit.list(limit=2)] == ["cancel", "cancel"]


def test_all_that_fit_are_resubmitted_up_to_a_limit_and_what_is_in_no_state_for_it_is_told(
    browser: Browser, shop: Shop, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BATCH", 2)
    for _ in range(5):
        shop.send.enqueue("nobody")
    kit.drain()
    shop.send.enqueue("ann")
    browser.look("/jobs?task=send")
    browser.send("/jobs/preview", {"action": "resubmit", "task": "send"})
    assert "Resubmit 5 jobs?" in browser.text
    [ids] = re.findall(r'name="ids" value="([^"]+)"', browser.page.text)  # type: ignore[union-attr]
    browser.send("/jobs/bulk", {"action": "resubmit", "ids": ids})
    assert "5 jobs ready again." in browser.text
    assert len(kit.app.store.reports.jobs(JobFilter(state=State.READY, task="send"), 10)) == 6
    browser.send("/jobs/preview", {"action": "resubmit", "ids": ids})
    assert "None of these jobs is in a state for it" in browser.text
    assert "5 more fit" in browser.text


def test_a_bulk_action_is_seen_with_its_arguments_and_leads_back_to_the_filter_one_came_from(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    job = shop.send.enqueue("nobody")
    kit.drain()
    browser.look("/jobs?task=send&state=dead")
    answer = browser.send(
        "/jobs/preview", {"action": "resubmit", "task": "send", "state": "dead", "ids": str(job.id)}
    )
    assert 'Permanent: there is nobody {"to": "nobody"}' in browser.text
    assert '<a class="button" href="/jobs?task=send&amp;state=dead">' in answer.text
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', answer.text))
    assert (fields["task"], fields["state"]) == ("send", "dead")
    done = browser.send("/jobs/bulk", {name: fields[name] for name in ("action", "ids", "task", "state")})
    assert done.headers["location"] == "/jobs?task=send&state=dead"
    assert "1 job ready again." in browser.text


def test_nothing_ticked_and_nothing_narrowed_is_refused(browser: Browser, shop: Shop) -> None:
    job = shop.thumbnail.enqueue("cat.png")
    browser.look("/jobs")
    answer = browser.send("/jobs/preview", {"action": "cancel"})
    assert answer.status_code == 422
    assert "Tick some rows, or set a filter" in browser.text
    assert "Body invalid" not in browser.text
    assert browser.send("/jobs/bulk", {"action": "burn", "ids": str(job.id)}).status_code == 422
    assert browser.send("/jobs/bulk", {"action": "cancel", "ids": "x"}).status_code == 422
    assert job.view().state is State.READY


def test_a_job_is_shown_with_its_life_logs_and_family(browser: Browser, shop: Shop, kit: Kit) -> None:
    album = kit.app.tasks["album"].options(tags=["eu"]).enqueue("cat.png")
    kit.drain()
    text = browser.look(f"/jobs/{album.id}")
    for said in (
        "Made",
        "Attempt 1:",
        "ConnectionError",
        "the disk of cat.png is full",
        "Traceback",
        "1 line logged",
    ):
        assert said in text, said
    assert "reading cat.png \\x07" in text
    assert "\x1b" not in browser.page.text  # type: ignore[union-attr]
    assert "eu" in text
    assert "pictures" in text
    [child] = kit.app.store.reports.jobs(JobFilter(task="thumbnail"), 10)
    assert f"/jobs/{child.id}" in browser.page.text  # type: ignore[union-attr]
    assert "completed" in browser.look(f"/jobs/{child.id}")
    assert "Who enqueued whom" in browser.text
    assert f"/jobs/{album.id}" in browser.page.text  # type: ignore[union-attr]
    assert "cat.png at 200" in browser.text


def test_a_timeline_tells_when_by_the_clock_and_how_long_an_attempt_waited_and_ran(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    job = kit.app.tasks["album"].enqueue("cat.png")
    kit.clock.move(seconds=20)
    kit.drain()
    text = browser.look(f"/jobs/{job.id}").partition("Timeline")[2].partition("Arguments")[0]
    assert f"{job.view().created_at:%H:%M:%S} " in text
    assert f"{job.view().history[0].at:%H:%M:%S} " in text
    assert re.search(r", waited (19|20)[.\d]* s, ran \d+ [mµ]s, on ", text)
    assert "ago" not in text


def test_a_job_that_waits_says_why(browser: Browser, shop: Shop, kit: Kit) -> None:
    job = shop.thumbnail.enqueue("cat.png")
    kit.app.store.queues.pause("images", by="ann")
    text = browser.look(f"/jobs/{job.id}")
    assert "Why it is not running" in text
    assert "paused" in text


def test_a_reason_names_another_job_once_and_readably(browser: Browser, shop: Shop, kit: Kit) -> None:
    """By the end of its id, which leads there; not in full, and not again in a command that its own page has a button for."""
    in_order = shop.send.options(session="user:7", on_dead="hold")
    dead, waits = in_order.enqueue("nobody"), in_order.enqueue("ann")
    kit.drain()
    browser.look(f"/jobs/{waits.id}")
    assert browser.page is not None
    why = browser.page.text.partition("Why it is not running")[2].partition("Timeline")[0]
    assert (
        f'held by dead letter <a class="id" href="/jobs/{dead.id}" title="{dead.id}">{str(dead.id)[-8:]}</a>'
        in why
    )
    assert str(dead.id) not in re.sub(r"<[^>]*>", "", why)
    assert why.count(str(dead.id)[-8:]) == 3  # where it leads, its title, and what is read
    assert "lateshift sessions release user:7" in why


def test_a_dead_job_is_resubmitted_as_it_is_and_who_did_it_is_there(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    job = shop.send.enqueue("nobody")
    kit.drain()
    browser.look(f"/jobs/{job.id}")
    assert browser.send(f"/jobs/{job.id}/resubmit").status_code == 303
    assert "resubmitted." in browser.text
    assert "What was done to it" in browser.text
    assert job.view().state is State.READY


def test_other_arguments_are_checked_and_what_was_typed_stays(browser: Browser, shop: Shop, kit: Kit) -> None:
    job = shop.send.enqueue("nobody")
    kit.drain()
    browser.look(f"/jobs/{job.id}")
    for typed in ('{"to": 7}', '{"to": "ann"', "[]", "null", "", '{"nobody": 1}', "[" * 100_000):
        answer = browser.send(f"/jobs/{job.id}/edit", {"arguments": typed})
        assert answer.status_code == 422, typed[:20]
        assert typed[:50] in browser.text
        assert job.view().state is State.DEAD
    assert browser.send(f"/jobs/{job.id}/edit", {"arguments": '{"to": "ann"}'}).status_code == 303
    kit.drain()
    assert job.view().state is State.COMPLETED
    assert "The arguments were" in browser.look(f"/jobs/{job.id}")


def test_who_may_only_read_has_no_buttons(browser: Browser, shop: Shop, kit: Kit) -> None:
    job = shop.send.enqueue("nobody")
    kit.drain()
    browser.sign_in_as(Scope.READ)
    browser.look(f"/jobs/{job.id}")
    assert "Resubmit" not in browser.text
    browser.look("/jobs")
    assert "Cancel…" not in browser.text
    assert browser.send("/jobs/bulk", {"action": "cancel", "ids": str(job.id)}).status_code == 403


def test_a_token_for_some_queues_is_asked_which_and_sees_no_others(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    mail = shop.send.enqueue("ann")
    image = shop.thumbnail.enqueue("cat.png")
    browser.sign_in_as(Scope.OPERATE, queues=("mail", "pay"))
    assert "This sign-in is for some queues" in browser.look("/jobs")
    assert rows(browser) == 0
    browser.look("/jobs?queue=mail")
    assert rows(browser) == 1
    assert browser.ask("GET", "/jobs?queue=images").status_code == 403
    assert browser.ask("GET", f"/jobs/{image.id}").status_code == 403
    assert browser.send("/jobs/bulk", {"action": "cancel", "ids": str(image.id)}).status_code == 403
    assert image.view().state is State.READY
    browser.look("/jobs?queue=mail")
    assert browser.send("/jobs/bulk", {"action": "cancel", "ids": str(mail.id)}).status_code == 303
    assert mail.view().state is State.CANCELLED


def test_what_was_written_for_a_terminal_is_text() -> None:
    assert plain("\x1b[1;31mred\x1b[0m\x1b]0;title\x07 a\tb\nc\r\x00\u202e") == "red a\tb\nc\\x0d\\x00�"
    assert plain(None) == ""
    assert brief({"a": "x" * 200}).endswith("…")


def test_a_timeline_tells_who_resubmitted_it_and_how_long_it_waited_since_then(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    """Not how long it was dead."""
    job = kit.app.tasks["album"].enqueue("cat.png")
    kit.drain()
    kit.clock.move(seconds=93)
    kit.app.store.jobs.resubmit([job.id], by="ann")
    kit.clock.move(seconds=4)
    kit.drain()
    text = browser.look(f"/jobs/{job.id}").partition("Timeline")[2].partition("Arguments")[0]
    again = text.partition("Resubmitted ")[2]
    assert " by ann " in again
    assert re.search(r"Attempt 1: failed [\d:]+ *, waited [45][.\d]* s, ran ", again)
    assert "1 min 3" not in text
