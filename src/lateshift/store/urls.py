"""Store URLs in messages: never with a password."""

import re


def shown(url: str) -> str:
    before, at, after = url.rpartition("@")
    scheme, slashes, credentials = before.partition("://")
    bare = f"{scheme}{slashes}{credentials.partition(':')[0]}@{after}" if at and slashes else url
    return re.sub(r"([?&](?:ssl)?password=)[^&]*", r"\1…", bare)
