"""Where a program's HTTP API listens, for `serve` and `up`: the options that say so, and an API that listens from now on."""

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lateshift.cli.numbers import Whole
from lateshift.cli.options import operator
from lateshift.errors import OptionInvalid
from lateshift.runtime.log import log, say

if TYPE_CHECKING:
    import asyncio

    from lateshift.api.binding import Binding
    from lateshift.api.serving import Server
    from lateshift.app.app import Lateshift
    from lateshift.dashboard.site import Site
    from lateshift.runtime.loop import Part

C = TypeVar("C", bound=Callable[..., Any])

HOST = "127.0.0.1"
PORT = 8642
FIRST_TOKEN = "admin"
GET_IT = "pip install 'lateshift[serve]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """As it was asked for; None is what was left out."""

    host: str | None
    port: int | None
    allowed: tuple[str, ...]
    proxies: tuple[str, ...]
    certificate: Path | None
    key: Path | None
    rate: int | None = None

    @property
    def is_asked_for(self) -> bool:
        return any(value not in (None, ()) for value in (self.host, self.port, self.allowed, self.proxies, self.certificate, self.key))  # fmt: skip

    def binding(self) -> "Binding":
        """Raises OptionInvalid for what must not be."""
        from lateshift.api.binding import binding_of

        port = PORT if self.port is None else self.port
        return binding_of(
            self.host or HOST, port, allowed=self.allowed, proxies=self.proxies, certificate=self.certificate, key=self.key
        )  # fmt: skip


def place_options(command: C) -> C:
    """The options; what is given goes into `place`."""

    def placed(
        *args: Any, host: str | None, port: int | None, allowed: tuple[str, ...], proxies: tuple[str, ...],
        certificate: Path | None, key: Path | None, rate: int | None, **others: Any,
    ) -> Any:  # fmt: skip
        place = Place(
            host=host,
            port=port,
            allowed=allowed,
            proxies=proxies,
            certificate=certificate,
            key=key,
            rate=rate,
        )
        return command(*args, place=place, **others)

    placed.__doc__ = command.__doc__
    placed.__name__ = command.__name__
    placed.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in (
        click.option("--rate", type=Whole(1, 1_000_000), metavar="N",
                     help="Requests in a second of one token, and of one address; more are answered 429."),
        click.option("--tls-key", "key", type=click.Path(path_type=Path), metavar="FILE", help="Its private key, PEM."),
        click.option("--tls-cert", "certificate", type=click.Path(path_type=Path), metavar="FILE",
                     help="A certificate chain, PEM."),
        click.option("--behind-proxy", "proxies", multiple=True, metavar="CIDR",
                     help="Only these proxies may ask; they have the TLS."),
        click.option("--allow-host", "allowed", multiple=True, metavar="NAME",
                     help="A name by which clients call it, besides its address."),
        click.option("--port", type=Whole(0, 65535), metavar="N", help=f"0 is one that is free ({PORT})."),
        click.option("--host", metavar="ADDRESS", help=f"Where the API listens ({HOST})."),
    ):  # fmt: skip
        placed = option(placed)
    return placed  # type: ignore[return-value]


def missing_packages() -> list[str]:
    return [name for name in ("jinja2", "starlette", "uvicorn") if find_spec(name) is None]


def require_extra() -> None:
    if missing := missing_packages():
        raise OptionInvalid(f"The HTTP API needs {' and '.join(missing)}, not installed here: {GET_IT}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """An API and a dashboard whose connections wait from now on, and are answered while `run` runs. `link`: signs in one browser,
    on this machine. `has_tokens`: whether anybody may ask. `elsewhere`: on a free port, as another program has the usual one."""

    url: str
    link: str | None
    has_tokens: bool
    elsewhere: bool
    _site: "Site"
    _server: "Server"
    _socket: socket.socket
    _beside: "Sequence[Part]"

    @property
    def shown(self) -> str:
        """The link, until it is used up; then where the server is."""
        return self.link if self.link is not None and self._site.link_is_good else self.url

    async def run(self, stopping: "asyncio.Event") -> None:
        import asyncio

        from lateshift.api.serving import serve
        from lateshift.runtime.loop import drive, resign

        ended = asyncio.Event()
        beside = [asyncio.create_task(drive(part, ended)) for part in self._beside]
        try:
            async with self._site.at_home():
                await serve(self._server, self._socket, stopping)
        finally:
            ended.set()
            await asyncio.gather(*beside)
            await resign(*self._beside)


@contextmanager
def opened_door(app: "Lateshift", place: Place, *, or_free: bool = False) -> Iterator[Door]:
    """`or_free`: on a free port, if the one that was asked for is taken. Raises OptionInvalid for what must not be, for an address that cannot be had and for a certificate that cannot be used."""
    from lateshift.api.binding import require_tokens
    from lateshift.api.bounds import BOUNDS, Bounds
    from lateshift.api.serving import listening, server_of
    from lateshift.dashboard.site import Site
    from lateshift.model.ids import new_member_id
    from lateshift.supervisor.sampler import Sampler
    from lateshift.triggers.hearing import Hearing

    binding = place.binding()
    some = _has_good_token(app)
    require_tokens(binding, some=some)
    app.declare_webhooks()
    bounds = BOUNDS if place.rate is None else Bounds(token_rate=place.rate, address_rate=place.rate)
    with listening(binding, or_free=or_free) as at:
        port = at.getsockname()[1]
        site = Site(
            app, hosts=binding.hosts, peers=binding.peers, secure=binding.is_secure, port=port, bounds=bounds
        )
        url = binding.url(port)
        hearing = Hearing(app.store, app.name, app.triggers, url)
        for name, missing in hearing.missing().items():
            say(f"the webhook {name} misses {', '.join(missing)} in the environment")
        yield Door(
            url=url, link=url + site.sign_in_path() if binding.is_local else None, has_tokens=some,
            elsewhere=binding.port not in (0, port), _site=site, _server=server_of(site.application, binding), _socket=at,
            _beside=(hearing, Sampler(app.store, new_member_id())),
        )  # fmt: skip


def _has_good_token(app: "Lateshift") -> bool:
    """One that is revoked or expired lets nobody in."""
    from lateshift.model.access import TokenState

    return bool(app.store.tokens.list(1, state=TokenState.GOOD))


def show_link(door: Door) -> None:
    """Whoever sees the terminal may do what whoever started the program may."""
    if door.link is not None:
        click.echo(f"Sign in, once, with {door.link}")


def show_first_token(app: "Lateshift") -> None:
    """Shown once: what is kept is a digest of it."""
    from lateshift.model.access import Scope, new_token

    # One that has expired keeps its name.
    names = chain([FIRST_TOKEN], (f"{FIRST_TOKEN}-{number}" for number in count(2)))
    name = next(name for name in names if app.store.tokens.named(name) is None)
    token, text = new_token(name, [Scope.ADMIN], [], at=app.store.clock.now(), by=operator())
    app.store.tokens.create(token)
    click.echo(f"\nThe first token, which may do all. It is shown this once, and kept nowhere:\n{text}")


# -- inside `up` ----------------------------------------------------------------------------------------------


@contextmanager
def beside_workers(app: "Lateshift", place: Place | None) -> Iterator[Door | None]:
    """For `up`: None where none is wanted, or the packages are missing, which is told. Without a --port, one that is free is
    taken if the usual one is not: several may be up on one machine."""
    if place is None:
        yield None
        return
    if missing_packages():
        say(f"without the HTTP API, which needs {GET_IT} (--no-api says nothing of it)")
        yield None
        return
    with opened_door(app, place, or_free=place.port is None) as door:
        yield door


async def answering(door: Door, stopping: "asyncio.Event") -> None:
    """Workers go on whatever becomes of it."""
    log.info(
        "%s: the HTTP API and the dashboard%s%s",
        door.url,
        f" (another program has port {PORT})" if door.elsewhere else "",
        "" if door.has_tokens else "; it needs a token: lateshift tokens create",
    )
    try:
        await door.run(stopping)
    except Exception:
        log.exception("the HTTP API has ended")
