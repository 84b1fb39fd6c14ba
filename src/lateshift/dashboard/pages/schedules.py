"""Schedules: when each fires next and what became of its last ticks; and one, with what can be done about it."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from lateshift.api.bounds import BACKFILL_MOST
from lateshift.api.paging import Paging
from lateshift.api.problem import Refused
from lateshift.api.route import Asked, Reach
from lateshift.api.routes import schedule_making, schedules
from lateshift.dashboard.page import Action, Context, Form, Page
from lateshift.dashboard.typed import json_in
from lateshift.documents.batches import BatchDocument
from lateshift.documents.schedules import ScheduleDocument, TickDocument, both, outcome_in_words
from lateshift.model.access import Scope
from lateshift.model.scheduling.plan import Outcome
from lateshift.model.scheduling.schedule import SCHEDULE_LATE
from lateshift.model.scheduling.timing import in_zone
from lateshift.model.scheduling.zones import zone
from lateshift.model.words import counted
from lateshift.operating.written import span
from lateshift.schedules import Schedule

UPCOMING = 10  # ticks to come
_CHANGED = ("timezone", "overlap", "catch_up")
_OUTCOMES = {outcome.label: outcome for outcome in Outcome}
MARKS = {
    Outcome.FIRED: ("good", "✓"), Outcome.BY_HAND: ("good", "✓"), Outcome.OVERLAP: ("late", "–"), Outcome.TOO_LATE: ("bad", "✗"),
    Outcome.PAUSED: ("soft", "‖"), Outcome.DUPLICATE: ("soft", "="),
}  # fmt: skip


class SchedulePageQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`since` and `until`: of a backfill to look at, in UTC, as a browser writes them."""

    since: Annotated[str, Meta(max_length=40)] | None = None
    until: Annotated[str, Meta(max_length=40)] | None = None


class TickLine(Struct, frozen=True, kw_only=True):
    tick: TickDocument
    kind: str
    mark: str
    words: str
    local: str


def list_page(asked: Asked) -> Context:
    """Schedules by name. By `schedules.list`, a page of an index; each keeps its last ticks in its own row."""
    now = asked.store.clock.now()
    page = schedules.list_schedules(asked)
    return {
        "found": page, "ticks": {each.name: _ticks(each) for each in page.schedules}, "query": asked.query,
        "missed": {each.name for each in page.schedules if _missed(each, now)},
    }  # fmt: skip


def schedule_page(asked: Asked) -> Context:
    """One schedule. By `schedules.get`, a primary key; its next ticks are computed, and those of a backfill counted as far as one may go."""
    document = schedules.show_schedule(asked)
    schedule = Schedule(asked.name, lambda: asked.store)
    now = asked.store.clock.now()
    return {
        "schedule": document, "ticks": _ticks(document), "missed": _missed(document, now), "query": asked.query,
        "upcoming": [(at, both(at, document.timezone)[0]) for at in schedule.upcoming(UPCOMING)],
        "when": _when_it_fires(document), "backfill": _preview(schedule, asked.query, now), "backfill_most": BACKFILL_MOST,
    }  # fmt: skip


def _ticks(schedule: ScheduleDocument) -> list[TickLine]:
    return [_line(tick, schedule.timezone) for tick in schedule.recent]


def _line(tick: TickDocument, zone: str) -> TickLine:
    outcome = _OUTCOMES[tick.outcome]
    kind, mark = MARKS[outcome]
    words = outcome_in_words(outcome, tick.count)
    return TickLine(tick=tick, kind=kind, mark=mark, words=words, local=both(tick.at, zone)[0])


def _missed(schedule: ScheduleDocument, now: datetime) -> bool:
    return not schedule.paused and schedule.next_at is not None and now - schedule.next_at > SCHEDULE_LATE


def _preview(schedule: Schedule, query: SchedulePageQuery, now: datetime) -> int | None:
    """How many jobs a backfill would make, counted one further than it may make; None if none was asked about."""
    if query.since is None or query.until is None:
        return None
    since, until = _instant("since", query.since), _instant("until", query.until)
    if since > until or until > now:
        raise Refused(
            422, "query-invalid", "A backfill goes from an earlier time to a later one, both in the past.", field="until"
        )  # fmt: skip
    return schedule.count(since, until, BACKFILL_MOST + 1)


def _instant(field: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(
            422, "query-invalid", f"{field} is a time such as 2026-11-16T08:00, in UTC.", field=field
        ) from None
    return in_zone(field, found)


def _fired(result: schedules.Fired) -> str:
    return f"Fired: the job {result.job} is made."


def _range(form: Form) -> Any:
    return {
        "start": _instant("since", form.get("since", "")),
        "end": _instant("until", form.get("until", "")),
    }


def _filled(batch: BatchDocument) -> str:
    return f"A job for each of {counted(batch.total, 'tick')}: this batch."


def _when_it_fires(schedule: ScheduleDocument) -> tuple[str, str]:
    """By what, and which one, as it is typed."""
    if schedule.cron is not None:
        return "cron", schedule.cron
    if schedule.every_seconds is not None:
        whole = schedule.every_seconds == int(schedule.every_seconds)
        return "every", f"{int(schedule.every_seconds)} s" if whole else f"{schedule.every_seconds:f}"
    local = None if schedule.at is None else schedule.at.astimezone(zone(schedule.timezone))
    return "at", "" if local is None else local.replace(tzinfo=None).isoformat(" ")


def _firing(form: Form) -> dict[str, Any]:
    """One text, which is read as what was chosen, so that what is wrong with it can be said. Raises Refused."""
    kind, text = form.get("kind", ""), form.get("when", "").strip()
    if not text:
        return {}
    if kind == "every":
        every = span(text)
        if every is None:
            raise Refused(
                422, "form-invalid", f"every: {text!r} is no interval: a number of seconds, or such as 90s, 15m, 1h 30m.", field="when"
            )  # fmt: skip
        return {"every": every.total_seconds()}
    if kind == "at":
        return {"at": in_zone("at", _time(text), form.get("timezone", "").strip() or "UTC")}
    return {"cron": text}


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise Refused(
            422, "form-invalid", f"at: {text!r} is no time: it is written as 2026-12-01 08:00, in its time zone.", field="when"
        ) from None  # fmt: skip


def _change(form: Form) -> Any:
    """What was left empty stays as it is."""
    changed: dict[str, Any] = {name: text for name in _CHANGED if (text := form.get(name, "").strip())}
    changed |= _firing(form)
    arguments = json_in(form, "arguments")
    return changed if arguments is None else changed | {"arguments": arguments}


def _edited(schedule: ScheduleDocument) -> str:
    return f"schedule {schedule.name}: changed. {schedule.words}."


PAGES = (
    Page(path="/schedules", title="Schedules", section="Schedules", template="schedules.html", handler=list_page, dear=True,
         scope=Scope.READ, reach=Reach.OWN, asks=Paging),
    Page(path="/schedules/{name:path}", title="Schedule", section="Schedules", template="schedule.html", handler=schedule_page,
         scope=Scope.READ, reach=Reach.ONE, asks=SchedulePageQuery, place="backfill",
         actions={
             "pause": Action(schedules.pause_schedule), "resume": Action(schedules.resume_schedule),
             "fire": Action(schedules.fire_schedule, says=_fired),
             "backfill": Action(schedule_making.backfill_schedule, body=_range, says=_filled, place="backfill",
                                leads=lambda batch, form: f"/batches/{batch.id}"),
             "edit": Action(schedule_making.edit_schedule, body=_change, says=_edited, place="edit"),
             "remove": Action(schedule_making.remove_schedule, leads=lambda done, form: "/schedules"),
         }),
)  # fmt: skip
