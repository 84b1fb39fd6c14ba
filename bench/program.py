"""The program whose jobs are measured: bodies that do nothing but note when they began."""

from datetime import timedelta

from bench.record import Marks
from lateshift import Flow, Lateshift, Limit

app = Lateshift("bench")
app.limit("key", Limit(concurrency=5))
marks: Marks | None = None


def _begin(number: int) -> None:
    global marks
    if marks is None:
        marks = Marks.from_environment()
    marks.begin(number)


@app.task
async def noop(number: int) -> None:
    _begin(number)


@app.task
def noop_on_a_thread(number: int) -> None:
    _begin(number)


async def step(number: int) -> int:
    return number


@app.workflow
async def ten_steps(flow: Flow, number: int) -> None:
    _begin(number)
    for each in range(10):
        await flow.step(step, each)


@app.workflow
async def waiting(flow: Flow, number: int) -> None:
    if number % 2 == 0:
        await flow.sleep(timedelta(days=1))
    else:
        await flow.wait_for("go")


@app.workflow
async def long_life(flow: Flow, steps: int) -> None:
    for each in range(steps):
        await flow.step(step, each)
    await flow.sleep(timedelta(days=1))
