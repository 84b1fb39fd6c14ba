"""A small shop on Lateshift: `lateshift up examples/shop.py`, or `make run`.

Customers come by themselves. Everything is made up and nothing leaves this machine, but the jobs are real: they are
enqueued, run, retried, die and are resubmitted on a SQLite file, ./lateshift.db. Press Ctrl-C and start it again: it
goes on where it stopped. With SHOP_PACE=4 in the environment all takes a quarter of its time.
"""

import asyncio
import hashlib
import os
import random
import time
from datetime import timedelta

from lateshift import (
    Flow,
    Lateshift,
    Permanent,
    Retry,
    Snooze,
    acheckpoint,
    current,
    last_checkpoint,
    progress,
)

app = Lateshift("shop")

PACE = float(os.environ.get("SHOP_PACE", "1"))
PRICES = {"lamp": 39, "kettle": 24, "chair": 89, "atlas": 55, "teapot": 19, "cake": 12}


class CardNetworkDown(Exception):
    """It will be up again in a moment."""


@app.task(queue="orders", priority=10)
async def place_order(number: int, good: str) -> None:
    """One order makes several jobs. The key is for a second run of this one: nobody is charged twice."""
    await charge_card.options(key=f"order {number}").aenqueue(number, PRICES[good])
    await pack.aenqueue(number, good)
    await send_mail.options(delay=timedelta(seconds=5 / PACE)).aenqueue(number, "How do you like it?")
    if number % 4 == 0:
        await thumbnail.aenqueue(f"{good}-{number}.png")
    if number % 10 == 0:
        await wrap_gift.options(key=f"gift {number}").aenqueue(number, good)


@app.task(
    queue="payments",
    retry=Retry(attempts=8, rules={CardNetworkDown: Retry(8, base=timedelta(seconds=1 / PACE))}),
)
async def charge_card(order: int, price: int) -> str:
    """Flaky, as payments are. The job's id is the same in every attempt: the bank would know it again."""
    await asyncio.sleep(random.uniform(0.05, 0.8) / PACE)
    if random.random() < 0.2:
        raise CardNetworkDown(f"no answer for order {order}")
    return f"receipt {order} for {price} ({current().job_id.hex[-6:]})"


@app.task(queue="warehouse")
async def pack(order: int, good: str) -> None:
    """Some cakes have a stone inside. No retry helps: a dead letter, until somebody has had a look."""
    await asyncio.sleep(random.uniform(0.1, 1.0) / PACE)
    if good == "cake" and order % 5 == 0 and current().fence == 1:
        raise Permanent(f"there is a stone in the cake of order {order}")


@app.task(queue="mail")
async def send_mail(order: int, text: str) -> None:
    await asyncio.sleep(0.05 / PACE)


@app.workflow(queue="orders")
async def wrap_gift(flow: Flow, order: int, good: str) -> str:
    """Step by step, wherever the last worker left off. What was taken goes back if the card says no."""
    await flow.step(take_paper, order, undo=put_paper_back)
    receipt = await flow.step(charge_card, order, 5)
    await flow.sleep(timedelta(seconds=8 / PACE))  # the glue dries; no worker waits for it
    if order % 30 == 0:
        raise Permanent(f"the paper of order {order} was torn")
    await flow.step(send_mail, order, f"Your {good} is wrapped: {receipt}")
    return receipt


def take_paper(order: int) -> str:
    return f"sheet {order % 7}"


def put_paper_back(order: int, result: str) -> None:
    """An undo gets what its step was given, and what it gave: the sheet."""


@app.task(queue="reports")
async def count_stock() -> int:
    """Every minute, by a schedule."""
    await asyncio.sleep(0.2 / PACE)
    return random.randrange(1_000, 2_000)


app.schedule(count_stock, cron="* * * * *")


@app.task(queue="images", time_limit=timedelta(minutes=2), retry=Retry(attempts=5))
def thumbnail(path: str, width: int = 200) -> str:
    """A plain function runs on a thread; it says how far it is."""
    rows = random.randrange(20, 60)
    for row in range(rows):
        progress(row, rows, path)
        time.sleep(0.1 / PACE)
    return f"{path}@{width}"


@app.task(queue="reports", process=True, time_limit=timedelta(minutes=1), memory=512 * 1024 * 1024)
def daily_report(day: int) -> str:
    """Hard work for the processor, in a process of its own."""
    digest = b""
    for page in range(40):
        progress(page, 40, f"day {day}, page {page}")
        for _ in range(int(100_000 / PACE)):
            digest = hashlib.sha256(digest).digest()
    return digest.hex()


@app.task(queue="orders", singleton=True)
async def customers() -> None:
    """One job for ever: it places some orders, remembers how many, and asks to be run again in a moment."""
    placed = last_checkpoint(0, type=int)
    for number in range(placed + 1, placed + random.randrange(2, 6)):
        await place_order.options(key=f"order {number}").aenqueue(number, list(PRICES)[number % len(PRICES)])
        placed = number
    await acheckpoint(placed)
    raise Snooze(timedelta(milliseconds=400 / PACE))


@app.task(queue="orders", singleton=True)
def night_watch() -> None:
    """Every few seconds: start a new day's report, and send the cakes that died back, without their stones."""
    daily_report.enqueue(day=int(time.time()) % 1000)
    app.dead_letters(task="pack").resubmit(by="the night watch", limit=100)
    raise Snooze(timedelta(seconds=15 / PACE))


@app.on_start
def open_the_shop() -> None:
    """The keys make these two jobs once in the shop's life, however often it is started."""
    years = timedelta(days=3650)
    customers.options(key="the customers", key_window=years).enqueue()
    night_watch.options(key="the night watch", key_window=years, delay=timedelta(seconds=6 / PACE)).enqueue()
