"""Schedules on their pages, on both stores: when each fires, what became of its ticks, and what is done by hand."""

import re
from html import unescape

import pytest

from lateshift.api.bounds import BACKFILL_MOST
from lateshift.dashboard.pages.schedules import MARKS, UPCOMING
from lateshift.model.access import Scope
from lateshift.model.job import JobFilter
from lateshift.model.scheduling.plan import Outcome
from lateshift.model.scheduling.schedule import SCHEDULE_LATE
from lateshift.testing import Kit
from tests.api.shop import HOUR, Shop
from tests.dashboard.browsing import Browser
from tests.dashboard.test_workflows import html


def later(stranger: Browser, kit: Kit, **parts: float) -> Browser:
    """Signed in after a while, longer than which no browser is."""
    kit.travel(**parts)
    stranger.sign_in()
    return stranger


def _form_of(browser: Browser) -> dict[str, str]:
    """What stands in the form that changes a schedule, as a browser would send it."""
    form = html(browser).partition('/edit"')[2].partition("</form>")[0]
    fields = dict(re.findall(r'<input id="\w+" name="(\w+)"[^>]* value="([^"]*)"', form))
    fields |= {
        name: re.findall(r'value="(\w+)" selected', options)[0]
        for name, options in re.findall(r'<select id="\w+" name="(\w+)">(.*?)</select>', form)
    }
    return {name: unescape(value) for name, value in fields.items()}


def test_schedules_are_listed_with_their_next_fire_and_their_last_ticks(
    stranger: Browser, kit: Kit, shop: Shop
) -> None:
    browser = later(stranger, kit, days=3)
    text = browser.look("/schedules")
    assert "news" in text
    assert f"At {HOUR:02}:00 every day" in text
    assert html(browser).count('<li class="good"') == 3
    assert "late" not in text.partition("Overlap")[2]


def test_a_list_without_schedules_says_how_one_is_made(browser: Browser) -> None:
    assert "lateshift schedules add" in browser.look("/schedules")


def test_a_schedule_that_nobody_fires_is_marked(stranger: Browser, kit: Kit) -> None:
    kit.travel(seconds=1)
    kit.clock.move(days=2)
    stranger.sign_in()
    browser = stranger
    assert "late" in browser.look("/schedules").partition("Overlap")[2]
    assert "Nobody fires it" in browser.look("/schedules/news")
    assert SCHEDULE_LATE.total_seconds() == 60


def test_one_shows_its_next_ticks_and_what_became_of_the_last_ones(stranger: Browser, kit: Kit) -> None:
    browser = later(stranger, kit, days=2)
    text = browser.look("/schedules/news")
    assert html(browser).count('<td class="nowrap">') == UPCOMING == 10
    assert text.count("✓ fired") == 2
    assert '"to": "all"' in text


def test_one_is_paused_resumed_and_fired(browser: Browser, kit: Kit) -> None:
    kit.travel(seconds=1)
    browser.look("/schedules/news")
    browser.send("/schedules/news/pause")
    assert "schedule news: paused." in browser.text
    assert "paused" in browser.look("/schedules")
    browser.look("/schedules/news")
    browser.send("/schedules/news/resume")
    assert "schedule news: resumed." in browser.text
    browser.send("/schedules/news/fire")
    assert "Fired: the job" in browser.text
    assert "fired by hand" in browser.text


def test_a_name_with_a_slash_and_other_signs_leads_back_to_its_page(browser: Browser, kit: Kit, shop: Shop) -> None:  # fmt: skip
    kit.app.schedule(shop.send, args=["all"], name="a/b c?d#e%41", cron="0 3 * * *")
    kit.travel(seconds=1)
    browser.look("/schedules")
    path = "/schedules/a/b%20c%3Fd%23e%2541"
    assert f'href="{path}"' in html(browser)
    browser.look(path)
    answer = browser.send(f"{path}/pause")
    assert answer.headers["location"] == path
    assert "schedule a/b c?d#e%41: paused." in browser.text


def test_a_backfill_is_counted_before_it_is_made(browser: Browser, kit: Kit) -> None:
    kit.travel(seconds=1)
    assert "no tick" in browser.look(
        f"/schedules/news?since=2020-01-01T{HOUR:02}:10&until=2020-01-01T{HOUR:02}:50"
    )
    assert "365 ticks" in browser.look("/schedules/news?since=2019-01-01T03:30&until=2020-01-01T03:30")
    for wrong in ("since=x&until=2020-01-01T00:00", "since=2020-01-02T00:00&until=2020-01-01T00:00",
                  "since=2020-01-01T00:00&until=2999-01-01T00:00"):  # fmt: skip
        assert browser.ask("GET", f"/schedules/news?{wrong}").status_code == 422
    assert BACKFILL_MOST == 10_000
    assert "More than 10,000 ticks" in browser.look("/schedules/news?since=1980-01-01T03:30&until=2020-01-01T03:30")  # fmt: skip
    assert "/schedules/news/backfill" not in html(browser)


def test_what_was_missed_is_filled_as_a_batch_and_not_twice(browser: Browser, kit: Kit) -> None:
    kit.travel(seconds=1)
    days = {"since": "2019-01-01T03:30", "until": "2019-01-04T03:30"}
    browser.look(f"/schedules/news?since={days['since']}&until={days['until']}")
    assert "3 ticks" in browser.text
    assert "Make 3 jobs" in browser.text
    first = browser.send("/schedules/news/backfill", days).headers["location"]
    assert first.startswith("/batches/")
    assert "A job for each of 3 ticks" in browser.text
    assert "backfill of news" in browser.text
    assert browser.send("/schedules/news/backfill", days).headers["location"] == first
    assert len(kit.app.store.reports.jobs(JobFilter(task="send"), 10)) == 3


def test_a_backfill_that_is_refused_keeps_the_times(browser: Browser, kit: Kit) -> None:
    kit.travel(seconds=1)
    browser.look("/schedules/news")
    for since, until, why in (
        ("2019-01-01T03:30", "2999-01-01T03:30", "take several"),
        ("2019-01-01T03:30", "2019-01-01T03:50", "has no tick"),
        ("soon", "2019-01-01T03:50", "is a time such as"),
    ):
        answer = browser.send("/schedules/news/backfill", {"since": since, "until": until})
        assert answer.status_code == 422
        assert why in browser.text
        assert f'value="{since}"' in html(browser)
        assert f'value="{until}"' in html(browser)


def test_one_is_changed_by_a_form_that_keeps_what_was_typed(browser: Browser, kit: Kit) -> None:
    kit.travel(seconds=1)
    browser.look("/schedules/news")
    as_it_is = {"timezone": "UTC", "overlap": "skip", "catch_up": "last"}
    wrong = as_it_is | {"kind": "cron", "when": "a b", "arguments": '{"to": "some"}'}
    assert browser.send("/schedules/news/edit", wrong).status_code == 422
    assert 'value="a b"' in html(browser)
    assert '{"to": "some"}' in browser.text
    assert (
        browser.send("/schedules/news/edit", wrong | {"when": "", "arguments": '{"to": 7}'}).status_code
        == 422
    )
    assert browser.send("/schedules/news/edit", wrong | {"kind": "every", "when": "90", "overlap": "allow"}).status_code == 303  # fmt: skip
    assert "schedule news: changed. Every 90 s" in browser.text
    assert "jobs may run beside each other" in browser.text
    view = kit.app.store.schedules.get("news")
    assert view is not None
    assert view.job.payload == b'{"to":"some"}'


CHANGED = [
    ("cron", "*/5 * * * *", "Every fifth minute of every hour"),
    ("every", "90", "Every 90 s"),
    ("every", "1h 30m", "Every 90 min"),
    ("at", "2999-12-01 08:00", "Once, at 2999-12-01 08:00:00 UTC"),
]


@pytest.mark.parametrize("before", CHANGED, ids=[each[0] + each[1] for each in CHANGED])
def test_when_a_schedule_fires_is_changed_from_any_kind_to_any_other(
    browser: Browser, kit: Kit, before: tuple[str, str, str]
) -> None:
    """The form shows one field, of the kind that was chosen; nothing else has to be cleared."""
    kit.travel(seconds=1)
    browser.look("/schedules/news")
    for kind, when, words in (before, *CHANGED):
        form = _form_of(browser) | {"kind": kind, "when": when}
        assert browser.send("/schedules/news/edit", form).status_code == 303, browser.text
        assert f"schedule news: changed. {words}" in browser.text
        assert _form_of(browser)["kind"] == kind


def test_a_form_that_changes_nothing_leaves_a_schedule_as_it_was(browser: Browser, kit: Kit) -> None:
    kit.travel(seconds=1)
    browser.look("/schedules/news")
    for kind, when, _ in CHANGED:
        browser.send("/schedules/news/edit", _form_of(browser) | {"kind": kind, "when": when})
        before = kit.app.store.schedules.get("news")
        assert browser.send("/schedules/news/edit", _form_of(browser)).status_code == 303, browser.text
        after = kit.app.store.schedules.get("news")
        assert before is not None
        assert after is not None
        assert after.plan.timing == before.plan.timing


@pytest.mark.parametrize(
    ("kind", "when", "why"),
    [
        ("cron", "61 * * * *", "cron='61 * * * *' has a minute that cannot be: '61'."),
        ("cron", "90", "cron='90' has 1 field:"),
        ("every", "*/5 * * * *", "'*/5 * * * *' is no interval"),
        ("every", "0", "at least 1 s"),
        ("at", "soon", "'soon' is no time"),
        ("at", "2001-01-01 00:00", "has passed"),
    ],
)
def test_what_is_wrong_with_when_it_fires_is_named(
    browser: Browser, kit: Kit, kind: str, when: str, why: str
) -> None:
    kit.travel(seconds=1)
    for before in CHANGED[:2]:
        browser.look("/schedules/news")
        browser.send("/schedules/news/edit", _form_of(browser) | {"kind": before[0], "when": before[1]})
        answer = browser.send("/schedules/news/edit", _form_of(browser) | {"kind": kind, "when": when})
        assert answer.status_code == 422
        assert why in browser.text
        assert _form_of(browser)["when"] == when


def test_one_is_removed_and_the_list_says_so(browser: Browser, kit: Kit) -> None:
    kit.travel(seconds=1)
    browser.look("/schedules/news")
    assert browser.send("/schedules/news/remove").headers["location"] == "/schedules"
    assert "schedule news: removed." in browser.text
    assert kit.app.store.schedules.get("news") is None


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("since=0001-01-01T00:00&until=2020-01-01T00:00", "since"),
        ("since=0001-01-01T00:00%2B14:00&until=2020-01-01T00:00", "since"),
        ("since=2020-01-01T00:00&until=9999-12-31T23:59-14:00", "until"),
    ],
)
def test_a_backfill_of_times_that_some_zone_could_not_show_is_refused(
    browser: Browser, kit: Kit, query: str, field: str
) -> None:
    kit.travel(seconds=1)
    answer = browser.ask("GET", f"/schedules/news?{query}")
    assert answer.status_code == 422
    assert f"{field}= is a time from" in answer.text


def test_every_outcome_of_a_tick_has_a_mark() -> None:
    assert set(MARKS) == set(Outcome)


def test_an_unknown_one_and_one_of_another_queue_are_refused(stranger: Browser, kit: Kit) -> None:
    kit.travel(seconds=1)
    stranger.sign_in_as(Scope.OPERATE, queues=("images",))
    assert stranger.ask("GET", "/schedules/news").status_code == 403
    assert "news" not in stranger.look("/schedules").partition("Schedules")[2].partition("Keys")[0]
    stranger.sign_in_as(Scope.READ)
    assert "Did you mean news?" in stranger.ask("GET", "/schedules/newz").text
    assert "Fire now" not in stranger.look("/schedules/news")
    for action in ("fire", "backfill", "edit", "remove"):
        assert f"/schedules/news/{action}" not in html(stranger)
        assert stranger.send(f"/schedules/news/{action}").status_code == 403
        stranger.look("/schedules/news")
