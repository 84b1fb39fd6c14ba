"""`lateshift keys`: the key ring of sensitive queues. A key is printed once, where it is made, and nowhere else."""

import secrets
from datetime import UTC, datetime

import click

from lateshift.cli import exits
from lateshift.cli.nouns import Nouns
from lateshift.cli.options import common, leave_a_line, listing, opened, wants_json
from lateshift.cli.output import counted, print_json, print_table, say
from lateshift.cli.progress import bar
from lateshift.config import load
from lateshift.errors import SealKeysInvalid
from lateshift.sealing.renewing import count, renew
from lateshift.sealing.ring import DIGEST, Ring, new_key, ring_of


@click.group(cls=Nouns)
def keys() -> None:
    """The key ring of sensitive queues."""


@keys.command()
@click.argument("id", required=False, metavar="[ID]")
@common
def new(id: str | None) -> None:
    """Make a key and print it, as a line of a key ring. Without an ID it is called by the date and six digits that no other key of that day
    has; `digest` is the one that stays."""
    ring = ring_of(load())
    id = id or _by_date()
    if id in ring.ids or (id == DIGEST and ring.has_digest):
        raise SealKeysInvalid(f"The ring has a key {id} already. Give the new one another id.")
    click.echo(new_key(id))
    if id != DIGEST:
        click.echo(
            f"Put {id} into the ring of every worker, then first into that of whoever enqueues.", err=True
        )


@keys.command("list")
@listing
def list_keys() -> None:
    """The keys of this ring, and how many values in the store each seals; also those that the ring lacks."""
    ring = ring_of(load())
    with opened() as store:
        found = count(store)
    if wants_json():
        print_json({"keys": [_document(id, ring, found.get(id, 0)) for id in _all(ring, found)]})
        return
    print_table(
        ("key", "in the ring", ">sealed values"),
        [
            [id, _standing(id, ring), f"{found.get(id, 0):,}" if id != DIGEST else "none"]
            for id in _all(ring, found)
        ],
        "There are no keys: neither in the ring nor in the store.",
    )


@keys.command()
@listing
def reencrypt() -> None:
    """Seal anew, with the ring's first key, what other keys have sealed. Everything may go on meanwhile; repeat it if it was interrupted.
    Exit code 1 if some is left."""
    ring = ring_of(load())
    with opened() as store, bar("sealing anew", None) as told:
        if ring.current is not None:  # also of one that is interrupted
            leave_a_line(store, "reencrypt", f"keys to {ring.current}")
        done = renew(store, ring, told)
    left = {id: number for id, number in done.by_key.items() if id != ring.current}
    may_go = [id for id in ring.ids if id != ring.current and id not in left]
    if wants_json():
        print_json({"renewed": done.rows, "unreadable": done.unreadable, "left": left, "may_go": may_go})
    else:
        say(f"{counted(done.rows, 'row')} sealed anew with {ring.current}.")
        for id, number in left.items():
            say(f"{counted(number, 'value')} still sealed with {id}: keep that key, and repeat this.")
        if may_go:
            say(
                f"Nothing is sealed with {_listed(may_go)} any more. Once every ring has {ring.current} first, {_listed(may_go)} may go."
            )
        else:
            say("No key may go from this ring.")
        if ring.has_digest:
            say(
                f"{DIGEST} stays: it seals nothing, and what is enqueued with key= or unique= is compared by it."
            )
    if left:
        raise click.exceptions.Exit(exits.FOUND)


def _by_date() -> str:
    """Two keys of one id could not be in one ring, and what the one has sealed would seem broken to the other: they are drawn apart."""
    return f"{datetime.now(UTC):%Y-%m-%d}-{secrets.token_hex(3)}"


def _listed(ids: list[str]) -> str:
    *others, last = ids
    return f"{', '.join(others)} and {last}" if others else last


def _all(ring: Ring, found: dict[str, int]) -> list[str]:
    return [*ring.ids, *([DIGEST] if ring.has_digest else []), *(id for id in found if id not in ring.ids)]


def _standing(id: str, ring: Ring) -> str:
    if id == ring.current:
        return "yes, seals"
    if id == DIGEST:
        return "yes, for digests"
    return "yes" if id in ring.ids else "no"


def _document(id: str, ring: Ring, sealed: int) -> dict[str, object]:
    return {
        "id": id,
        "in_ring": id in ring.ids or id == DIGEST,
        "seals": id == ring.current,
        "sealed": sealed,
    }
