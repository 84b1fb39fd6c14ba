"""Agents: tasks that call one remote service, parked behind a breaker that all workers share."""

from datetime import timedelta

import pytest

from lateshift import NO_RETRY, Breaker, Flow, Lateshift, Limit, Permanent, Retry, Snooze, State
from lateshift.errors import OptionInvalid, TaskInvalid
from lateshift.model.breaker import CircuitView
from lateshift.testing import Kit
from lateshift.worker.declaring import declare

AT_ONCE = Retry(attempts=3, base=timedelta(0))
SECONDS = timedelta(seconds=1)


class Service:
    """What the agent calls; it answers, or raises what it is told to."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.calls: list[int] = []

    def call(self, order: int) -> str:
        self.calls.append(order)
        if self.error is not None:
            raise self.error
        return f"receipt {order}"


@pytest.fixture
def service() -> Service:
    return Service()


def breaker(app: Lateshift, name: str = "payments") -> CircuitView:
    [view] = [view for view in app.store.breakers.list() if view.name == name]
    return view


def test_an_agents_tasks_run_in_its_queue_and_share_its_limits(
    app: Lateshift, kit: Kit, service: Service
) -> None:
    payments = app.agent("payments", limits=Limit(concurrency=2))

    @payments.task
    def charge(order: int) -> str:
        return service.call(order)

    @payments.task(name="payments.refund", priority=3)
    async def refund(order: int) -> str:
        return service.call(-order)

    jobs = charge.enqueue(1), refund.enqueue(1)
    kit.drain()
    assert [kit.result(job) for job in jobs] == ["receipt 1", "receipt -1"]
    assert {job.view().queue for job in jobs} == {"payments"}
    assert [(rule.scope, rule.name, rule.concurrency) for rule in app.store.rules.list()] == [
        ("queue", "payments", 2)
    ]
    assert charge.limits.time_limit == timedelta(minutes=1)


def test_when_the_service_is_down_jobs_are_parked_and_one_that_succeeds_lets_all_go_on(
    app: Lateshift, kit: Kit, service: Service
) -> None:
    payments = app.agent("payments", breaker=Breaker(failures=3, open_for=30 * SECONDS))

    @payments.task(retry=AT_ONCE)
    def charge(order: int) -> str:
        return service.call(order)

    service.error = ConnectionError("refused")
    first = charge.enqueue(0)
    kit.drain()
    assert first.view().state is State.DEAD  # its three attempts opened it
    jobs = [charge.enqueue(order) for order in range(1, 6)]
    kit.drain()
    assert service.calls == [0, 0, 0]
    assert (breaker(app).state, breaker(app).parked, breaker(app).reason) == (
        "open",
        5,
        "ConnectionError: refused",
    )

    kit.travel(seconds=31)  # one probes, in vain
    assert service.calls == [0, 0, 0, 1]
    assert jobs[0].view().attempt == 0
    assert [record.reason for record in jobs[0].view().history] == ["failed"]
    service.error = None
    kit.travel(seconds=31)
    assert [kit.result(job) for job in jobs] == [f"receipt {order}" for order in range(1, 6)]
    assert {job.view().attempt for job in jobs} == {1}
    assert breaker(app).state == "closed"


def test_a_permanent_fault_answers_at_once_and_says_that_the_service_is_there(
    app: Lateshift, kit: Kit, service: Service
) -> None:
    payments = app.agent("payments", breaker=Breaker(failures=1))

    @payments.task(retry=AT_ONCE)
    def charge(order: int) -> str:
        return service.call(order)

    service.error = Permanent("the card is refused")
    jobs = [charge.enqueue(order) for order in range(3)]
    kit.drain()
    assert [job.view().reason for job in jobs] == ["permanent"] * 3
    assert service.calls == [0, 1, 2]
    assert (breaker(app).state, breaker(app).passed) == ("closed", 3)


def test_what_is_put_off_says_nothing(app: Lateshift, kit: Kit, service: Service) -> None:
    payments = app.agent("payments", breaker=Breaker(failures=1))

    @payments.task
    def charge(order: int) -> str:
        return service.call(order)

    service.error = Snooze(timedelta(hours=1))
    charge.enqueue(1)
    kit.drain()
    assert (breaker(app).failed, breaker(app).passed) == (0, 0)


def test_whoever_subscribed_is_told_once_that_it_has_opened(
    app: Lateshift, kit: Kit, service: Service
) -> None:
    payments = app.agent("payments", breaker=Breaker(failures=1))
    told: list[dict[str, str]] = []

    @payments.task(retry=NO_RETRY)
    def charge(order: int) -> str:
        return service.call(order)

    @app.on("alert.*")
    @app.task
    def page(data: dict[str, str]) -> None:
        told.append(data)

    service.error = ConnectionError("refused")
    charge.enqueue(1)
    for _ in range(3):
        kit.drain()
    assert [(data["breaker"], data["why"]) for data in told] == [("payments", "ConnectionError: refused")]


def test_a_step_of_a_workflow_is_parked_and_the_run_goes_on_when_the_service_is_back(
    app: Lateshift, kit: Kit, service: Service
) -> None:
    payments = app.agent("payments", breaker=Breaker(failures=3, open_for=30 * SECONDS))

    @payments.task(retry=Retry(attempts=100, base=timedelta(0)))
    def charge(order: int) -> str:
        return service.call(order)

    @app.workflow
    async def fulfil(flow: Flow, order: int) -> str:
        return await flow.step(charge, order)

    service.error = ConnectionError("refused")
    jobs = [fulfil.enqueue(order) for order in range(3)]
    kit.drain()
    assert 3 <= len(service.calls) <= 6  # what it takes, and what was leased by then; of 300 attempts
    service.error = None
    kit.travel(seconds=31)
    assert [kit.result(job) for job in jobs] == [f"receipt {order}" for order in range(3)]


@pytest.mark.parametrize("cancelled", [False, True])
def test_an_undo_is_parked_while_the_breaker_is_open_also_if_the_run_is_cancelled_then_and_done_when_it_closes(
    app: Lateshift, kit: Kit, service: Service, *, cancelled: bool
) -> None:
    payments = app.agent("payments", breaker=Breaker(failures=3, open_for=30 * SECONDS))

    @payments.task(retry=NO_RETRY)
    def charge(order: int) -> str:
        return service.call(order)

    @payments.task(retry=NO_RETRY)
    def refund(order: int) -> str:
        return service.call(-order)

    def shut() -> None:
        app.store.breakers.open("payments", by="ann")

    @app.workflow
    async def fulfil(flow: Flow, order: int) -> None:
        await flow.step(charge, order, undo=refund)
        await flow.step(shut)
        raise ValueError("no stock")

    job = fulfil.enqueue(7)
    kit.drain()
    if cancelled:
        job.cancel()
    kit.travel(hours=2)
    assert service.calls == [7]
    assert breaker(app).parked == 1
    app.store.breakers.close("payments", by="ann")
    kit.drain()
    assert service.calls == [7, -7]
    assert job.view().state is (State.CANCELLED if cancelled else State.DEAD)
    assert (job.view().reason or "").startswith("cancelled by" if cancelled else "undone")


def test_a_step_that_is_parked_past_its_complete_by_has_failed_and_is_silent_afterwards(
    app: Lateshift, kit: Kit, service: Service
) -> None:
    payments = app.agent("payments")

    @payments.task
    def charge(order: int) -> str:
        return service.call(order)

    @app.workflow
    async def fulfil(flow: Flow, order: int) -> str:
        return await flow.step(charge, order, time_limit=60 * SECONDS)

    declare(app.store, app.tasks)
    app.store.breakers.open("payments", by="the test")
    job = fulfil.enqueue(1)
    kit.drain()
    kit.clock.move(seconds=61)
    kit.drain()
    kit.drain()
    assert job.view().state is State.DEAD
    app.store.breakers.close("payments", by="the test")
    kit.drain()
    assert service.calls == []


def test_one_task_may_have_a_breaker_of_its_own(app: Lateshift, kit: Kit, service: Service) -> None:
    @app.task(breaker=Breaker(failures=1), retry=NO_RETRY)
    def charge(order: int) -> str:
        return service.call(order)

    @app.task
    def mail() -> str:
        return "sent"

    service.error = ConnectionError("refused")
    charge.enqueue(1)
    kit.drain()
    charge.enqueue(2)
    job = mail.enqueue()
    kit.drain()
    assert (breaker(app, "charge").state, breaker(app, "charge").parked, kit.result(job)) == (
        "open",
        1,
        "sent",
    )


def test_a_task_stands_behind_its_agents_breaker_and_its_own(
    app: Lateshift, kit: Kit, service: Service
) -> None:
    payments = app.agent("payments", breaker=Breaker(failures=100))

    @payments.task(breaker=Breaker(failures=1), retry=NO_RETRY)
    def refund(order: int) -> str:
        return service.call(order)

    service.error = ConnectionError("refused")
    refund.enqueue(1)
    kit.drain()
    assert (breaker(app).state, breaker(app, "refund").state) == ("closed", "open")


def test_an_agent_without_a_breaker_parks_nothing(app: Lateshift, kit: Kit, service: Service) -> None:
    payments = app.agent("payments", breaker=None)

    @payments.task(retry=NO_RETRY)
    def charge(order: int) -> str:
        return service.call(order)

    service.error = ConnectionError("refused")
    jobs = [charge.enqueue(order) for order in range(20)]
    kit.drain()
    assert {job.view().state for job in jobs} == {State.DEAD}
    assert app.store.breakers.list() == []
    assert app.alarms() == []


def test_an_explanation_says_which_breaker_is_open_and_why(
    app: Lateshift, kit: Kit, service: Service
) -> None:
    payments = app.agent("payments", breaker=Breaker(failures=1))

    @payments.task(retry=NO_RETRY)
    def charge(order: int) -> str:
        return service.call(order)

    service.error = ConnectionError("refused")
    charge.enqueue(1)
    kit.drain()
    job = charge.enqueue(2)
    kit.drain()
    [reason] = [reason for reason in job.explain().reasons if reason.code == "breaker_open"]
    assert "payments is open since" in reason.says
    assert "ConnectionError: refused. 1 job is parked." in reason.says
    assert reason.do == "lateshift breakers list"
    app.store.breakers.open("payments", by="ann")
    [reason] = [reason for reason in job.explain().reasons if reason.code == "breaker_open"]
    assert (reason.by, reason.do) == ("ann", "lateshift breakers close payments")


def test_wrong_declarations_are_refused_where_they_stand(app: Lateshift) -> None:
    with pytest.raises(OptionInvalid, match="breaker is a Breaker"):
        app.agent("payments", breaker=5)  # type: ignore[arg-type]
    with pytest.raises(OptionInvalid, match="limits is a Limit"):
        app.agent("payments", limits=5)  # type: ignore[arg-type]
    with pytest.raises(OptionInvalid):
        app.agent("pay ments")
    app.agent("payments")
    with pytest.raises(OptionInvalid, match="already"):
        app.agent("payments")
    with pytest.raises(OptionInvalid, match="breaker is a Breaker"):

        @app.task(breaker=3)  # type: ignore[call-overload, untyped-decorator]
        def wrong() -> None: ...

    with pytest.raises(TaskInvalid, match="agent 'payments' has a breaker"):

        @app.task(name="payments", breaker=Breaker())
        def other() -> None: ...

    with pytest.raises(OptionInvalid, match="no @ in its name"):

        @app.task(name="pay@2", breaker=Breaker())
        def another() -> None: ...

    @app.task(breaker=Breaker())
    def mails() -> None: ...

    with pytest.raises(OptionInvalid, match="task 'mails' has a breaker"):
        app.agent("mails")
