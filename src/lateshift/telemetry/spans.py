"""Spans, by OpenTelemetry's conventions for messaging: of an enqueue, of a lease, of each attempt, of a function of a workflow. The only module that imports
OpenTelemetry. Names and ids are recorded; what a job was given, returned or said when it failed is not."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.context import Context, attach
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from lateshift.model.job import TRACE_LIMIT, Lease, NewJob
from lateshift.model.remote import name_of

LINKS_MOST = 100  # jobs that the span of a lease links to
SYSTEM = "lateshift"

_tracer: tuple[object, Tracer] | None = None


def tracer() -> Tracer:
    """Of the provider that is set up now."""
    global _tracer
    provider = trace.get_tracer_provider()
    if _tracer is None or _tracer[0] is not provider:
        _tracer = (provider, provider.get_tracer("lateshift"))
    return _tracer[1]


def attributes(operation: str, kind: str, queues: set[str]) -> dict[str, Any]:
    """`queues`: if it is one, it is the destination."""
    said = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": operation,
        "messaging.operation.type": kind,
    }
    return said | ({"messaging.destination.name": next(iter(queues))} if len(queues) == 1 else {})


def named(operation: str, queues: set[str]) -> str:
    return f"{operation} {next(iter(queues))}" if len(queues) == 1 else operation


def written(context: Context | None = None) -> str | None:
    """A context as a job keeps it: what the program's own propagators make of it."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier, context)
    text = json.dumps(carrier)
    if len(text) > TRACE_LIMIT:
        carrier.clear()
        TraceContextTextMapPropagator().inject(carrier, context)
        carrier.pop("tracestate", None)
        text = json.dumps(carrier)
    return text if carrier else None


def read(text: str | None) -> Context:
    """The context of a job, and nothing of the code that reads it. One that cannot be read is none."""
    try:
        return propagate.extract(json.loads(text or "{}"), Context())
    except Exception:  # whatever a row has, and whatever the program's propagators make of it
        return Context()


def failed(span: Span, error: str) -> None:
    span.set_attribute("error.type", error)
    span.set_status(Status(StatusCode.ERROR, error))


class AttemptSpan:
    """Of one attempt: begun where its body begins, ended by the worker, which knows how it ended."""

    __slots__ = ("_lease", "_links", "_member", "_parent", "_span")

    def __init__(self, lease: Lease, member: str, received: Link) -> None:
        self._lease = lease
        self._links = [received]
        self._member = member
        self._parent = read(lease.trace)
        self._span: Span | None = None

    def begin(self) -> None:
        lease, queues = self._lease, {self._lease.queue}
        said = attributes("process", "process", queues) | {
            "messaging.message.id": str(lease.id), "messaging.client.id": self._member, "lateshift.task": lease.task,
            "lateshift.attempt": lease.attempt,
        }  # fmt: skip
        self._span = tracer().start_span(
            named("process", queues), self._parent, SpanKind.CONSUMER, said, self._links
        )

    def enter(self) -> None:
        """The code that follows is the attempt's. Its context is its own, and ends with it."""
        if self._span is not None:
            attach(trace.set_span_in_context(self._span, self._parent))

    def context(self) -> str | None:
        """For a process in which the body runs."""
        return None if self._span is None else written(trace.set_span_in_context(self._span, self._parent))

    def end(self, outcome: str, error: str | None = None) -> None:
        if self._span is None:
            return
        self._span.set_attribute("lateshift.outcome", outcome)
        if error is not None:
            failed(self._span, error)
        self._span.end()


class Received:
    """Jobs that one exchange has leased."""

    def __init__(self, span: Span, member: str) -> None:
        self._link = Link(span.get_span_context())
        self._member = member

    def attempt(self, lease: Lease) -> AttemptSpan:
        return AttemptSpan(lease, self._member, self._link)


class Spans:
    """What others use of this module. See tracing.spans."""

    context = staticmethod(written)

    @staticmethod
    @contextmanager
    def enqueuing(jobs: Sequence[NewJob]) -> Iterator[Span]:
        """While the block runs, jobs are written; their context is that of the block."""
        queues = {job.spec.queue for job in jobs}
        said = attributes("enqueue", "send", queues)
        if len(jobs) == 1:
            said |= {"messaging.message.id": str(jobs[0].id), "lateshift.task": jobs[0].spec.task}
        elif jobs:
            said["messaging.batch.message_count"] = len(jobs)
        with _span(named("enqueue", queues), SpanKind.PRODUCER, said) as span:
            yield span

    @staticmethod
    def step(lease: Lease, verb: str, path: str, name: str) -> AbstractContextManager[Span]:
        """While the block runs, a function of a workflow does, in the stretch of the run that has this lease. Not a message: it is
        neither sent nor received."""
        said = {
            "messaging.system": SYSTEM, "messaging.destination.name": lease.queue, "messaging.message.id": str(lease.id),
            "lateshift.task": lease.task, "lateshift.step": path, "lateshift.step_name": name,
        }  # fmt: skip
        return _span(f"{verb} {name}", SpanKind.INTERNAL, said)

    @staticmethod
    def leased(leases: Sequence[Lease], took: float, member: str) -> Received:
        """An exchange that took so many seconds, and is over."""
        queues = {lease.queue for lease in leases}
        said = attributes("lease", "receive", queues) | {
            "messaging.client.id": member, "messaging.batch.message_count": len(leases),
        }  # fmt: skip
        contexts = [
            trace.get_current_span(read(lease.trace)).get_span_context()
            for lease in leases[:LINKS_MOST]
            if lease.trace is not None
        ]
        links = [Link(context) for context in contexts if context.is_valid]
        now = time.time_ns()
        span = tracer().start_span(
            named("lease", queues), Context(), SpanKind.CLIENT, said, links, start_time=now - int(took * 1e9)
        )
        span.end(now)
        return Received(span, member)

    @staticmethod
    def enter(text: str) -> None:
        """The code that follows goes on with this context."""
        attach(read(text))

    @staticmethod
    def enter_request(headers: Mapping[str, str]) -> None:
        """The same with that of a request, unless whoever serves it has a span for it already."""
        if not trace.get_current_span().get_span_context().is_valid:
            attach(propagate.extract(headers))

    @staticmethod
    def ids() -> dict[str, Any]:
        return _ids(trace.get_current_span())

    @staticmethod
    def ids_of(text: str) -> dict[str, Any]:
        found = _ids(trace.get_current_span(read(text)))
        return {"trace_id": found["trace_id"]} if found else {}


@contextmanager
def _span(name: str, kind: SpanKind, said: Mapping[str, Any]) -> Iterator[Span]:
    """Current while the block runs. Of what is raised the type alone is recorded."""
    with tracer().start_as_current_span(
        name, kind=kind, attributes=said, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:
            failed(span, name_of(error))
            raise


def _ids(span: Span) -> dict[str, Any]:
    known = span.get_span_context()
    if not known.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(known.trace_id), "span_id": trace.format_span_id(known.span_id)}
