"""The style sheet and the scripts: our own, and those of others that `make assets` fetched when the package was built. Pages
work without the latter. A file is asked for by a name with its digest, so it may be kept for ever."""

from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

from lateshift.api.problem import ALWAYS

KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@cache
def _all() -> dict[str, tuple[bytes, str]]:
    """By the name they are asked for with: content and type."""
    return {
        _address(name, content): (content, KINDS[name[name.rindex(".") :]])
        for name, content in _contents().items()
    }


@cache
def _contents() -> dict[str, bytes]:
    static = files("lateshift.dashboard") / "static"
    found = {each.name: each.read_bytes() for each in _files(static)}
    vendor = static / "vendor"
    return found | (
        {f"vendor-{each.name}": each.read_bytes() for each in _files(vendor)} if vendor.is_dir() else {}
    )


def _files(folder: Traversable) -> list[Traversable]:
    return [
        each for each in folder.iterdir() if each.is_file() and each.name[each.name.rfind(".") :] in KINDS
    ]


def _address(name: str, content: bytes) -> str:
    stem, dot, kind = name.rpartition(".")
    return f"{stem}.{blake2b(content, digest_size=8).hexdigest()}{dot}{kind}"


def address_of(name: str) -> str:
    return f"/static/{_address(name, _contents()[name])}"


def has_vendor(name: str) -> bool:
    return f"vendor-{name}" in _contents()


async def give_file(request: Request) -> Response:
    found = _all().get(request.path_params["name"])
    if found is None:
        return Response(None, 404, ALWAYS)
    headers = ALWAYS | {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(found[0], 200, headers, found[1])
