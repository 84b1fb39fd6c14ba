"""Store URLs: in messages never with a password; and whether one names memory."""

import re


def shown(url: str) -> str:
    before, at, after = url.rpartition("@")
    scheme, slashes, credentials = before.partition("://")
    bare = f"{scheme}{slashes}{credentials.partition(':')[0]}@{after}" if at and slashes else url
    return re.sub(r"([?&](?:ssl)?password=)[^&]*", r"\1…", bare)


def in_memory(url: str) -> bool:
    """Whether such a store is gone with its process, so that no other can see it."""
    return url.startswith("memory://")
