"""`lateshift check`: before a release, whether this code can run what is in the store."""

from typing import Any

import click

from lateshift.app.check import (
    DIVERGED,
    EXAMPLES,
    FILTER_GONE,
    GONE,
    INVALID,
    SCHEDULED,
    TO_COME,
    TRIGGER_INVALID,
    TRIGGER_TAKEN,
    UNDECODABLE,
    Finding,
    Report,
)
from lateshift.app.check import check as look_through
from lateshift.cli import exits
from lateshift.cli.options import listing, opened_for, wants_json
from lateshift.cli.output import amount, counted, print_json, print_sentences, say, short, without_password
from lateshift.cli.progress import alive_and_dead_in, bar
from lateshift.store.taking import TRIGGER_KEPT

WAITING = ("ready", "scheduled", "blocked", TO_COME, SCHEDULED)
REMEDIES = {
    GONE: "A task that is gone: keep one of that name until its jobs have ended (@app.task(name=…)), or cancel them"
    " with `lateshift jobs cancel`. Workers put such jobs off; they do not fail.",
    UNDECODABLE: "Arguments that do not fit: give a new parameter a default, keep an old one, or let its type take both. What"
    " is dead already can be changed: `lateshift jobs resubmit --app PROGRAM --set NAME=JSON --show`.",
    INVALID: "A task that cannot be used at all: mend its parameters; the message says which.",
    DIVERGED: 'A workflow whose runs this code does not fit: keep the old steps for runs that passed them, with flow.patched("…"); else such runs are held'
    " when they wake, until code that fits is there and they are resumed, or undone.",
    FILTER_GONE: "A pipeline of which items still need a filter that this code has not: keep a task of that name until they have passed it; else they"
    " are held when they come there, until such a task is there and they are resumed, or undone.",
    TRIGGER_INVALID: "A trigger that would make no jobs: mend where it looks, or what its task takes; the message says which.",
    TRIGGER_TAKEN: "A trigger whose name another app has: give one of the two another name=. If it is the same app, renamed, stop the"
    " old one first: its triggers are then taken over where they stand.",
}


@click.command()
@click.argument("program")
@listing
def check(program: str) -> None:
    """Can PROGRAM's code run what is in the store? Decodes the arguments of every job that waits, runs, is dead, follows a
    batch or comes of a schedule, and lists tasks that are gone; looks at its triggers. Changes nothing. Exit code 1 if something
    was found."""
    from lateshift.worker.program import find_app

    app = find_app(program)
    with opened_for(app) as store:
        with bar("looking through the jobs", alive_and_dead_in(store.queues.list())) as told:
            report = look_through(store, app.tasks, told, app=app.name, triggers=app.triggers)
        name = without_password(store.url)
    if wants_json():
        print_json(_document(app.name, name, report))
    else:
        _print(report)
    if report.findings:
        raise click.exceptions.Exit(exits.FOUND)


def _print(report: Report) -> None:
    looked_at = ", ".join(f"{amount(count)} {state}" for state, count in report.looked_at.items())
    total = counted(sum(report.looked_at.values()), "job")
    if not report.findings:
        click.echo(
            f"This code can run all it would meet: {total} looked at{f' ({looked_at})' if looked_at else ''}."
        )
        _print_going(report)
        return
    print_sentences(
        ("task", ">waiting", ">running", ">dead", "such as", "what"),
        [_row(each) for each in report.findings],
        "",
    )
    if report.left_out:
        click.echo(f"\nAnd {counted(report.left_out, 'job')} with still other findings.")
    click.echo(f"\n{total} looked at ({looked_at})." if looked_at else f"\n{total} looked at.")
    for kind, remedy in REMEDIES.items():
        if any(finding.kind == kind for finding in report.findings):
            click.echo()
            say(remedy)
    _print_going(report)


def _print_going(report: Report) -> None:
    for name in report.triggers_going:
        click.echo()
        say(
            f"The trigger {name} is in the store, and this code does not have it: it goes when this code starts. For "
            f"{TRIGGER_KEPT.days} days it is known how far it had read."
        )


def _row(finding: Finding) -> list[str]:
    first = finding.examples[0] if finding.examples else ""
    example = first if isinstance(first, str) else short(first)
    waiting = sum(finding.counts.get(state, 0) for state in WAITING)
    running, dead = finding.counts.get("running", 0), finding.counts.get("dead", 0)
    what = f"gone: {finding.error}" if finding.kind == GONE else finding.error
    return [
        finding.task,
        amount(waiting),
        amount(running),
        amount(dead),
        example,
        " ".join(what.split()).rstrip("."),
    ]


def _document(app: str, store: str, report: Report) -> dict[str, Any]:
    findings = [
        {
            "task": finding.task,
            "kind": finding.kind,
            "error": finding.error,
            "jobs": finding.counts,
            "examples": [str(id) for id in finding.examples[:EXAMPLES]],
        }
        for finding in report.findings
    ]
    return {
        "app": app, "store": store, "looked_at": report.looked_at, "findings": findings, "left_out": report.left_out,
        "triggers_going": report.triggers_going,
    }  # fmt: skip
