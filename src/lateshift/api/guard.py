"""What is looked at before any route: from where a request comes, for which host, and how large its head is.

Local is who has a local socket. No header is believed about where a request comes from, behind a proxy or not; a name that
somebody else's page was given for our address (DNS rebinding) is no name of ours."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import TypeAlias

from starlette.types import ASGIApp, Receive, Scope, Send

from lateshift.api.answering import problem_of
from lateshift.api.bounds import HEADERS_LIMIT, HEADERS_MOST, URL_LIMIT
from lateshift.api.head import Head, head_of
from lateshift.api.problem import Refused
from lateshift.api.rates import Rate, caller_at
from lateshift.errors import OptionInvalid
from lateshift.runtime.aside import for_a_caller

Network: TypeAlias = IPv4Network | IPv6Network
# Of these one value is read. Those that have a reader of their own, such as Authorization and Idempotency-Key, are refused there.
ONCE = {
    name.lower().encode(): name
    for name in ("Content-Type", "Content-Length", "Last-Event-ID", "Origin", "Sec-Fetch-Site", "Cookie")
}

BODILESS = ("GET", "HEAD")


class Guard:
    """`hosts`: names and addresses by which the server may be called, without ports. `peers`: networks of proxies; none
    is anybody who reaches the socket. `rate`: of one address; not of a proxy's."""

    def __init__(
        self,
        inner: ASGIApp,
        *,
        hosts: Collection[str],
        peers: Sequence[Network] = (),
        rate: Rate | None = None,
    ) -> None:
        self._inner = inner
        self._rate = rate
        self._hosts = frozenset(host_name(host) for host in hosts)
        self._peers = peers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        try:
            self._check(scope)
        except Refused as refused:
            await problem_of(refused, "the door")(scope, receive, send)
            return
        for_a_caller()
        await self._inner(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        self._check_peer(scope)
        if self._rate is not None and not self._peers and scope.get("client"):
            self._rate.take(caller_at(scope["client"][0]))
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > URL_LIMIT:
            raise Refused(414, "url-too-long", f"A path and its query have at most {URL_LIMIT:,} bytes.")
        head = head_of(scope)
        if head.count > HEADERS_MOST or head.size > HEADERS_LIMIT:
            raise Refused(
                431,
                "headers-too-large",
                f"There are at most {HEADERS_MOST} headers, of {HEADERS_LIMIT:,} bytes together.",
            )
        for name in head.twice:
            if name in ONCE:
                raise Refused(
                    400, "header-twice", f"{ONCE[name]} stands twice, and nobody knows which one is meant. Send it once.",
                    field=ONCE[name], headers={"Connection": "close"},
                )  # fmt: skip
        # Patterns of routes end with `$`, which passes over a line break: it would be a second way to the same.
        if scope["path"].endswith("\n"):
            raise Refused(404, "not-found", "There is nothing at a path that ends with a line break.")
        if b"transfer-encoding" in head and b"content-length" in head:
            raise Refused(
                400, "length-ambiguous", "Content-Length and Transfer-Encoding: where the body ends is said twice.",
                headers={"Connection": "close"},
            )  # fmt: skip
        if scope["method"] in BODILESS:
            _refuse_body(head)
        given = head.all(b"host")
        if len(given) != 1 or host_in(given[0]) not in self._hosts:
            raise Refused(
                421,
                "host-unknown",
                "This server is not known by that name. `lateshift serve --allow-host NAME` adds one, or hosts= of make_api.",
            )

    def _check_peer(self, scope: Scope) -> None:
        if not self._peers:
            return
        client = scope.get("client")
        try:
            address = ip_address(client[0]) if client else None
        except ValueError:
            address = None
        mapped = getattr(address, "ipv4_mapped", None)
        known = mapped or address
        if known is None or not any(known in network for network in self._peers):
            raise Refused(403, "peer-forbidden", "Only the proxies that the server was told of may ask it.")


def _refuse_body(head: Head) -> None:
    """Nobody reads one that comes with a question, and the server would hold what has come of it, counted by nobody, for as long as the
    answer takes. Raises Refused."""
    if b"transfer-encoding" in head or head.first(b"content-length").strip("0"):
        raise Refused(
            400, "body-unexpected", "A GET or HEAD has no body: what it asks stands in its path and its query. Send it without one.",
            headers={"Connection": "close"},
        )  # fmt: skip


@lru_cache(maxsize=256)
def host_in(header: str) -> str:
    """Without its port, and in small letters: `[::1]:8642` is `::1`."""
    host = header.strip().lower()
    if host.startswith("["):
        inside, bracket, rest = host[1:].partition("]")
        return inside if bracket and (not rest or (rest[1:].isdigit() and rest[0] == ":")) else ""
    name, colon, port = host.partition(":")
    return name if not colon or port.isdigit() else ""


def host_name(given: str) -> str:
    """A name or an address, as it stands in Host before the port. Raises OptionInvalid."""
    host = given.lower().removeprefix("[").removesuffix("]")
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    if not host or re.search(r"[:/\\@?#\s\[\]*]", host):
        name = host_in(host.rpartition("://")[2].partition("/")[0]) or "jobs.example.com"
        raise OptionInvalid(
            f"{given!r} is no name by which clients call a server: it is one host, without a scheme, a port or a path, such as {name}, and good "
            "for every port."
        )
    return host
