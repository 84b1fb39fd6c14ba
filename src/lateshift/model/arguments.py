"""Arguments and results as JSON, checked against the function's own annotations. Nothing is ever pickled.

What is encoded is decoded again at once with the types that the worker will use: what a caller gets past this,
the worker can read."""

import inspect
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from lateshift.errors import ArgumentsInvalid, PayloadTooLarge, ResultInvalid, TaskInvalid
from lateshift.model import mismatch
from lateshift.model.depth import PAYLOAD_DEPTH, refuse_deep, too_deep
from lateshift.model.edit import named, written
from lateshift.model.job import PAYLOAD_LIMIT, RESULT_LIMIT

Change: TypeAlias = Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]]
"""New values for some arguments, or a function from all the old ones to all the new ones."""

_UNENCODABLE = (TypeError, ValueError, OverflowError, RecursionError)


def _encode_foreign(value: Any) -> Any:
    """Types msgspec does not know: pydantic models, by the methods that mark them."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"a {type(value).__qualname__} cannot be sent to a job")


def _decode_foreign(kind: type, value: Any) -> Any:
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    raise TypeError(f"a {kind.__qualname__} cannot be read from JSON")


def _schema_of_foreign(kind: type) -> dict[str, Any]:
    return {"title": kind.__name__}


_encoder = msgspec.json.Encoder(enc_hook=_encode_foreign)
_in_order = msgspec.json.Encoder(enc_hook=_encode_foreign, order="deterministic")


class Arguments:
    """How one task's arguments are written and read."""

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        self.task = task
        signature = inspect.signature(function)
        hints = hints_of(task, function)
        self.names: list[str] = []
        self._positional: list[str] = []
        self._required: set[str] = set()
        self._by_keyword: list[str] = []
        self._defaults: dict[str, tuple[Any, Any]] = {}
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        for name, parameter in signature.parameters.items():
            self.names.append(name)
            if parameter.kind is not parameter.KEYWORD_ONLY:
                self._positional.append(name)
            else:
                self._by_keyword.append(name)
            kind = hints.get(name, Any)
            if parameter.default is parameter.empty:
                self._required.add(name)
                fields.append((name, kind))
            else:
                fields.append((name, kind | UnsetType if kind is not Any else Any, UNSET))
                self._defaults[name] = parameter.default, kind
        self._plain = not self._by_keyword and len(self._required) == len(self.names)
        try:
            self._struct = msgspec.defstruct(
                f"{task} arguments", fields, kw_only=not self._plain, forbid_unknown_fields=True
            )
            self._decoder = msgspec.json.Decoder(self._struct, dec_hook=_decode_foreign)
        except TypeError as error:
            raise TaskInvalid(
                f"The task {task} has a parameter whose type cannot be read from JSON: {error}"
            ) from error
        # A value that is exactly of one of these types needs no second look: its JSON is read as what it was.
        exact = [hints[name] for name in self.names if hints.get(name) in (int, str, bool)]
        self._exact = exact if self._plain and len(exact) == len(self.names) else None

    @property
    def required(self) -> list[str]:
        """Those without a default, in their order."""
        return [name for name in self.names if name in self._required]

    def takes_object(self, name: str) -> bool:
        """Whether one may be an object, whichever fields that must have."""
        try:
            self._decoder.decode(msgspec.json.encode({name: {}}))
        except msgspec.ValidationError as error:
            return not str(error).endswith(f"got `object` - at `$.{name}`")
        except Exception:  # types are user code
            return True
        return True

    def schema(self) -> dict[str, Any]:
        """What they are as JSON Schema: an object by name. Of a type that says nothing of itself, anything."""
        try:
            made = msgspec.json.schema(self._struct, schema_hook=_schema_of_foreign)
        except Exception as error:  # types are user code
            return {"type": "object", "description": f"They cannot be told: {type(error).__name__}."}
        kinds = made.pop("$defs", {})
        mine = kinds.pop(str(made.get("$ref", "")).rpartition("/")[2], made)
        return {**mine, "title": self.task, **({"$defs": kinds} if kinds else {})}

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        """The payload of a call, by name. Raises ArgumentsInvalid or PayloadTooLarge."""
        exact = not kwargs and [*map(type, args)] == self._exact
        call = self._struct(*args) if exact else self._bind(args, kwargs)
        try:
            payload = _encoder.encode(call)
        except _UNENCODABLE as error:
            raise self._unwritable(error) from error
        if len(payload) > PAYLOAD_LIMIT:
            raise self._too_large(payload)
        if not exact:
            self._refuse_deep(payload)
            self._read(payload)
        return payload

    def given(self, raw: bytes) -> bytes:
        """The payload of a call whose arguments came as JSON, by name. Raises ArgumentsInvalid or PayloadTooLarge."""
        self._refuse_deep(raw)
        payload = _encoder.encode(self._read(raw))
        if len(payload) > PAYLOAD_LIMIT:
            raise self._too_large(payload)
        self._refuse_deep(payload)
        return payload

    def edit(self, payload: bytes, change: Change) -> bytes:
        """The payload of the same call with some arguments changed, checked. What is not changed stays byte for byte.
        Raises ArgumentsInvalid or PayloadTooLarge."""
        old = named(payload)
        if isinstance(change, Mapping):
            new = old | {name: self._json(value) for name, value in change.items()}
        else:
            wanted = change({name: msgspec.json.decode(value) for name, value in old.items()})
            new = {name: self._json(value) for name, value in wanted.items()}
            for name in new.keys() & old.keys():
                if new[name] == self._json(msgspec.json.decode(old[name])):
                    new[name] = old[name]
        for name in new:
            if name not in self.names and name not in old:
                raise ArgumentsInvalid(f"{self.task}: {self._what_is_wrong((), {name: None})}")
        edited = written(new)
        if len(edited) > PAYLOAD_LIMIT:
            raise self._too_large(edited)
        self._refuse_deep(edited)
        self._read(edited)
        return edited

    def decode(self, payload: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call of a payload: positional and keyword arguments. Raises ArgumentsInvalid."""
        values = self._read(payload)
        if self._plain:
            return msgspec.structs.astuple(values), {}
        given = {name: value for name in self.names if (value := getattr(values, name)) is not UNSET}
        positional: list[Any] = []
        for name in self._positional:
            if name not in given:
                break
            positional.append(given.pop(name))
        return tuple(positional), given

    def digest(self, payload: bytes) -> bytes:
        """Equal for equal calls, whatever the order of keys in their dicts and sets."""
        return blake2b(_in_order.encode(msgspec.json.decode(payload)), digest_size=16).digest()

    def identity(self, payload: bytes, by: Sequence[str], queue: str) -> bytes:
        """Equal for calls in which the arguments of these names (all, where none are named) are equal, given or by default."""
        call = self._read(payload)
        chosen: dict[str, Any] = {}
        for name in by or self.names:
            value = getattr(call, name)
            if value is not UNSET:
                chosen[name] = value
            elif (default := self._default(name)) is not UNSET:
                chosen[name] = default
        try:
            written = _in_order.encode([self.task, queue, chosen])
        except _UNENCODABLE as error:
            raise self._unwritable(error) from error
        return blake2b(written, digest_size=16).digest()

    def _default(self, name: str) -> Any:
        """As it would be read if it had been given; UNSET where it cannot be."""
        default, kind = self._defaults[name]
        try:
            return msgspec.json.decode(_encoder.encode(default), type=kind, dec_hook=_decode_foreign)
        except (msgspec.DecodeError, *_UNENCODABLE):
            return UNSET

    def _json(self, value: Any) -> bytes:
        try:
            return _encoder.encode(value)
        except _UNENCODABLE as error:
            raise self._unwritable(error) from error

    def _refuse_deep(self, payload: bytes) -> None:
        refuse_deep(payload, f"{self.task}: the arguments have", PAYLOAD_DEPTH)

    def _unwritable(self, error: Exception) -> ArgumentsInvalid | PayloadTooLarge:
        if isinstance(error, RecursionError):
            return too_deep(f"{self.task}: the arguments have", PAYLOAD_DEPTH)
        return ArgumentsInvalid(f"{self.task}: an argument cannot be written as JSON: {error}.")

    def _too_large(self, payload: bytes) -> PayloadTooLarge:
        return PayloadTooLarge(
            f"{self.task}: the arguments are {len(payload):,} bytes, over the limit of {PAYLOAD_LIMIT:,}. Put the data in "
            "a file, a table or a bucket, and pass its name."
        )

    def _read(self, payload: bytes) -> Any:
        try:
            return self._decoder.decode(payload)
        except (msgspec.DecodeError, *_UNENCODABLE) as error:
            said, field = self._misfit(payload, error)
            raise ArgumentsInvalid(f"{self.task}: {said}", field) from error

    def _misfit(self, payload: bytes, error: Exception) -> tuple[str, str | None]:
        """In words, and of which argument."""
        where, what = mismatch.told(error, self._struct)
        if where:
            return f"argument {where!r}: {what}.", where
        with suppress(msgspec.DecodeError, RecursionError):
            given = msgspec.json.decode(payload)
            if isinstance(given, dict) and (wrong := self._unknown(given) or self._missing(given)):
                return self._what_is_wrong((), given), wrong[0]
        return f"the arguments as a whole: {what}.", None

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        named = dict(zip(self._positional, args, strict=False))
        named.update(kwargs)
        if (
            len(args) <= len(self._positional)
            and len(named) == len(args) + len(kwargs)
            and self._required <= named.keys()
            and (not kwargs or kwargs.keys() <= set(self.names))
        ):
            return named
        wrong = self._unknown(kwargs) or self._missing(named)
        raise ArgumentsInvalid(
            f"{self.task}: {self._what_is_wrong(args, kwargs)}", wrong[0] if wrong else None
        )

    def _what_is_wrong(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        takes = f"It takes ({', '.join(self.names)})."
        if len(args) > len(self._positional):
            return f"got {len(args)} positional arguments for {len(self._positional)}. {takes}"
        if unknown := self._unknown(kwargs):
            return f"got an unknown argument {unknown[0]!r}. {takes}"
        if twice := [name for name in self._positional[: len(args)] if name in kwargs]:
            return f"got two values for {twice[0]!r}. {takes}"
        missing = self._missing({*self._positional[: len(args)], *kwargs})
        return f"lacks {', '.join(map(repr, missing))}. {takes}"

    def _unknown(self, given: Collection[str]) -> list[str]:
        return [name for name in given if name not in self.names]

    def _missing(self, given: Collection[str]) -> list[str]:
        return [name for name in self.names if name in self._required and name not in given]


def refuse_stars(task: str, function: Callable[..., Any]) -> None:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TaskInvalid(
                f"The task {task} takes {parameter}: name every parameter, so that each can be checked and shown."
            )


class Results:
    """How one task's results are written and read."""

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        self.task = task
        kind = hints_of(task, function).get("return", Any)
        try:
            self._decoder = msgspec.json.Decoder(kind, dec_hook=_decode_foreign)
        except TypeError:
            self._decoder = msgspec.json.Decoder(Any)

    def encode(self, value: Any) -> bytes | None:
        """None stays None, so that a task without a result costs nothing to keep."""
        if value is None:
            return None
        try:
            result = _encoder.encode(value)
        except RecursionError as error:
            raise too_deep(f"{self.task}: the result has") from error
        if len(result) > RESULT_LIMIT:
            raise PayloadTooLarge(
                f"{self.task}: the result is {len(result):,} bytes, over the limit of {RESULT_LIMIT:,}. Put the data in "
                "a file, a table or a bucket, and return its name."
            )
        refuse_deep(result, f"{self.task}: the result has")
        self._decoder.decode(result)  # what its caller cannot read is said where it was made
        return result

    def decode(self, result: bytes | None) -> Any:
        try:
            return None if result is None else self._decoder.decode(result)
        except (msgspec.DecodeError, *_UNENCODABLE) as error:
            where, what = mismatch.told(error)
            at = f"at {where!r}, " if where else ""
            raise ResultInvalid(
                f"{self.task}: the result is not what the task's annotation says: {at}{what}."
            ) from error


def hints_of(task: str, function: Callable[..., Any]) -> dict[str, Any]:
    """The types of its parameters and of its result. Raises TaskInvalid."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TaskInvalid(f"The task {task} has an annotation that cannot be resolved: {error}") from error
