"""Addresses of brokers, as they may be shown: without anything that opens a door."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

HIDDEN = "…"
_SECRET = re.compile(r"pass|secret|token|key|sig|credential", re.IGNORECASE)
_SHORTEST = 4  # characters; what is shorter says nothing, and would be found everywhere


def bare(url: str) -> str:
    """Without a user and a password: where Azure is concerned, the user is the key. Of several addresses, the first."""
    scheme, slashes, rest = url.split(";")[0].partition("://")
    place = rest.rpartition("@")[2].partition("?")[0]
    return f"{scheme}{slashes}{place}"


def without_secrets(text: str, url: str, options: Mapping[str, Any]) -> str:
    """A driver's message, in which it may have repeated what it was given."""
    for secret in sorted(_secrets(url, options), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _secrets(url: str, options: Mapping[str, Any]) -> set[str]:
    found = {str(value) for name, value in options.items() if _SECRET.search(name) and isinstance(value, str)}
    for each in url.split(";"):
        credentials, at, place = each.partition("://")[2].rpartition("@")
        if at:
            user, colon, password = credentials.partition(":")
            found.add(password if colon else user)
        query = (place if at else each).partition("?")[2]
        found |= {
            part.partition("=")[2] for part in query.split("&") if _SECRET.search(part.partition("=")[0])
        }
    found |= {unquote(each) for each in found}
    return {each for each in found if len(each) >= _SHORTEST}
