"""A program whose names are long, as names are that say what they stand for, with messages that are longer still."""

from datetime import timedelta
from typing import Any

from lateshift import Breaker, Flow, Lateshift, Permanent, Retry
from lateshift.webhooks import github

QUEUE = "notifications.of.customers.about.orders.in.the.north.and.the.south"
TENANT = "the_department_that_asked_for_this_and_pays_for_all_of_it_in_the_end"
SESSION = "the_customer_who_has_ordered_more_than_one_thing_and_wants_to_be_told_in_order"
LONG = "a_word_that_nobody_would_break_anywhere_" * 6
MESSAGE = f"The letter could not be sent, for many reasons that are told here at some length. {LONG}" * 3

app = Lateshift("shop")


@app.task(queue=QUEUE, retry=Retry(attempts=3, base=timedelta(0)), tags=["a_tag_of_some_length_" * 2])
def notify_the_customer_about_the_state_of_the_order(text: str) -> None:
    raise ConnectionError(MESSAGE)


@app.task(queue=QUEUE, retry=Retry(attempts=1))
def tell_the_warehouse_that_something_has_to_be_packed(text: str) -> str:
    return text


@app.task(queue=QUEUE, retry=Retry(attempts=1), breaker=Breaker(failures=1, open_for=timedelta(hours=10)))
def charge_the_card_that_the_customer_has_given_us(text: str) -> None:
    raise Permanent(MESSAGE)


@app.task(queue=QUEUE, retry=Retry(attempts=1))
def tell_the_customer_what_has_to_be_told_in_this_order(text: str) -> None:
    raise Permanent(MESSAGE)


@app.workflow(queue=QUEUE, on_failure="hold")
async def take_an_order_from_the_basket_to_the_front_door(flow: Flow, text: str) -> Any:
    flow.status(LONG[:190])
    return await flow.step(pack_everything_that_was_ordered_into_one_box, text)


def pack_everything_that_was_ordered_into_one_box(text: str) -> None:
    raise Permanent(MESSAGE)


@app.task(queue=QUEUE)
def read_what_has_come_from_the_other_department(text: str) -> str:
    return text


@app.on("shop.something_that_happens_in_the_shop_every_other_day")
def hear_of_something_that_happens_in_the_shop(data: str) -> None: ...


@app.on_webhook(
    "deliveries_of_the_vendor_whose_name_is_rather_long", verify=github("env:NO_SUCH_SECRET_OF_OURS")
)
def hear_of_a_delivery_of_the_vendor(body: bytes) -> None: ...


app.schedule(
    tell_the_warehouse_that_something_has_to_be_packed, args=[LONG], every=timedelta(seconds=5),
    name="remind_the_warehouse_of_everything_that_is_left_over",
)  # fmt: skip
reports = app.pipeline(
    read_what_has_come_from_the_other_department | tell_the_warehouse_that_something_has_to_be_packed,
    name="from_the_other_department_to_the_warehouse",
)


def fill() -> None:
    notify = notify_the_customer_about_the_state_of_the_order
    for _ in range(3):
        notify.options(tenant=TENANT, key=LONG[:150]).enqueue(LONG)
        notify.options(session=LONG[:90]).enqueue(LONG)
        notify.options(delay=timedelta(days=1)).enqueue(LONG)
    in_order = tell_the_customer_what_has_to_be_told_in_this_order.options(session=SESSION, on_dead="hold")
    for _ in range(2):
        in_order.enqueue(LONG)
    tell_the_warehouse_that_something_has_to_be_packed.enqueue(LONG)
    charge_the_card_that_the_customer_has_given_us.enqueue(LONG)
    charge_the_card_that_the_customer_has_given_us.enqueue(LONG)
    take_an_order_from_the_basket_to_the_front_door.enqueue(LONG)
    app.batch([notify.call(LONG), notify.call(LONG)], name=LONG[:100])
    reports.enqueue(LONG)
