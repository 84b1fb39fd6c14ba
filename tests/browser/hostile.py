"""A program of whoever puts scripts into everything that takes a text. What stands in a field begins with a word that stands in no other."""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from itertools import zip_longest
from typing import Any, NoReturn
from urllib.parse import quote

import msgspec

from lateshift import (
    Breaker,
    Cancel,
    Flow,
    Lateshift,
    Limit,
    Message,
    Permanent,
    Retry,
    Task,
    checkpoint,
    progress,
)
from lateshift.model.access import new_token
from lateshift.model.attempt_log import LOGGER_LIMIT
from lateshift.model.batch import BATCH_NAME_LIMIT
from lateshift.model.breaker import REASON_LIMIT
from lateshift.model.edit import Edit
from lateshift.model.ids import JobId, new_job_id, new_member_id
from lateshift.model.job import TASK_NAME_LIMIT, JobFilter, State
from lateshift.model.member import VERSION_LIMIT, MemberView, Serves, program_of
from lateshift.model.outcome import MESSAGE_LIMIT
from lateshift.model.placing import NAME_LIMIT
from lateshift.model.scheduling.schedule import SCHEDULE_NAME_LIMIT
from lateshift.model.tags import TAG_LIMIT
from lateshift.model.triggering.trigger import ERROR_LIMIT, TRIGGER_NAME_LIMIT, Arrival, NewTrigger, Refused
from lateshift.model.workflow.run import SIGNAL_NAME_LIMIT, STATUS_LIMIT, Phase
from lateshift.store.access_contract import AUDIT_TEXT_LIMIT
from lateshift.store.contract import Store
from lateshift.task import KEY_LIMIT
from lateshift.worker.current import NOTE_LIMIT
from lateshift.workflow.flow import STEP_NAME_LIMIT
from tests.browser.scripts import CORPUS, rows

LONG = timedelta(days=1)
WHOLE = 100_000  # characters: one text has all
BRIEF = 200  # characters of which the lists show all
SHOWN = 1_800  # bytes of which the page of a trigger shows all
SUMMARY = 60  # characters of what an event is known by, on the same page
NAMES = [each for each in CORPUS if each.isprintable()]  # no other may be the name of a task

FIELDS: dict[str, list[str]] = {}


def field(word: str, most: int = WHOLE, corpus: list[str] = CORPUS) -> list[str]:
    """What stands in one field: so many texts as it takes for the whole corpus."""
    assert word not in FIELDS
    FIELDS[word] = rows(word, most, corpus)
    return FIELDS[word]


# As hostile as the names of queues and tokens may be.
QUEUE, STILL, EDITED = "javascript:alert", "javascript:still", "javascript:edited"
TOKEN = "javascript:alert@token"
FIELDS |= {"queue": [QUEUE, STILL, EDITED], "token": [TOKEN]}
TASKS = field("zztask", TASK_NAME_LIMIT, NAMES)
BREAKERS = field("zzbreaker", TASK_NAME_LIMIT, [each for each in NAMES if "@" not in each])
FILTERS = field("zzfilter", TASK_NAME_LIMIT, NAMES)
PIPELINES = field("zzpipeline", TASK_NAME_LIMIT, NAMES)
WORKFLOWS = field("zzworkflow", TASK_NAME_LIMIT, NAMES)
TAGS = field("zztag", TAG_LIMIT)
SESSIONS, TENANTS = field("zzsession", NAME_LIMIT), field("zztenant", NAME_LIMIT)
LIMITS = field("zzlimit", NAME_LIMIT - len("vendor:"))
ARGUMENTS, RESULTS, CHECKPOINTS = field("zzargument", BRIEF), field("zzresult"), field("zzcheckpoint", BRIEF)
ERRORS, MESSAGES, TRACEBACKS = field("zzerror", BRIEF), field("zzmessage", BRIEF), field("zztraceback", BRIEF)
LOGS, LOGGERS, LEVELS = field("zzlog", BRIEF), field("zzlogger", LOGGER_LIMIT), field("zzlevel", LOGGER_LIMIT)
NOTES, RUNNING = field("zznote", NOTE_LIMIT), field("zzrunning", NOTE_LIMIT)
REASONS, OPENED = field("zzreason", BRIEF), field("zzopened", REASON_LIMIT - 100)
CANCELLERS = field("zzcanceller", MESSAGE_LIMIT - 200)
RESUBMITTERS = field("zzresubmitter", MESSAGE_LIMIT - 200)
EARLIER = field("zzearlier", 2_000)
BATCHES, KEYS = field("zzbatch", BATCH_NAME_LIMIT), field("zzkey", KEY_LIMIT)
SCHEDULES, SCHEDULED = field("zzschedule", SCHEDULE_NAME_LIMIT), field("zzscheduled")
TRIGGERS, TRIGGER_ERRORS = field("zztrigger", TRIGGER_NAME_LIMIT), field("zztriggererror", ERROR_LIMIT - 200)
[POSITION] = field("zzposition")
LOOKS_AT, FEEDS, TRIGGER_APPS = field("zzlooksat"), field("zzfeeds"), field("zztriggerapp", 2_000)
EVENTS, REFUSALS, RAW = field("zzevent", SUMMARY), field("zzrefusal", SHOWN), field("zzraw", SHOWN)
HEADERS, HEADER_NAMES = field("zzheader"), field("zzheadername")
STATUS, SIGNALS = field("zzstatus", STATUS_LIMIT), field("zzsignal", SIGNAL_NAME_LIMIT)
TOLD = field("zztold", SIGNAL_NAME_LIMIT)
STEPS, GIVEN, GAVE = field("zzstep", STEP_NAME_LIMIT), field("zzgiven", BRIEF), field("zzgave", BRIEF)
STEP_ERRORS, STEP_MESSAGES = field("zzsteperror", BRIEF), field("zzstepmessage", MESSAGE_LIMIT - 200)
UNDOS, UNDO_MESSAGES = field("zzundo", BRIEF), field("zzundomessage", MESSAGE_LIMIT - 200)
[WHY] = field("zzwhy")
MEMBERS, HOSTS, APPS = field("zzmember", 400), field("zzhost", 400), field("zzapp", 400)
VERSIONS, LOOPS, LANES = field("zzversion", VERSION_LIMIT), field("zzloop", 400), field("zzlane", 400)
ACTORS, ACTIONS = field("zzactor", AUDIT_TEXT_LIMIT), field("zzaction", AUDIT_TEXT_LIMIT)
SUBJECTS = field("zzsubject", AUDIT_TEXT_LIMIT)
# Who did something, who may be anybody that holds the store.
[PAUSED], [SCHEDULE_PAUSED] = field("zzpaused"), field("zzschedulepaused")
[TRIGGER_PAUSED], [BREAKER_OPENED] = field("zztriggerpaused"), field("zzbreakeropened")
[BATCH_CANCELLED], [RUN_CANCELLED] = field("zzbatchcancelled"), field("zzruncancelled")
[CHANGED], [MADE], [REVOKED] = field("zzchanged"), field("zzmade"), field("zzrevoked")
# No address leads to a name of several lines.
OPEN_SCHEDULES = [name for name in SCHEDULES if "\n" not in name]
OPEN_TRIGGERS = [name for name in TRIGGERS if "\n" not in name]
[SHOP] = field("zzshop", WHOLE, CORPUS[::20])  # on every page
MOST = max(
    len(texts)
    for texts in (ARGUMENTS, ERRORS, SESSIONS, TENANTS, LIMITS, NOTES, STEPS, SIGNALS, KEYS, TRIGGERS)
)

app = Lateshift(SHOP, version=VERSIONS[0])
app.limit("vendor", Limit(concurrency=1))


def share(texts: list[str], number: int) -> list[str]:
    """Those of one of MOST jobs, where a job has several."""
    return texts[number::MOST]


def one(texts: list[str], number: int) -> str:
    """That of one of MOST jobs, where several may have the same."""
    return texts[number % len(texts)]


def own(texts: list[str], number: int) -> str | None:
    """That of one of MOST jobs, where none may have another's."""
    return texts[number] if number < len(texts) else None


def suffer(text: str, number: int) -> None:
    for level, name, said in zip_longest(
        *(share(each, number) for each in (LEVELS, LOGGERS, LOGS)), fillvalue="-"
    ):
        of_name = logging.CRITICAL + 1 + (LEVELS.index(level) if level in LEVELS else len(LEVELS))
        logging.addLevelName(of_name, level)
        logging.getLogger(name).log(of_name, "%s", said)
    progress(1, 2, one(NOTES, number))
    checkpoint({"at": one(CHECKPOINTS, number)})
    raise failure(one(ERRORS, number), one(MESSAGES, number), one(TRACEBACKS, number))


def failure(name: str, message: str, note: str = "") -> Exception:
    made: Exception = type(name, (Exception,), {})(message)
    made.add_note(note)
    return made


def fail(number: int) -> NoReturn:
    raise failure("Failed", OPENED[number])


ONCE = Retry(attempts=1)
sufferers = [app.task(name=name, queue=QUEUE, retry=ONCE)(suffer) for name in TASKS]
failing: list[Task[..., Any]] = [
    app.task(name=name, retry=ONCE, breaker=Breaker(failures=1, open_for=LONG))(fail) for name in BREAKERS
]


@app.task
def quiet(text: str = "") -> str:
    return text


@app.task
def give() -> list[str]:
    sufferers[0].options(delay=LONG).enqueue("a child", 0)
    return RESULTS


@app.task(time_limit=None)
async def linger(number: int) -> None:
    progress(1, 2, RUNNING[number])
    await asyncio.Event().wait()


@app.task
def leave(number: int) -> None:
    raise Cancel(REASONS[number])


@app.on_webhook("posted", verify=lambda headers, body, now: headers["x-id"])
@app.task
def posted(message: Message) -> None: ...


async def wait(flow: Flow, number: int) -> Any:
    flow.status(one(STATUS, number))
    return await flow.wait_for(one(SIGNALS, number))


def undoing(name: str) -> Callable[..., None]:
    def undo(text: str) -> None:
        raise Permanent(UNDO_MESSAGES[int(text.split()[-1])])

    undo.__name__ = name
    return undo


def given(text: str) -> str:
    return one(GAVE, int(text.split()[-1]))


@app.workflow(on_failure="hold")
async def steps(flow: Flow) -> None:
    """Each step has its number behind its text."""
    for number in range(MOST):
        text = f"{one(GIVEN, number)} {number}"
        await flow.step(given, text, name=one(STEPS, number), undo=undoing(one(UNDOS, number)))
    await flow.gather(*(flow.step(broken, number) for number in range(len(STEP_MESSAGES))))


def broken(number: int) -> NoReturn:
    raise failure(" ".join(STEP_ERRORS[number :: len(STEP_MESSAGES)]), STEP_MESSAGES[number])


@app.workflow
async def undone(flow: Flow) -> None:
    for number in range(len(UNDO_MESSAGES)):
        await flow.step(quiet, str(number), undo=undoing("undo"))
    raise Permanent("that was all")


@app.workflow
async def stuck(flow: Flow) -> None:
    await flow.step(quiet, undo=remain)
    await flow.wait_for("nothing")


@app.workflow
async def directed(flow: Flow) -> None:
    await flow.wait_for("nothing")


async def remain(text: str = "") -> None:
    await asyncio.Event().wait()


waiting = [app.workflow(name=name)(wait) for name in WORKFLOWS]

filters = [app.task(name=name)(quiet.function) for name in FILTERS]
pipelines: list[Task[..., Any]] = [
    app.pipeline(one_of | filters[number % len(filters)], name=name)
    for number, (one_of, name) in enumerate(zip(filters, PIPELINES, strict=False), 1)
]
for name in SCHEDULES:
    app.schedule(quiet, name=name, cron="0 2 * * *", args=SCHEDULED, overlap="queue")


def fill() -> None:
    """What callers and senders give."""
    for number in range(MOST):
        in_session, limit = own(SESSIONS, number), own(LIMITS, number)
        hurting = sufferers[number % len(sufferers)].options(
            session=in_session, on_dead="hold" if in_session else None, tenant=own(TENANTS, number), key=own(KEYS, number),
            limit_key=limit and f"vendor:{limit}", tags=share(TAGS, number),
        )  # fmt: skip
        hurting.enqueue(one(ARGUMENTS, number), number)
        quiet.options(queue=STILL, tenant=own(TENANTS, number)).enqueue()
        waiting[number % len(waiting)].enqueue(number)
        app.batch([quiet.call()], name=own(BATCHES, number), key=own(KEYS, number))
    app.store.queues.pause(STILL, by=PAUSED)
    for number in range(len(OPENED)):
        failing[number].enqueue(number)
    for number in range(len(RUNNING)):
        linger.enqueue(number)
    for number in range(len(REASONS)):
        leave.enqueue(number)
    for text in EARLIER:
        quiet.options(queue=EDITED, delay=LONG).enqueue(text)
    for pipeline in pipelines:
        pipeline.enqueue("an item")
    for each in (give, steps, undone, stuck, directed):
        each.enqueue()
    app.batch([quiet.options(delay=LONG).call()])
    app.deliver("posted", {"x-id": "1", "x-text": HEADERS[0], HEADER_NAMES[0]: "x"}, b"{}")


def is_full(store: Store) -> bool:
    """Every job of these has come to where it stays: a run has ended, is held, or waits for a signal."""
    runs = store.workflows.newest(None, 200)
    done = all(
        view.state.settled or view.run.phase.is_held or "signal" in (view.run.waits_for or "")
        for view in runs
    )
    queues = store.queues.list()
    waits = [queue for queue in queues if queue.ready and queue.name != STILL]
    running = store.reports.running(1_000)
    said = [view.progress for view in running if view.task == linger.name]
    tell = len(said) == len(running) == len(RUNNING) and None not in said
    return done and not waits and tell and sum(queue.dead for queue in queues) >= MOST + len(OPENED) + 1


def operate(store: Store) -> None:
    """What operators do, and programs of other makers."""
    edited = store.reports.jobs(JobFilter(queue=EDITED), len(EARLIER))
    for view, canceller, resubmitter in zip_longest(edited, CANCELLERS, RESUBMITTERS):
        store.jobs.cancel([view.id], by=canceller)
        change = Edit(view.payload, b'{"text":"other"}')
        store.jobs.resubmit([view.id], by=resubmitter, edits={view.id: change}, delays={view.id: LONG})
    store.batches.cancel(store.batches.newest(None, 1)[0].id, by=BATCH_CANCELLED)
    store.jobs.cancel([_runs(store)[stuck.name]], by=RUN_CANCELLED)
    for number, told in enumerate(TOLD):
        store.workflows.signal(_runs(store)[WORKFLOWS[number // 20]], told, None, key=None, by="a caller")
    store.workflows.direct(_runs(store)[directed.name], Phase.UNDOING, why=WHY, by="an operator")
    first, second, third = OPEN_SCHEDULES[:3]
    store.schedules.pause(first, by=SCHEDULE_PAUSED)
    store.schedules.edit(app.schedules[second], by=CHANGED)
    store.schedules.fire_now(third, by="an operator")
    store.breakers.open(BREAKERS[-1], by=BREAKER_OPENED)
    token, _ = new_token(TOKEN, ["read"], [QUEUE], at=store.clock.now(), by=MADE)
    store.tokens.create(token)
    store.tokens.revoke(token.id, by=REVOKED)
    _triggers(store)
    _members(store)
    for subject, action, actor in zip_longest(SUBJECTS, ACTIONS, ACTORS, fillvalue="x"):
        store.audit.record(action, subject, by=actor)


def pages(store: Store) -> list[str]:
    """Where something stands that no list shows."""
    jobs = [
        *store.reports.jobs(JobFilter(queue=QUEUE, state=State.DEAD), MOST), *store.reports.jobs(JobFilter(queue=EDITED), MOST),
        *store.reports.jobs(JobFilter(task=posted.name), 1), *store.reports.jobs(JobFilter(task=give.name), 1),
    ]  # fmt: skip
    third = store.schedules.get(OPEN_SCHEDULES[2])
    fired = [] if third is None else [tick.job for tick in third.recent]
    runs = [
        _runs(store)[name] for name in (steps.name, undone.name, stuck.name, directed.name, *WORKFLOWS[:3])
    ]
    return [
        *(f"/jobs/{id}" for id in (*(view.id for view in jobs), *fired)), *(f"/workflows/{id}" for id in runs),
        *(f"/batches/{view.id}" for view in store.batches.newest(None, MOST + 1)),
        *(f"/triggers/{quote(name, safe='')}" for name in OPEN_TRIGGERS[: len(TRIGGER_ERRORS)]),
        *(f"/schedules/{quote(name, safe='')}" for name in OPEN_SCHEDULES[:3]), f"/breakers/{quote(BREAKERS[-1], safe='')}",
        f"/queues/{QUEUE}", f"/queues/{STILL}",
    ]  # fmt: skip


def _runs(store: Store) -> dict[str, JobId]:
    """The oldest of each workflow."""
    return {view.run.name: view.run.id for view in store.workflows.newest(None, 1_000)}


def _triggers(store: Store) -> None:
    for number, name in enumerate(TRIGGERS):
        new = NewTrigger(name=name, kind="file", about=LOOKS_AT[0], task=FEEDS[0])
        store.triggers.declare([new], app=one(TRIGGER_APPS, number), whole=False)
    for name, error in zip(OPEN_TRIGGERS, TRIGGER_ERRORS, strict=False):
        store.triggers.tell(name, error=error)
    first, second = OPEN_TRIGGERS[:2]
    term = store.locks.acquire(f"trigger {second}", new_member_id(), LONG)
    assert term is not None
    store.triggers.take(second, [], term=term.fence, position=msgspec.json.encode(POSITION))
    store.triggers.receive(first, [_refused(number) for number in range(len(EVENTS))], keep=LONG)
    store.triggers.pause(first, by=TRIGGER_PAUSED)


def _refused(number: int) -> Arrival:
    refused = Refused(
        id=new_job_id(), raw=one(RAW, number).encode(), rest=b'{"kind":"Message","seen":{},"queue":"default","ours":true}',
        reason=one(REFUSALS, number),
    )  # fmt: skip
    return Arrival(event=EVENTS[number], refused=refused)


def _members(store: Store) -> None:
    for number, version in enumerate(VERSIONS):
        id, now = new_member_id(), store.clock.now()
        member = MemberView(
            id=id, name=one(MEMBERS, number), kind="worker", host=one(HOSTS, number), pid=1, started_at=now, expires_at=now, dead=False,
            stats={"running": 1, "late_loops": {one(LOOPS, number): 60.0}},
        )  # fmt: skip
        store.members.join(member, LONG)
        code = program_of(one(APPS, number), version, {})
        serves = Serves(
            app=code.app, version=version, code=code.digest, queues=(QUEUE,), slots={one(LANES, number): 1}, heartbeat=LONG.total_seconds()
        )  # fmt: skip
        store.members.introduce(id, serves, code)
