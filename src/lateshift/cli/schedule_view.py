"""How a schedule is shown: in a table, and whole."""

from collections.abc import Collection
from datetime import datetime, timedelta

import msgspec

from lateshift.cli.output import amount, console, duration, print_facts, print_table
from lateshift.documents.schedules import arguments_of, both, outcome_in_words
from lateshift.model.scheduling.schedule import ScheduleView

COLUMNS = ("schedule", "task", "next", "last", "overlap", "when")


def schedule_row(view: ScheduleView, now: datetime) -> list[str]:
    last = next((tick for tick in view.recent), None)
    said = (
        ""
        if last is None
        else f"{outcome_in_words(last.outcome, last.count)} {duration(max(timedelta(0), now - last.at))} ago"
    )
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


def print_schedule(
    view: ScheduleView, upcoming: list[datetime], now: datetime, hidden: Collection[str]
) -> None:
    out = console()
    print_facts(view.name, view.plan.timing.words, _facts(view, now, hidden))
    out.print()
    print_moments(upcoming, view.plan.timing.timezone, "It does not fire again.")
    if view.recent:
        out.print()
        print_table(
            ("tick", "what became of it", "job"),
            [
                [
                    both(tick.at, view.plan.timing.timezone)[0],
                    outcome_in_words(tick.outcome, tick.count),
                    str(tick.job or ""),
                ]
                for tick in view.recent
            ],
            "",
        )


def print_moments(moments: list[datetime], timezone: str, nothing: str) -> None:
    """In the schedule's zone, and in UTC."""
    print_table((f"next, in {timezone}", "UTC"), [list(both(each, timezone)) for each in moments], nothing)


def _facts(view: ScheduleView, now: datetime, hidden: Collection[str]) -> list[tuple[str, str]]:
    plan, spec, arguments = view.plan, view.job.spec, arguments_of(view, hidden)
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
