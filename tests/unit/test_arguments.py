"""Arguments and results: what a task may take and give, and what a wrong call is told."""

import enum
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, TypedDict
from uuid import UUID, uuid4

import msgspec
import pydantic
import pytest

from lateshift.errors import ArgumentsInvalid, PayloadTooLarge, ResultInvalid, TaskInvalid
from lateshift.model.arguments import Arguments, Results, refuse_stars
from lateshift.model.job import PAYLOAD_LIMIT


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int


class Address(TypedDict):
    street: str


class Line(msgspec.Struct):
    start: Point
    end: Point


class Customer(pydantic.BaseModel):
    name: str
    since: date


def arguments(function: Any) -> Arguments:
    return Arguments(function.__name__, function)


VALUES = [
    (int, 7),
    (float, 1.5),
    (str, "päth\0"),
    (bool, True),
    (bytes, b"\0\xff"),
    (datetime, datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)),
    (date, date(2026, 3, 1)),
    (timedelta, timedelta(days=2, microseconds=5)),
    (UUID, uuid4()),
    (Decimal, Decimal("12.3400")),
    (Colour, Colour.RED),
    (Point, Point(1, 2)),
    (Address, {"street": "Elm"}),
    (Line, Line(Point(1, 2), Point(3, 4))),
    (Customer, Customer(name="Ada", since=date(2026, 1, 1))),
    (list[Point], [Point(1, 2)]),
    (dict[str, Decimal], {"a": Decimal("0.1")}),
    (tuple[int, str], (1, "x")),
    (set[int], {1, 2}),
    (int | None, None),
    (Literal["a", "b"], "b"),
    (Any, {"deep": [1, None, "x"]}),
]


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_a_value_of_any_supported_type_arrives_as_it_was_sent(kind: Any, value: Any) -> None:
    def task(value: Any) -> None: ...

    task.__annotations__["value"] = kind
    codec = arguments(task)
    assert codec.decode(codec.encode((value,), {})) == ((value,), {})


def test_positional_keyword_and_defaults_come_back_as_the_function_takes_them() -> None:
    def task(a: int, /, b: int = 2, *, c: int = 3) -> None: ...

    codec = arguments(task)
    assert codec.decode(codec.encode((1,), {})) == ((1,), {})
    assert codec.decode(codec.encode((1, 5), {"c": 6})) == ((1, 5), {"c": 6})
    assert codec.decode(codec.encode((1,), {"c": 6})) == ((1,), {"c": 6})
    assert codec.encode((1,), {"b": 4}) == b'{"a":1,"b":4}'


def test_a_default_left_out_is_the_running_codes_default() -> None:
    def before(path: str, width: int = 100) -> None: ...
    def after(path: str, width: int = 200, height: int = 50) -> None: ...

    args, kwargs = arguments(after).decode(arguments(before).encode(("cat.png",), {}))
    assert (args, kwargs) == (("cat.png",), {})


@pytest.mark.parametrize(
    ("args", "kwargs", "says"),
    [
        (("cat.png", "wide"), {}, "argument 'width': expected `int"),
        ((), {}, "lacks 'path'. It takes (path, width)."),
        (("a", 1, 2), {}, "got 3 positional arguments for 2"),
        (("a",), {"hight": 1}, "got an unknown argument 'hight'"),
        (("a",), {"path": "b"}, "got two values for 'path'"),
        ((object(),), {}, "cannot be written as JSON"),
        (("\ud800",), {}, "cannot be written as JSON"),
    ],
)
def test_a_wrong_call_is_told_what_is_wrong(args: tuple[Any, ...], kwargs: dict[str, Any], says: str) -> None:
    def thumbnail(path: str, width: int = 200) -> None: ...

    with pytest.raises(ArgumentsInvalid) as raised:
        arguments(thumbnail).encode(args, kwargs)
    assert says in str(raised.value)
    assert str(raised.value).startswith("thumbnail: ")


def test_not_a_number_is_refused_where_a_number_is_wanted() -> None:
    def task(x: float) -> None: ...

    with pytest.raises(ArgumentsInvalid):
        arguments(task).encode((math.nan,), {})


def test_nesting_without_end_is_refused() -> None:
    def task(x: Any) -> None: ...

    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(PayloadTooLarge, match="or holds itself"):
        arguments(task).encode((endless,), {})


def test_a_payload_at_the_limit_is_taken_and_one_byte_more_is_refused_with_advice() -> None:
    def task(x: str) -> None: ...

    room = PAYLOAD_LIMIT - len(b'{"x":""}')
    assert len(arguments(task).encode(("y" * room,), {})) == PAYLOAD_LIMIT
    with pytest.raises(PayloadTooLarge, match="pass its name"):
        arguments(task).encode(("y" * (room + 1),), {})


def test_star_arguments_cannot_be_checked_and_are_refused() -> None:
    def task(*args: int) -> None: ...

    with pytest.raises(TaskInvalid, match="name every parameter"):
        refuse_stars("task", task)


def test_an_annotation_that_names_nothing_is_refused_by_name() -> None:
    def task(x: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TaskInvalid, match="Nowhere"):
        arguments(task)


def test_a_type_without_json_is_refused_when_it_is_used() -> None:
    class Opaque: ...

    def task(x: Opaque) -> None: ...

    task.__annotations__["x"] = Opaque
    with pytest.raises(ArgumentsInvalid, match="Opaque"):
        arguments(task).encode((Opaque(),), {})


def test_the_same_call_has_the_same_digest_whatever_the_order_of_its_keys() -> None:
    def task(x: dict[str, int]) -> None: ...

    codec = arguments(task)
    one, two = codec.encode(({"a": 1, "b": 2},), {}), codec.encode(({"b": 2, "a": 1},), {})
    assert one != two
    assert codec.digest(one) == codec.digest(two)
    assert codec.digest(one) != codec.digest(codec.encode(({"a": 1},), {}))


def test_a_result_is_read_as_the_annotated_type() -> None:
    def task() -> list[Point]: ...  # type: ignore[empty-body]

    codec = Results("task", task)
    assert codec.decode(codec.encode([Point(1, 2)])) == [Point(1, 2)]
    assert codec.encode(None) is None
    assert codec.decode(None) is None


def test_a_result_over_the_limit_is_refused() -> None:
    def task() -> str: ...  # type: ignore[empty-body]

    with pytest.raises(PayloadTooLarge, match="the result is"):
        Results("task", task).encode("x" * (PAYLOAD_LIMIT + 1))


# -- edits ---------------------------------------------------------------------------------------------------------


def paint(path: str, width: int = 200, *, size: float | None = None) -> None: ...


EDITED = Arguments("paint", paint)


def test_an_edit_changes_what_it_names_and_leaves_the_rest_byte_for_byte() -> None:
    payload = b'{"path":"caf\\u00e9","size":1.50}'

    assert EDITED.edit(payload, {"width": 3}) == b'{"path":"caf\\u00e9","size":1.50,"width":3}'
    assert EDITED.edit(payload, lambda old: {**old, "size": 2}) == b'{"path":"caf\\u00e9","size":2}'
    assert EDITED.edit(payload, lambda old: {"path": old["path"]}) == b'{"path":"caf\\u00e9"}'


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"widht": 3}, "unknown argument 'widht'"),
        ({"width": "wide"}, "argument 'width': expected"),
        (lambda old: {"width": 1}, "lacks 'path'. It takes"),
        ({"width": object()}, "cannot be written as JSON"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(change: Any, said: str) -> None:
    with pytest.raises(ArgumentsInvalid, match=said):
        EDITED.edit(b'{"path":"a"}', change)


class Part(msgspec.Struct, forbid_unknown_fields=True):
    size: int


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"{}", "paint: lacks 'part'. It takes (part, colour, sizes)."),
        (
            b'{"part":{"size":1},"hue":1}',
            "paint: got an unknown argument 'hue'. It takes (part, colour, sizes).",
        ),
        (b'{"part":{"size":"1"}}', "paint: argument 'part.size': expected `int`, got `str`."),
        (b'{"part":{}}', "paint: argument 'part': lacks the field `size`."),
        (
            b'{"part":{"size":1,"z":1}}',
            "paint: argument 'part': has a field `z`, which its type does not know.",
        ),
        (b'{"part":null,"colour":"sky"}', "paint: argument 'part': expected `object`, got `null`."),
        (
            b'{"part":{"size":1},"colour":"sky"}',
            "paint: argument 'colour': 'sky' is none of red.",
        ),
        (
            b'{"part":{"size":1},"sizes":{"a":1}}',
            "paint: argument 'sizes': as a key, expected `int`, got `str`.",
        ),
        (b'{"part":', "paint: the arguments as a whole: this is no JSON: it ends too early."),
        (b"nonsense", "paint: the arguments as a whole: this is no JSON: invalid character (byte 4)."),
        (b"[]", "paint: the arguments as a whole: expected `object`, got `array`."),
    ],
)
def test_what_does_not_fit_is_said_in_words_of_the_task(payload: bytes, said: str) -> None:
    def paint(part: Part, colour: Colour = Colour.RED, sizes: dict[int, int] | None = None) -> None: ...

    with pytest.raises(ArgumentsInvalid) as caught:
        Arguments("paint", paint).decode(payload)
    assert str(caught.value) == said


def test_a_result_that_does_not_fit_is_said_in_words() -> None:
    def measure() -> list[Part]: ...  # type: ignore[empty-body]

    with pytest.raises(ResultInvalid, match=r"annotation says: at '\[0\]', lacks the field `size`\.$"):
        Results("measure", measure).decode(b"[{}]")


def test_an_edit_cannot_make_arguments_too_large() -> None:
    with pytest.raises(PayloadTooLarge):
        EDITED.edit(b'{"path":"a"}', {"path": "x" * 300_000})
