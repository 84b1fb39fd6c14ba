"""`lateshift limits`: what the code of the running programs limits."""

import click

from lateshift.cli.options import listing, opened, wants_json
from lateshift.cli.output import print_json, print_table
from lateshift.documents.sessions import limit_document
from lateshift.model.guard import Rule


@click.command()
@listing
def limits() -> None:
    """How many jobs may run at once and start in a time, as the workers' code says."""
    with opened() as store:
        found = store.rules.list()
    if wants_json():
        print_json({"limits": [limit_document(rule) for rule in found]})
        return
    print_table(
        ("on", "name", ">at once", "rate", ">burst"), [_row(rule) for rule in found], "Nothing is limited."
    )


def _row(rule: Rule) -> list[str]:
    rate = "" if rule.rate is None else f"{rule.rate:,} in {rule.per.total_seconds():g} s"
    at_once = "" if rule.concurrency is None else f"{rule.concurrency:,}"
    scope = "each key of" if rule.scope == "key" else rule.scope
    return [scope, rule.name, at_once, rate, "" if rule.rate is None else str(rule.burst)]
