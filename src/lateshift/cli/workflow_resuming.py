"""`lateshift workflows resume`: one run goes on, or all of a workflow that are held."""

import click

from lateshift.cli.numbers import Whole
from lateshift.cli.options import listing, opened, operator, wants_json
from lateshift.cli.output import counted, print_json
from lateshift.cli.short_ids import one, run_digits
from lateshift.cli.workflow_finding import found, nothing_found
from lateshift.operating import runs
from lateshift.operating.resuming import RESUMED_AT_ONCE, resume_all


@click.command()
@click.argument("named", type=run_digits, metavar="[ID]", required=False)
@click.option("--name", metavar="NAME", help="All runs of this workflow or pipeline that are held, the newest first.")  # fmt: skip
@click.option("--why-like", "why", metavar="TEXT", help="Only those of which `why` has this text in it. Needs --name.")  # fmt: skip
@click.option("--limit", type=Whole(1, 100_000), metavar="N", default=RESUMED_AT_ONCE, show_default=True,
              help="How many at most.")  # fmt: skip
@click.option("--before", type=run_digits, metavar="ID", help="Only runs older than this one: the next page. Needs --name.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say how many would go on; write nothing. Needs --name.")
@listing
def resume(
    named: str | None, name: str | None, why: str | None, limit: int, before: str | None, dry_run: bool
) -> None:
    """Let a run go on that is held, or try again what could not be undone; or all runs of a workflow that are held."""
    if (named is None) == (name is None):
        raise click.UsageError(
            "Give the id of a run, or the name of a workflow or pipeline of which all held runs are to go on: --name NAME."
        )
    if named is not None:
        if why is not None or before is not None or dry_run:
            raise click.UsageError("--why-like, --before and --dry-run go with --name, not with the id of one run.")  # fmt: skip
        _resume_one(named)
    elif name is not None:
        _resume_all(name, why, limit, before, dry_run=dry_run)


def _resume_one(named: str) -> None:
    with opened() as store:
        view, _ = found(store, named)
        runs.resume(store, view, by=operator())
    undone = view.run.phase.is_undone or view.run.cancel_by is not None
    if wants_json():
        print_json({"run": str(view.run.id), "resumed": True})
    else:
        click.echo(f"The run {view.run.id} goes on{': what it did is undone' if undone else ''}.")


def _resume_all(name: str, why: str | None, limit: int, before: str | None, *, dry_run: bool) -> None:
    nothing = ""
    with opened() as store:
        start = None if before is None else one(store, before)
        told = resume_all(store, name, why=why, limit=limit, before=start, preview=dry_run, by=operator())
        if not told.seen:
            nothing = nothing_found(store, name, "held")
    seen, done, last = told.seen, told.done, told.last
    if wants_json():
        ids = [str(id) for id in done]
        print_json({"runs": ids, "resumed": not dry_run, "next_before": None if last is None else str(last)})
        return
    if nothing:
        click.echo(nothing if why is None else f"No run of {name} is held of which why has {why!r} in it.")
        return
    goes = "go" if len(done) != 1 else "goes"
    said = "would go on. Nothing was written." if dry_run else f"{goes} on."
    click.echo(f"{counted(len(done), 'run')} of {name} {said}")
    if seen > len(done):
        click.echo(f"{counted(seen - len(done), 'run')} had changed meanwhile.")
    if last is not None:
        click.echo(f"There are more: add --before {last}, or a higher --limit.")
