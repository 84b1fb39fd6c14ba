"""What commands share: --store, --json, --debug, opening the store, and who is asking."""

import getpass
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar
from uuid import UUID

import click

from lateshift.config import Settings, load
from lateshift.errors import OptionInvalid, StoreError, StoreUnavailable
from lateshift.runtime.log import say
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.urls import in_memory, shown

C = TypeVar("C", bound=Callable[..., Any])

PATIENCE = 2.0  # seconds until somebody who waits is told why


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Kept on the outermost context, so that an option counts wherever on the line it stands."""
    if value:
        assert parameter.name is not None
        context.find_root().meta[f"lateshift.{parameter.name}"] = value


def remembered(name: str) -> Any:
    return click.get_current_context().find_root().meta.get(f"lateshift.{name}")


def common(command: C) -> C:
    """--store and --debug."""
    command = click.option(
        "--store", metavar="URL", expose_value=False, callback=_remember,
        help="The store; else LATESHIFT_STORE, lateshift.toml, ./lateshift.db.",
    )(command)  # fmt: skip
    return click.option(
        "--debug", is_flag=True, expose_value=False, callback=_remember, help="Show tracebacks of errors."
    )(command)


def listing(command: C) -> C:
    """--json, --store and --debug."""
    shown = click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=_remember,
        help="One JSON document, for programs.",
    )
    return common(shown(command))


def wants_json() -> bool:
    return bool(remembered("json"))


def store_url() -> str:
    return refuse_memory(load(store=remembered("store")).store)


def refuse_memory(url: str) -> str:
    """Commands and the workers they start are processes of their own, and could not see what is in it."""
    if in_memory(url):
        raise OptionInvalid(
            f"The store is {url}, which lives in one process: no command and no worker process can reach it. Name a file "
            "(sqlite:///jobs.db) or PostgreSQL. In a test, `async with app.running()` or lateshift.testing work on it."
        )
    return url


def opened_for(app: Any) -> AbstractContextManager[Store]:
    """The store that the command line names, else the app's own; it must be there. Of the app itself nothing is opened."""
    return opened(settings=None if remembered("store") else app.settings)


@contextmanager
def opened(*, checked: bool = True, settings: Settings | None = None) -> Iterator[Store]:
    """The store that the command line, the environment or the file names, closed at the end. Looking around makes none: a
    name with a typo would seem an empty store."""
    settings = settings or load(store=remembered("store"))
    url = refuse_memory(settings.store)
    store = open_store(url)
    try:
        if checked:
            with patience():
                if (missing := store.missing()) is not None:
                    raise StoreUnavailable(
                        f"There is no store {shown(url)} yet: {missing}. `lateshift up PROGRAM` and `lateshift store migrate` make "
                        "one; is this the right name, in the right folder?"
                    )
                store.ready()
        yield store
    finally:
        store.close()


@contextmanager
def patience() -> Iterator[None]:
    """A store that is away is asked again for a while: say so, rather than stand there in silence."""
    said = threading.Timer(PATIENCE, say, ("the store does not answer; trying on …",))
    said.daemon = True
    said.start()
    try:
        yield
    finally:
        said.cancel()


def operator() -> str:
    """Whoever gave the command, for the audit."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        return f"user {os.getuid()}"


def leave_a_line(store: Store, action: str, subject: str) -> None:
    """In the audit, of what is done to the store as a whole. Whoever may only read does what he may without it, and is told."""
    try:
        store.audit.record(action, subject, by=operator())
    except StoreError as error:
        click.echo(f"lateshift: the audit has no line of this: {error}", err=True)


def job_id(text: str) -> UUID:
    """The type of an argument that is a job's id, as `jobs list` shows it."""
    try:
        return UUID(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no job id. `lateshift jobs list` shows them.") from None
