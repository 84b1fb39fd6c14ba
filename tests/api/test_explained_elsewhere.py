"""Why a job waits, to a token that is for its queue alone: the reason, and nothing of other queues."""

import pytest

from lateshift.model.access import Scope
from lateshift.model.guard import Rule
from lateshift.model.job import Lane, Line
from lateshift.model.limit import Limit
from lateshift.model.words import short
from lateshift.testing import Kit
from tests.api.asking import Web, token_of
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser
from tests.store_contract.driving import Worker, member


class Shared:
    """A job of images that waits for one of mail, which counts against the same limit."""

    def __init__(self, kit: Kit, shop: Shop) -> None:
        store = kit.app.store
        kit.app.limit("vendor", Limit(concurrency=1))
        store.rules.declare([Rule("key", "vendor", 1)], by="the shop")  # as a worker does
        self.worker = Worker(store)
        self.place = f" on {member().host} (pid "
        self.theirs = str(shop.send.options(limit_key="vendor:acme").enqueue("ann").id)
        assert self.worker.lease(1, Line("mail", Lane.GUARDED_THREAD))
        self.own = str(shop.thumbnail.options(limit_key="vendor:acme").enqueue("cat.png").id)
        self.worker.lease(1, Line("images", Lane.GUARDED_THREAD))


@pytest.fixture
def shared(kit: Kit, shop: Shop) -> Shared:
    return Shared(kit, shop)


def test_a_limit_that_another_queue_fills_is_told_without_its_jobs(web: Web, shared: Shared) -> None:
    mine = token_of(web.app, "mine", [Scope.READ], ("images",))
    both = token_of(web.app, "both", [Scope.READ], ("images", "mail"))
    path = f"/v1/jobs/{shared.own}/explain"
    told = {
        name: next(
            each
            for each in web("GET", path, token=token).json()["reasons"]
            if each["code"] == "limit_reached"
        )
        for name, token in (("all", ""), ("both", both), ("mine", mine))
    }
    assert told["all"]["jobs"] == told["both"]["jobs"] == [shared.theirs]
    assert "at the latest" in told["all"]["clears_when"]
    own = told["mine"]
    assert own["says"].endswith("is at 1 of 1 job at once: 1 job of other queues.")
    assert (own["jobs"], own["do"], own["clears_when"]) == ([], None, "when that job has ended")


def test_the_worker_that_has_a_job_is_not_named_as_no_member_is(
    web: Web, kit: Kit, shop: Shop, shared: Shared
) -> None:
    mail = token_of(web.app, "mail", [Scope.READ], ("mail",))
    assert web("GET", "/v1/members", token=mail).status_code == 403
    path = f"/v1/jobs/{shared.theirs}/explain"
    assert shared.place in web("GET", path).text
    shown = web("GET", path, token=mail).text
    assert (" in a worker" in shown, shared.place in shown) == (True, False)


def test_the_page_of_the_job_tells_as_little(browser: Browser, shared: Shared) -> None:
    browser.sign_in_as(Scope.READ, queues=("images",))
    text = browser.look(f"/jobs/{shared.own}")
    assert "1 job of other queues" in text
    assert shared.theirs[-8:] not in browser.page.text  # type: ignore[union-attr]
    browser.sign_in_as(Scope.READ, queues=("mail",))
    unnamed = f"member {short(shared.worker.id)}"
    text = browser.look(f"/jobs/{shared.theirs}")
    assert (unnamed in text, shared.place in text) == (True, False)
    browser.sign_in_as(Scope.READ)
    text = browser.look(f"/jobs/{shared.theirs}")
    assert (unnamed in text, shared.place in text) == (False, True)
