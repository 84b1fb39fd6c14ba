"""Tags: words that callers put on jobs, to find them by."""

from typing import Any, TypeAlias

from lateshift.errors import OptionInvalid
from lateshift.model import checks

TAGS_LIMIT = 10  # tags of one job
TAG_LIMIT = 50  # characters of a tag

Tags: TypeAlias = tuple[str, ...]


def tags_of(given: Any) -> Tags:
    """Each once, by the alphabet. Raises OptionInvalid."""
    if isinstance(given, str) or not isinstance(given, list | tuple | set | frozenset):
        raise OptionInvalid(f'tags is a list of texts, such as ["eu", "vip"], not {given!r}.', "tags")
    try:
        found = sorted({checks.text("a tag", tag, TAG_LIMIT) for tag in given})
    except OptionInvalid as error:
        raise OptionInvalid(str(error), "tags") from None
    if len(found) > TAGS_LIMIT:
        raise OptionInvalid(f"A job has at most {TAGS_LIMIT} tags, not {len(found)}.", "tags")
    return tuple(found)
