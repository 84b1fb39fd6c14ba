"""Runs of workflows that a command names, and what is said where none is found."""

from lateshift.cli.short_ids import one
from lateshift.documents.workflows import in_words
from lateshift.errors import RunUnknown
from lateshift.model.job import JobView
from lateshift.model.workflow.run import RunView
from lateshift.operating import runs
from lateshift.operating.names import others
from lateshift.store.contract import Store


def nothing_found(store: Store, name: str | None, state: str | None) -> str:
    recent = {view.run.name for view in store.workflows.newest(None, runs.PAGE)}
    if not recent:
        return "No runs. @app.workflow makes a workflow in code, and its enqueue(…) starts a run."
    if name is not None and name not in recent:
        return f"No runs of {name}.{others(name, sorted(recent))}"
    said = "" if state is None else f" in the state {in_words(state)}"
    return f"No run{'' if name is None else f' of {name}'}{said}."


def found(store: Store, named: str) -> tuple[RunView, JobView]:
    """Without its steps. Raises JobUnknown if there is no such job, RunUnknown if it is no run, or none yet."""
    return runs.found(store, one(store, named))


def found_whole(store: Store, named: str) -> tuple[RunView, JobView]:
    """With all of its steps, and all that they hold. Raises likewise."""
    view, job = found(store, named)
    whole = store.workflows.view(view.run.id)
    if whole is None:  # it has passed its retention just now
        raise RunUnknown(runs.without_run(job))
    return whole, job
