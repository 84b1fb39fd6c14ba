"""`lateshift jobs logs`: what the attempts of a job have logged."""

from collections.abc import Sequence

import click

from lateshift.cli.numbers import Whole
from lateshift.cli.options import listing, opened, wants_json
from lateshift.cli.output import console, counted, instant, print_json
from lateshift.cli.short_ids import digits, one, unknown
from lateshift.documents.hiding import shown_logs
from lateshift.documents.logs import log_document
from lateshift.errors import JobUnknown
from lateshift.model.attempt_log import AttemptLog
from lateshift.model.escaping import escaped
from lateshift.model.ids import JobId

STYLES = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "bold red"}


@click.command()
@click.argument("named", type=digits, metavar="ID")
@click.option("--attempt", type=Whole(min=1), metavar="N", help="Only of this attempt.")
@listing
def logs(named: str, attempt: int | None) -> None:
    """What the attempts of a job have logged, the newest lines of each. The last digits of its id will do."""
    with opened() as store:
        id = one(store, named)
        view = store.reports.job(id)
        if view is None:
            raise JobUnknown(unknown(store, named))
        logged = [log for log in store.logs.of(id) if attempt is None or log.attempt == attempt]
        found = shown_logs(store, view, logged)
    if wants_json():
        print_json({"job": str(id), "logs": [log_document(log) for log in found]})
    elif not found:
        which = "It has" if attempt is None else f"Attempt {attempt} has"
        click.echo(
            f"{which} logged nothing. Kept is what a body logs, from the level of the setting job_log up."
        )
    else:
        for log in found:
            _print(log)


def tell_of_logs(id: JobId, found: Sequence[AttemptLog]) -> None:
    """At the end of what is shown of a job."""
    if found:
        lines = counted(sum(len(log.lines) for log in found), "line")
        click.echo(f"\n{lines} logged: lateshift jobs logs {id}")


def _print(log: AttemptLog) -> None:
    from rich.text import Text

    out = console()
    out.print(Text(f"attempt {log.attempt}, fence {log.fence}", style="bold"))
    if log.dropped:
        out.print(Text(f"{counted(log.dropped, 'older line')} left out", style="bright_black"))
    for line in log.lines:
        style = STYLES.get(line.level, "")
        first, *rest = [escaped(part) for part in line.message.split("\n")]
        out.print(
            Text.assemble(
                (instant(line.at), "bright_black"), " ", (line.level, style), f" {line.logger}: {first}"
            ),
            soft_wrap=True,
        )
        for part in rest:  # such as a traceback, set in so that no message forges a line
            out.print(Text(f"    {part}"), soft_wrap=True)
