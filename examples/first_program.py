"""The first program: `python examples/first_program.py`. On PostgreSQL: LATESHIFT_STORE=postgresql://… in front of it.

The script enqueues, and works in the same process; on servers, `lateshift work examples/first_program.py` does the work.
"""

import asyncio
from datetime import timedelta

from lateshift import Lateshift, Retry

app = Lateshift("shop")  # LATESHIFT_STORE=postgresql://… for many machines; else a file, ./lateshift.db


@app.task(queue="images", time_limit=timedelta(minutes=2), retry=Retry(attempts=5))
def thumbnail(path: str, width: int = 200) -> str:
    return f"{path} at {width} pixels"


async def main() -> None:
    async with app.running():
        job = thumbnail.enqueue("cat.png", width=100)  # checked by the type checker, and again at run time
        print(await job.aresult(timeout=timedelta(seconds=10)))

        job = await thumbnail.aenqueue("dog.png")  # the same, from async code
        print(await job.aresult(timeout=timedelta(seconds=10)))

        later = thumbnail.options(delay=timedelta(hours=1), priority=9, key="cat-1").enqueue("cat.png")
        again = thumbnail.options(delay=timedelta(hours=1), priority=9, key="cat-1").enqueue("cat.png")
        print("one key, one job:", later.id == again.id)

        paths = [f"bird-{number}.png" for number in range(1000)]
        print(app.enqueue_many(thumbnail.call(path) for path in paths), "in one durable commit")


if __name__ == "__main__":
    asyncio.run(main())
    app.close()
