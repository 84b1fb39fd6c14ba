"""A form that was refused says why where it stands, with what was typed; one that is not there any more, above all."""

import re

import pytest

from lateshift.testing import Kit
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser
from tests.dashboard.test_workflows import html

WRONG = 'id="wrong"'


def parts(browser: Browser, form: str) -> tuple[str, str]:
    """What stands before a form's sheet, and in it."""
    page = html(browser)
    sheet = page.rindex('<div class="sheet', 0, page.index(form))
    return page[:sheet], page[sheet:]


def test_arguments_that_do_not_fit_are_told_by_their_form(browser: Browser, shop: Shop, kit: Kit) -> None:
    job = shop.send.enqueue("nobody")
    kit.drain()
    browser.look(f"/jobs/{job.id}")
    assert ">Resubmit</button>" in html(browser)
    for typed in ('{"to": 7}', "no JSON"):
        assert browser.send(f"/jobs/{job.id}/edit", {"arguments": typed}).status_code == 422
        before, form = parts(browser, f'action="/jobs/{job.id}/edit"')
        assert 'role="alert"' not in before
        assert ">Resubmit</button>" not in before
        assert ">Resubmit with the old arguments</button>" in before
        assert "<details open>" in form
        assert form.index(WRONG) < form.index("<textarea")
        assert 'aria-invalid="true" aria-describedby="wrong"' in form
        assert "autofocus" in form
        assert typed.replace('"', "&#34;") in form


def test_the_page_after_a_refusal_looks_again_at_its_own_address(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    job = shop.send.enqueue("nobody")
    kit.drain()
    browser.look(f"/jobs/{job.id}")
    assert "data-here" not in html(browser)
    browser.send(f"/jobs/{job.id}/edit", {"arguments": "no JSON"})
    assert f'data-here="/jobs/{job.id}"' in html(browser)
    assert "hx-select-oob" not in html(browser)


def test_a_form_that_is_not_there_any_more_is_refused_at_the_top(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    job = shop.send.enqueue("nobody")
    kit.drain()
    browser.look(f"/jobs/{job.id}")
    browser.send(f"/jobs/{job.id}/resubmit")
    assert browser.send(f"/jobs/{job.id}/edit", {"arguments": '{"to": 7}'}).status_code == 422
    assert WRONG not in html(browser)
    assert len(re.findall('role="alert"', html(browser))) == 1


FORMS = [
    ("/schedules/news", "edit", {"timezone": "Moon/Sea", "kind": "cron", "when": "x"}),
    ("/schedules/news", "backfill", {"since": "x", "until": "y"}),
    ("/tokens", "create", {"name": "", "scopes": "read"}),
]


@pytest.mark.parametrize(("path", "name", "typed"), FORMS, ids=lambda it: it if isinstance(it, str) else "")
def test_forms_at_the_bottom_say_themselves_what_is_wrong(
    browser: Browser, kit: Kit, path: str, name: str, typed: dict[str, str]
) -> None:
    kit.travel(seconds=1)
    browser.look(path)
    assert browser.send(f"{path}/{name}", typed).status_code == 422
    assert html(browser).count('role="alert"') == 1
    heading = {"edit": "Change it", "backfill": "Fill what was missed", "create": "Make a token"}[name]
    assert html(browser).index(heading) < html(browser).index(WRONG)


def test_the_values_for_a_group_are_refused_by_their_form(browser: Browser, shop: Shop, kit: Kit) -> None:
    shop.send.enqueue("nobody")
    kit.drain()
    browser.look("/dead-letters")
    [group] = re.findall(r'<tr data-href="([^"]+)"', html(browser))
    browser.look(group)
    assert (
        browser.send(f"{group}/preview", {"like": group.rpartition("/")[2], "change": "[]"}).status_code
        == 422
    )
    before, form = parts(browser, f'action="{group}/preview"')
    assert 'role="alert"' not in before
    assert WRONG in form


def test_what_a_run_is_told_is_refused_by_its_form(browser: Browser, shop: Shop, kit: Kit) -> None:
    run = shop.order.enqueue(1, "good")
    kit.drain()
    path = f"/workflows/{run.id}"
    browser.look(path)
    assert browser.send(f"{path}/signal", {"name": "picked", "data": "no JSON"}).status_code == 422
    before, form = parts(browser, f'action="{path}/signal"')
    assert 'role="alert"' not in before
    assert WRONG in form
    assert "no JSON" in form
