"""`lateshift schedules add` and `edit`: what a schedule says, from the command line."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click
import msgspec

from lateshift.cli.durations import length, moment
from lateshift.cli.options import listing, opened, opened_for, operator, wants_json
from lateshift.cli.output import print_json
from lateshift.documents.schedules import both, schedule_document
from lateshift.errors import ScheduleUnknown
from lateshift.model.scheduling.plan import CATCH_UP_MOST
from lateshift.model.scheduling.schedule import ScheduleView
from lateshift.operating import schedule_making as operating
from lateshift.store.contract import Store

C = TypeVar("C", bound=Callable[..., Any])

CLEARED = {"no_start": "start", "no_end": "end", "no_tick_as": "tick_as"}  # by which flag of `edit`


def _plan_options(command: C) -> C:
    for option in (
        click.option("--jitter", type=length, metavar="30s", help="Each job starts within so long after its tick."),
        click.option("--grace", type=length, metavar="1m", help="A tick is late after so long (1m)."),
        click.option("--most", type=int, metavar="N", help=f"Late ticks that fire at most, with --catch-up all ({CATCH_UP_MOST})."),
        click.option("--catch-up", metavar="RULE", help="Ticks that nobody was there for: none, last, all (last)."),
        click.option("--overlap", metavar="RULE", help="If the last job has not ended: skip, queue, cancel, allow (skip)."),
        click.option("--tick-as", metavar="PARAMETER", help="The parameter that is given the tick's time: a datetime, text or a date."),
        click.option("--end", type=moment, metavar="DATE", help="No tick after this."),
        click.option("--start", type=moment, metavar="DATE", help="No tick before this; --every counts from it."),
        click.option("--timezone", metavar="ZONE", help="Such as Europe/Madrid (UTC)."),
        click.option("--at", type=moment, metavar="DATE", help="Once, at this moment."),
        click.option("--every", type=length, metavar="15m", help="At an interval: 90s, 15m, 1h30m, 2d."),
        click.option("--cron", metavar="EXPRESSION", help="Five fields, or six with the seconds first; @daily and so on."),
    ):  # fmt: skip
        command = option(command)
    return command


@click.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--app", "program", metavar="PROGRAM", required=True, help="The code that has the task: shop.py."
)
@click.option("--task", metavar="TASK", required=True, help="What each tick runs.")
@click.option(
    "--args", "arguments", metavar="JSON", default="{}", help='Its arguments by name: \'{"region": "eu"}\'.'
)
@click.option("--queue", metavar="NAME", help="Instead of the task's own.")
@click.option("--priority", type=int, metavar="N", help="Instead of the task's own.")
@_plan_options
@listing
def add(
    name: str, program: str, task: str, arguments: str, queue: str | None, priority: int | None, **said: Any
) -> None:
    """Add a schedule. The arguments are checked against the task's own types first."""
    from lateshift.worker.program import find_app

    app = find_app(program)
    bound = app.find_task(task).options(queue=queue, priority=priority)
    given = {option: value for option, value in said.items() if value is not None}
    values = _object(arguments)
    with opened_for(app) as store:
        _told(store, operating.add(store, bound, name, given, values, by=operator()), "added")


@click.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--app", "program", metavar="PROGRAM", help="The code that has the task; needed for --args and --tick-as."
)
@click.option("--args", "arguments", metavar="JSON", help="Other arguments, all of them, by name.")
@_plan_options
@click.option("--no-start", is_flag=True, help="From now on, without a first moment.")
@click.option("--no-end", is_flag=True, help="Without a last moment.")
@click.option("--no-tick-as", is_flag=True, help="No parameter is given the tick's time.")
@listing
def edit(name: str, program: str | None, arguments: str | None, **said: Any) -> None:
    """Change a schedule from now on; what is not said stays. Of one that code makes, the change lasts until that code is
    changed."""
    from lateshift.worker.program import find_app

    cleared = [CLEARED[flag] for flag in CLEARED if said.pop(flag)]
    given = {option: value for option, value in said.items() if value is not None}
    _refuse_both(given, cleared)
    if program is None and (arguments is not None or "tick_as" in [*given, *cleared]):
        raise click.UsageError("The arguments are checked against the task's types: give --app PROGRAM too.")
    if arguments is None and not given and not cleared:
        raise click.UsageError("Say what to change.")
    with opened() as store:
        view = store.schedules.get(name)
        if view is None:
            raise ScheduleUnknown(
                f"There is no schedule {name!r} in the store. `lateshift schedules list` shows them."
            )
        task = None if program is None else find_app(program).find_task(view.job.spec.task)
        values = None if arguments is None else _object(arguments)
        _told(store, operating.edit(store, view, given, cleared, task, values, by=operator()), "changed")


def _refuse_both(given: Mapping[str, Any], cleared: Sequence[str]) -> None:
    for option in given.keys() & set(cleared):
        flag = option.replace("_", "-")
        raise click.UsageError(f"--{flag} and --no-{flag}: say one of them.")


def _object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        raise click.UsageError(
            f'--args {text!r} is no JSON object, such as \'{{"region": "eu"}}\'.'
        ) from None


def _told(store: Store, view: ScheduleView, what: str) -> None:
    if wants_json():
        print_json(schedule_document(view, store.queues.concealed()))
        return
    local, utc = both(view.next_at, view.plan.timing.timezone) if view.next_at else ("never", "")
    words = view.plan.timing.words
    click.echo(f"{view.name} is {what}: {words}. Next: {local}{f' ({utc} UTC)' if utc else ''}.")
