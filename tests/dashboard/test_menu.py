"""The menu has what the signed-in token may see, and no link leads to a page that it may not."""

import re
from dataclasses import replace

import pytest

from lateshift.dashboard.page import navigation
from lateshift.dashboard.pages.all import PAGES
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser
from tests.dashboard.test_links import crawled

OF_SOME = ["Overview", "Jobs", "Dead letters", "Workflows", "Queues", "Schedules"]
OF_READ = [*OF_SOME[:4], "Pipelines", "Batches", *OF_SOME[4:], "Triggers", "Breakers", "Members"]


def menu(browser: Browser) -> list[str]:
    assert browser.page is not None
    nav = browser.page.text.partition("<nav")[2].partition("</nav>")[0]
    return re.findall(r">([^<]+)</a>", nav)


@pytest.mark.parametrize(
    ("scopes", "queues", "shown"),
    [
        ([Scope.READ], ("images", "mail"), OF_SOME),
        ([Scope.OPERATE], ("images.*",), OF_SOME),
        ([Scope.ADMIN], ("images",), OF_SOME),
        ([Scope.READ], (), OF_READ),
        ([Scope.ADMIN], (), [*OF_READ, "Tokens", "Audit"]),
    ],
)
def test_the_menu_has_what_the_token_may_see(
    stranger: Browser, scopes: list[Scope], queues: tuple[str, ...], shown: list[str]
) -> None:
    stranger.sign_in_as(*scopes, queues=queues)
    stranger.look("/")
    assert menu(stranger) == shown


def test_a_key_goes_to_the_same_page_whoever_looks() -> None:
    whole = {page.path: key for page, key in navigation(PAGES)}
    some = {page.path: key for page, key in navigation(PAGES, {"/tokens", "/queues"})}
    assert some == {path: whole[path] for path in ("/queues", "/tokens")}


@pytest.mark.parametrize("queues", [(), ("images", "mail", "orders")], ids=["all queues", "some queues"])
def test_no_link_leads_to_a_page_that_the_token_may_not_see(
    stranger: Browser, shop: Shop, kit: Kit, queues: tuple[str, ...]
) -> None:
    shop.send.enqueue("nobody")
    kit.app.batch([shop.thumbnail.call("cat.png"), shop.send.call("nobody")], name="both")
    shop.order.enqueue(1, "bad")
    shop.pay.enqueue()
    kit.drain()
    stranger.sign_in_as(Scope.READ, queues=queues)
    answered = crawled(stranger)
    assert len(answered) > 20
    assert {at: status for at, status in answered.items() if status != 200} == {}


def test_a_queue_is_asked_for_only_where_one_can_be_named(stranger: Browser) -> None:
    stranger.sign_in_as(Scope.READ, queues=("images", "mail"))
    for path in ("/jobs", "/dead-letters"):
        assert "Choose one of them: images , mail ." in stranger.look(path)
        assert stranger.page is not None
        assert 'class="sheet' not in stranger.page.text  # an empty one would be a line that means nothing
        assert "fits this" not in stranger.look(f"{path}?task=thumbnail")
    for path in ("/batches", "/triggers", "/breakers", "/members"):
        said = stranger.ask("GET", path)
        assert said.status_code == 403
        assert "it takes a token for all of them" in said.text
        assert "name one" not in said.text
    assert "name one of them in `queue`" in stranger.ask("GET", "/dead-letters/0123abcd").text


def test_naming_a_queue_keeps_what_was_looked_for(stranger: Browser) -> None:
    stranger.sign_in_as(Scope.READ, queues=("images", "mail"))
    stranger.look("/jobs?task=thumbnail")
    assert stranger.page is not None
    assert 'href="/jobs?task=thumbnail&amp;queue=images"' in stranger.page.text


def test_who_is_for_one_queue_is_shown_that_one_without_being_asked(
    stranger: Browser, shop: Shop, kit: Kit
) -> None:
    other = shop.thumbnail.enqueue("cat.png")
    own = shop.send.enqueue("nobody")
    kit.drain()
    stranger.sign_in_as(Scope.READ, queues=("mail",))
    for path in ("/jobs", "/jobs?state=dead"):
        stranger.look(path)
        assert stranger.page is not None
        assert str(own.id) in stranger.page.text
        assert str(other.id) not in stranger.page.text
        assert 'name="queue" value="mail"' in stranger.page.text
    assert "send" in stranger.look("/dead-letters").partition("Died of")[2]
    assert stranger.page is not None
    [group] = re.findall(r'<tr data-href="(/dead-letters/[^"?]+)', stranger.page.text)
    assert "nobody" in stranger.look(group)
    assert "mail : the last hour" in stranger.look("/overview/table").replace("mail:", "mail :")
    assert stranger.ask("GET", "/jobs?queue=images").status_code == 403


def test_of_a_pattern_the_queues_that_are_known_can_be_chosen(stranger: Browser, kit: Kit) -> None:
    kit.app.queue("images.small")
    stranger.sign_in_as(Scope.READ, queues=("images.*", "mail"))
    stranger.look("/jobs")
    assert stranger.page is not None
    links = re.findall(r'href="/jobs\?queue=([^"]*)"', stranger.page.text)
    assert links == ["mail", "images.small"]
    assert "<code>images.*</code>" in stranger.page.text


@pytest.mark.parametrize("queues", [("docs",), ("docs", "mail.*")])
def test_an_empty_list_of_some_queues_is_not_told_as_if_there_were_nothing_at_all(
    stranger: Browser, shop: Shop, kit: Kit, queues: tuple[str, ...]
) -> None:
    run = shop.order.enqueue(7)
    shop.send.enqueue("nobody")
    kit.travel(seconds=1)
    told = {
        "/workflows": "No workflow has run in your queues.",
        "/workflows?state=late": "No step of your queues is past its complete-by.",
        "/queues": "None of your queues has jobs yet.",
        "/schedules": "No schedule makes jobs in your queues.",
        "/": "No job of your queues has run in this time.",
    }
    stranger.sign_in_as(Scope.READ, queues=queues)
    for path, words in told.items():
        assert words in stranger.look(path), path
        assert str(run.id) not in stranger.text
    for path, words in {
        "/jobs": "No jobs in the queue docs.",
        "/dead-letters": "No dead letters in the queue docs.",
    }.items():
        assert words in stranger.look(f"{path}?queue=docs")
    stranger.sign_in_as(Scope.READ)
    for path, words in told.items():
        assert words not in stranger.look(path), path


def offered(browser: Browser, field: str) -> list[str]:
    assert browser.page is not None
    listed = browser.page.text.partition(f'<datalist id="{field}-names">')[2].partition("</datalist>")[0]
    return re.findall(r'value="([^"]*)"', listed)


def test_filters_offer_the_names_that_are_known_and_only_those_that_the_token_may_see(
    stranger: Browser, shop: Shop, kit: Kit
) -> None:
    shop.thumbnail.options(queue="elsewhere").enqueue("cat.png")
    kit.drain()
    kit.travel(minutes=2)
    for path in ("/jobs", "/dead-letters"):
        stranger.sign_in_as(Scope.READ)
        stranger.look(path)
        assert {"thumbnail", "send", "pay"} <= set(offered(stranger, "task"))
        assert {"images", "mail"} <= set(offered(stranger, "queue"))
        stranger.sign_in_as(Scope.READ, queues=("mail",))
        stranger.look(path)
        assert "thumbnail" not in offered(stranger, "task")
        assert "send" in offered(stranger, "task")
        assert offered(stranger, "queue") == ["mail"]


def test_a_name_by_which_nothing_is_found_is_said_to_be_looked_for_whole(browser: Browser) -> None:
    for path in ("/jobs?task=thumb", "/dead-letters?queue=mai"):
        assert "Tasks and queues are found by their whole names." in browser.look(path)
    assert "whole names" not in browser.look("/jobs?tag=eu")


ASKED = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_what_is_refused_is_told_beside_the_menu_to_whoever_is_signed_in(stranger: Browser) -> None:
    gone = "/jobs/0190a5c0-0000-7000-8000-000000000000"
    for path, status in (("/nothing", 404), (gone, 404), ("/jobs/123", 404), ("/batches", 403)):
        stranger.sign_in_as(Scope.READ, queues=("images", "mail"))
        stranger.page = stranger.ask("GET", path, headers=ASKED)
        assert stranger.page.status_code == status
        assert menu(stranger) == OF_SOME
        assert stranger.page.text.count('role="alert"') == 1
        assert "Sign out" in stranger.text
    stranger.client.cookies.clear()
    stranger.page = stranger.ask("GET", "/nothing", headers=ASKED)
    assert menu(stranger) == []
    assert "There is no page at this address." in stranger.text


def test_a_text_that_is_no_id_is_told_how_one_looks_in_a_list(browser: Browser, shop: Shop) -> None:
    job = str(shop.thumbnail.enqueue("cat.png").id)
    said = browser.ask("GET", "/jobs/123").text
    [example] = re.findall(r"one looks like ([0-9a-f-]+),", said)
    assert [len(part) for part in example.split("-")] == [len(part) for part in job.split("-")]


def test_every_page_names_the_store_without_its_password_to_those_who_may_see_all(
    stranger: Browser, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(kit.app.settings, store="postgresql://shop:s3cret@db.example/jobs?sslpassword=s3cret")
    monkeypatch.setattr(kit.app, "settings", settings)
    stranger.sign_in_as(Scope.READ)
    for path in ("/", "/queues"):
        stranger.look(path)
        assert stranger.page is not None
        shown = stranger.page.text.replace("<wbr>", "")
        assert ">postgresql://shop@db.example/jobs?sslpassword=…</small>" in shown
        assert "s3cret" not in stranger.page.text
    stranger.sign_in_as(Scope.READ, queues=("mail",))
    assert "db.example" not in stranger.ask("GET", "/queues").text
