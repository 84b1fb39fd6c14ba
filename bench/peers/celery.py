"""celery on Redis: two prefork processes, 128 messages fetched ahead for each, results ignored."""

import os
from collections.abc import Sequence

from celery import Celery, group

from bench.producer import Producer, main
from bench.record import Marks

app = Celery("bench", broker=os.environ["BENCH_URL"])
app.conf.update(
    task_ignore_result=True, worker_hijack_root_logger=False, broker_connection_retry_on_startup=True
)
_marks: list[Marks] = []


@app.task(name="noop")
def noop(number: int) -> None:
    if not _marks:
        _marks.append(Marks.from_environment())
    _marks[0].begin(number)


class OnCelery(Producer):
    def send(self, number: int) -> None:
        noop.delay(number)

    async def send_many(self, numbers: Sequence[int]) -> None:
        group(noop.s(number) for number in numbers).apply_async()


if __name__ == "__main__":
    main(OnCelery())
