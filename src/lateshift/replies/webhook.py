"""An outgoing webhook: one signed POST, by the rules of Standard Webhooks, to an address that was looked at first. Who sends what, and
when it is tried again, is for others to say."""

import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import urlsplit

from lateshift.errors import OptionInvalid, Permanent, WebhookFailed, WebhookGone
from lateshift.model.reply import URL_LIMIT
from lateshift.replies.addresses import TRIED, refusal, resolved
from lateshift.replies.signing import Secrets

BODY_LIMIT = 20_000  # bytes
TIMEOUT = timedelta(seconds=15)  # for all of one delivery
ANSWER_LIMIT = 4 * 1024  # bytes that are read of an answer
LONGEST_WISH = timedelta(days=1)  # of a receiver that names its own Retry-After

PORTS = {"https": 443, "http": 80}
GONE = 410  # the receiver wants no more of it
WISHES = (429, 502, 503, 504)


class Endpoint:
    """One receiver. `internal`: it stands on this machine or in its network, where http will do. Raises OptionInvalid."""

    def __init__(self, url: str, secret: str | Sequence[str], *, internal: bool = False) -> None:
        self._secrets = Secrets(secret)
        refuse_foreign(str(url))
        try:
            parts = urlsplit(str(url))
            port = parts.port
        except ValueError as error:
            raise OptionInvalid(
                "The URL of a webhook cannot be read: look at its host and its port."
            ) from error
        if parts.scheme not in PORTS or not parts.hostname:
            raise OptionInvalid("The URL of a webhook is such as https://hooks.example.com/alerts.")
        if parts.scheme == "http" and not internal:
            raise OptionInvalid(
                "A webhook goes over https. http is for receivers in one's own network: say internal=True."
            )
        if parts.username is not None or parts.password is not None or parts.fragment:
            raise OptionInvalid(
                "The URL of a webhook has no name or password, and no #: the signature says who sends it."
            )
        self.internal = internal
        self.host = parts.hostname
        self.port = port or PORTS[parts.scheme]
        self.encrypted = parts.scheme == "https"
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._named = parts.netloc
        self._refuse_literal()

    def __repr__(self) -> str:
        return f"<Endpoint {self}>"

    def __str__(self) -> str:
        """Without its path: what is in it may be a secret."""
        return f"{'https' if self.encrypted else 'http'}://{self._named}/…"

    def post(self, id: str, body: bytes, at: datetime) -> None:
        """`id`: the same for the same message, however often it is tried. Blocking, for TIMEOUT and the time that a name takes. Raises
        WebhookFailed, which another try may mend; Permanent if none can."""
        if len(body) > BODY_LIMIT:
            raise Permanent(
                f"The body of a webhook is {len(body):,} bytes, over the limit of {BODY_LIMIT:,}."
            )
        addresses = resolved(self.host, self.port)
        why = refusal(addresses, internal=self.internal, encrypted=self.encrypted)
        if why is not None:
            raise WebhookFailed(f"Nothing is sent to {self}: {why}.")
        stamp = int(at.timestamp())
        try:
            signatures = self._secrets.signatures(id, stamp, body)
        except OptionInvalid as error:  # of this worker's environment: another may have what is missing
            raise WebhookFailed(f"Nothing is sent to {self}: {error}") from None
        headers = {
            "Host": self._named, "Content-Type": "application/json", "User-Agent": "lateshift", "Connection": "close",
            "webhook-id": id, "webhook-timestamp": str(stamp), "webhook-signature": signatures,
        }  # fmt: skip
        try:
            with self._connected(addresses) as connection:
                connection.request("POST", self._target, body, headers)
                with connection.getresponse() as answer:
                    answer.read(ANSWER_LIMIT)
        except (OSError, HTTPException) as error:
            raise WebhookFailed(f"{self} did not answer: {type(error).__name__}: {error}") from error
        self._judge(answer)

    def _judge(self, answer: HTTPResponse) -> None:
        """By its status alone: what it says may repeat the path, and that may be a secret."""
        status = answer.status
        if 200 <= status < 300:
            return
        if status == GONE:
            raise WebhookGone(f"{self} says that it is gone (410): it wants no more webhooks.")
        if 300 <= status < 400:
            raise WebhookFailed(
                f"{self} answered {status}, a redirect, which is not followed. Give the URL where it leads to."
            )
        raise WebhookFailed(f"{self} answered {status}", _wish(answer) if status in WISHES else None)

    @contextmanager
    def _connected(self, addresses: list[str]) -> Iterator[HTTPConnection]:
        """To the first of these that can be reached; none but these, whatever the name leads to by now. Past TIMEOUT it is cut."""
        seconds = TIMEOUT.total_seconds()
        end = time.monotonic() + seconds
        reached = _reached([(address, self.port) for address in addresses[:TRIED]], seconds)
        reached.settimeout(seconds)
        if self.encrypted:
            secure = ssl.create_default_context()
            reached = secure.wrap_socket(reached, server_hostname=self.host, do_handshake_on_connect=False)
        cut = threading.Timer(max(0.0, end - time.monotonic()), _cut, (reached,))
        cut.daemon = True
        cut.start()
        connection = HTTPConnection(self.host, self.port)
        connection.sock = reached
        try:
            if isinstance(reached, ssl.SSLSocket):
                reached.do_handshake()
            yield connection
        finally:
            cut.cancel()
            connection.close()
            reached.close()

    def _refuse_literal(self) -> None:
        """An address that is written out is known to be wrong before anything is sent."""
        try:
            why = refusal([self.host], internal=self.internal, encrypted=self.encrypted)
        except ValueError:  # a name
            return
        if why is not None:
            raise OptionInvalid(f"Nothing can be sent to {self}: {why}.")


def refuse_foreign(url: str) -> None:
    """Raises OptionInvalid for what cannot stand in a request, without repeating it."""
    if not 0 < len(url) <= URL_LIMIT or not re.fullmatch(r"[!-~]+", url):
        raise OptionInvalid(
            f"The URL of a webhook is up to {URL_LIMIT:,} ASCII characters, without spaces. Write others as %C3%A9."
        )


def _reached(places: list[tuple[str, int]], seconds: float) -> socket.socket:
    *others, last = places
    for place in others:
        with suppress(OSError):
            return socket.create_connection(place, timeout=seconds / len(places))
    return socket.create_connection(last, timeout=seconds / len(places))


def _cut(reached: socket.socket) -> None:
    """Whoever waits for an answer on it, however slowly that comes, waits no more. Below TLS, which is the other thread's."""
    with suppress(OSError):
        socket.socket.shutdown(reached, socket.SHUT_RDWR)


def _wish(answer: HTTPResponse) -> timedelta | None:
    """How long the receiver wants to be left alone, if it says so in seconds."""
    said = answer.getheader("Retry-After", "").strip()
    return (
        min(timedelta(seconds=int(said)), LONGEST_WISH)
        if said.isascii() and said.isdigit() and len(said) < 10
        else None
    )
