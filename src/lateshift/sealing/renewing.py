"""Rotating keys: what older keys have sealed is sealed anew with the first one, some at a time, while everything runs. Whoever is
interrupted begins again: what is done is passed over."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct, field, structs

from lateshift.errors import SealBroken, SealKeyMissing
from lateshift.model.sealed import TOKEN, is_sealed
from lateshift.sealing.ring import Ring, Seal
from lateshift.store import batching
from lateshift.store.contract import Store
from lateshift.store.crashpoints import crashpoint
from lateshift.store.seal_contract import RENEWED_AT_ONCE, Part, Row

TRIES = 5  # at rows that others change meanwhile; what is left then is counted, and the next run finds it

Values = tuple[bytes | None, ...]


class Renewed(Struct, kw_only=True):
    """What was done: rows sealed anew, rows that could not be opened, and how many values each key seals now."""

    rows: int = 0
    unreadable: int = 0
    by_key: dict[str, int] = field(default_factory=dict)


def renew(store: Store, ring: Ring, told: Callable[[int], None] = lambda rows: None) -> Renewed:
    """Raises SealKeyMissing if there is no key to seal with."""
    if ring.current is None:
        raise SealKeyMissing(
            "There is no key to seal with. Give this command the key ring that the workers have, LATESHIFT_KEYS or keys_file."
        )
    done = Renewed()
    for part in Part:
        after: tuple[Any, ...] | None = None
        while True:
            page = _renew_page(store, ring, part, after, done)
            told(len(page))
            crashpoint("keys.after_page")
            if len(page) < RENEWED_AT_ONCE:
                break
            after = page[-1].key
    done.by_key = count(store)
    return done


def count(store: Store) -> dict[str, int]:
    """How many values each key seals, by its id."""
    found: Counter[str] = Counter()
    for part in Part:
        for row in _rows(store, part):
            for value in _tokens(part, row.values):
                found.update(token[1].decode() for token in TOKEN.finditer(value))
    return dict(sorted(found.items()))


def _rows(store: Store, part: Part) -> Iterator[Row]:
    page = store.seals.look(part, None, RENEWED_AT_ONCE)
    while page:
        yield from page
        page = store.seals.look(part, page[-1].key, RENEWED_AT_ONCE) if len(page) == RENEWED_AT_ONCE else []


def _renew_page(
    store: Store, ring: Ring, part: Part, after: tuple[Any, ...] | None, done: Renewed
) -> list[Row]:
    page: list[Row] = []
    for _ in range(TRIES):
        page = store.seals.look(part, after, RENEWED_AT_ONCE)
        changes: list[tuple[Row, Values]] = []
        unreadable = 0
        for row in page:
            try:
                values = _renewed(part, row, ring)
            except (SealKeyMissing, SealBroken):
                unreadable += 1
                continue
            if values != row.values:
                changes.append((row, values))
        changed = store.seals.renew(part, changes) if changes else 0
        done.rows += changed
        if changed == len(changes):
            break
    done.unreadable += unreadable
    return page


def _renewed(part: Part, row: Row, ring: Ring) -> Values:
    match part:
        case Part.BATCHES:
            return tuple(_renewed_call(value, ring) for value in row.values)
        case Part.SESSIONS:
            seal = ring.of_session(*row.key)
        case _:
            seal = ring.of_job(row.key[0])
    return tuple(_renewed_value(value, seal) for value in row.values)


def _renewed_value(value: bytes | None, seal: Seal) -> bytes | None:
    return None if value is None else seal.renew(value)


def _renewed_call(kept: bytes | None, ring: Ring) -> bytes | None:
    """Of a batch's callback, which is a whole job."""
    call = batching.read(kept)
    if call is None or not is_sealed(call.payload):
        return kept
    payload = ring.of_job(call.id).renew(call.payload)
    return kept if payload == call.payload else batching.written(structs.replace(call, payload=payload))


def _tokens(part: Part, values: Values) -> list[bytes]:
    if part is not Part.BATCHES:
        return [value for value in values if value is not None]
    calls = [batching.read(value) for value in values]
    return [call.payload for call in calls if call is not None and is_sealed(call.payload)]
