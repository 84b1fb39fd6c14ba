"""`lateshift workflows graph`: what a workflow does, drawn from its code, or what a run of it did."""

from pathlib import Path

import click
import msgspec

from lateshift.cli.options import listing, opened, wants_json
from lateshift.cli.output import print_json
from lateshift.cli.short_ids import run_digits
from lateshift.cli.workflow_finding import found
from lateshift.clock import SYSTEM
from lateshift.errors import OptionInvalid
from lateshift.operating.graphs import FORMATS, graph_of_code, graph_of_run
from lateshift.workflow.graph.graph import Graph

ENDINGS = {".svg": "svg", ".json": "json", ".mmd": "mermaid", ".md": "mermaid"}


@click.command()
@click.argument("name", required=False)
@click.argument("program", required=False)
@click.option("--run", "named", type=run_digits, metavar="ID", help="Draw what this run did; needs neither NAME nor PROGRAM.")  # fmt: skip
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="What to write.  [default: as the file of --output ends, else mermaid]",
)
@click.option("--output", type=click.Path(dir_okay=False, writable=True, path_type=Path), metavar="FILE",
              help="Write it there, not to stdout.")  # fmt: skip
@listing
def graph(
    name: str | None, program: str | None, named: str | None, form: str | None, output: Path | None
) -> None:
    """Draw the workflow NAME as PROGRAM's code has it, or what one run did: as Mermaid text, as a picture, or as data."""
    if wants_json() and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} exclude one another.")
    if (named is None) == (name is None) or (name is not None and program is None):
        raise click.UsageError(
            "Give the name of a workflow and the program that has it (lateshift workflows graph fulfil shop.py), or a run: --run ID."
        )
    drawn = _of_run(named) if named is not None else _of_code(str(name), str(program))
    meant = "mermaid" if output is None else ENDINGS.get(output.suffix.lower(), "mermaid")
    _write(drawn, "json" if wants_json() else form or meant, output)


def _of_run(named: str) -> Graph:
    with opened() as store:
        view, _ = found(store, named)
        return graph_of_run(store, view, SYSTEM.now())


def _of_code(name: str, program: str) -> Graph:
    from lateshift.worker.program import find_app

    if name.endswith(".py"):
        raise OptionInvalid(
            f"The name of the workflow comes first: lateshift workflows graph {program} {name}."
        )
    return graph_of_code(find_app(program), name)


def _write(drawn: Graph, form: str, output: Path | None) -> None:
    if form == "json" and output is None:
        print_json(msgspec.to_builtins(drawn))
        return
    match form:
        case "json":
            text = msgspec.json.format(msgspec.json.encode(drawn), indent=2).decode() + "\n"
        case "svg":
            text = drawn.svg()
        case _:
            text = drawn.mermaid()
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OptionInvalid(f"--output {output} cannot be written: {error.strerror}.") from error
    click.echo(f"{output} has {len(drawn.nodes)} nodes and {len(drawn.edges)} edges.", err=True)
