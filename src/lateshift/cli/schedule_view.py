"""How a schedule is shown: in a table, whole, and as JSON."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from lateshift.cli.output import amount, console, duration, print_facts, print_table
from lateshift.model.scheduling.plan import SKIPS_COUNTED, Outcome
from lateshift.model.scheduling.schedule import ScheduleView, Tick
from lateshift.model.scheduling.zones import zone

COLUMNS = ("schedule", "task", "next", "last", "overlap", "when")


def schedule_row(view: ScheduleView, now: datetime) -> list[str]:
    last = next((tick for tick in view.recent), None)
    said = "" if last is None else f"{_outcome(last)} {duration(max(timedelta(0), now - last.at))} ago"
    return [
        view.name,
        view.job.spec.task,
        next_in_words(view, now),
        said,
        view.plan.overlap,
        view.plan.timing.words,
    ]


def next_in_words(view: ScheduleView, now: datetime) -> str:
    if view.paused_at is not None:
        return f"paused by {view.paused_by}"
    if view.next_at is None:
        return "never again"
    return f"in {duration(view.next_at - now)}" if view.next_at > now else "now"


def schedule_document(view: ScheduleView) -> dict[str, Any]:
    plan, timing = view.plan, view.plan.timing
    return {
        "name": view.name, "task": view.job.spec.task, "queue": view.job.spec.queue,
        "arguments": _arguments(view), "cron": timing.cron,
        "every_seconds": None if timing.every is None else timing.every.total_seconds(), "at": timing.at,
        "timezone": timing.timezone, "start": timing.start, "end": timing.end, "words": timing.words,
        "overlap": plan.overlap, "catch_up": plan.catch_up, "most": plan.most,
        "grace_seconds": plan.grace.total_seconds(), "jitter_seconds": plan.jitter.total_seconds(),
        "tick_as": plan.tick_as, "app": view.app, "next_at": view.next_at, "paused": view.paused_at is not None,
        "paused_by": view.paused_by, "paused_at": view.paused_at, "created_at": view.created_at,
        "changed_at": view.changed_at, "changed_by": view.changed_by,
        "recent": [tick_document(tick) for tick in view.recent],
    }  # fmt: skip


def tick_document(tick: Tick) -> dict[str, Any]:
    return {
        "at": tick.at, "outcome": tick.outcome.label, "count": tick.count, "job": None if tick.job is None else str(tick.job),
    }  # fmt: skip


def print_schedule(view: ScheduleView, upcoming: list[datetime], now: datetime) -> None:
    out = console()
    print_facts(view.name, view.plan.timing.words, _facts(view, now))
    out.print()
    print_moments(upcoming, view.plan.timing.timezone, "It does not fire again.")
    if view.recent:
        out.print()
        print_table(
            ("tick", "what became of it", "job"),
            [
                [both(tick.at, view.plan.timing.timezone)[0], _outcome(tick), str(tick.job or "")]
                for tick in view.recent
            ],
            "",
        )


def print_moments(moments: list[datetime], timezone: str, nothing: str) -> None:
    """In the schedule's zone, and in UTC."""
    print_table((f"next, in {timezone}", "UTC"), [list(both(each, timezone)) for each in moments], nothing)


def both(moment: datetime, timezone: str) -> tuple[str, str]:
    local, utc = moment.astimezone(zone(timezone)), moment.astimezone(UTC)
    return f"{local:%a %Y-%m-%d %H:%M:%S %Z}", f"{utc:%Y-%m-%d %H:%M:%S}"


def _facts(view: ScheduleView, now: datetime) -> list[tuple[str, str]]:
    plan, spec, arguments = view.plan, view.job.spec, _arguments(view)
    late = {"none": "are skipped", "last": "fire once", "all": f"fire, {amount(plan.most)} at most"}[
        plan.catch_up
    ]
    overlap = {
        "allow": "jobs may run beside each other", "skip": "a tick is skipped while the last job has not ended",
        "queue": "one waits until the last job has ended", "cancel": "the old job is cancelled",
    }[plan.overlap]  # fmt: skip
    return [
        ("next", next_in_words(view, now)), ("task", f"{spec.task}, in queue {spec.queue}"),
        ("arguments", msgspec.json.encode(arguments).decode() if arguments else ""),
        ("overlap", overlap), ("late ticks", late), ("late after", duration(plan.grace)),
        ("jitter", duration(plan.jitter) if plan.jitter else ""), ("tick as", plan.tick_as or ""),
        ("made by", f"the code of app {view.app}" if view.app is not None else ""),
        ("changed", f"{duration(now - view.changed_at)} ago by {view.changed_by}"),
    ]  # fmt: skip


def _arguments(view: ScheduleView) -> dict[str, Any]:
    """Without the one that only holds the place of the tick's time."""
    told: dict[str, Any] = msgspec.json.decode(view.job.payload)
    return {name: value for name, value in told.items() if name != view.plan.tick_as}


def _outcome(tick: Tick) -> str:
    words = {
        Outcome.FIRED: "fired", Outcome.OVERLAP: "skipped: the last job had not ended",
        Outcome.TOO_LATE: "skipped: too late", Outcome.PAUSED: "skipped: paused", Outcome.DUPLICATE: "its job was there",
        Outcome.BY_HAND: "fired by hand",
    }[tick.outcome]  # fmt: skip
    many = "at least " if tick.count >= SKIPS_COUNTED else ""
    return words if tick.count == 1 else f"{words} ({many}{amount(tick.count)} ticks)"
