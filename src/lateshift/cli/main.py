"""The command `lateshift`: its nouns, and how every error ends: one line on stderr, an exit code, no traceback."""

import logging
import os
import sys
from collections.abc import Sequence

import click

from lateshift.cli import exits
from lateshift.cli.audit import audit
from lateshift.cli.batches import batches
from lateshift.cli.bench import bench
from lateshift.cli.breakers import breakers
from lateshift.cli.check import check
from lateshift.cli.jobs import jobs
from lateshift.cli.keys import keys
from lateshift.cli.limits import limits
from lateshift.cli.members import members
from lateshift.cli.metrics import metrics
from lateshift.cli.nouns import Nouns
from lateshift.cli.options import common
from lateshift.cli.pipelines import pipelines
from lateshift.cli.queues import queues
from lateshift.cli.schedules import schedules
from lateshift.cli.serve import serve
from lateshift.cli.sessions import sessions
from lateshift.cli.store import store
from lateshift.cli.tokens import tokens
from lateshift.cli.triggers import triggers
from lateshift.cli.up import up, work
from lateshift.cli.workflows import workflows
from lateshift.config import load
from lateshift.errors import LateshiftError
from lateshift.runtime.log import say, say_as

LOGGING = ("up", "work", "serve")  # commands whose standard error is a log


class _OutputClosed(Exception):
    """Whoever read our output has gone."""


class Program(Nouns):
    """The outermost command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        say_as(_log_format() if name in LOGGING else "plain")
        return name, command, rest

    def invoke(self, ctx: click.Context) -> object:
        try:
            answer: object = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise _OutputClosed from None
        return answer


def _print_version(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"lateshift {version('lateshift')}")
        except PackageNotFoundError:
            click.echo("lateshift, not installed")
        context.exit()


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="The version."
)
@common
def lateshift() -> None:
    """Background jobs on a SQLite file or PostgreSQL.

    PROGRAM is a Python file or module that makes an app: shop.py, shop.py:app, shop.tasks:app.
    """


for command in (
    up, work, serve, check, jobs, batches, workflows, pipelines, queues, schedules, triggers, sessions, limits,
    breakers, members, tokens, keys, audit, metrics, store, bench,
):  # fmt: skip
    lateshift.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(run(given))


def run(arguments: list[str]) -> int:
    say_as("plain")
    try:
        answer = lateshift.main(args=arguments, prog_name="lateshift", standalone_mode=False)
    except LateshiftError as error:
        return _say(str(error), exits.exit_code_of(error), arguments)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return exits.USAGE
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "lateshift"
        return _say(f"{error.format_message()} See `{command} --help`.", exits.USAGE, arguments)
    except click.ClickException as error:
        return _say(error.format_message(), exits.USAGE, arguments)
    except (click.Abort, KeyboardInterrupt):
        return _say("interrupted", exits.INTERRUPTED, arguments)
    except _OutputClosed:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # so that the last flush does not fail again
        return exits.OUTPUT_CLOSED
    except OSError as error:
        return _say(str(error), exits.USAGE, arguments)
    except Exception as error:
        described = (
            f"a fault in Lateshift: {type(error).__name__}: {error}. Add --debug to see where, and report it."
        )
        return _say(described, exits.INTERNAL, arguments)
    return answer if isinstance(answer, int) else exits.OK


def _log_format() -> str:
    """Where one setting is wrong, which is told, this one still counts."""
    try:
        return load().log_format
    except LateshiftError:
        return os.environ.get("LATESHIFT_LOG_FORMAT", "plain")


def _say(message: str, code: int, arguments: list[str]) -> int:
    error = sys.exception() if "--debug" in arguments else None
    say(" ".join(message.split()), logging.ERROR, error=error)
    return code
