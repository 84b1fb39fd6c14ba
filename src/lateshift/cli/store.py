"""`lateshift store`: migrate, check, back up, give rights."""

from pathlib import Path

import click

from lateshift.cli import exits
from lateshift.cli.nouns import Nouns
from lateshift.cli.options import leave_a_line, listing, opened, wants_json
from lateshift.cli.output import print_json, without_password


@click.group(cls=Nouns)
def store() -> None:
    """Migrate, check and back up the store."""


@store.command()
@listing
def migrate() -> None:
    """Bring the store's schema up to this Lateshift's version. Safe to repeat."""
    with opened(checked=False) as target:
        applied = target.migrate()
        if applied and applied[0] > 1:  # not one that is made
            leave_a_line(target, "migrate", f"store to schema {applied[-1]}")
        name = without_password(target.url)
    if wants_json():
        print_json({"store": name, "applied": applied})
    elif applied:
        click.echo(f"{name}: migrated to schema {applied[-1]}.")
    else:
        click.echo(f"{name}: the schema is up to date.")


@store.command()
@listing
def check() -> None:
    """Look for damage and for rows that break a rule. Exit code 1 if something was found."""
    with opened() as target:
        found = target.upkeep.check()
        name = without_password(target.url)
    if wants_json():
        print_json({"store": name, "found": found})
    elif found:
        for line in found:
            click.echo(line)
    else:
        click.echo(f"{name}: nothing wrong.")
    if found:
        raise click.exceptions.Exit(exits.FOUND)


@store.command()
@click.option(
    "--prefix",
    metavar="NAME",
    default="lateshift",
    show_default=True,
    help="What the names of the roles begin with; a _ follows.",
)
@click.option("--apply", "applied", is_flag=True, help="Make them, instead of printing the SQL.")
@listing
def roles(prefix: str, applied: bool) -> None:
    """Print the SQL that makes roles with the least rights in PostgreSQL: owner, server, worker, reader and submitter. Repeat it after a
    migration."""
    with opened() as target:
        script = target.upkeep.roles(prefix)
        made = target.upkeep.apply_roles(prefix) if applied else []
        if applied:
            leave_a_line(target, "apply roles", f"store {prefix}")
        name = without_password(target.url)
    if wants_json():
        print_json({"store": name, "roles": made, "sql": script})
    elif applied:
        click.echo(
            f"{name} has the roles {', '.join(made)}. Give each that you use a password: \\password {made[-1]}"
        )
    else:
        click.echo(script)


@store.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
@listing
def backup(file: Path) -> None:
    """Write a consistent copy to FILE while everything runs. Never overwrites."""
    if not file.absolute().parent.is_dir():
        raise click.UsageError(f"There is no folder {file.absolute().parent} to hold {file.name}.")
    with opened() as target:
        target.upkeep.backup(file)
        leave_a_line(target, "backup", f"store to {file.absolute()}")
    size = file.stat().st_size
    if wants_json():
        print_json({"file": str(file), "bytes": size})
    else:
        click.echo(f"{file}: {size:,} bytes.")
