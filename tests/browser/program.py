"""A program with something of everything that a page can show."""

import logging
import os
from datetime import timedelta
from typing import Any

from lateshift import Breaker, Flow, Lateshift, Permanent, Retry

TEXT = os.environ.get(
    "TEXT_OF_USERS", "cat.png"
)  # what users wrote: in arguments, errors, logs, keys, tags, results

app = Lateshift("shop")
log = logging.getLogger("shop")


@app.task(queue="images", retry=Retry(attempts=1), tags=["pictures"])
def thumbnail(path: str, width: int = 200) -> str:
    log.warning("reading %s", path)
    return f"{path} at {width}"


@app.task(queue="images", retry=Retry(attempts=2, base=timedelta(0)))
def album(path: str) -> None:
    log.info("\x1b[32mreading\x1b[0m %s", path)
    thumbnail.enqueue(path)
    send.enqueue(path)
    raise ConnectionError(f"the disk of {path} is full")


@app.task(queue="mail", retry=Retry(attempts=1))
def send(to: str) -> None:
    log.error("no such address: %s", to)
    raise Permanent(f"there is nobody at {to}")


@app.task(queue="pay", breaker=Breaker(failures=1, open_for=timedelta(hours=10)), retry=Retry(attempts=1))
def pay(card: str) -> None:
    raise ConnectionError(f"the bank does not answer about {card}")


@app.workflow(queue="orders", on_failure="hold")
async def order(flow: Flow, number: int, text: str) -> Any:
    await flow.step(charge, text, undo=refund)
    flow.status(text[:50])
    if number == 1:
        await flow.step(ship, text)
    return await flow.wait_for("picked")


def charge(text: str) -> str:
    return text


def refund(text: str, result: str) -> None: ...


def ship(text: str) -> None:
    if text == "Madrid":
        return
    raise Permanent(f"no such place: {text}")


@app.task(queue="images")
def parse(text: str) -> str:
    return text


@app.task(queue="images")
def keep(text: str) -> str:
    return text


@app.on("shop.*")
def heard(data: str) -> str:
    return data


app.schedule(send, args=[TEXT], name="news", cron="0 2 * * *")
reports = app.pipeline(parse | keep, name="reports")
app.queue("tight", max_ready=5)


def fill() -> None:
    """So that there is one of each: ended, dead, waiting, behind a breaker, held, of a batch, of a pipeline."""
    thumbnail.enqueue(TEXT)
    album.options(tags=["eu", TEXT[:50]]).enqueue(TEXT)
    for _ in range(3):
        thumbnail.options(delay=timedelta(days=1)).enqueue(TEXT)
    send.options(key=f"key {TEXT}"[:200], session=TEXT[:100]).enqueue(TEXT)
    for _ in range(2):
        pay.enqueue(TEXT)
    for number in range(2):
        order.enqueue(number, TEXT)
    app.batch([thumbnail.call(TEXT), send.call(TEXT)], name=TEXT[:50])
    reports.enqueue(TEXT)
