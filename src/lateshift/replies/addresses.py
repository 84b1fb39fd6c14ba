"""Where a name leads, and whether anything may be sent there: a URL must not reach what only this machine, or its network, can reach."""

import socket
from collections.abc import Sequence
from concurrent.futures import Future
from datetime import timedelta
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from threading import Thread

from lateshift.errors import WebhookFailed

TRIED = 3  # addresses of one name, at the most
RESOLVED_WITHIN = timedelta(seconds=10)

_INTERNAL = [
    ip_network(network)
    for network in (
        "127.0.0.0/8",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "::1/128",
        "fc00::/7",
    )
]
# Where clouds tell a machine its secrets, in networks that are open or internal otherwise.
_METADATA = {ip_address(text) for text in ("168.63.129.16", "100.100.100.200", "fd00:ec2::254")}
_TRANSLATED = IPv6Network("64:ff9b::/96")  # NAT64: the last 32 bits are an IPv4 address
# Of no use outside, though not every Python says so: NAT64 of one's own network, where the IPv4 address may stand anywhere in it; what
# routers do with packets; what protocols were given.
_APART = [ip_network(network) for network in ("64:ff9b:1::/48", "5f00::/16", "192.0.0.0/24")]


class Reach(Enum):
    """Who can reach an address."""

    PUBLIC = "everybody"
    INTERNAL = "this machine, or its network"
    NOBODY = "nobody by rights"  # link-local addresses, where clouds keep their secrets; multicast; what is reserved


def reach_of(address: str) -> Reach:
    """Of an address as the resolver gives it. One that stands for another is judged by that."""
    ip = ip_address(address)
    if isinstance(ip, IPv6Address):
        meant = _meant(ip)
        if meant is not None:
            return reach_of(str(meant))
        if ip.is_site_local:
            return Reach.NOBODY
    if ip in _METADATA or _within(ip, _APART):
        return Reach.NOBODY
    if _within(ip, _INTERNAL):
        return Reach.INTERNAL
    is_open = ip.is_global and not (
        ip.is_multicast or ip.is_reserved or ip.is_unspecified or ip.is_link_local
    )
    return Reach.PUBLIC if is_open else Reach.NOBODY


def _within(ip: IPv4Address | IPv6Address, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    return any(ip.version == network.version and ip in network for network in networks)


def _meant(ip: IPv6Address) -> IPv4Address | None:
    if ip in _TRANSLATED:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)


def resolved(host: str, port: int) -> list[str]:
    """All addresses of a name, in the order in which they are to be tried. Raises WebhookFailed, also where nobody says them in time: the
    system's resolver may take minutes, and a delivery has one."""
    asked: Future[list[str]] = Future()
    Thread(target=_ask, args=(asked, host, port), name="addresses", daemon=True).start()
    try:
        return asked.result(RESOLVED_WITHIN.total_seconds())
    except TimeoutError as error:
        raise WebhookFailed(
            f"{host}: nobody has said its address within {RESOLVED_WITHIN.total_seconds():.3g} s"
        ) from error
    except (OSError, UnicodeError) as error:
        raise WebhookFailed(f"{host} has no address: {error}") from error


def _ask(asked: Future[list[str]], host: str, port: int) -> None:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        asked.set_result(list(dict.fromkeys(str(place[0]) for *_, place in found)))
    except Exception as error:
        asked.set_exception(error)


def refusal(addresses: list[str], *, internal: bool, encrypted: bool) -> str | None:
    """Why nothing is sent to a name with these addresses, one of which is as good as all; None if it may be."""
    for address in addresses:
        reach = reach_of(address)
        if reach is Reach.NOBODY:
            return f"its address {address} is none to send to"
        if reach is Reach.INTERNAL and not internal:
            return f"its address {address} is of this machine or its network. If that is meant, say internal=True"
        if reach is Reach.PUBLIC and not encrypted:
            return f"its address {address} is public: use https"
    return None
