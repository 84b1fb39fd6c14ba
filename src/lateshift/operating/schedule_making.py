"""A schedule that somebody adds or changes by hand: what is said, and what stays as it was."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from lateshift.app.scheduling import new_schedule, refuse_past
from lateshift.dead_letters.resubmission import refuse_own
from lateshift.errors import OptionInvalid, ScheduleUnknown
from lateshift.model.depth import shown
from lateshift.model.edit import named
from lateshift.model.scheduling.plan import CATCH_UP_MOST, GRACE, Plan, plan_of
from lateshift.model.scheduling.schedule import NewSchedule, ScheduleView
from lateshift.model.scheduling.timing import timing_of
from lateshift.schedules import one_at_a_time, side_by_side
from lateshift.store.contract import Store
from lateshift.task import Bound, Task

WHEN = ("cron", "every", "at")
TIMING = (*WHEN, "timezone", "start", "end")
RULES = ("overlap", "catch_up", "most", "grace", "jitter", "tick_as")
USUAL = {"timezone": "UTC", "overlap": "skip", "catch_up": "last", "most": CATCH_UP_MOST, "grace": GRACE}


def add(
    store: Store, bound: Bound[..., Any], name: str, given: Mapping[str, Any], arguments: Mapping[str, Any], *, by: str
) -> ScheduleView:  # fmt: skip
    """`given`: of TIMING and RULES what was said. Raises OptionInvalid if there is one of that name."""
    plan = _plan(given, USUAL)
    refuse_past(plan.timing, store.clock.now())
    new = new_schedule(bound, name, plan, (), arguments)
    if not store.schedules.add(new, by=by):
        raise OptionInvalid(f"There is a schedule {name!r} already. `lateshift schedules edit` changes it.")
    return _written(store, name)


def edit(
    store: Store, view: ScheduleView, given: Mapping[str, Any], cleared: Sequence[str], task: Task[..., Any] | None,
    arguments: Mapping[str, Any] | None, *, by: str,
) -> ScheduleView:  # fmt: skip
    """What is not said stays. `task`: whose types check the arguments; without it they stay. Raises ScheduleUnknown if it is not there any more."""
    plan = _plan(given, _as_it_was(view, given) | dict.fromkeys(cleared))
    if plan.timing != view.plan.timing:
        refuse_past(plan.timing, store.clock.now())
    if not store.schedules.edit(_edited(view, plan, task, arguments), by=by):
        raise ScheduleUnknown(f"The schedule {view.name!r} was removed meanwhile. Nothing was changed.")
    return _written(store, view.name)


def _edited(
    view: ScheduleView, plan: Plan, task: Task[..., Any] | None, arguments: Mapping[str, Any] | None
) -> NewSchedule:
    job = view.job
    if task is not None:
        refuse_own(task)
        looked_at = new_schedule(task, view.name, plan, (), _values(view) if arguments is None else arguments)
        plan, job = looked_at.plan, structs.replace(job, payload=looked_at.job.payload)
    else:
        plan = structs.replace(plan, tick_form=view.plan.tick_form)
    as_ruled = one_at_a_time if plan.overlap in ("queue", "cancel") else side_by_side
    return NewSchedule(name=view.name, plan=plan, job=as_ruled(job, view.name))


def _values(view: ScheduleView) -> dict[str, Any]:
    """The arguments as they are; not the one that only holds the place of the tick's time."""
    told = named(view.job.payload)
    return {name: shown(value) for name, value in told.items() if name != view.plan.tick_as}


def _as_it_was(view: ScheduleView, given: Mapping[str, Any]) -> dict[str, Any]:
    timing, plan = view.plan.timing, view.plan
    old = {name: getattr(timing, name) for name in TIMING} | {name: getattr(plan, name) for name in RULES}
    return old | (dict.fromkeys(WHEN) if given.keys() & set(WHEN) else {})


def _plan(given: Mapping[str, Any], otherwise: Mapping[str, Any]) -> Plan:
    """What is said, else what it was or what is usual."""
    whole: dict[str, Any] = dict.fromkeys((*TIMING, *RULES)) | dict(otherwise) | dict(given)
    timing = timing_of(**{name: whole[name] for name in TIMING})
    return plan_of(timing, **{name: whole[name] for name in RULES})


def _written(store: Store, name: str) -> ScheduleView:
    view = store.schedules.get(name)
    if view is None:
        raise ScheduleUnknown(f"The schedule {name!r} was written, and then removed by somebody else.")
    return view
