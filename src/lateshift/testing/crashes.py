"""Crash-at-every-step: a task runs again and again, on the real worker and store; each time it is killed at another step,
taken back by the real supervisor and run to its end. What happened twice, or never, is reported."""

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, ParamSpec

from lateshift.app.app import Lateshift, app_of
from lateshift.errors import CrashUnsafe, NotDrained, OptionInvalid, UsageError
from lateshift.model.ids import JobId
from lateshift.model.job import JobView, State
from lateshift.runtime.log import log
from lateshift.task import Task
from lateshift.testing.crash import Crash
from lateshift.testing.effects import Effects
from lateshift.testing.kit import Kit
from lateshift.testing.ledger import Sent, called
from lateshift.testing.report import UNHARMED, Point, Report, Run
from lateshift.testing.shift import ProcessDeath

P = ParamSpec("P")

BATCHES_NAMED = 100  # in the report, by their order
ROUNDS = 100  # of moving the clock on, until all jobs have ended
RUNS = 500


def survives_crashes(
    task: Task[P, Any], /, *args: Any, effects: Effects, before: Callable[[], object] = lambda: None,
    children: bool = False, at_most_once: bool = False, runs: int = RUNS, **kwargs: Any,
) -> Report:  # fmt: skip
    """Kill `task(*args, **kwargs)` before and after each of its steps. Raises CrashUnsafe, with a table, unless every effect
    happened as often as in a run where nothing is killed.

    `before` is called before each run, to put the test's fakes back. `children`: run the jobs that it enqueues too; how
    often they are enqueued is counted in any case. `at_most_once`: what never happened is forgiven, as are dead letters.
    """

    def scenario() -> None:
        before()
        task.enqueue(*args, **kwargs)

    explorer = Explorer(
        app_of(task), scenario, effects, children=children, at_most_once=at_most_once, runs=runs
    )
    return explorer.explore(
        called(task.name, inspect.signature(task.function).bind(*args, **kwargs).arguments)
    )


def crash_everywhere(
    app: Lateshift, *, effects: Effects | None = None, children: bool = False, at_most_once: bool = False, runs: int = RUNS
) -> Callable[[Callable[..., Any]], Callable[..., None]]:  # fmt: skip
    """Decorate a test that sets the stage and enqueues: it is run again for each step of its jobs. A parameter `effects`
    gets the recorder; the others are fixtures, as ever."""

    def decorate(test: Callable[..., Any]) -> Callable[..., None]:
        signature = inspect.signature(test)
        takes = "effects" in signature.parameters
        if not takes and effects is None:
            raise OptionInvalid(
                f"{test.__name__}: give it a parameter `effects`, or crash_everywhere(app, effects=…), to mark side effects."
            )
        recorder = effects or Effects()

        def killed_everywhere(**fixtures: Any) -> None:
            given = fixtures | ({"effects": recorder} if takes else {})

            def scenario() -> None:
                if inspect.iscoroutinefunction(test):
                    asyncio.run(test(**given))
                else:
                    test(**given)

            Explorer(
                app, scenario, recorder, children=children, at_most_once=at_most_once, runs=runs
            ).explore()

        killed_everywhere.__name__, killed_everywhere.__doc__ = test.__name__, test.__doc__
        killed_everywhere.__qualname__, killed_everywhere.__module__ = test.__qualname__, test.__module__
        fixtures = [each for name, each in signature.parameters.items() if name != "effects"]
        killed_everywhere.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return killed_everywhere

    return decorate


class Explorer:
    """Runs the scenario unharmed, sees its steps, and runs it once more for each thing that can happen at each step."""

    def __init__(
        self, app: Lateshift, scenario: Callable[[], None], effects: Effects, *, children: bool, at_most_once: bool,
        runs: int,
    ) -> None:  # fmt: skip
        self._app = app
        self._scenario = scenario
        self._effects = effects
        self._children = children
        self._at_most_once = at_most_once
        self._runs = runs

    def explore(self, what: str | None = None) -> Report:
        with _quiet():
            one = Life(self._app, self._scenario, self._effects, None, children=self._children)
            unharmed = one.live()
            self._check(one, unharmed)
            runs = [
                Life(self._app, self._scenario, self._effects, point, children=self._children).live()
                for point in one.points
            ]
        names = dict.fromkeys(called(sent.task, sent.arguments) for sent in one.asked)
        report = Report(what or ", ".join(names), unharmed, runs, self._at_most_once)
        if not report.safe:
            raise CrashUnsafe(str(report))
        return report

    def _check(self, one: "Life", unharmed: Run) -> None:
        """Whether there is something to compare with."""
        if not one.asked:
            raise UsageError("The test enqueued no job, so there is nothing to kill. Enqueue the task in it.")
        if set(unharmed.ended) != {"completed"}:
            raise CrashUnsafe(
                f"{', '.join(sent.task for sent in one.asked)}: even when nothing is killed, it ended "
                f"{', '.join(unharmed.ended)}: {one.why}. Mend that first."
            )
        if not unharmed.effects:
            raise UsageError(
                'No side effect was seen, so there is nothing to count. Mark them: effects.note("charged", order).'
            )
        if len(one.points) > self._runs:
            raise UsageError(
                f"There are {len(one.points)} points at which it can be killed, over the limit of {self._runs} runs. Give it "
                "less to do, or raise runs=."
            )


class Life:
    """One run: the scenario, then all its jobs to their ends, with one thing going wrong at one point."""

    def __init__(
        self, app: Lateshift, scenario: Callable[[], None], effects: Effects, point: Point | None, *, children: bool
    ) -> None:  # fmt: skip
        self.asked: list[Sent] = []
        self.why = ""
        self._ended: dict[JobId, str] = {}
        self._scenario = scenario
        self._effects = effects
        self._children = children
        self._point = point
        self._crash = Crash(point, effects, self._redeliver)
        self._kit = Kit(app, around=self._crash)
        self._settings = replace(app.settings, queues=())

    @property
    def points(self) -> list[Point]:
        return self._crash.points

    def live(self) -> Run:
        self._effects.begin()
        with self._kit as kit:
            self._scenario()
            self.asked = kit.enqueued()
            self._crash.arm(
                {sent.task for sent in self.asked} if not self._children else kit.app.tasks.keys()
            )
            for _ in range(ROUNDS):
                self._drain()
                waiting = self._look()
                if not waiting:
                    break
                self._wait_for(waiting)
            else:
                raise NotDrained(
                    f"{self._point or UNHARMED}: after {ROUNDS} rounds, not all jobs have ended: "
                    f"{', '.join(f'{view.task} is {view.state.label}' for view in waiting)}. Does one snooze for ever?"
                )
            effects = self._effects.counts()
            kit.note_callbacks()
            for sent in kit.enqueued()[len(self.asked) :]:
                effects[f"enqueue of {called(sent.task, sent.arguments)}"] += 1
            effects = self._batches_named(effects)
            ended = tuple(self._ended.values())
            self.why = "; ".join(f"{ran.error}" for ran in kit.ran() if ran.error)
        return Run(
            self._point or UNHARMED, Counter(effects), ended, self._point is None or self._crash.struck
        )

    def _batches_named(self, effects: Counter[str]) -> Counter[str]:
        """Every run makes batches with other ids: they are told by their order."""
        made = self._kit.app.store.batches.newest(None, BATCHES_NAMED)[::-1]
        named: Counter[str] = Counter()
        for effect, count in effects.items():
            for number, batch in enumerate(made, 1):
                effect = effect.replace(str(batch.id), f"batch {number}")
            named[effect] += count
        return named

    def _drain(self) -> None:
        app = self._kit.app
        mine = {sent.task for sent in self.asked}
        tasks = {name: task for name, task in app.tasks.items() if self._children or name in mine}
        try:
            self._kit.drain_here(settings=self._settings, tasks=tasks, dead=self._crash.dead)
        except ProcessDeath:
            self._crash.bury()

    def _look(self) -> list[JobView]:
        """Note how jobs have ended, before they pass their retention; gives those that have not. They are the scenario's, and
        with `children` all that came of them."""
        waiting = []
        for sent in self._kit.enqueued() if self._children else self.asked:
            view = self._kit.app.store.reports.job(sent.id)
            if view is not None and view.state.settled:
                self._ended[sent.id] = _ending(view)
            elif view is not None:
                waiting.append(view)
        return waiting

    def _wait_for(self, waiting: list[JobView]) -> None:
        """Until what a dead worker held can be taken back; else until the next job is due."""
        due = self._kit.next_due()
        if due is None or any(view.state in (State.RUNNING, State.BLOCKED) for view in waiting):
            due = self._silence()
        self._kit.clock.offset += due

    def _silence(self) -> timedelta:
        """After which a worker is held for dead, and its locks are free."""
        return timedelta(seconds=self._crash.lock_time + 1) + self._settings.heartbeat

    def _redeliver(self) -> None:
        """The worker falls silent and runs on: its jobs are given to another, which runs them to their ends."""
        self._kit.clock.offset += self._silence()
        self._drain()
        self._look()


def _ending(view: JobView) -> str:
    return f"{view.state.label} ({view.reason})" if view.reason else view.state.label


@contextmanager
def _quiet() -> Iterator[None]:
    """Hundreds of workers are lost on purpose: nobody wants to read of it."""
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)
