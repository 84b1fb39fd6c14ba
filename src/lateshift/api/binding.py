"""Where a server may listen: on this machine, or elsewhere with credentials and with TLS or a declared proxy. Decisions only."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_address, ip_network
from pathlib import Path

from lateshift.api.application import LOOPBACK
from lateshift.api.guard import Network, host_name
from lateshift.errors import OptionInvalid

# Addresses that everybody may come from, of which proxies have as many as a /8 of IPv4 and a /20 of IPv6 at the most: a provider's are
# fewer. Of those that are nobody's but one's own any number may be.
PUBLIC_MOST = {4: 2**24, 6: 2**108}
OWN = tuple(
    map(
        ip_network,
        (
            "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "fc00::/7", "fe80::/10",
            "::1/128",
        ),
    )
)  # fmt: skip
MAPPED = IPv6Network("::ffff:0:0/96")  # all of IPv4 once more


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What was asked for, read and found possible. `hosts`: by which names clients may call the server."""

    host: str
    port: int
    hosts: tuple[str, ...]
    peers: tuple[Network, ...] = ()
    certificate: Path | None = None
    key: Path | None = None

    @property
    def is_local(self) -> bool:
        return _is_loopback(self.host)

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by TLS, its own or a proxy's."""
        return self.certificate is not None or bool(self.peers)

    def url(self, port: int) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{shown}:{port}"


def binding_of(
    host: str, port: int, *, allowed: Sequence[str] = (), proxies: Sequence[str] = (), certificate: Path | None = None,
    key: Path | None = None,
) -> Binding:  # fmt: skip
    """Raises OptionInvalid for what must not be, and says what to do."""
    if (certificate is None) != (key is None):
        raise OptionInvalid("TLS needs both --tls-cert and --tls-key.")
    for file in (certificate, key):
        if file is not None and not file.is_file():
            raise OptionInvalid(f"There is no file {file}. --tls-cert and --tls-key name files in PEM form.")
    peers = _peers(proxies)
    local = _is_loopback(host)
    if not local and certificate is None and not peers:
        raise OptionInvalid(
            f"{host} can be reached from elsewhere, and tokens would be sent in the clear: give --tls-cert and --tls-key, or "
            "--behind-proxy with the addresses of the proxy that has TLS. Or leave --host out: then it is for this machine only."
        )
    names = [*(LOOPBACK if local else ()), *map(host_name, allowed)]
    if not _is_any(host) and host not in names:
        names.append(host)
    if not names:
        raise OptionInvalid(
            f"{host} is every address of this machine: say by which names clients call it, --allow-host jobs.example.com"
        )
    return Binding(host=host, port=port, hosts=tuple(names), peers=peers, certificate=certificate, key=key)


def require_tokens(binding: Binding, *, some: bool) -> None:
    """On this machine the first token is made at the first start. Elsewhere somebody has made one before. Raises OptionInvalid."""
    if not some and not binding.is_local:
        raise OptionInvalid(
            f"The store has no token that is good, and {binding.host} can be reached from elsewhere. Make one first: `lateshift tokens create`, "
            "or start it once without --host."
        )


def _peers(proxies: Sequence[str]) -> tuple[Network, ...]:
    """Those who may ask. That everybody may is what --behind-proxy is there against: whoever asks says himself that he came by TLS, and
    by which name."""
    peers = tuple(_network(proxy) for proxy in proxies)
    fours = [four for peer in peers if (four := _four(peer)) is not None]
    sixes = [peer for peer in peers if isinstance(peer, IPv6Network) and not peer.subnet_of(MAPPED)]
    if (
        _public(collapse_addresses(fours)) > PUBLIC_MOST[4]
        or _public(collapse_addresses(sixes)) > PUBLIC_MOST[6]
    ):
        raise OptionInvalid(
            f"--behind-proxy {', '.join(proxies)} is everybody, or nearly. Name the addresses of the proxy, such as 10.0.0.7 or 10.0.0.0/24, "
            "of public ones no more than a /8 of IPv4 and a /20 of IPv6 together: whoever may ask without it sends tokens in the clear."
        )
    return peers


def _four(peer: Network) -> IPv4Network | None:
    """What of it is IPv4, also written as IPv6."""
    if isinstance(peer, IPv4Network):
        return peer
    if MAPPED.subnet_of(peer):
        return IPv4Network("0.0.0.0/0")
    if not peer.subnet_of(MAPPED):
        return None
    return IPv4Network((int(peer.network_address) & (2**32 - 1), peer.prefixlen - MAPPED.prefixlen))


def _public(peers: Iterable[Network]) -> int:
    """How many addresses these have together that are not one's own."""
    return sum(peer.num_addresses - sum(_shared(peer, own) for own in OWN) for peer in peers)


def _shared(one: Network, other: Network) -> int:
    """How many addresses two networks have both."""
    return min(one.num_addresses, other.num_addresses) if one.overlaps(other) else 0


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise OptionInvalid(
            f"--behind-proxy takes an address or a network such as 10.0.0.0/24: {error}."
        ) from None


def _is_loopback(host: str) -> bool:
    """Names are not asked of a resolver, but for the one that is fixed."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_any(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
