"""Blobs as a source of events: a listing from time to time, by obstore. What a job was made of stands in the receipts; those of
blobs that are gone are found by laying the listing beside them, both in the order of their names."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import obstore
from obstore.store import AzureStore, GCSStore, S3Store

from lateshift.clock import SYSTEM, Clock
from lateshift.errors import TriggerInvalid
from lateshift.model.triggering.events import FileChange
from lateshift.model.triggering.sources import BlobSource
from lateshift.model.triggering.trigger import is_whole, known_by
from lateshift.runtime.log import log
from lateshift.triggers.patterns import PathPattern, literal
from lateshift.triggers.source import Incoming, Read, Receipts, SourceAway

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

PAGE = 1000  # blobs, or receipts, at a time
GONE_MOST = 10_000  # receipts that one listing forgets; the next goes on
LEAST_PAUSE = 0.05  # seconds
TOLD = 500  # characters of an error of the server

# A server that does not answer is given up soon, and asked again by the reader.
TIMES = {"timeout": "10s", "connect_timeout": "3s"}
RETRY: Any = {"max_retries": 2, "retry_timeout": timedelta(seconds=5)}


class Blobs:
    """See source.Source."""

    keep: timedelta | None = None

    def __init__(self, where: BlobSource, clock: Clock = SYSTEM, store: "ObjectStore | None" = None) -> None:
        self._where = where
        self._root = f"{where.url}/"
        self._pattern = PathPattern(where.pattern)
        self._prefix = literal(where.pattern)[0] or None
        self._every = where.every.total_seconds()
        self._monotonic = clock.monotonic
        self._store = store
        self._receipts: Receipts
        self._pass: Iterator[list[Incoming]] | None = None
        self._found: list[Incoming] = []  # of one page, not yet given
        self._list_at = 0.0
        self._told_disorder = False

    def open(self, position: bytes | None, receipts: Receipts) -> None:
        self._receipts = receipts
        self._list_at = self._monotonic()
        if self._store is None:
            try:
                self._store = _opened(self._where)
            except Exception as error:  # obstore's are many, and some are Python's own
                raise SourceAway(f"{self._where.url} cannot be opened: {self._told(error)}") from None

    def read(self, limit: int, wait: float) -> Read:
        until = self._monotonic() + wait
        if self._pass is None and not self._found and self._monotonic() >= self._list_at:
            self._pass = self._list()
        events: list[Incoming] = []
        while len(events) < limit and self._monotonic() < until:
            if self._found:
                count = limit - len(events)
                events += self._found[:count]
                del self._found[:count]
            elif self._pass is not None:
                self._step(self._pass)
            else:
                break
        more = self._pass is not None or bool(self._found)
        pause = timedelta(seconds=max(self._list_at - self._monotonic(), LEAST_PAUSE))
        return Read(events, more=more, pause=pause)

    def done(self, events: list[Incoming]) -> None:
        """A blob is not ours to acknowledge: its receipt says all."""

    def close(self) -> None:
        self._pass, self._found = None, []

    # -- one listing ----------------------------------------------------------------------------------------------

    def _step(self, listing: Iterator[list[Incoming]]) -> None:
        try:
            found = next(listing, None)
        except (obstore.exceptions.BaseError, OSError, ValueError) as error:
            raise SourceAway(f"{self._where.url} cannot be listed: {self._told(error)}") from None
        if found is None:
            self._pass = None
            self._list_at = self._monotonic() + self._every
        else:
            self._found = found

    def _list(self) -> Iterator[list[Incoming]]:
        """New and changed blobs, a page at a time; then what has gone is forgotten, a page at a time."""
        assert self._store is not None
        gone = Gone(self._receipts, self._is_ours)
        for page in obstore.list(self._store, self._prefix, chunk_size=PAGE):
            blobs = [blob for blob in page if self._pattern.matches(blob["path"])]
            gone.there([self._root + blob["path"] for blob in blobs])
            yield self._unseen(blobs)
        if gone.disorder is None:
            for _ in gone.rest():
                yield []
            for place in range(0, len(gone.events), PAGE):
                self._receipts.forget(gone.events[place : place + PAGE])
                yield []
        elif not self._told_disorder:
            self._told_disorder = True
            log.warning(
                "%s is not listed in the order of names (%s): blobs that are gone from it are not forgotten",
                self._where.url, gone.disorder,
            )  # fmt: skip

    def _unseen(self, blobs: Sequence["ObjectMeta"]) -> list[Incoming]:
        incoming = [self._incoming(blob) for blob in blobs]
        unseen = self._receipts.unseen([(known_by(each.event), each.mark) for each in incoming])
        return [each for each, is_new in zip(incoming, unseen, strict=True) if is_new]

    def _incoming(self, blob: "ObjectMeta") -> Incoming:
        """Known by the time, too: S3 gives the same bytes the same etag, though they were deleted and came again."""
        url = self._root + blob["path"]
        etag = blob["e_tag"] or str(blob["size"])
        seen = FileChange(path=url, size=blob["size"], modified=blob["last_modified"], etag=etag)
        return Incoming(url, seen, f"{etag} {blob['last_modified'].isoformat()}")

    def _is_ours(self, event: str) -> bool:
        """Whether the listing would have it, if it is there: it may be of a pattern that the trigger had before."""
        return (
            is_whole(event)
            and event.startswith(self._root)
            and self._pattern.matches(event[len(self._root) :])
        )

    def _told(self, error: Exception) -> str:
        return told(str(error), self._where.options)


class Gone:
    """Finds receipts without a blob, in one pass over both. Nothing is sure before its end: one blob out of its place, and
    what seemed to be gone may follow later."""

    def __init__(self, receipts: Receipts, is_ours: Callable[[str], bool]) -> None:
        self._receipts = receipts
        self._is_ours = is_ours
        self._page: list[str] = []  # the next one last
        self._after: str | None = ""
        self._last = ""
        self.events: list[str] = []
        self.disorder: str | None = None

    def there(self, events: Sequence[str]) -> None:
        """The listing has come to these."""
        for event in events:
            if event < self._last:
                self.disorder = f"{self._last} before {event}"
            self._last = event
            while (receipt := self._next()) is not None and receipt <= event:
                self._pass(receipt, gone=receipt != event)

    def rest(self) -> Iterator[None]:
        """The listing has come to its end."""
        while (receipt := self._next()) is not None and len(self.events) < GONE_MOST:
            if len(self._page) == 1:
                yield
            self._pass(receipt, gone=True)

    def _next(self) -> str | None:
        if not self._page and self._after is not None:
            page = self._receipts.after(self._after, PAGE)
            self._after = page[-1] if len(page) == PAGE else None
            self._page = page[::-1]
        return self._page[-1] if self._page else None

    def _pass(self, receipt: str, *, gone: bool) -> None:
        self._page.pop()
        if gone and len(self.events) < GONE_MOST and self._is_ours(receipt):
            self.events.append(receipt)


def _opened(where: BlobSource) -> "ObjectStore":
    """Whatever the options do not say is taken from the environment, as obstore does."""
    scheme, _, name = where.url.partition("://")
    said = " ".join(where.options).lower()
    # As options, not as client_options: those would displace what the environment says of the client.
    options: Any = {key: value for key, value in TIMES.items() if key not in said} | where.options
    match scheme:
        case "s3":
            return S3Store(name, config=options, retry_config=RETRY)
        case "az":
            return AzureStore(name, config=options, retry_config=RETRY)
        case "gs":
            return GCSStore(name, config=options, retry_config=RETRY)
    raise TriggerInvalid(f"{where.url}: blobs are found under s3://, az:// or gs://")


_PUBLIC = re.compile(r"endpoint|region|bucket|container|account_name|allow_http|timeout", re.IGNORECASE)


def told(text: str, options: Mapping[str, str]) -> str:
    """What a server said, on one line, without what it repeats of the request: signatures, tokens and keys."""
    text = text.partition("\n\nDebug source")[0]
    head, found, body = text.partition("<?xml")
    if not found:
        head, found, body = text.partition("<Error>")
    if found:
        said = [re.search(f"<{tag}>(.*?)</{tag}>", body, re.DOTALL) for tag in ("Code", "Message")]
        head += ": ".join(each.group(1).partition("\n")[0] for each in said if each)
    head = re.sub(r"\?[^\s)\]}\"']*", "", head)
    for name, value in options.items():
        if len(value) > 3 and not _PUBLIC.search(name):
            head = head.replace(value, "***")
    return " ".join(head.split())[:TOLD]
