"""Things that are named: found, or refused with the names that may be meant."""

from difflib import get_close_matches

from lateshift.errors import BreakerUnknown, OptionInvalid, ScheduleUnknown, TriggerInvalid, TriggerUnknown
from lateshift.model.queue import QUEUE_NAME
from lateshift.model.triggering.trigger import TriggerView
from lateshift.schedules import Schedule
from lateshift.store.contract import Store

NAMED = 5
PAGE = 1000  # schedules among which a misspelt name is looked for


def others(name: str, names: list[str]) -> str:
    """What to say of a name that is not there: the one that may be meant, else what there is."""
    if not names:
        return " There is none at all."
    close = get_close_matches(name, names, 3)
    if close:
        return f" Did you mean {' or '.join(close)}?"
    return f" There are: {', '.join(names[:NAMED])}{', and others' if len(names) > NAMED else ''}."


def check_queue(name: str) -> str:
    if not QUEUE_NAME.fullmatch(name):
        raise OptionInvalid(f"{name!r} is no queue name. `lateshift queues list` shows those there are.")
    return name


def schedule(store: Store, name: str) -> Schedule:
    """Raises ScheduleUnknown, with close names."""
    if store.schedules.get(name) is None:
        names = [view.name for view in store.schedules.list(None, PAGE)]
        raise ScheduleUnknown(f"There is no schedule {name!r} in the store.{others(name, names)}")
    return Schedule(name, lambda: store)


def trigger(store: Store, name: str) -> TriggerView:
    """Raises TriggerUnknown, with close names."""
    view = store.triggers.get(name)
    if view is None:
        names = [view.name for view in store.triggers.all()]
        raise TriggerUnknown(f"There is no trigger {name!r} in the store.{others(name, names)}")
    return view


def pause_trigger(store: Store, name: str, *, by: str) -> bool:
    """False if it was paused before."""
    view = trigger(store, name)
    if view.kind == "event":
        raise TriggerInvalid(
            f"{name} subscribes to events, which nobody keeps for it. Pause the queue of its task {view.task} instead: "
            "`lateshift queues pause`."
        )
    return store.triggers.pause(name, by=by)


def require_breaker(store: Store, name: str) -> None:
    """Raises BreakerUnknown, with the names there are."""
    names = [view.name for view in store.breakers.list()]
    if name not in names:
        raise BreakerUnknown(f"There is no breaker {name}. There are: {', '.join(names) or 'none'}.")
