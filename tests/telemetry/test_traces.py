"""Spans of enqueues, leases and attempts, as an exporter of OpenTelemetry's own gets them; on both stores."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

from lateshift import Flow, Lateshift, Permanent, Retry, Snooze
from lateshift.errors import QueueFull
from lateshift.model.job import TRACE_LIMIT
from lateshift.telemetry import spans as recorder
from lateshift.telemetry import tracing
from lateshift.telemetry.structured import JsonLines
from lateshift.testing import Kit

SECRET = "canary-7f3a"
# A program's provider can be set once in a process: its spans go where the test that runs now wants them.
_provider = TracerProvider()


class Traced:
    """What was exported, oldest first."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        [span] = self.named(name)
        return span


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    found = Traced()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(found.exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield found
    provider.shutdown()


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def known(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


def id_of(span: ReadableSpan) -> int:
    return known(span).span_id


def trace_of(span: ReadableSpan) -> int:
    return known(span).trace_id


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_job_is_one_trace_from_its_enqueue_to_its_attempt(app: Lateshift, kit: Kit, traced: Traced) -> None:
    @app.task(queue="images")
    def thumbnail(path: str) -> str:
        return path

    with _provider.get_tracer("test").start_as_current_span("request") as request:
        job = thumbnail.enqueue(SECRET)
    kit.drain()

    sent, leased, ran = traced.one("enqueue images"), traced.one("lease images"), traced.one("process images")
    assert (sent.kind, leased.kind, ran.kind) == (SpanKind.PRODUCER, SpanKind.CLIENT, SpanKind.CONSUMER)
    assert parent_of(sent) == request.get_span_context().span_id
    assert parent_of(ran) == id_of(sent)
    assert trace_of(ran) == trace_of(sent) == request.get_span_context().trace_id
    assert leased.parent is None
    assert [link.context.span_id for link in leased.links] == [id_of(sent)]
    assert [link.context.span_id for link in ran.links] == [id_of(leased)]
    assert said(sent) == {
        "messaging.system": "lateshift", "messaging.operation.name": "enqueue", "messaging.operation.type": "send",
        "messaging.destination.name": "images", "messaging.message.id": str(job.id), "lateshift.task": "thumbnail",
    }  # fmt: skip
    member = said(ran).pop("messaging.client.id")
    assert said(leased) == {
        "messaging.system": "lateshift", "messaging.operation.name": "lease", "messaging.operation.type": "receive",
        "messaging.destination.name": "images", "messaging.client.id": member, "messaging.batch.message_count": 1,
    }  # fmt: skip
    assert said(ran) == {
        "messaging.system": "lateshift", "messaging.operation.name": "process", "messaging.operation.type": "process",
        "messaging.destination.name": "images", "messaging.message.id": str(job.id), "messaging.client.id": member,
        "lateshift.task": "thumbnail", "lateshift.attempt": 1, "lateshift.outcome": "completed",
    }  # fmt: skip
    assert SECRET not in "".join(span.to_json() for span in traced.exporter.get_finished_spans())


def test_each_attempt_is_a_span_of_the_same_trace_with_what_went_wrong(
    app: Lateshift, kit: Kit, traced: Traced
) -> None:
    @app.task(retry=Retry(attempts=2))
    async def fail() -> None:
        raise ValueError(SECRET)

    fail.enqueue()
    kit.drain()
    kit.travel(hours=1)

    sent, attempts = traced.one("enqueue default"), traced.named("process default")
    assert [said(span)["lateshift.outcome"] for span in attempts] == ["retried", "dead"]
    assert [said(span)["lateshift.attempt"] for span in attempts] == [1, 2]
    assert {parent_of(span) for span in attempts} == {id_of(sent)}
    assert {trace_of(span) for span in attempts} == {trace_of(sent)}
    assert {said(span)["error.type"] for span in attempts} == {"ValueError"}
    assert {span.status.status_code for span in attempts} == {StatusCode.ERROR}
    assert SECRET not in "".join(span.to_json() for span in traced.exporter.get_finished_spans())


def test_a_snooze_is_no_error_and_a_job_that_is_resubmitted_stays_in_its_trace(
    app: Lateshift, kit: Kit, traced: Traced
) -> None:
    seen: list[int] = []

    @app.task
    def work() -> None:
        seen.append(1)
        if len(seen) == 1:
            raise Snooze(timedelta(minutes=1))
        if len(seen) == 2:
            raise Permanent("no")

    job = work.enqueue()
    kit.drain()
    kit.travel(minutes=2)
    app.client.resubmit([job.id])
    kit.drain()

    attempts = traced.named("process default")
    assert [said(span)["lateshift.outcome"] for span in attempts] == ["snoozed", "dead", "completed"]
    assert [span.status.status_code for span in attempts] == [
        StatusCode.UNSET,
        StatusCode.ERROR,
        StatusCode.UNSET,
    ]
    assert {parent_of(span) for span in attempts} == {id_of(traced.one("enqueue default"))}


@pytest.mark.parametrize("on_loop", [True, False])
def test_what_an_attempt_does_is_below_its_span_and_leaks_into_no_other(
    app: Lateshift, kit: Kit, traced: Traced, on_loop: bool
) -> None:
    @app.task(queue="below")
    async def child(number: int) -> None:
        with trace.get_tracer_provider().get_tracer("shop").start_as_current_span(f"inside {number}"):
            pass

    if on_loop:

        @app.task
        async def parent(number: int) -> None:
            await child.aenqueue(number)

    else:

        @app.task
        def parent(number: int) -> None:
            child.enqueue(number)

    for number in range(5):
        parent.enqueue(number)
    kit.drain()

    spans = {id_of(span): span for span in traced.exporter.get_finished_spans()}
    for number in range(5):
        walked, span = [], traced.one(f"inside {number}")
        while span.parent is not None:
            span = spans[span.parent.span_id]
            walked.append(span.name)
        assert walked == ["process below", "enqueue below", "process default", "enqueue default"]
    assert len({trace_of(span) for span in traced.named("enqueue default")}) == 5


def test_an_enqueue_of_many_and_a_batch_are_one_span_each(app: Lateshift, kit: Kit, traced: Traced) -> None:
    @app.task
    async def work(number: int) -> None: ...

    @app.task(queue="after")
    async def done() -> None: ...

    app.enqueue_many(work.call(number) for number in range(150))
    kit.drain()
    sent = traced.one("enqueue default")
    assert said(sent)["messaging.batch.message_count"] == 150
    assert {parent_of(span) for span in traced.named("process default")} == {id_of(sent)}
    assert len(traced.named("process default")) == 150
    traced.exporter.clear()

    app.batch((work.call(number) for number in range(150)), then=done.call())
    kit.drain()
    made = traced.one("enqueue")
    assert {parent_of(span) for span in traced.named("process default")} == {id_of(made)}
    assert len(traced.named("process default")) == 150
    assert parent_of(traced.one("process after")) == id_of(made)


def test_the_steps_of_a_workflow_and_its_events_are_below_it(
    app: Lateshift, kit: Kit, traced: Traced
) -> None:
    @app.task(queue="pay")
    async def charge() -> None: ...

    @app.on("paid")
    async def thank(event: Any) -> None: ...

    @app.workflow(queue="orders")
    async def order(flow: Flow) -> None:
        await flow.step(charge)
        await flow.emit("paid")

    order.enqueue()
    kit.drain()

    of_run = {id_of(span) for span in traced.named("process orders")}
    assert parent_of(traced.one("process pay")) in of_run
    assert parent_of(traced.one("process default")) in of_run
    assert {trace_of(span) for span in traced.named("process orders")} == {
        trace_of(traced.one("process pay")), trace_of(traced.one("process default"))
    }  # fmt: skip


def test_a_function_of_a_workflow_has_a_span_of_its_own_for_each_try_and_none_for_what_is_read(
    app: Lateshift, kit: Kit, traced: Traced
) -> None:
    tries: list[str] = []

    @app.task(queue="mail")
    async def thank() -> None: ...

    def reserve(what: str) -> str:
        tries.append(what)
        if len(tries) == 1:
            raise ValueError(SECRET)
        with trace.get_tracer_provider().get_tracer("shop").start_as_current_span("shelf"):
            thank.enqueue()
        return SECRET

    async def pack() -> None: ...

    @app.workflow(queue="orders")
    async def order(flow: Flow) -> None:
        await flow.step(reserve, SECRET, retry=Retry(attempts=2, base=timedelta(0)))
        await flow.sleep(timedelta(minutes=1))
        await flow.step(pack, name="wrap")

    run = order.enqueue()
    kit.drain()
    kit.travel(minutes=2)

    failed, reserved = traced.named("step reserve")
    assert said(failed)["error.type"] == "ValueError"
    assert (failed.status.status_code, reserved.status.status_code) == (StatusCode.ERROR, StatusCode.UNSET)
    assert said(reserved) == {
        "messaging.system": "lateshift", "messaging.destination.name": "orders", "messaging.message.id": str(run.id),
        "lateshift.task": "order", "lateshift.step": "1", "lateshift.step_name": "reserve",
    }  # fmt: skip
    assert reserved.kind is SpanKind.INTERNAL
    stretches = [id_of(span) for span in traced.named("process orders")]
    assert parent_of(reserved) in stretches
    assert parent_of(traced.one("step wrap")) == stretches[-1]
    assert said(traced.one("step wrap"))["lateshift.step"] == "3"
    assert parent_of(traced.one("shelf")) == id_of(reserved)
    assert parent_of(traced.one("enqueue mail")) == id_of(traced.one("shelf"))
    assert (
        len({trace_of(span) for span in traced.exporter.get_finished_spans() if "lease" not in span.name})
        == 1
    )
    assert SECRET not in "".join(span.to_json() for span in traced.exporter.get_finished_spans())


def test_the_undo_of_a_step_has_a_span_and_steps_beside_each_other_are_not_below_each_other(
    app: Lateshift, kit: Kit, traced: Traced
) -> None:
    async def left() -> None: ...

    def right() -> None: ...

    def undone() -> None: ...

    def refuse() -> None:
        raise Permanent("no")

    @app.workflow(queue="orders")
    async def order(flow: Flow) -> None:
        await flow.gather(flow.step(left, undo=undone), flow.step(right))
        await flow.step(refuse)

    order.enqueue()
    kit.drain()

    stretches = {id_of(span) for span in traced.named("process orders")}
    names = ("step left", "step right", "step refuse", "undo left")
    assert {parent_of(traced.one(name)) for name in names} <= stretches
    assert said(traced.one("undo left"))["lateshift.step"] == said(traced.one("step left"))["lateshift.step"]


def test_a_function_of_a_workflow_costs_one_look_where_nothing_is_traced(
    app: Lateshift, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, tracing.API)
    monkeypatch.setattr(recorder.Spans, "step", None)  # nobody asks for it
    ran: list[int] = []

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(lambda: ran.append(1), name="count")

    order.enqueue()
    kit.drain()
    assert ran == [1]
    lease: Any = None
    assert tracing.of_step(lease, "step", "1", "a") is tracing.of_step(lease, "step", "2", "b")


def test_a_job_with_a_session_a_key_and_a_delay_keeps_its_context(
    app: Lateshift, kit: Kit, traced: Traced
) -> None:
    @app.task
    async def work() -> None: ...

    work.options(session="s", key="k", delay=timedelta(minutes=1)).enqueue()
    kit.travel(minutes=1)
    assert parent_of(traced.one("process default")) == id_of(traced.one("enqueue default"))


def test_an_enqueue_that_is_refused_is_an_error(app: Lateshift, kit: Kit, traced: Traced) -> None:
    app.queue("tight", max_ready=1, when_full="raise")

    @app.task(queue="tight")
    async def work() -> None: ...

    work.enqueue()
    with pytest.raises(QueueFull):
        work.enqueue()

    refused = traced.named("enqueue tight")[1]
    assert (said(refused)["error.type"], refused.status.status_code) == ("QueueFull", StatusCode.ERROR)


def test_a_job_without_a_context_or_with_one_that_cannot_be_read_begins_a_trace(
    app: Lateshift, kit: Kit, traced: Traced
) -> None:
    @app.task
    async def work() -> None: ...

    for wrong in (None, "no JSON", "[]", '{"traceparent": "odd"}'):
        app.store.jobs.enqueue([tracing.with_context(work.call().job, wrong)])
    with _provider.get_tracer("test").start_as_current_span("whoever drains"):
        kit.drain()
    assert [span.parent for span in traced.named("process default")] == [None] * 4


def test_baggage_goes_along_and_too_much_of_it_does_not(app: Lateshift, kit: Kit, traced: Traced) -> None:
    seen: list[object] = []

    @app.task
    async def work() -> None:
        seen.append(baggage.get_baggage("tenant"))

    for tenant in ("acme", "x" * TRACE_LIMIT):
        token = context.attach(baggage.set_baggage("tenant", tenant))
        work.enqueue()
        context.detach(token)
    kit.drain()

    assert seen == ["acme", None]
    assert {parent_of(span) for span in traced.named("process default")} == {
        id_of(span) for span in traced.named("enqueue default")
    }


def test_a_fork_goes_on_with_the_trace_of_whoever_forked(
    app: Lateshift, kit: Kit, traced: Traced, store_url: str
) -> None:
    @app.task
    async def work() -> None: ...

    with _provider.get_tracer("test").start_as_current_span("request") as request:
        pid = os.fork()
        if pid == 0:
            work.enqueue()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    kit.drain()

    ran = traced.one("process default")
    assert trace_of(ran) == request.get_span_context().trace_id
    assert parent_of(ran) != request.get_span_context().span_id  # the child's own enqueue is between


def test_log_lines_carry_the_ids_of_the_span(app: Lateshift, kit: Kit, traced: Traced) -> None:
    log = logging.getLogger("shop.traces")
    output = StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(JsonLines())
    log.addHandler(handler)
    log.setLevel("INFO")

    @app.task
    def work() -> None:
        log.info("inside")

    work.enqueue()
    kit.drain()
    with _provider.get_tracer("test").start_as_current_span("request") as request:
        log.info("outside")
    log.info("nowhere")
    log.removeHandler(handler)

    inside, outside, nowhere = [json.loads(line) for line in output.getvalue().splitlines()]
    ran = traced.one("process default")
    assert (inside["trace_id"], inside["span_id"]) == (f"{trace_of(ran):032x}", f"{id_of(ran):016x}")
    assert outside["trace_id"] == f"{request.get_span_context().trace_id:032x}"
    assert "trace_id" not in nowhere


def test_nothing_is_traced_and_opentelemetry_is_not_imported_unless_the_program_does() -> None:
    code = (
        "import sys, lateshift; from lateshift.telemetry import tracing; assert tracing.spans() is None; "
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]; "
        "import opentelemetry.trace; assert tracing.spans() is None and tracing.context() is None and tracing.ids() == {}"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    )


def test_a_program_may_set_up_another_provider_later(monkeypatch: pytest.MonkeyPatch) -> None:
    providers = [TracerProvider(), TracerProvider()]
    tracers = []
    for provider in providers:
        monkeypatch.setattr(trace, "get_tracer_provider", lambda provider=provider: provider)
        tracers += [recorder.tracer(), recorder.tracer()]
    assert tracers[0] is tracers[1] is not tracers[2] is tracers[3]
