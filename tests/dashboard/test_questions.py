"""What is asked before something is done that no button undoes: by a page, where no script has asked."""

import re
from html import unescape

import pytest

from lateshift.model.job import State
from lateshift.testing import Kit
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser
from tests.dashboard.test_workflows import html

_FORM = re.compile(r'<form method="post" action="([^"]*)".*?</form>', re.DOTALL)
_FIELD = re.compile(r'<(?:input type="hidden"|button class="\w*") name="(\w+)" value="([^"]*)"')


def forms(browser: Browser) -> dict[str, dict[str, str]]:
    """What a browser without scripts sends of each form of a page, by where it goes."""
    return {
        unescape(found[1]): {name: unescape(value) for name, value in _FIELD.findall(found[0])}
        for found in _FORM.finditer(html(browser))
    }


def test_a_job_is_cancelled_only_after_a_page_has_asked(browser: Browser, shop: Shop) -> None:
    job = shop.thumbnail.enqueue("cat.png")
    browser.look(f"/jobs/{job.id}")
    at = f"/jobs/{job.id}/cancel"
    assert browser.send(at, forms(browser)[at]).status_code == 200
    assert "Cancel this job?" in browser.text
    assert job.view().state is State.READY
    assert f'href="/jobs/{job.id}">Back, and do nothing' in html(browser)
    assert browser.send(at, forms(browser)[at]).status_code == 303
    assert job.view().state is State.CANCELLED


def test_what_was_typed_comes_through_the_page_that_asks(browser: Browser, shop: Shop, kit: Kit) -> None:
    run = shop.order.enqueue(7)
    kit.drain()
    browser.look(f"/workflows/{run.id}")
    at = f"/workflows/{run.id}/undo"
    why = 'the customer\'s <b>"wish"</b>'
    assert browser.send(at, forms(browser)[at] | {"why": why}).status_code == 200
    assert "Undo what this run has done?" in browser.text
    assert forms(browser)[at]["why"] == why
    assert browser.send(at, forms(browser)[at]).status_code == 303
    assert "being undone" in browser.text


def test_a_question_needs_the_proof_of_the_form_and_is_text(browser: Browser, shop: Shop) -> None:
    job = shop.thumbnail.enqueue("cat.png")
    browser.look(f"/jobs/{job.id}")
    browser.send(f"/jobs/{job.id}/cancel", {"question": "<script>"})
    assert "<script>" in browser.text
    assert "&lt;script&gt;" in html(browser)
    assert browser.send(f"/jobs/{job.id}/cancel", {"question": "x", "proof": "0"}).status_code == 403


@pytest.mark.parametrize("at", ["/queues/images", "/schedules/news"])
def test_a_pause_acts_at_once_as_a_button_undoes_it(browser: Browser, shop: Shop, kit: Kit, at: str) -> None:
    kit.travel(seconds=1)
    browser.look(at)
    assert "question" not in forms(browser)[f"{at}/pause"]
    assert browser.send(f"{at}/pause", forms(browser)[f"{at}/pause"]).status_code == 303
    assert f"{at}/resume" in forms(browser)


GRAVE = re.compile(r'<form method="post" action="([^"]*)"(?:(?!</form>).)*class="grave"', re.DOTALL)


def test_every_grave_button_asks_or_shows_first_what_it_would_do(browser: Browser, shop: Shop, kit: Kit) -> None:  # fmt: skip
    dead, waits, run = shop.send.enqueue("nobody"), shop.thumbnail.enqueue("cat.png"), shop.order.enqueue(1)
    shop.pay.enqueue()
    batch = kit.app.batch([shop.send.call("nobody"), shop.thumbnail.options(queue="slow").call("x")]).id
    kit.app.store.queues.pause("images", by="ann")
    kit.travel(seconds=1)
    pages = [f"/jobs/{dead.id}", f"/jobs/{waits.id}", f"/workflows/{run.id}", f"/batches/{batch}", "/schedules/news", "/tokens", "/breakers/pay"]  # fmt: skip
    found = 0
    for path in pages:
        browser.look(path)
        for action in GRAVE.findall(html(browser)):
            found += 1
            assert action.endswith("preview") or forms(browser)[unescape(action)].get("question"), action
    assert found >= len(pages) - 1
