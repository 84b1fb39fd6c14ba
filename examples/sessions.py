"""Accounts whose bookings run in order, and a vendor that takes two calls at a time: `lateshift up examples/sessions.py`."""

import asyncio

from lateshift import Lateshift, Limit, session

app = Lateshift("bank")
app.limit("vendor", Limit(concurrency=2, rate="50/s"))


@app.task
async def book(account: str, amount: int) -> int:
    """One at a time for each account, in the order of enqueueing: nobody else changes the balance meanwhile."""
    balance = session.get_state(0, int) + amount
    session.set_state(balance)
    return balance


@app.task
async def tell(vendor: str, text: str) -> str:
    """At most two at once for each vendor, over all machines."""
    await asyncio.sleep(0.01)
    return f"{vendor}: {text}"


@app.on_start
async def begin() -> None:
    for number in range(30):
        account = f"account:{number % 3}"
        await book.options(session=account, key=f"booking {number}").aenqueue(account, number)
        await tell.options(limit_key=f"vendor:{number % 2}", tenant=account).aenqueue(
            f"vendor {number % 2}", "hello"
        )
