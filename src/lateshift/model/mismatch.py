"""What does not fit a type, in words. The decoder speaks of objects and of `$`; users know their arguments and fields."""

import re

_SAID = re.compile(r"(.*?)(?: - at (`key` in )?`\$\.?([^`]*)`)?", re.DOTALL)
_WORDS = (
    (r"Object missing required field (`.*`)", r"lacks the field \1"),
    (r"Object contains unknown field (`.*`)", r"has a field \1, which its type does not know"),
    (r"Invalid enum value (.*)", r"\1 is none of the values that its type has"),
    (r"Invalid value (.*)", r"\1 is of none of the kinds that its type knows"),
    (r"Input data was truncated", "this is no JSON: it ends too early"),
    (r"JSON is malformed: (.*)", r"this is no JSON: \1"),
)


def told(error: Exception) -> tuple[str, str]:
    """Where it does not fit (`width`, `boxes[0].size`, nothing if it is the whole), and what is wrong there. The decoder says
    "Expected `int`, got `str` - at `$.width`", and "- at `key` in `$.sizes`" of what stands before a colon."""
    said = _SAID.fullmatch(str(error))
    assert said is not None  # it fits any text
    what, key, path = said.groups("")
    return path, ("as a key, " if key else "") + _in_words(what)


def _in_words(what: str) -> str:
    for pattern, words in _WORDS:
        if found := re.fullmatch(pattern, what, re.DOTALL):
            return found.expand(words)
    return what[:1].lower() + what[1:]
