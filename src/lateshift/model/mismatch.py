"""What does not fit a type, in words. The decoder speaks of objects and of `$`; users know their arguments and fields."""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import inspect

VALUES_TOLD = 30  # of a type that has some and no others

_SAID = re.compile(r"(.*?)(?: - at (`key` in )?`\$\.?([^`]*)`)?", re.DOTALL)
_PART = re.compile(r"\[(?:\.\.\.|[0-9]+)\]|[^.\[]+")
_ENUM = "Invalid enum value"
_NONE_OF = "is none of the values that its type has"
_EXPECTED = re.compile(r"(as a key, )?[Ee]xpected `([^`]*)`(?:, got `([^`]*)`)?")
_KINDS = {
    "int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false", "null": "null", "array": "a list", "object": "an object",
    "uuid": "an id", "datetime": "a time", "date": "a date", "duration": "a length of time",
}  # fmt: skip
_WORDS = (
    (r"Object missing required field (`.*`)", r"lacks the field \1"),
    (r"Object contains unknown field (`.*`)", r"has a field \1, which its type does not know"),
    (rf"{_ENUM} (.*)", rf"\1 {_NONE_OF}"),
    (r"Invalid value (.*)", r"\1 is of none of the kinds that its type knows"),
    (r"Expected `(?:array|object)` of length >= ([0-9]+)", r"wants at least \1"),
    (r"Expected `(?:array|object)` of length <= ([0-9]+)", r"has more than \1"),
    (r"Expected `str` of length >= 1", "is empty"),
    (r"Expected `str` of length >= ([0-9]+)", r"has fewer than \1 characters"),
    (r"Expected `str` of length <= ([0-9]+)", r"has more than \1 characters"),
    (r"Expected `(?:int|float)` >= (.*?)(?:\.0)?", r"is less than \1"),
    (r"Expected `(?:int|float)` <= (.*?)(?:\.0)?", r"is more than \1"),
    (r"Expected `(?:int|float)` > (.*?)(?:\.0)?", r"is not more than \1"),
    (r"Expected `(?:int|float)` < (.*?)(?:\.0)?", r"is not less than \1"),
    (r"Expected `str` matching regex '(.*)'", r"does not match \1"),
    (r"Invalid UUID", "is no id: 32 digits, 0 to 9 and a to f, parted by -"),
    (r"Input data was truncated", "this is no JSON: it ends too early"),
    (
        r"JSON is malformed: .* surrogate pair \((.*)\)",
        r"a character is written by half, as \\ud800 without the escape that belongs to it (\1)",
    ),
    (r"JSON is malformed: (.*)", r"this is no JSON: \1"),
)


def told(error: Exception, kind: Any = None) -> tuple[str, str]:
    """Where it does not fit (`width`, `boxes[0].size`, nothing if it is the whole), and what is wrong there. The decoder says
    "Expected `int`, got `str` - at `$.width`", and "- at `key` in `$.sizes`" of what stands before a colon. `kind`: what it was read as,
    to say which values there are where one of these was expected."""
    said = _SAID.fullmatch(str(error))
    assert said is not None  # it fits any text
    what, key, path = said.groups("")
    words = _in_words(what)
    if kind is not None and what.startswith(_ENUM) and (values := _values(kind, path, is_key=bool(key))):
        words = words.replace(_NONE_OF, f"is none of {', '.join(values)}")
    return path, ("as a key, " if key else "") + words


def plainly(what: str) -> str:
    """For whoever asks over HTTP or in a form, whose code has no types: "expected `float | null`, got `str`" is "a number or null is expected, and this is
    a text". Of Python's own types, as those of arguments, it is told by their names."""
    found = _EXPECTED.fullmatch(what)
    if found is None:
        return what
    before, expected, got = found.groups("")
    wanted = " or ".join(_KINDS.get(kind, f"`{kind}`") for kind in expected.split(" | "))
    return f"{before}{wanted} is expected" + (f", and this is {_KINDS.get(got, f'`{got}`')}" if got else "")


def _in_words(what: str) -> str:
    for pattern, words in _WORDS:
        if found := re.fullmatch(pattern, what, re.DOTALL):
            return found.expand(words)
    return what[:1].lower() + what[1:]


def _values(kind: Any, path: str, *, is_key: bool) -> list[str]:
    """Those that there are at a place, as they are written; none if they are too many, or nobody knows."""
    try:
        there = list(_flat(inspect.type_info(kind)))
        for part in _PART.findall(path):
            there = [each for it in there for each in _below(it, part)]
        if is_key:
            there = [each for it in there if isinstance(it, inspect.DictType) for each in _flat(it.key_type)]
        literal = [value for it in there if isinstance(it, inspect.LiteralType) for value in it.values]
        members = [each.value for it in there if isinstance(it, inspect.EnumType) for each in it.cls]
    except Exception:  # types are user code
        return []
    found = [str(value) for value in (*literal, *members)]
    return found if len(found) <= VALUES_TOLD else []


def _flat(kind: inspect.Type) -> Iterator[inspect.Type]:
    match kind:
        case inspect.UnionType(types=types):
            for each in types:
                yield from _flat(each)
        case inspect.Metadata(type=inner):
            yield from _flat(inner)
        case _:
            yield kind


def _below(kind: inspect.Type, part: str) -> Iterator[inspect.Type]:
    match kind:
        case (
            inspect.StructType(fields=fields)
            | inspect.DataclassType(fields=fields)
            | inspect.TypedDictType(fields=fields)
        ):
            for field in fields:
                if field.encode_name == part:
                    yield from _flat(field.type)
        case inspect.DictType(value_type=inner):
            yield from _flat(inner)
        case inspect.CollectionType(item_type=inner):
            yield from _flat(inner)
