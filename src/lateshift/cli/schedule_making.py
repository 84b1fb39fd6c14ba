"""`lateshift schedules add` and `edit`: what a schedule says, from the command line."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click
import msgspec
from msgspec import structs

from lateshift.cli.durations import length, moment
from lateshift.cli.options import listing, opened, opened_for, operator, wants_json
from lateshift.cli.output import print_json
from lateshift.cli.schedule_view import both, schedule_document
from lateshift.clock import SYSTEM
from lateshift.errors import OptionInvalid, ScheduleUnknown
from lateshift.model.scheduling.plan import CATCH_UP_MOST, GRACE, Plan, plan_of
from lateshift.model.scheduling.schedule import NewSchedule, ScheduleView
from lateshift.model.scheduling.timing import timing_of
from lateshift.schedules import one_at_a_time, side_by_side
from lateshift.scheduling import new_schedule, refuse_past
from lateshift.store.contract import Store

C = TypeVar("C", bound=Callable[..., Any])

WHEN = ("cron", "every", "at")
TIMING = (*WHEN, "timezone", "start", "end")
RULES = ("overlap", "catch_up", "most", "grace", "jitter", "tick_as")
USUAL = {"timezone": "UTC", "overlap": "skip", "catch_up": "last", "most": CATCH_UP_MOST, "grace": GRACE}
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
    plan = _plan(given, USUAL)
    refuse_past(plan.timing, SYSTEM.now())
    new = new_schedule(bound, name, plan, (), _object(arguments))
    with opened_for(app) as store:
        if not store.schedules.add(new, by=operator()):
            raise OptionInvalid(
                f"There is a schedule {name!r} already. `lateshift schedules edit` changes it."
            )
        _told(store, name, "added")


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
        plan = _plan(given, _as_it_was(view, given) | dict.fromkeys(cleared))
        if plan.timing != view.plan.timing:
            refuse_past(plan.timing, SYSTEM.now())
        store.schedules.edit(_edited(view, plan, program, arguments), by=operator())
        _told(store, name, "changed")


def _refuse_both(given: Mapping[str, Any], cleared: Sequence[str]) -> None:
    for option in given.keys() & set(cleared):
        flag = option.replace("_", "-")
        raise click.UsageError(f"--{flag} and --no-{flag}: say one of them.")


def _edited(view: ScheduleView, plan: Plan, program: str | None, arguments: str | None) -> NewSchedule:
    job = view.job
    if program is not None:
        from lateshift.worker.program import find_app

        task = find_app(program).find_task(job.spec.task)
        values = _values(view) if arguments is None else _object(arguments)
        looked_at = new_schedule(task, view.name, plan, (), values)
        plan, job = looked_at.plan, structs.replace(job, payload=looked_at.job.payload)
    else:
        plan = structs.replace(plan, tick_form=view.plan.tick_form)
    as_ruled = one_at_a_time if plan.overlap in ("queue", "cancel") else side_by_side
    return NewSchedule(name=view.name, plan=plan, job=as_ruled(job, view.name))


def _values(view: ScheduleView) -> dict[str, Any]:
    """The arguments as they are; not the one that only holds the place of the tick's time."""
    return {
        name: value for name, value in _object(view.job.payload.decode()).items() if name != view.plan.tick_as
    }


def _as_it_was(view: ScheduleView, given: Mapping[str, Any]) -> dict[str, Any]:
    timing, plan = view.plan.timing, view.plan
    old = {name: getattr(timing, name) for name in TIMING} | {name: getattr(plan, name) for name in RULES}
    return old | (dict.fromkeys(WHEN) if given.keys() & set(WHEN) else {})


def _plan(given: Mapping[str, Any], otherwise: Mapping[str, Any]) -> Plan:
    """What is said, else what it was or what is usual."""
    whole: dict[str, Any] = dict.fromkeys((*TIMING, *RULES)) | dict(otherwise) | dict(given)
    timing = timing_of(**{name: whole[name] for name in TIMING})
    return plan_of(timing, **{name: whole[name] for name in RULES})


def _object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        raise click.UsageError(
            f'--args {text!r} is no JSON object, such as \'{{"region": "eu"}}\'.'
        ) from None


def _told(store: Store, name: str, what: str) -> None:
    view = store.schedules.get(name)
    assert view is not None, "it was written a moment ago"
    if wants_json():
        print_json(schedule_document(view))
        return
    local, utc = both(view.next_at, view.plan.timing.timezone) if view.next_at else ("never", "")
    click.echo(f"{name} is {what}: {view.plan.timing.words}. Next: {local}{f' ({utc} UTC)' if utc else ''}.")
