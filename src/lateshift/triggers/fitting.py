"""Before a release: would this trigger work? Its task, its libraries and its address are looked at; nothing is connected."""

from importlib.util import find_spec

from lateshift.errors import LateshiftError
from lateshift.model.triggering.sources import MessageSource, RowSource
from lateshift.store.contract import Store
from lateshift.triggers.open import EXTRAS, open_source
from lateshift.triggers.schemes import LIBRARIES, scheme_of
from lateshift.triggers.trigger import Trigger


def fault(trigger: Trigger, store: Store) -> str | None:
    """Why it would not work; None if nothing is known against it."""
    try:
        _ = trigger.declared
        return trigger.misfit or _in_database(trigger, store) or _library(trigger, store)
    except LateshiftError as error:
        return str(error)
    except Exception as error:  # of a driver, or of the program's own annotations
        return f"{type(error).__name__}: {error}"


def _in_database(trigger: Trigger, store: Store) -> str | None:
    if not trigger.by_database:
        return None
    _ = trigger.in_database
    if store.one_machine:
        return 'by="database" needs a store in PostgreSQL, and this one is SQLite. Leave by= out, and the table is polled.'
    return None


def _library(trigger: Trigger, store: Store) -> str | None:
    if not trigger.is_read:
        return None
    open_source(trigger.where, store.url)
    match trigger.where:
        case RowSource(url=url):
            from lateshift.triggers.row_table import url_of

            url_of(url).get_dialect().import_dbapi()
        case MessageSource(url=url):
            needed = LIBRARIES.get(scheme_of(url))
            if needed is not None and not _is_installed(needed):
                return f"{needed} is not installed, which this trigger needs: pip install 'lateshift[{EXTRAS['kombu']}]'"
    return None


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False
