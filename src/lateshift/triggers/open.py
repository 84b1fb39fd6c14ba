"""From where a trigger looks to what looks there. What a source needs is imported when one is opened: each is an extra."""

from lateshift.errors import TriggerInvalid
from lateshift.model.triggering.sources import (
    BlobSource,
    EventSource,
    FileSource,
    MessageSource,
    RowSource,
    WebhookSource,
)  # fmt: skip
from lateshift.model.triggering.sources import (
    Source as Where,
)
from lateshift.triggers.source import Source

EXTRAS = {"kombu": "brokers", "watchfiles": "files", "obstore": "blobs", "sqlalchemy": "sqlalchemy"}


def open_source(where: Where, store: str = "") -> Source:
    """Not connected yet. Raises TriggerInvalid, with what to install, where a library is missing. `store`: the URL of the store that
    its jobs go to."""
    try:
        match where:
            case MessageSource():
                from lateshift.triggers.messages import Messages

                return Messages(where)
            case FileSource():
                from lateshift.triggers.files import Files

                return Files(where)
            case BlobSource():
                from lateshift.triggers.blobs import Blobs

                return Blobs(where)
            case RowSource():
                from lateshift.triggers.rows import Rows

                return Rows(where, store)
            case EventSource() | WebhookSource():
                raise TypeError("these are told, not read from a source")
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise TriggerInvalid(
            f"{error.name} is not installed, which this trigger needs: pip install 'lateshift[{extra}]'"
        ) from error
