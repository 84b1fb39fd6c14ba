"""`lateshift jobs dead`: what dead letters died of, those of the same kind together."""

import click

from lateshift.cli.numbers import Whole
from lateshift.cli.options import listing, opened, wants_json
from lateshift.cli.output import amount, counted, duration, print_json, print_sentences, short
from lateshift.cli.progress import bar, dead_in
from lateshift.clock import SYSTEM
from lateshift.dead_letters.dead_letters import DEAD_LOOKED_AT, DeadLetters
from lateshift.documents.dead_letters import groups_document
from lateshift.model.groups import Group


@click.command()
@click.option("--queue", metavar="NAME", help="Dead letters of this queue.")
@click.option("--task", metavar="NAME", help="Dead letters of this task.")
@click.option("--reason", metavar="REASON", help="Dead letters with this reason, such as exhausted.")
@click.option("--like", metavar="FINGERPRINT", help="Dead letters with this fingerprint.")
@click.option(
    "--limit",
    type=Whole(1, 1_000),
    metavar="N",
    default=20,
    show_default=True,
    help="How many groups at most.",
)
@listing
def dead(queue: str | None, task: str | None, reason: str | None, like: str | None, limit: int) -> None:
    """Dead letters in groups of those that died of the same, the largest first."""
    with opened() as store:
        letters = DeadLetters(store, {}, SYSTEM, queue=queue, task=task, reason=reason, like=like)
        narrowed = any(value is not None for value in (queue, task, reason, like))
        with bar("looking at dead letters", None if narrowed else dead_in(store.queues.list())) as told:
            groups = letters.groups(told)
    if wants_json():
        print_json(groups_document(groups, limit))
        return
    shown = groups.largest_first[:limit]
    print_sentences(
        ("like", ">count", "task", ">first", ">last", "such as", "what"),
        [_row(group) for group in shown],
        "No such dead letters." if narrowed else "No dead letters.",
    )
    more = groups.looked_at - sum(group.count for group in shown)
    if more:
        click.echo(f"\nAnd {counted(more, 'dead letter')} in other groups: add --limit, --task or --reason.")
    if groups.cut:
        click.echo(
            f"\nOnly the newest {DEAD_LOOKED_AT:,} dead letters were looked at; narrow with --task or --queue."
        )
    if shown:
        click.echo(
            f"\nSee what would run again: lateshift jobs resubmit --like {shown[0].fingerprint} --show"
        )


def _row(group: Group) -> list[str]:
    now = SYSTEM.now()
    what = (
        f"{group.reason}; {group.error or ''}: {group.message}"
        if group.error
        else f"{group.reason}; {group.message}"
    )
    return [
        group.fingerprint, amount(group.count), group.task, f"{duration(now - group.first)} ago",
        f"{duration(now - group.last)} ago", short(group.example), what,
    ]  # fmt: skip
