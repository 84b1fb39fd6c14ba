"""Tests of a small shop, written with lateshift.testing: `pytest examples/test_shop_orders.py`.

In a project of your own the tasks stand in the program; here they stand above the tests.
"""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from lateshift import Lateshift, Retry, checkpoint, current, last_checkpoint
from lateshift.testing import Effects, Kit, assert_enqueued, crash_everywhere, survives_crashes, testing

app = Lateshift("shop")


class Bank:
    """A fake. Like a real one, it charges once for each token, however often it is asked."""

    def __init__(self) -> None:
        self.effects = Effects()
        self.open_anew()

    def open_anew(self) -> None:
        self.open = True
        self._tokens: set[str] = set()
        self.effects.begin()

    def charge(self, order: int, token: str) -> None:
        if not self.open:
            raise ConnectionError("the bank is closed")
        if token not in self._tokens:
            self._tokens.add(token)
            self.effects.note("charged", order)


bank = Bank()


@app.task(retry=Retry(attempts=5, base=timedelta(minutes=10)))
def charge_card(order: int) -> None:
    bank.charge(order, token=str(current().job_id))


@app.task
async def place_order(order: int) -> str:
    await charge_card.options(key=f"order {order}").aenqueue(order)
    await ask_for_review.options(delay=timedelta(days=7), key=f"order {order}").aenqueue(order)
    return f"order {order} is placed"


@app.task
def ask_for_review(order: int) -> None: ...


@app.task
def newsletter(readers: list[str]) -> None:
    """Not safe: whoever is between the mail and the checkpoint when the process dies gets two."""
    for number, reader in enumerate(readers):
        if number >= last_checkpoint(0, type=int):
            bank.effects.note("mailed", reader)
            checkpoint(number + 1)


@pytest.fixture(autouse=True)
def kit() -> Iterator[Kit]:
    bank.open_anew()
    with testing(app) as kit:
        yield kit


def test_an_order_is_charged_and_a_review_asked_for_a_week_later(kit: Kit) -> None:
    job = place_order.enqueue(7)
    kit.drain()
    assert kit.result(job) == "order 7 is placed"
    assert bank.effects.counts() == {"charged(7)": 1}

    assert_enqueued(ask_for_review, 7)
    assert kit.ran(ask_for_review) == []
    kit.travel(days=7)
    assert [ran.ended for ran in kit.ran(ask_for_review)] == ["completed"]


def test_a_bank_that_is_closed_is_asked_again_later(kit: Kit) -> None:
    bank.open = False
    charge_card.enqueue(7)
    [ran] = kit.drain()
    assert (ran.ended, ran.error) == ("failed", "ConnectionError: the bank is closed")

    bank.open = True
    kit.clock.move(minutes=10)
    kit.drain()
    assert bank.effects.counts() == {"charged(7)": 1}


def test_code_that_enqueues_can_find_its_jobs_done(kit: Kit) -> None:
    with kit.inline():
        assert kit.result(place_order.enqueue(8)) == "order 8 is placed"


def test_an_order_is_charged_once_wherever_the_process_dies() -> None:
    report = survives_crashes(charge_card, 7, effects=bank.effects)
    assert report.safe


@crash_everywhere(app, effects=bank.effects, children=True)
def test_nor_does_an_order_lose_or_double_what_comes_of_it() -> None:
    place_order.enqueue(9)


def test_the_newsletter_is_found_out() -> None:
    with pytest.raises(AssertionError, match=r"mailed\('ana'\) twice"):
        survives_crashes(newsletter, ["ana", "ben"], effects=bank.effects)
