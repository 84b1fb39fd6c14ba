"""The program whose jobs are measured: two bodies that do nothing but note when they began."""

from bench.record import Marks
from lateshift import Lateshift, Limit

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
