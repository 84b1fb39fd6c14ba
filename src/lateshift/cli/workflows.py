"""`lateshift workflows`: look at runs and their steps, tell them things, and say how those go on that wait for an operator."""

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from lateshift.cli import exits
from lateshift.cli.acting import complain, resolved
from lateshift.cli.nouns import Nouns
from lateshift.cli.numbers import Whole
from lateshift.cli.options import listing, opened, opened_for, operator, wants_json
from lateshift.cli.output import (
    STYLES,
    console,
    counted,
    print_json,
    print_sentences,
)
from lateshift.cli.short_ids import one, run_digits
from lateshift.cli.workflow_finding import found, found_whole, nothing_found
from lateshift.cli.workflow_giving import read_arguments, read_json, refuse_unchecked
from lateshift.cli.workflow_graph import graph
from lateshift.cli.workflow_resuming import resume
from lateshift.cli.workflow_tree import StepTree, waits_of
from lateshift.cli.workflow_view import (
    COLUMNS,
    arguments_in_words,
    facts,
    remedies,
    run_row,
)
from lateshift.clock import SYSTEM
from lateshift.documents.hiding import shown_run, shown_runs
from lateshift.documents.reading import readable
from lateshift.documents.workflows import STATES, in_words, run_document, state_of, whole_document
from lateshift.errors import RunUnknown
from lateshift.model import checks
from lateshift.model.escaping import escaped
from lateshift.model.ids import JobId
from lateshift.model.outcome import MESSAGE_LIMIT
from lateshift.model.sealed import hidden, masked_view
from lateshift.model.words import short
from lateshift.model.workflow.run import SIGNALS_MOST
from lateshift.model.workflow.step import shown_path
from lateshift.operating import runs as operating
from lateshift.operating.steps import refuse_misfit


@click.group(cls=Nouns)
def workflows() -> None:
    """Look at runs of workflows and their steps, tell them things, say how those go on that wait."""


workflows.add_command(graph)
workflows.add_command(resume)


@workflows.command("list")
@click.option("--name", metavar="NAME", help="Only runs of this workflow.")
@click.option("--state", type=click.Choice(STATES), help="Only runs in this state.")
@click.option("--limit", type=Whole(1, 10_000), metavar="N", default=20, show_default=True,
              help="How many at most.")  # fmt: skip
@click.option("--before", type=run_digits, metavar="ID", help="Only runs older than this one: the next page.")
@listing
def list_runs(name: str | None, state: str | None, limit: int, before: str | None) -> None:
    """The newest runs first: their state, what each says of itself, and what it waits for."""
    with opened() as store:
        start = None if before is None else one(store, before)
        listed, last = operating.newest(store, start, limit, name, state)
        runs = shown_runs(store, listed)
        nothing = nothing_found(store, name, state) if not runs else ""
    now = SYSTEM.now()
    more = None if last is None else str(last)
    if wants_json():
        print_json({"runs": [run_document(view, now) for view in runs], "next_before": more})
        return
    print_sentences(COLUMNS, [run_row(view, now) for view in runs], nothing)
    if more:
        looked = f"The newest {operating.LOOKED_AT:,} runs were looked at. " if len(runs) < limit else ""
        click.echo(f"\n{looked}More: add --before {more}")


@workflows.command()
@click.argument("named", type=run_digits, metavar="ID")
@click.option("--traceback", "tracebacks", is_flag=True, help="Show the whole traceback of each error.")
@listing
def show(named: str, tracebacks: bool) -> None:
    """One run with all of its steps. The last digits of its id will do."""
    with opened() as store:
        view, job = found_whole(store, named)
        view, job = shown_run(store, view), masked_view(job)
        signals = store.workflows.told(view.run.id, SIGNALS_MOST)
        of_batch = view.parent is not None and store.batches.view(view.parent) is not None
        waits = waits_of(store, view)
    now = SYSTEM.now()
    if wants_json():
        print_json(whole_document(view, job, signals, now))
        return
    from rich.table import Table
    from rich.text import Text

    out, state = console(), in_words(state_of(view))
    out.print(Text.assemble((view.run.name, "bold"), " is ", (state, STYLES.get(state, "bold"))))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bright_black", no_wrap=True)
    table.add_column(overflow="fold")
    for fact, value in facts(view, job, signals, now, of_batch=of_batch):
        if value:
            table.add_row(fact, Text(value))
    out.print(table)
    out.print()
    if view.steps:
        out.print(StepTree(view, tracebacks=tracebacks, waits=waits).drawn())
    else:
        out.print("It has no steps yet." if not view.state.settled else "It had no steps.")
    for number, remedy in enumerate(remedies(view)):
        out.print(Text(remedy if number else f"\n{remedy}"), soft_wrap=True)


@workflows.command()
@click.argument("named", type=run_digits, metavar="ID")
@click.argument("name", metavar="NAME")
@click.option("--data", metavar="JSON", help="What the run is given with it. Text stands in double quotes.")
@click.option(
    "--key",
    metavar="KEY",
    help="The same key again is the same signal: it is kept once. With another name or other data it is refused.",
)
@listing
def signal(named: str, name: str, data: str | None, key: str | None) -> None:
    """Tell a run something: its `flow.wait_for(NAME)` gives the data. One that comes early is kept."""
    from lateshift.app.workflows import tell
    from lateshift.operating.signals import awaited, unasked

    given = None if data is None else read_json("--data", data)
    with opened() as store:
        id = one(store, named)
        view = store.workflows.look(id, limit=0)
        begun = view is not None
        job = store.reports.job(id)
        if not begun and job is not None and not job.is_run:
            raise RunUnknown(operating.without_run(job))
        waits = awaited(store, id) if begun else []  # before it goes on
        kept = tell(store, id, name, given, key=key, by=operator())
    if not kept:
        sentence = f"The run {id} was told this before, with the key {key}. Nothing was added."
    elif begun:
        sentence = f"The run {id} is told {name}. {unasked(name, waits)}".rstrip()
    else:
        sentence = f"The run {id} has not begun; the signal {name} waits for it."
    if view is not None and state_of(view) == "held":
        sentence += (
            f" It is held: `lateshift workflows resume {short(id)}` lets it go on, and it takes this then."
        )
    _answer(id, sentence, {"signal": name, "kept": kept, "awaited": waits})


@workflows.command()
@click.argument("named", type=run_digits, metavar="ID...", nargs=-1, required=True)
@listing
def cancel(named: tuple[str, ...]) -> None:
    """End runs: what each has done is undone first."""
    with opened() as store:
        ids, missing = resolved(store, named)
        runs = store.workflows.begun(ids)
        done = store.jobs.cancel([id for id in ids if id in runs], by=operator())
        left = {id: store.reports.job(id) for id in ids if id not in set(done)}
        states = {str(id): None if job is None else job.state.label for id, job in left.items()}
        states |= dict.fromkeys(missing)
        _report_cancelled(done, states)
        for id, job in left.items():
            if job is not None and id not in runs:
                click.echo(
                    f"lateshift: {operating.without_run(job)} To cancel it: lateshift jobs cancel {id}",
                    err=True,
                )
                del states[str(id)]
        complain(store, states)
    if len(done) < len(ids):
        raise click.exceptions.Exit(exits.NOT_FOUND)


@workflows.command()
@click.argument("named", type=run_digits, metavar="ID")
@click.option("--why", metavar="TEXT", required=True, help="What others read as the reason.")
@listing
def undo(named: str, why: str) -> None:
    """Undo what a run has done, the last step first. Its code begins nothing more."""
    checks.text("--why", why, MESSAGE_LIMIT)
    with opened() as store:
        view, _ = found(store, named)
        operating.undo(store, view, why, by=operator())
    _answer(view.run.id, f"The run {view.run.id} is being undone, the last step first.", {"undone": True})


@workflows.command("resubmit-step")
@click.argument("named", type=run_digits, metavar="ID")
@click.argument("number", metavar="STEP")
@click.option("--args", "given", metavar="JSON", help="Other arguments, by name, all of them: '{\"card\": \"new\"}'; of a fan_out another list.")  # fmt: skip
@click.option(
    "--app", "program", metavar="PROGRAM", help="Check the arguments by this program's types first."
)
@click.option("--dry-run", is_flag=True, help="Show the old arguments and the new ones; write nothing.")
@listing
def resubmit_step(named: str, number: str, given: str | None, program: str | None, dry_run: bool) -> None:
    """Run a step again that has failed and holds its run, with other arguments if need be; and the run goes on.

    STEP is its number, as `show` has it: 3, or 3.1.2.
    """
    from lateshift.worker.program import find_app

    app = None if program is None else find_app(program)
    with opened() if app is None else opened_for(app) as store:
        view, _ = found(store, named)
        step = operating.held_step(store, view, number)
        payload = operating.new_arguments(step, read_arguments(given))
        if app is not None:
            refuse_unchecked(step)
            refuse_misfit(store, app, view.run.id, step, payload)
        if not dry_run:
            operating.resubmit_step(store, view, step, payload, by=operator())
        shown = shown_run(store, msgspec.structs.replace(view, steps=[step])).steps[0]
    if shown != step:  # what it is given now is as little to be seen as what it was given before
        step, payload = shown, hidden(payload)
    after = step.payload if payload is None else payload
    if wants_json():
        print_json({
            "run": str(view.run.id), "step": shown_path(step.path), "name": step.name, "before": readable(step.payload),
            "after": readable(after), "resubmitted": not dry_run,
        })  # fmt: skip
        return
    click.echo(escaped(f"- {step.name}({arguments_in_words(step)})"))
    if payload is not None:
        mended = msgspec.structs.replace(step, payload=payload, mended=True)
        click.echo(escaped(f"+ {step.name}({arguments_in_words(mended)})"))
    else:
        click.echo("  with the same arguments")
    said = "would begin anew. Nothing was written" if dry_run else "begins anew, and the run goes on"
    click.echo(f"Step {shown_path(step.path)} of the run {view.run.id} {said}.")


# -- what is given, and what is answered -----------------------------------------------------------------------------


def _report_cancelled(done: Sequence[JobId], left: dict[str, str | None]) -> None:
    if wants_json():
        unchanged = [{"id": id, "state": state} for id, state in left.items()]
        print_json({"cancelled": [str(id) for id in done], "unchanged": unchanged})
        return
    told = "; what was done is undone first, as `lateshift workflows show` tells" if done else ""
    click.echo(f"{counted(len(done), 'run')} told to end{told}.")


def _answer(id: JobId, sentence: str, more: dict[str, Any]) -> None:
    if wants_json():
        print_json({"run": str(id)} | more)
    else:
        click.echo(sentence)
