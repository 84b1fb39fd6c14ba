"""What needs somebody, the worst first: each with what to do about it. Every look into the store is bounded, whatever stands there."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from urllib.parse import quote

from msgspec import Struct, structs

from lateshift.documents.hiding import shown_runs
from lateshift.documents.trigger_words import is_stuck, state_in_words
from lateshift.model.groups import Group, Groups
from lateshift.model.job import JobFilter, JobView, State
from lateshift.model.member import served
from lateshift.model.scheduling.schedule import SCHEDULE_LATE
from lateshift.model.words import shortened
from lateshift.model.workflow import holding
from lateshift.model.workflow.run import Phase, is_step
from lateshift.operating.since import held_since
from lateshift.store.contract import COUNT_LIMIT, MemberView, QueueView, Store
from lateshift.store.keyless import without_key

LETTERS_LOOKED_AT = 200  # the newest dead letters, which are put in groups
LETTERS_KINDS = (
    100  # pairs of a queue and a task that are looked for besides, so that one that dies often hides no other
)
LETTERS_OF_KIND = 5  # the newest of each of those
LETTERS_QUEUES = 20  # whose dead letters are looked for one by one, for one who may not see all queues
COUNTED_NOW = 1_000  # jobs of a queue that are counted at each look
OF_EACH = 5  # things of one kind that are told
MORE_COUNTED = 20  # others of it, up to which those are counted
SAID = 200  # characters of what something said
LOOKED_AT = 200  # things of one kind among which those are looked for that one may see, who may not see all
REPLIES_LATE = timedelta(minutes=1)  # after which events of jobs that no courier has sent on are late
# A schedule that missed ticks longer ago, and has not fired since, is history.
MISSED_WITHIN = timedelta(days=31)

Shows = Callable[[str], bool]


class More(Struct, frozen=True, kw_only=True):
    """How many of a kind are not told, and the page that has them. `cut`: there may be more still."""

    count: int
    cut: bool
    page: str


class Attention(Struct, frozen=True, kw_only=True):
    """One thing: of which kind, what it is about, what is the matter, what to do, and the page where that is done. `count`: how many
    jobs, runs or events it is about. `more`: of the last that is told of its kind, how many are not."""

    kind: str
    subject: str
    what: str
    do: str
    page: str
    count: int = 1
    since: datetime | None = None
    more: More | None = None

    @property
    def weight(self) -> str:
        return WEIGHTS[self.kind]


class Seen(Struct, frozen=True):
    """What was read of the store before, for the same page."""

    store: Store
    queues: list[QueueView]
    members: list[MemberView]
    shows: Shows  # whether a queue may be looked at
    whole: bool  # whether all queues may
    now: datetime

    @property
    def most(self) -> int:
        """How many things of one kind are read, so that OF_EACH are told and the others are counted."""
        return OF_EACH + MORE_COUNTED + 1 if self.whole else LOOKED_AT


def attention(seen: Seen) -> list[Attention]:
    """Of what is of no one queue, only to those who may see all."""
    found = [_told(kind(seen), page) for kind, page in KINDS.items() if seen.whole or kind not in OF_NO_QUEUE]
    return [it for some in found for it in some]


def _told(of_kind: Iterator[Attention], page: str) -> list[Attention]:
    told = list(islice(of_kind, OF_EACH))
    left = sum(1 for _ in islice(of_kind, MORE_COUNTED + 1))
    if left:
        more = More(count=min(left, MORE_COUNTED), cut=left > MORE_COUNTED, page=page)
        told[-1] = structs.replace(told[-1], more=more)
    return told


def _unserved(seen: Seen) -> Iterator[Attention]:
    """Ready jobs that nobody takes. A worker that has not said what it is there for, as one of an older release, may take any."""
    waiting = [queue for queue in seen.queues if queue.ready and queue.paused_at is None]
    workers = [member for member in seen.members if member.kind == "worker" and not member.dead]
    if waiting and not workers:
        count = sum(queue.ready for queue in waiting)
        yield Attention(
            kind="no worker", subject="all queues", count=count, page="/members", since=_waits_since(seen, waiting),
            what=f"{_counted(count, 'job', COUNTED_NOW)} ready, and no worker is there", do="Start one: lateshift work PROGRAM.",
        )  # fmt: skip
        return
    patterns = {
        () if worker.serves is None else worker.serves.queues for worker in workers
    }  # none is all queues
    for queue in waiting if () not in patterns else ():
        if not any(served(queue.name, some) for some in patterns):
            yield Attention(
                kind="no worker", subject=queue.name, count=queue.ready, page=f"/queues/{quote(queue.name)}",
                since=_waits_since(seen, [queue]),
                what=f"{_counted(queue.ready, 'job', COUNTED_NOW)} ready, and no worker serves this queue",
                do=f"Start one: lateshift work PROGRAM --queues {queue.name}.",
            )  # fmt: skip


def _waits_since(seen: Seen, queues: list[QueueView]) -> datetime | None:
    """Since when the job waits that has waited longest."""
    waits = [queue.oldest_ready for queue in queues if queue.oldest_ready is not None]
    return seen.now - max(waits) if waits else None


def _keyless(seen: Seen) -> Iterator[Attention]:
    """Sealed jobs go back and forth between workers that cannot open them, and look like jobs that wait for their time."""
    for sealed in without_key(seen.store, COUNTED_NOW, seen.shows):
        yield Attention(
            kind="key missing", subject=sealed.queue, count=sealed.count, since=sealed.since, page=f"/queues/{quote(sealed.queue)}",
            what=f"{_counted(sealed.count, 'job', COUNTED_NOW)} sealed with the key {sealed.key}, which no worker of this queue has",
            do="Start a worker whose LATESHIFT_KEYS or keys_file has it.",
        )  # fmt: skip


def _letters(seen: Seen) -> Iterator[Attention]:
    newest, more = _dead(seen)
    besides, left = _besides(seen, newest) if more else ([], False)
    if left:
        yield Attention(
            kind="dead letters", subject="other tasks", count=1, page="/dead-letters",
            what=f"more than {LETTERS_KINDS} tasks have dead letters: those of the others are not told of here",
            do="Look at them by queue or by task.",
        )  # fmt: skip
    groups, found = Groups(), newest + besides
    runs = seen.store.workflows.begun([view.batch for view in found if view.batch is not None])
    for view in found:
        if not is_step(view, runs) and not (view.is_run and view.reason == "undone"):
            groups.add(view)
    older = {view.id for view in besides}
    for group in _each_task_first(groups.largest_first):
        said = f"{group.error}: {group.message}" if group.error else group.message or group.reason
        if group.example in older:
            jobs = _counted(group.count, "job", LETTERS_OF_KIND)
        else:
            jobs = _counted(group.count, "job") + (f" among the newest {LETTERS_LOOKED_AT}" if more else "")
        yield Attention(
            kind="dead letters", subject=group.task, count=group.count, since=group.last, what=f"{jobs} died of {shortened(said, SAID)}",
            page=f"/dead-letters?like={quote(group.fingerprint)}&task={quote(group.task, safe='')}",
            do="Mend the cause, then resubmit them; or discard them.",
        )  # fmt: skip


def _besides(seen: Seen, newest: list[JobView]) -> tuple[list[JobView], bool]:
    """The newest of each queue and task of which none is among these: one that dies often hides no other. And whether some were left out."""
    kinds = seen.store.reports.of_dead(LETTERS_KINDS + 1)
    there = {(view.queue, view.task) for view in newest}
    found: list[JobView] = []
    for queue, task in kinds[:LETTERS_KINDS]:
        if (queue, task) not in there and seen.shows(queue):
            wanted = JobFilter(state=State.DEAD, queue=queue, task=task)
            found += seen.store.reports.jobs(wanted, LETTERS_OF_KIND, whole=False)
    return found, len(kinds) > LETTERS_KINDS


def _each_task_first(groups: list[Group]) -> list[Group]:
    """The largest of each task, then the second largest of each, and so on: of a task that dies of many things the others are not hidden."""
    before: Counter[str] = Counter()
    places: dict[str, int] = {}
    for group in groups:
        places[group.fingerprint] = before[group.task]
        before[group.task] += 1
    return sorted(groups, key=lambda group: places[group.fingerprint])


def _dead(seen: Seen) -> tuple[list[JobView], bool]:
    """The newest dead letters, and whether there may be more. Those of other queues are not read: they would leave no room for one's
    own."""
    if seen.whole:
        found = seen.store.reports.jobs(JobFilter(state=State.DEAD), LETTERS_LOOKED_AT, whole=False)
        return found, len(found) == LETTERS_LOOKED_AT
    names = [queue.name for queue in seen.queues]
    pages = [
        seen.store.reports.search(JobFilter(state=State.DEAD, queue=name), LETTERS_LOOKED_AT, whole=False)
        for name in names[:LETTERS_QUEUES]
    ]
    views = sorted((view for page in pages for view in page.jobs), key=lambda view: view.id, reverse=True)
    more = len(names) > LETTERS_QUEUES or any(page.before is not None for page in pages)
    return views[:LETTERS_LOOKED_AT], more or len(views) > LETTERS_LOOKED_AT


def _breakers(seen: Seen) -> Iterator[Attention]:
    for breaker in seen.store.breakers.list():
        if breaker.state != "closed":
            by = (
                f"opened by {breaker.opened_by}"
                if breaker.opened_by
                else breaker.reason or "too many failures"
            )
            do = (
                "Close it when the service is well."
                if breaker.opened_by
                else "It tries by itself; close it if you know better."
            )
            yield Attention(
                kind="breaker", subject=breaker.name, count=breaker.parked, since=breaker.opened_at, do=do,
                page=f"/breakers/{quote(breaker.name)}", what=f"{breaker.state}, {_counted(breaker.parked, 'job')} parked: {by}",
            )  # fmt: skip


def _held(seen: Seen) -> Iterator[Attention]:
    told = 0
    for phase in (Phase.UNDO_HELD, Phase.HELD):
        found = seen.store.workflows.newest(None, seen.most, phase=phase)
        for view, run in zip(shown_runs(seen.store, found), (whole.run for whole in found), strict=True):
            held = holding.held(run.phase, run.why)
            if held is not None and seen.shows(view.queue):
                told += 1  # of the others nobody asks since when
                since = held_since(seen.store, view, held) if told <= OF_EACH else None
                yield Attention(
                    kind="workflow", subject=run.name, since=since, page=f"/workflows/{run.id}",
                    what=f"a run is held: {(seen.whole and view.run.why) or held.short}", do=held.advice,
                )  # fmt: skip


def _late_steps(seen: Seen) -> Iterator[Attention]:
    for step in seen.store.workflows.late_steps(seen.most):
        yield Attention(
            kind="workflow", subject=step.name, page=f"/workflows/{step.run}",
            what="a step is past its complete-by, and no supervisor has seen it",
            do="Is a supervisor there? Each host of workers has one.",
        )  # fmt: skip


def _triggers(seen: Seen) -> Iterator[Attention]:
    for trigger in seen.store.triggers.all():
        hook, page = trigger.kind == "webhook", f"/triggers/{quote(trigger.name)}"
        stuck = is_stuck(trigger, seen.now)
        if (stuck or hook) and trigger.paused_at is None and trigger.error is not None:
            how = (
                "takes nothing: "
                if hook and stuck
                else "is taken by others, but "
                if hook
                else "cannot read: "
            )
            yield Attention(
                kind="trigger", subject=trigger.name, since=trigger.failing_since or trigger.error_at, page=page,
                what=f"{how}{shortened(trigger.error, SAID)}",
                do="Set it, and start that server again." if hook else "It tries on; mend its source.",
            )  # fmt: skip
        elif stuck:
            yield Attention(
                kind="trigger", subject=trigger.name, since=trigger.looked_at, page=page, what=state_in_words(trigger, seen.now),
                do="Is its program up? Each host of workers reads what its program declares.",
            )  # fmt: skip
        elif trigger.refused_now:
            yield Attention(
                kind="trigger", subject=trigger.name, count=trigger.refused_now, page=page, since=_refused_since(seen, trigger.name),
                what=f"{_counted(trigger.refused_now, 'event')} refused", do="Mend what refused them, then retry or discard them.",
            )  # fmt: skip


def _refused_since(seen: Seen, name: str) -> datetime | None:
    return next((refused.at for refused in seen.store.triggers.refused(name, None, 1)), None)


def _schedules(seen: Seen) -> Iterator[Attention]:
    for view in seen.store.schedules.late(SCHEDULE_LATE, seen.most):
        if seen.shows(view.job.spec.queue):
            yield Attention(
                kind="schedule", subject=view.name, since=view.next_at, page=f"/schedules/{quote(view.name)}",
                what="a tick is due, and nobody fires it", do="Is a scheduler there? Each host of workers has one.",
            )  # fmt: skip


def _missed(seen: Seen) -> Iterator[Attention]:
    for view in seen.store.schedules.missed(seen.now - MISSED_WITHIN, seen.most):
        if seen.shows(view.job.spec.queue):
            first = view.recent[0]
            yield Attention(
                kind="schedule", subject=view.name, since=first.at, count=first.count, page=f"/schedules/{quote(view.name)}",
                what=f"missed {_counted(first.count, 'tick')}, found too late, and has not fired since",
                do="Fire it now, if the work is still wanted.",
            )  # fmt: skip


def _replies(seen: Seen) -> Iterator[Attention]:
    waiting, oldest = seen.store.replies.waiting()
    if oldest is not None and seen.now - oldest > REPLIES_LATE:
        yield Attention(
            kind="replies", subject="events of jobs", count=waiting, since=oldest, page="/members",
            what=f"{_counted(waiting, 'event')} told, and nobody sends them on",
            do="Is a courier there? Each host of workers has one; its log says what keeps it.",
        )  # fmt: skip


def _members(seen: Seen) -> Iterator[Attention]:
    for member in seen.members:
        if member.dead and member.kind != "host":  # a host has no jobs, and its workers are told of
            yield Attention(
                kind="member", subject=f"{member.name} on {member.host}", since=member.expires_at, page="/members",
                what="was lost without a word", do="Its jobs run again elsewhere; its log says why it ended.",
            )  # fmt: skip


def _paused(seen: Seen) -> Iterator[Attention]:
    for queue in seen.queues:
        if queue.paused_at is not None:
            yield Attention(
                kind="queue", subject=queue.name, count=queue.ready, since=queue.paused_at, page=f"/queues/{quote(queue.name)}",
                what=f"paused by {queue.paused_by}, {_counted(queue.ready, 'job', COUNTED_NOW)} ready", do="Resume it when it may go on.",
            )  # fmt: skip


def _sessions(seen: Seen) -> Iterator[Attention]:
    for session in seen.store.sessions.list(held=True, limit=seen.most, whole=False):
        if seen.shows(session.queue):
            yield Attention(
                kind="session", subject=session.name, page=f"/queues/{quote(session.queue)}", since=session.since,
                what="held by a job that died" if session.held_by else f"held: number {session.expects} has not come",
                do="Resubmit its dead letter, or release it." if session.held_by else "Enqueue that number, or release it.",
            )  # fmt: skip


def _counted(count: int, noun: str, most: int = COUNT_LIMIT) -> str:
    """A count stops at a limit."""
    said = f"{most:,}+" if count >= most else f"{count:,}"
    return f"{said} {noun}" if count == 1 else f"{said} {noun}s"


# The worst first, each with the page that has the others of it.
KINDS: dict[Callable[[Seen], Iterator[Attention]], str] = {
    _unserved: "/queues", _keyless: "/queues", _letters: "/dead-letters", _breakers: "/breakers", _held: "/workflows?state=held",
    _late_steps: "/workflows?state=late", _triggers: "/triggers", _schedules: "/schedules", _missed: "/schedules",
    _replies: "/members", _members: "/members", _paused: "/queues", _sessions: "/queues",
}  # fmt: skip
# `bad`: something has failed, or nobody does it. `late`: it waits, and may go on as it is.
WEIGHTS = {
    "no worker": "bad", "key missing": "bad", "dead letters": "bad", "breaker": "bad", "workflow": "bad", "trigger": "bad",
    "schedule": "late", "replies": "late", "member": "bad", "queue": "late", "session": "late",
}  # fmt: skip
OF_NO_QUEUE = {_unserved, _breakers, _late_steps, _triggers, _replies, _members}
