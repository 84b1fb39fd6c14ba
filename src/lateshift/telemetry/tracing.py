"""Whether anything is traced: asked of OpenTelemetry, if the program has imported it. Where it has not, that is one look into a
dictionary. What is recorded is in spans.py, which is imported then only."""

import sys
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import structs

from lateshift.model.job import Lease, NewJob

if TYPE_CHECKING:
    from lateshift.telemetry import spans as recorder

API = "opentelemetry.trace"
_NOTHING = nullcontext()


def spans() -> "type[recorder.Spans] | None":
    """Who records spans; None where the program has set up no provider of them."""
    api = sys.modules.get(API)
    if api is None or not _is_set_up(api):
        return None
    from lateshift.telemetry.spans import Spans

    return Spans


def _is_set_up(api: ModuleType) -> bool:
    try:
        return not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)
    except AttributeError:  # another thread is importing it right now
        return False


def of_step(lease: Lease, verb: str, path: str, name: str) -> AbstractContextManager[Any]:
    """While the block runs, a function of a workflow does: `verb` is "step" or "undo"."""
    traced = spans()
    return _NOTHING if traced is None else traced.step(lease, verb, path, name)


def context() -> str | None:
    """That of the code that runs now, as a job keeps it."""
    traced = spans()
    return None if traced is None else traced.context()


def with_context(job: NewJob, trace: str | None) -> NewJob:
    """What it has by itself stays."""
    return job if trace is None or job.trace is not None else structs.replace(job, trace=trace)


def ids() -> dict[str, Any]:
    """`trace_id` and `span_id` of the code that runs now; nothing where it is not traced."""
    traced = spans()
    return {} if traced is None else traced.ids()


def ids_of(trace: str | None) -> dict[str, Any]:
    """`trace_id` of a job's context."""
    traced = None if trace is None else spans()
    return {} if traced is None or trace is None else traced.ids_of(trace)
