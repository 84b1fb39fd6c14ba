"""`lateshift up` and `lateshift work`: worker processes, their host, the supervisor, and for `up` the HTTP API and the live view."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lateshift.cli.door import Door, Place, answering, beside_workers, place_options, require_extra, show_link
from lateshift.cli.numbers import Number, Whole
from lateshift.cli.options import common, patience, refuse_memory, remembered
from lateshift.errors import AppInvalid, LateshiftError, OptionInvalid, StoreError
from lateshift.runtime.log import log, log_level, say, set_up
from lateshift.store.urls import shown
from lateshift.telemetry.structured import identify

if TYPE_CHECKING:
    from lateshift.app.app import Lateshift
    from lateshift.cli.watch import Watch

C = TypeVar("C", bound=Callable[..., Any])

LAST_WORDS = 5.0  # seconds to tidy up when all workers have ended


def _options(command: C) -> C:
    for option in (
        click.option("--stop-time", type=Number(min=0), metavar="SECONDS",
                     help="How long running jobs get when it stops (25)."),
        click.option("--threads", type=Whole(min=1), metavar="N",
                     help="Sync tasks at once in each worker process (16)."),
        click.option("--concurrency", type=Whole(min=1), metavar="N",
                     help="Async tasks at once in each worker process (500)."),
        click.option("--queues", metavar="A,B.*", help="Which queues to serve, patterns allowed (all)."),
        click.option("--processes", type=Whole(min=1), default=1, metavar="N",
                     help="Worker processes (1)."),
        click.argument("program"),
    ):  # fmt: skip
        command = option(command)
    return common(command)


@click.command()
@click.option("--no-view", is_flag=True, help="Log lines instead of the live view.")
@click.option("--no-api", is_flag=True, help="Without the HTTP API.")
@place_options
@_options
def up(program: str, processes: int, no_view: bool, no_api: bool, place: Place, **settings: Any) -> None:
    """Run PROGRAM's workers, the supervisor and the HTTP API, with a live view. Ctrl-C stops gracefully."""
    _run(
        program,
        processes,
        settings,
        view=not no_view and sys.stdout.isatty(),
        place=None if no_api else place,
    )


@click.command()
@_options
def work(program: str, processes: int, **settings: Any) -> None:
    """Run PROGRAM's workers and the supervisor, with log lines: for servers."""
    _run(program, processes, settings, view=False)


def _run(
    program: str, processes: int, settings: dict[str, Any], *, view: bool, place: Place | None = None
) -> None:
    from lateshift.worker.program import find_app

    if place is not None and place.is_asked_for:
        require_extra()
        place.binding()  # what must not be is told before the program is imported
    _hand_down(settings)
    app = find_app(program)
    asked = remembered("store")
    if asked and app.settings.store != asked:
        raise OptionInvalid(
            f"{program} names its store itself, so --store has no say. Leave out one of the two: "
            f"Lateshift({app.name!r}) without store= takes --store, LATESHIFT_STORE or lateshift.toml."
        )
    refuse_memory(app.settings.store)
    set_up(os.environ["LATESHIFT_LOG"], app.settings)  # before anything is told
    identify(app=app.name, version=app.version)
    app.ring()  # one that cannot be read is said now
    with patience():
        _ = app.store  # opened and checked before anything starts or is drawn
    try:
        with beside_workers(app, place) as door:
            if view:
                from lateshift.cli.view import View, captured

                with captured() as (terminal, lines):
                    watch: Watch = View(app, terminal, lines, door)
                    _start(app, program, processes, watch, door)
            else:
                from lateshift.cli.watch import Watch as Plain

                if door is not None and sys.stdout.isatty():
                    show_link(door)
                watch = Plain(app)
                _start(app, program, processes, watch, door)
    finally:
        app.close()
    if view:
        from lateshift.cli.output import say_last

        say_last(f"lateshift: {watch.summary()}")
    else:
        say(watch.summary(), logging.INFO)


def _start(app: "Lateshift", program: str, processes: int, watch: "Watch", door: "Door | None") -> None:
    try:
        asyncio.run(_run_parts(app, program, processes, watch, door))
    finally:
        watch.close()


def _hand_down(settings: dict[str, Any]) -> None:
    """Options become environment variables: the program reads its settings from there, here and in its workers."""
    given = {**settings, "store": remembered("store")}
    for name, value in given.items():
        if value is not None:
            os.environ[f"LATESHIFT_{name.upper()}"] = str(value)
    os.environ["LATESHIFT_LOG"] = log_level("INFO")


async def _run_parts(
    app: "Lateshift", program: str, processes: int, watch: "Watch", door: "Door | None"
) -> None:
    from lateshift.model.ids import new_member_id
    from lateshift.runtime.aside import aside
    from lateshift.runtime.host import Host
    from lateshift.runtime.loop import Part, drive, resign
    from lateshift.runtime.stopping import stop_on_signals
    from lateshift.supervisor.sweep import Sweep
    from lateshift.worker.gatekeeper import warn_of_no_key

    stopping, over = asyncio.Event(), asyncio.Event()
    stop_on_signals(stopping, *_stop_signals())
    try:
        await app.start()
    except LateshiftError:
        raise
    except Exception as error:
        raise AppInvalid(
            f"What {program} runs at its start raised {type(error).__name__}: {error}"
        ) from error
    tasks = ", ".join(sorted(app.tasks)) or "none"
    log.info(
        "%s on %s: %d worker%s (tasks: %s; queues: %s), pid %d",
        app.name,
        shown(app.settings.store),
        processes,
        "" if processes == 1 else "s",
        tasks,
        ", ".join(app.settings.queues) or "all",
        os.getpid(),
    )
    warn_of_no_key(app.tasks, app.settings)
    with contextlib.suppress(StoreError):  # the workers will say so
        await aside(_tell_of_queues, app)
    sweep = Sweep(
        app.store, new_member_id(), app.clock, heartbeat=app.settings.heartbeat, losses=app.losses()
    )
    host = Host(app.store, program, processes, app.settings, app.clock, died=sweep.wake)
    watch.stopping = stopping
    parts: list[Part] = [sweep, app.ticker(), app.courier(), watch, *app.readers(), *app.alarms()]
    beside = [asyncio.create_task(drive(part, over)) for part in parts]
    if door is not None:
        beside.append(asyncio.create_task(answering(door, stopping)))
    try:
        await host.run(stopping)
    finally:
        over.set()
        sweep.wake()
        with contextlib.suppress(TimeoutError):  # the store is away: the next supervisor finds out by itself
            async with asyncio.timeout(LAST_WORDS):
                await asyncio.gather(*beside)
                await sweep.turn()  # what a killed worker left behind goes back now
                await watch.turn()
                await resign(*parts)


def _tell_of_queues(app: "Lateshift") -> None:
    """A queue may appear at any time, and another app may end, so these are no errors."""
    from lateshift.cli.serving import known_queues, shared, unmatched

    for name, queues in shared(app).items():
        log.warning(
            "the app %s has workers on the same queues of this store (%s): each passes on the other's jobs, which wait five seconds each time. "
            "Give each app queues of its own, with --queues, or a store of its own",
            name,
            ", ".join(queues),
        )
    known = known_queues(app) if app.settings.queues else set()
    for pattern in unmatched(app.settings.queues, known):
        log.warning(
            "--queues: %s matches no queue yet (there are: %s); it is served as soon as one appears",
            pattern,
            ", ".join(sorted(known)),
        )


def _stop_signals() -> list[signal.Signals]:
    """A closed terminal counts, unless whoever started us said that it should not (nohup)."""
    signals = [signal.SIGINT, signal.SIGTERM]
    return signals if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [*signals, signal.SIGHUP]
