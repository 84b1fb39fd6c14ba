"""Triggers on their pages, on both stores: how far each is, what keeps it, and what it refused."""

import platform
import re
from pathlib import Path

import pytest

from lateshift.api.bounds import PAGE
from lateshift.dashboard.pages.triggers import RAW_SHOWN
from lateshift.model.access import Scope
from lateshift.model.ids import new_job_id, new_member_id
from lateshift.model.job import JobFilter
from lateshift.model.triggering.trigger import SILENCE, Arrival, Refused
from lateshift.testing import Kit
from lateshift.triggers.hearing import Hearing
from lateshift.webhooks import github
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser
from tests.dashboard.test_workflows import html


@pytest.fixture
def files(kit: Kit, shop: Shop, tmp_path: Path) -> Kit:
    shop.watch_files(kit.app, tmp_path)
    declared = [trigger.declared for trigger in kit.app.triggers.values()]
    kit.app.store.triggers.declare(declared, app="shop")
    return kit


def refuse(kit: Kit, count: int, raw: bytes, event: str = "event") -> None:
    store = kit.app.store
    grip = store.locks.acquire("trigger files", new_member_id(), kit.app.store.poll * 100)
    assert grip is not None
    arrivals = [
        Arrival(event=f"{event}-{number:03}", refused=Refused(id=new_job_id(), raw=raw, rest=b'{"seen":null}', reason="no such column"))
        for number in range(count)
    ]  # fmt: skip
    assert store.triggers.take("files", arrivals, term=grip.fence) is not None


def test_an_empty_list_says_how_triggers_are_made(browser: Browser) -> None:
    for each in ("@app.on_message", "@app.on_webhook", "@app.on_file", "@app.on_row"):
        assert each in browser.look("/triggers")


def test_one_that_nobody_reads_is_stuck_and_says_so(browser: Browser, files: Kit) -> None:
    text = browser.look("/triggers")
    assert "stuck nobody has read it yet" in text
    files.app.store.triggers.tell("files", error="no such folder")
    assert "stuck no such folder" in browser.look("/triggers/files")
    files.app.store.triggers.tell("files", error=None, lag=7)
    text = browser.look("/triggers/files")
    assert "stuck" not in text
    assert "Waiting 7" in text
    assert "all was well since" in text


SECRETS = ("VENDOR_SECRET", "VENDOR_SECRET_BEFORE")
MISSES = "misses VENDOR_SECRET or VENDOR_SECRET_BEFORE in the environment"


class Server:
    """That has these variables set whenever it says what it misses."""

    def __init__(self, kit: Kit, patch: pytest.MonkeyPatch, url: str, *secrets: str) -> None:
        self._kit, self._patch, self._secrets = kit, patch, secrets
        self.hearing = Hearing(kit.app.store, kit.app.name, kit.app.triggers, url)

    def set(self, *secrets: str) -> None:
        self._secrets = secrets

    def speak(self) -> None:
        for name in SECRETS:
            self._patch.setenv(name, "s3cret" if name in self._secrets else "")
        self._kit.clock.move(seconds=1)
        self.hearing.round()


@pytest.fixture
def vendor(kit: Kit) -> Kit:
    @kit.app.on_webhook("vendor", verify=github(*[f"env:{name}" for name in SECRETS]))
    def hear(body: bytes) -> None: ...

    kit.app.declare_webhooks()
    return kit


def test_a_webhook_without_its_secret_is_stuck_until_a_server_has_it(
    browser: Browser, vendor: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "taken at POST /hooks/vendor" in browser.look("/triggers")
    alone = Server(vendor, monkeypatch, "http://a:8642")
    alone.speak()
    assert alone.hearing.missing() == {"vendor": list(SECRETS)}
    where = f"the server at http://a:8642 on {platform.node()}"
    assert f"stuck {where} {MISSES}" in browser.look("/triggers")
    assert f"vendor : takes nothing: {where} {MISSES}" in browser.look("/")

    alone.set("VENDOR_SECRET")
    alone.speak()
    assert alone.hearing.missing() == {"vendor": ["VENDOR_SECRET_BEFORE"]}
    said = browser.look("/triggers")
    assert "stuck" not in said
    assert "taken at POST /hooks/vendor" in said
    assert "vendor" not in browser.look("/").partition("Sign out")[2]


def test_a_server_that_misses_the_secret_of_a_webhook_is_named_while_another_takes_it(
    browser: Browser, vendor: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The webhook is well. What is said of the server goes with it, also if it was killed."""
    well = Server(vendor, monkeypatch, "http://a:8642", "VENDOR_SECRET")
    without = Server(vendor, monkeypatch, "http://b:8642")
    well.speak()
    without.speak()
    well.speak()

    said = browser.look("/triggers")
    assert (
        f"taken at POST /hooks/vendor, but the server at http://b:8642 on {platform.node()} {MISSES}" in said
    )
    assert "stuck" not in said
    told = browser.look("/")
    assert "takes nothing" not in told
    assert "vendor : is taken by others, but the server at http://b:8642" in told

    vendor.clock.move(seconds=SILENCE.total_seconds())
    well.speak()
    assert "but the server" not in browser.look("/triggers")


def test_a_server_that_stops_takes_back_what_it_missed(
    browser: Browser, vendor: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = Server(vendor, monkeypatch, "http://b:8642")
    without.speak()
    vendor.clock.move(seconds=1)
    without.hearing.resign()
    assert "stuck" not in browser.look("/triggers")


def test_one_is_paused_and_resumed(browser: Browser, files: Kit) -> None:
    browser.look("/triggers/files")
    browser.send("/triggers/files/pause")
    assert "trigger files: paused." in browser.text
    assert "paused" in browser.look("/triggers").partition("Last")[2]
    browser.look("/triggers/files")
    browser.send("/triggers/files/resume")
    assert "trigger files: resumed." in browser.text


def test_what_was_refused_is_shown_page_by_page_as_it_came(browser: Browser, files: Kit) -> None:
    refuse(files, PAGE + 1, b"<b>x</b>" + b"y" * RAW_SHOWN + b"\xff")
    text = browser.look("/triggers/files")
    assert text.count("no such column") == PAGE
    assert "event-000" in text
    assert "<b>x</b>" not in html(browser)
    assert "9 bytes more" in text
    [more] = html(browser).split('rel="next" href="')[1:]
    browser.look(more.partition('"')[0])
    assert browser.text.count("no such column") == 1
    assert RAW_SHOWN == 2_000


@pytest.fixture
def hook(kit: Kit) -> Kit:
    """With a webhook whose deliveries are whole numbers."""

    @kit.app.on_webhook("orders", verify=lambda headers, body, now: headers["x-id"])
    def ordered(n: int) -> int:
        return n

    kit.app.declare_webhooks()
    return kit


def test_a_webhook_is_paused_and_resumed_and_its_page_has_nothing_of_reading(
    browser: Browser, hook: Kit
) -> None:
    text = browser.look("/triggers/orders")
    assert "Comes to POST /hooks/orders" in text
    for word in ("Looked", "of late", "Position"):
        assert word not in text
    browser.send("/triggers/orders/pause")
    assert "trigger orders: paused." in browser.text
    answer = browser.ask("POST", "/hooks/orders", content=b"1", headers={"X-Id": "d1"})
    assert answer.status_code == 503
    browser.send("/triggers/orders/resume")
    answer = browser.ask("POST", "/hooks/orders", content=b"1", headers={"X-Id": "d1"})
    assert answer.status_code == 202
    assert "0.0" not in browser.look("/triggers")


def test_a_refused_event_without_an_id_of_its_own_is_shown_by_its_beginning(
    browser: Browser, files: Kit
) -> None:
    refuse(files, 1, b"order 7, and more", event="sha256:0a1b")
    browser.look("/triggers/files")
    assert "<summary>order 7, and more</summary>" in html(browser)


def test_what_was_refused_is_retried_or_discarded_by_a_button(browser: Browser, hook: Kit) -> None:
    for number in range(3):
        browser.ask("POST", "/hooks/orders", content=b'"many"', headers={"X-Id": f"d{number}"})
    assert "3 events refused" in browser.look("/")
    browser.look("/triggers/orders")
    first, second, third = re.findall(r'action="(/triggers/orders/refused/[^"]*)/retry"', html(browser))

    browser.send(f"{first}/retry")
    assert "0 jobs made. 1 event refused still:" in browser.text
    hook.app.triggers["orders"]._decode = lambda message: len(message.body)
    browser.send(f"{first}/retry")
    assert "1 job made." in browser.text
    assert browser.send(f"{first}/retry").status_code == 404
    assert "may have been retried or discarded" in browser.text
    browser.send(f"{second}/discard")
    assert "discarded." in browser.text
    assert third in html(browser)
    browser.send("/triggers/orders/retry")
    assert "1 job made." in browser.text
    assert "Nothing was refused." in browser.text
    assert len(hook.app.store.reports.jobs(JobFilter(task="ordered"), 10)) == 2


def test_who_may_only_look_retries_and_discards_nothing(stranger: Browser, files: Kit) -> None:
    refuse(files, 1, b"x")
    [refused] = files.app.store.triggers.refused("files", None, 10)
    stranger.sign_in_as(Scope.READ)
    for action in ("retry", f"refused/{refused.id}/retry", f"refused/{refused.id}/discard"):
        stranger.look("/triggers/files")
        assert f"/triggers/files/{action}" not in html(stranger)
        assert stranger.send(f"/triggers/files/{action}").status_code == 403
    assert len(files.app.store.triggers.refused("files", None, 10)) == 1


def test_an_unknown_one_is_refused_and_so_is_a_token_for_some_queues(stranger: Browser, files: Kit) -> None:
    stranger.sign_in_as(Scope.READ)
    assert "Did you mean files?" in stranger.ask("GET", "/triggers/filez").text
    stranger.look("/triggers/files")
    assert stranger.send("/triggers/files/pause").status_code == 403
    stranger.sign_in_as(Scope.READ, queues=("mail",))
    assert stranger.ask("GET", "/triggers").status_code == 403
