"""`lateshift jobs discard`: dead letters that nobody wants any more are deleted, seen first."""

from collections.abc import Mapping

import click

from lateshift.cli import exits
from lateshift.cli.acting import complain, report, resolved, untouched
from lateshift.cli.letters import is_narrowed, refuse_unless_named, which_letters
from lateshift.cli.missing import nothing_found
from lateshift.cli.options import listing, opened, operator, wants_json
from lateshift.cli.output import counted, print_json, print_table, say, short
from lateshift.cli.progress import bar
from lateshift.cli.stopping import stoppable
from lateshift.clock import SYSTEM
from lateshift.dead_letters.dead_letters import DeadLetters
from lateshift.dead_letters.discarding import DiscardPlan, plan_these
from lateshift.dead_letters.discarding import discard as carry_out
from lateshift.documents.dead_letters import discard_plan_document, kept_documents
from lateshift.model.discard import Discarded, Kept
from lateshift.model.ids import JobId
from lateshift.model.sealed import masked_view
from lateshift.store.contract import Store


@click.command()
@which_letters
@click.option("--show", is_flag=True, help="Show what would be deleted; write nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@listing
def discard(
    named: tuple[str, ...], every: bool, limit: int, show: bool, yes: bool, **filters: str | None
) -> None:
    """Delete dead letters that nobody wants any more, with their logs and tags: by id, or by a filter. What something still needs stays, and
    is told."""
    refuse_unless_named(named, every, filters)
    with opened() as store:
        if named:
            _by_name(store, named, show)
        else:
            _by_filter(store, filters, limit, show=show, ask=not yes)


def _by_name(store: Store, named: tuple[str, ...], show: bool) -> None:
    ids, missing = resolved(store, named)
    if show:
        _print_plan(plan_these(store, store.reports.named(ids), store.reports.kept(ids)))
        return
    done = carry_out(store, ids, by=operator())
    others = untouched(store, ids, done.ids) | dict.fromkeys(missing)
    _report(done, others)
    complain(store, others, why=lambda id: _why(done.kept, id))


def _by_filter(store: Store, filters: dict[str, str | None], limit: int, *, show: bool, ask: bool) -> None:
    letters = DeadLetters(store, {}, SYSTEM, **filters)
    found = letters.plan_discard(limit=limit)
    if letters.cut:
        click.echo(f"lateshift: only the newest {letters.most:,} dead letters were looked at.", err=True)
    if show and (found.ids or found.kept):
        _print_plan(found, limit)
        return
    _tell_kept(found.kept)
    if not found.ids:
        if wants_json() or not is_narrowed(filters) or found.kept:
            _report(Discarded(kept=found.kept), {})
        if is_narrowed(filters) and not found.kept:
            nothing_found(store, filters, "discarded")
        if not found.kept:
            click.echo("No dead letters.", err=True)
    elif not ask or _confirmed(found, limit):
        with stoppable() as stopping, bar("discarding", len(found.ids)) as told:
            done = carry_out(store, found.ids, by=operator(), told=told, stopping=stopping)
            stopped = stopping()
        done.kept = letters.kept | done.kept
        _report(done, untouched(store, [id for id, why in done.kept.items() if why is Kept.OTHER], []))
        if stopped and len(done.ids) < len(found.ids):
            click.echo("lateshift: interrupted; the rest was left as it was.", err=True)
            raise click.exceptions.Exit(exits.INTERRUPTED)
    else:
        click.echo("Nothing was discarded.")


def _confirmed(found: DiscardPlan, limit: int) -> bool:
    most = " (as many as --limit allows)" if len(found.ids) == limit else ""
    try:
        return click.confirm(f"Delete {counted(len(found.ids), 'dead letter')}{most} for good?", err=True)
    except click.Abort:
        raise click.UsageError("Nobody answered: add --yes to discard without being asked.") from None


def _print_plan(found: DiscardPlan, limit: int | None = None) -> None:
    if wants_json():
        print_json(discard_plan_document(found))
        return
    views = [masked_view(view) for view in found.examples]
    rows = [
        [short(view.id), view.task, view.queue, view.reason or "", view.payload.decode()] for view in views
    ]
    if rows:
        print_table(("job", "task", "queue", "reason", "arguments"), rows, "")
        click.echo()
    most = " (as many as --limit allows)" if len(found.ids) == limit else ""
    say(f"{counted(len(found.ids), 'job')}{most} would be deleted for good. Nothing was written.")
    _tell_kept(found.kept)


def _report(done: Discarded, others: dict[str, str | None]) -> None:
    report("discarded", "discarded", done.ids, others, {"kept": kept_documents(done.kept)})


def _tell_kept(kept: Mapping[JobId, Kept]) -> None:
    for each in kept_documents(kept):
        one = f"job {each.ids[0]}"
        which = one if each.count == 1 else f"each of {each.count:,} jobs, such as {short(each.ids[0])},"
        click.echo(f"lateshift: {which} {each.says}.", err=True)


def _why(kept: Mapping[JobId, Kept], id: str) -> str | None:
    why = next((why for each, why in kept.items() if str(each) == id), None)
    return None if why in (None, Kept.OTHER) else f"job {id} {why.says}."
