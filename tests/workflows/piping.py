"""Tasks to join to pipelines, and what became of an item."""

from typing import Any

import msgspec

from lateshift import Job, Lateshift, Permanent
from lateshift.model.workflow.run import Phase, RunView


class Order(msgspec.Struct):
    number: int
    lines: list[str]


class Shop:
    """Tasks that are joined in one way or another, and say what they did."""

    def __init__(self, app: Lateshift, done: list[str]) -> None:
        self.app = app
        self.done = done
        self.unlucky: set[int] = set()

        @app.task(queue="texts")
        def parse(text: str, separator: str = ",") -> list[int]:
            done.append(f"parse {text}")
            return [int(part) for part in text.split(separator) if part]

        @app.task(queue="numbers")
        async def double(number: int) -> int:
            if number in self.unlucky:
                raise Permanent(f"{number} is unlucky")
            done.append(f"double {number}")
            return number * 2

        @app.task(queue="more")
        def increase(number: int) -> int:
            done.append(f"increase {number}")
            return number + 1

        @app.task(queue="sums")
        def total(numbers: list[int]) -> int:
            done.append(f"total {numbers}")
            return sum(numbers)

        self.parse, self.double, self.increase, self.total = parse, double, increase, total


def run_of(app: Lateshift, job: Job[Any]) -> RunView:
    view = app.store.workflows.view(job.id)
    assert view is not None
    return view


def why(app: Lateshift, job: Job[Any]) -> str:
    run = run_of(app, job).run
    return run.why or "" if run.phase is Phase.HELD else ""
