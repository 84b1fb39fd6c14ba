"""Whether what one filter returns is what the next one takes, by their annotations. A value goes from one to the next as JSON, so that is
what counts: a tuple arrives as a list, a dataclass as a dict if that is asked for; a bool is no int. Without an annotation, or with Any,
everything fits."""

import dataclasses
import types
import typing
from collections import abc
from collections.abc import Sequence
from decimal import Decimal
from enum import Enum
from inspect import Parameter
from typing import Any, Literal, NewType, TypeVar, Union

import msgspec

_ARRAYS = (
    list, tuple, set, frozenset, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Set, abc.MutableSet, abc.Iterable,
)  # fmt: skip
_OBJECTS = (dict, abc.Mapping, abc.MutableMapping)
_NUMBERS = {(int, float), (int, Decimal), (float, Decimal)}  # of which the first is read as the second
_NONE = type(None)


def fits(given: Any, wanted: Any) -> bool:
    """Whether every value of the one type, written as JSON, is read as the other."""
    given, wanted = _plain(given), _plain(wanted)
    if _anything(given) or _anything(wanted):
        return True
    if (members := _members(given)) is not None:
        return all(fits(member, wanted) for member in members)
    if (members := _members(wanted)) is not None:
        return any(fits(given, member) for member in members)
    if given is _NONE or wanted is _NONE:
        return given is wanted
    if _origin(given) is Literal:
        return _literal_fits(typing.get_args(given), wanted)
    if _origin(wanted) is Literal:
        return False  # one of a few values: no other type says that it is
    if (elements := _array(given)) is not None and (wanted_elements := _array(wanted)) is not None:
        return _arrays_fit(elements, wanted_elements)
    if (pair := _object(wanted)) is not None:
        return _object_fits(given, *pair)
    return _class_fits(given, wanted)


def element_of(given: Any) -> Any:
    """The type of each element of a list; Parameter.empty if this is no list."""
    given = _plain(given)
    if _anything(given):
        return Any
    if (members := _members(given)) is not None:
        elements = [element_of(member) for member in members]
        return Parameter.empty if Parameter.empty in elements else _either(elements)
    found = _array(given)
    if found is None:
        return Parameter.empty
    return found if not isinstance(found, tuple) else _either(found)


def list_of(element: Any) -> Any:
    return list if element is Parameter.empty else types.GenericAlias(list, (element,))


def shown(kind: Any) -> str:
    """As it stands in the code, about."""
    if kind is _NONE or kind is None:
        return "None"
    if kind is Any or kind is Parameter.empty:
        return "anything"
    if isinstance(kind, type) and not typing.get_args(kind):
        return kind.__qualname__
    return str(kind).replace("typing.", "").replace("collections.abc.", "").replace("NoneType", "None")


def _plain(kind: Any) -> Any:
    """Without what says nothing of its values."""
    while True:
        if kind is None:
            return _NONE
        if isinstance(kind, NewType):
            kind = kind.__supertype__
        elif hasattr(kind, "__value__") and type(kind).__name__ == "TypeAliasType":
            kind = kind.__value__
        elif _origin(kind) is typing.Annotated:
            kind = typing.get_args(kind)[0]
        else:
            return kind


def _anything(kind: Any) -> bool:
    return kind in (Any, Parameter.empty, msgspec.Raw) or isinstance(kind, TypeVar)


def _origin(kind: Any) -> Any:
    return typing.get_origin(kind)


def _members(kind: Any) -> tuple[Any, ...] | None:
    return typing.get_args(kind) if _origin(kind) in (Union, types.UnionType) else None


def _either(kinds: Sequence[Any]) -> Any:
    return Union[tuple(kinds)] if kinds else Any  # noqa: UP007, made of values


def _array(kind: Any) -> Any:
    """The type of the elements, or a tuple of them if there is one for each; None if this is no array."""
    base, args = _origin(kind) or kind, typing.get_args(kind)
    if base not in _ARRAYS:
        if isinstance(base, type) and issubclass(base, tuple) and hasattr(base, "_fields"):
            hints = typing.get_type_hints(base)
            return tuple(hints.get(name, Any) for name in base._fields)
        return None
    if not args:
        return Any
    if base is tuple and not (len(args) == 2 and args[1] is Ellipsis):
        return args
    return args[0]


def _arrays_fit(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        if not isinstance(given, tuple):
            return _anything(given)
        return len(given) == len(wanted) and all(map(fits, given, wanted))
    return all(fits(each, wanted) for each in (given if isinstance(given, tuple) else (given,)))


def _object(kind: Any) -> tuple[Any, Any] | None:
    """The types of the keys and the values of a mapping; None if this is none."""
    base, args = _origin(kind) or kind, typing.get_args(kind)
    if base not in _OBJECTS:
        return None
    return (args[0], args[1]) if args else (Any, Any)


def _object_fits(given: Any, key: Any, value: Any) -> bool:
    if (pair := _object(given)) is not None:
        return fits(pair[0], key) and fits(pair[1], value)
    return _has_fields(given) and fits(str, key) and all(fits(each, value) for each in _fields(given))


def _has_fields(kind: Any) -> bool:
    base = _origin(kind) or kind
    if not isinstance(base, type):
        return False
    marks = ("__struct_fields__", "__attrs_attrs__", "model_fields", "__total__")
    as_array = getattr(getattr(base, "__struct_config__", None), "array_like", False)
    return not as_array and (dataclasses.is_dataclass(base) or any(hasattr(base, mark) for mark in marks))


def _fields(kind: Any) -> list[Any]:
    """The types of its fields; those that a generic class leaves open, as they are given."""
    base = _origin(kind) or kind
    try:
        hints = typing.get_type_hints(base)
    except NameError:
        return [Any]
    known = dict(zip(getattr(base, "__parameters__", ()), typing.get_args(kind), strict=False))
    return [known.get(each, each) for each in hints.values() if _origin(each) is not typing.ClassVar]


def _literal_fits(values: Sequence[Any], wanted: Any) -> bool:
    if _origin(wanted) is Literal:
        return set(values) <= set(typing.get_args(wanted))
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return set(values) <= {member.value for member in wanted}
    return all(fits(type(value), wanted) for value in values)


def _class_fits(given: Any, wanted: Any) -> bool:
    if given == wanted or (given, wanted) in _NUMBERS:
        return True
    base, wanted_base = _origin(given) or given, _origin(wanted) or wanted
    if not (isinstance(base, type) and isinstance(wanted_base, type)):
        return False
    if issubclass(base, Enum) and not issubclass(wanted_base, Enum):
        return all(fits(type(member.value), wanted) for member in base)
    if not (_has_fields(base) and _has_fields(wanted_base)):
        return False  # a bool is an int and a datetime a date to Python; as JSON they are not
    try:
        below = issubclass(base, wanted_base)
    except TypeError:  # of a TypedDict nobody can ask
        return False
    pairs = zip(typing.get_args(given), typing.get_args(wanted), strict=False)
    return below and (base is not wanted_base or all(fits(*pair) for pair in pairs))
