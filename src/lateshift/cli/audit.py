"""`lateshift audit`: who did what, and when."""

from typing import Any

import click

from lateshift.cli.nouns import Nouns
from lateshift.cli.numbers import Whole
from lateshift.cli.options import listing, opened, wants_json
from lateshift.cli.output import instant, print_json, print_sentences
from lateshift.store.access_contract import AUDIT_AT_ONCE, AUDIT_LOOKED_AT, AuditRow
from lateshift.store.contract import Store

LARGEST_NUMBER = 2**63 - 1


@click.group(cls=Nouns)
def audit() -> None:
    """What operators did."""


@audit.command("list")
@click.option("--actor", metavar="NAME", help="Only what this one did.")
@click.option("--action", metavar="ACTION", help="Only this, such as cancel, pause or revoke.")
@click.option("--subject", metavar="TEXT", help="Only what was done to this, as the list shows it.")
@click.option("--no-starts", is_flag=True, help="Leave out the jobs that were started.")
@click.option(
    "--limit",
    type=Whole(1, AUDIT_AT_ONCE),
    metavar="N",
    default=20,
    show_default=True,
    help="How many at most.",
)
@click.option(
    "--before",
    type=Whole(1, LARGEST_NUMBER),
    metavar="N",
    help="Only lines with a lower number than this: the next page.",
)
@listing
def list_audit(
    actor: str | None,
    action: str | None,
    subject: str | None,
    no_starts: bool,
    limit: int,
    before: int | None,
) -> None:
    """The newest first, for a year; of jobs that were started, for 30 days."""
    filters = {"subject": subject, "actor": actor, "action": action}
    given: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
    asked = ", ".join(f"{name} {value}" for name, value in given.items())
    given |= {"starts": False} if no_starts else {}
    with opened() as store:
        found = store.audit.list(before=before, limit=limit, **given)
        more = found[-1].number if len(found) == limit else _looked_until(store, before, given)
    if wants_json():
        print_json({"audit": [audit_document(row) for row in found], "next_before": more})
        return
    print_sentences(
        (">number", "at", "action", "actor", "subject"),
        [_row(row) for row in found],
        f"Nothing with {asked}." if asked else "Nobody has done anything.",
    )
    if more and len(found) < limit:
        click.echo(
            f"\nThe newest {AUDIT_LOOKED_AT:,} lines with this {next(iter(given))} were looked at.", nl=False
        )
    if more:
        click.echo(f"\nMore: add --before {more}")


def audit_document(row: AuditRow) -> dict[str, Any]:
    return {
        "number": row.number,
        "at": row.at,
        "action": row.action,
        "subject": row.subject,
        "actor": row.actor,
    }


def _row(row: AuditRow) -> list[str]:
    said = (row.action, row.actor, row.subject)
    return [str(row.number), instant(row.at), *map(_on_one_line, said)]


def _on_one_line(text: str) -> str:
    """Whoever acts may choose their name: it must not forge another line, nor speak to the terminal."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )


def _looked_until(store: Store, before: int | None, given: dict[str, Any]) -> int | None:
    """Of several filters, the number of the last line that was looked at, where there may be older ones; else None."""
    if len(given) < 2:
        return None
    first = dict([next(iter(given.items()))])  # the one that an index serves
    for _ in range(AUDIT_LOOKED_AT // AUDIT_AT_ONCE):
        page = store.audit.list(before=before, limit=AUDIT_AT_ONCE, **first)
        if len(page) < AUDIT_AT_ONCE:
            return None
        before = page[-1].number
    return before
