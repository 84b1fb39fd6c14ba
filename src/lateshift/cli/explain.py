"""`lateshift jobs explain`: every reason why a job is not running, and when each clears."""

import click

from lateshift.cli.options import listing, opened, wants_json
from lateshift.cli.output import STYLES, console, print_json
from lateshift.cli.short_ids import digits, one, unknown
from lateshift.errors import JobUnknown
from lateshift.model.explaining.explain import explain as explained
from lateshift.model.explaining.reason import Explanation, Reason, details
from lateshift.model.explaining.words import Words

NARROW = 60  # columns that a sentence wants beside its code; with fewer it stands below
GAP = 2


@click.command()
@click.argument("named", type=digits, metavar="ID")
@listing
def explain(named: str) -> None:
    """Why a job is not running: every reason, and when it clears. The last digits of its id will do."""
    with opened() as store:
        facts = store.reports.facts(one(store, named))
        if facts is None:
            raise JobUnknown(unknown(store, named))
    explanation = explained(facts)
    if wants_json():
        print_json(explanation.document())
    else:
        _print(explanation)


def _print(explanation: Explanation) -> None:
    from rich.text import Text

    out, words = console(), Words(explanation.at, explanation.zone)
    label = explanation.state.label
    title = Text.assemble((explanation.task, "bold"), " is ", (label, STYLES.get(label, "bold")))
    title.append(f"  {explanation.id}, queue {explanation.queue}", "bright_black")
    out.print(title)
    if explanation.headline:
        out.print(Text(explanation.headline))
    wide = max((len(reason.code) for reason in explanation.reasons), default=0)
    for reason in explanation.reasons:
        out.print()
        out.print(_reason(reason, words, wide, narrow=out.width < NARROW + wide))
    if explanation.outlook:
        out.print(Text(f"\n{explanation.outlook}"))


def _reason(reason: Reason, words: Words, wide: int, *, narrow: bool) -> object:
    """The code on the left; on the right the sentence, when it clears, and a command that helps."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    body = Table.grid()
    body.add_column(overflow="fold")
    body.add_row(Text(reason.says))
    for name, text in details(reason, words):
        if name == "do":
            body.add_row(Text(f"$ {text}", "cyan"))
        else:
            body.add_row(Text(f"{name} {text}", "bright_black"))
    code = Text(reason.code, _style(reason))
    table = Table.grid(padding=(0, GAP, 0, 0))
    if narrow:
        table.add_row(code)
        table.add_row(Padding(body, (0, 0, 0, GAP)))
    else:
        table.add_column(width=wide, no_wrap=True)
        table.add_column()
        table.add_row(code, body)
    return table


def _style(reason: Reason) -> str:
    """What waits for somebody, what clears by itself, what is good to know."""
    if not reason.holds:
        return "bright_black"
    return "yellow" if reason.clears_at is not None else "bold red"
