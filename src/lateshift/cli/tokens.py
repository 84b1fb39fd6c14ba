"""`lateshift tokens`: who may use the API, for what and until when. The text of a token is printed once, when it is made."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

import click

from lateshift.cli.durations import length
from lateshift.cli.nouns import Nouns
from lateshift.cli.numbers import Whole
from lateshift.cli.options import listing, opened, operator, wants_json
from lateshift.cli.output import instant, print_json, print_table, short
from lateshift.cli.short_ids import NAMED
from lateshift.documents.tokens import shown_token, state_of, token_document
from lateshift.errors import OptionInvalid, TokenUnknown
from lateshift.model.access import PREFIX, Scope, Token, TokenState, looks_like_token, new_token, parse
from lateshift.operating.names import others
from lateshift.operating.written import WHOLE, digits_in
from lateshift.store.access_contract import TOKENS_AT_ONCE, TokenPlace, place_of
from lateshift.store.contract import Store

SHOWN = 200  # tokens in a listing, unless --limit says otherwise


@click.group(cls=Nouns)
def tokens() -> None:
    """Who may use the API, for what and until when."""


@tokens.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([scope.value for scope in Scope]),
    multiple=True,
    required=True,
    help="What it is good for; may be repeated. admin includes all, operate includes read.",
)
@click.option(
    "--queue",
    "queues",
    metavar="PATTERN",
    multiple=True,
    help="For this queue, or those like images.*; may be repeated (all).",
)
@click.option(
    "--expires", type=length, metavar="30d", help="How long it is good: 12h, 30d (until it is revoked)."
)
@listing
def create(name: str, scopes: tuple[str, ...], queues: tuple[str, ...], expires: timedelta | None) -> None:
    """Make a token and print it, this once: only a digest of it is kept."""
    with opened() as store:
        now = store.clock.now()
        token, text = new_token(
            name, scopes, queues, at=now, by=operator(), expires_at=None if expires is None else _after(now, expires)
        )  # fmt: skip
        store.tokens.create(token)
    if wants_json():
        print_json(shown_token(token, text, now))
        return
    until = "until it is revoked" if token.expires_at is None else f"until {instant(token.expires_at)}"
    click.echo(text)
    click.echo(
        f"{name} is good for {', '.join(token.scopes)} in {', '.join(token.queues) or 'all queues'}, {until}. Keep it now: it "
        "cannot be shown again.",
        err=True,
    )


@tokens.command("list")
@click.option(
    "--limit",
    type=Whole(1, TOKENS_AT_ONCE),
    metavar="N",
    default=SHOWN,
    show_default=True,
    help="How many at most.",
)
@click.option("--all", "all_of_them", is_flag=True, help="All, however many there are.")
@click.option("--state", type=click.Choice([each.value for each in TokenState]), help="Only those.")
@click.option(
    "--sign-ins", is_flag=True, help="Those of browsers, made when somebody signs in, instead of the others."
)
@listing
def list_tokens(limit: int, all_of_them: bool, state: str | None, sign_ins: bool) -> None:
    """Those that are good first, then those that have expired, then those that were revoked. Of what they are made of nothing is
    shown."""
    wanted = None if state is None else TokenState(state)
    with opened() as store:
        now = store.clock.now()
        each = _each(store, state=wanted, sign_ins=sign_ins)
        found = list(each if all_of_them else islice(each, limit))
        more = next(each, None) is not None
    if wants_json():
        print_json({"tokens": [token_document(token, now) for token in found], "more": more})
        return
    print_table(
        ("token", "name", "state", "scopes", "created", "by", "expires", "last used", "queues"),
        [_row(token, now) for token in found],
        "There are no such tokens." if state or sign_ins else "There are no tokens.",
    )
    if more:
        click.echo("There are more: --all shows them.")


@tokens.command()
@click.argument("named", metavar="NAME_OR_ID")
@listing
def revoke(named: str) -> None:
    """From now on it is good for nothing. The last digits of its id will do, and so will the token itself."""
    with opened() as store:
        token = _meant(store, named)
        revoked = store.tokens.revoke(token.id, by=operator())
    if wants_json():
        print_json({"token": str(token.id), "name": token.name, "revoked": revoked})
    elif revoked:
        click.echo(f"{token.name} is revoked: whoever has it is refused from now on.")
    else:
        click.echo(f"{token.name} was revoked before.")


def _each(store: Store, *, state: TokenState | None = None, sign_ins: bool = False) -> Iterator[Token]:
    """Page by page, so that as many are read as are looked at."""
    after: TokenPlace | None = None
    while found := store.tokens.list(TOKENS_AT_ONCE, state=state, sign_ins=sign_ins, after=after):
        yield from found
        after = place_of(found[-1])


def _row(token: Token, now: datetime) -> list[str]:
    return [
        short(token.id), token.name, state_of(token, now), ", ".join(token.scopes), instant(token.created_at), token.created_by,
        instant(token.expires_at) or "never", instant(token.last_used_at) or "never", ", ".join(token.queues) or "all",
    ]  # fmt: skip


def _after(now: datetime, expires: timedelta) -> datetime:
    try:
        return now + expires
    except OverflowError:
        raise OptionInvalid(f"--expires: there is no date {expires.days:,} days from now.") from None


def _meant(store: Store, named: str) -> Token:
    """By its name, its id, some digits of that, or the token itself, which is never said back."""
    if looks_like_token(named):
        return _of_text(store, named)
    if token := store.tokens.named(named):
        return token
    digits = digits_in(named)
    known = [*_each(store), *_each(store, sign_ins=True)]
    if digits is None:
        found = [token for token in known if token.name == named][:1]  # the last one of this name, revoked
    elif len(digits) == WHOLE:
        found = store.tokens.find([UUID(digits)])
    else:
        found = [token for token in known if token.id.hex.startswith(digits) or token.id.hex.endswith(digits)]
    if len(found) > 1:
        several = ", ".join(f"{token.id} ({token.name})" for token in found[:NAMED])
        raise OptionInvalid(f"{named} could be any of these: {several}. Give more digits; nothing was done.")
    if not found:
        names = [token.name for token in known if token.revoked_at is None]
        raise TokenUnknown(
            f"There is no token {named}.{others(named, names)} `lateshift tokens list` shows them."
        )
    return found[0]


def _of_text(store: Store, text: str) -> Token:
    held = parse(text.strip())
    if held is None:
        raise OptionInvalid(
            f"What begins with {PREFIX} is a token, and this one is not whole. `lateshift tokens list` shows names and ids."
        )
    for token in store.tokens.find([held[0]]):
        return token
    raise TokenUnknown(
        "This token is not in the store: it is of another one, or was purged. It is good for nothing here."
    )
