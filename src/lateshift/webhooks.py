"""Whether a webhook is genuine: `@app.on_webhook("stripe", verify=stripe("env:STRIPE_SECRET"))`.

A secret is named, not written: it is looked up in the environment when a delivery comes, and is in no store, no message and no log.
Several are given while one takes another's place. What is compared, is compared in constant time."""

import hmac
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, ClassVar

import msgspec

from lateshift.errors import OptionInvalid, SignatureInvalid, TriggerInvalid
from lateshift.model.triggering.sources import Verify
from lateshift.replies.signing import SECRETS_MOST, Secrets, looked_up, named

TOLERANCE = timedelta(minutes=5)  # how far the time of a delivery may be from now
SIGNATURES_MOST = 20  # of one delivery that are looked at
DELIVERY_ID_LIMIT = 200  # characters

_NUMBER = re.compile(r"0|[1-9][0-9]{0,11}")
# No dot: in `id.timestamp.body` it would let the end of the one be taken for the beginning of the next.
_ID = re.compile(rf"[\x21-\x2d\x2f-\x7e]{{1,{DELIVERY_ID_LIMIT}}}")

__all__ = ["github", "standard_webhooks", "stripe"]


def standard_webhooks(*secrets: str) -> Verify:
    """As standardwebhooks.com has it: the headers webhook-id, webhook-timestamp and webhook-signature. A secret is whsec_…"""
    return _Standard(_references(secrets))


def github(*secrets: str) -> Verify:
    """As GitHub has it: X-Hub-Signature-256, known by X-GitHub-Delivery. It says no time."""
    return _GitHub(_references(secrets))


def stripe(*secrets: str) -> Verify:
    """As Stripe has it: Stripe-Signature, with its time; known by the id of the event in the body. A secret is whsec_…, as it is."""
    return _Stripe(_references(secrets))


def missing_secrets(verify: Verify) -> list[str]:
    """Names of variables that are not set here; of a function of the program's own nothing is known."""
    return [name for name in getattr(verify, "names", ()) if not os.environ.get(name)]


def require_headers(verify: Verify, headers: Mapping[str, str]) -> None:
    """Those without which nothing can be verified; of a function of the program's own nothing is known. Raises SignatureInvalid."""
    for name in getattr(verify, "needs", ()):
        _header(headers, name)


@dataclass(frozen=True, slots=True)
class _Standard:
    names: tuple[str, ...]
    needs: ClassVar = ("webhook-id", "webhook-timestamp", "webhook-signature")

    def __call__(self, headers: Mapping[str, str], body: bytes, now: datetime) -> str:
        id, stamp = _header(headers, "webhook-id"), _time(_header(headers, "webhook-timestamp"), now)
        if not _ID.fullmatch(id):
            raise SignatureInvalid(
                f"webhook-id is 1 to {DELIVERY_ID_LIMIT} printable characters of ASCII, without a dot."
            )
        given = [each.partition(",") for each in _header(headers, "webhook-signature").split(" ")]
        try:
            ours = Secrets(_values(self.names)).signatures(id, stamp, body).split(" ")
        except OptionInvalid as error:
            raise TriggerInvalid(str(error)) from None
        _compare([text for version, _, text in given if version == "v1"], [each[3:] for each in ours])
        return id


@dataclass(frozen=True, slots=True)
class _GitHub:
    names: tuple[str, ...]
    needs: ClassVar = ("x-hub-signature-256", "x-github-delivery")

    def __call__(self, headers: Mapping[str, str], body: bytes, now: datetime) -> str:
        kind, _, given = _header(headers, "x-hub-signature-256").partition("=")
        if kind != "sha256":
            raise SignatureInvalid("X-Hub-Signature-256 is sha256= and 64 hexadecimal digits.")
        _compare([given], [_hex(value, body) for value in _values(self.names)])
        id = _header(headers, "x-github-delivery")
        if not _ID.fullmatch(id):
            raise SignatureInvalid("X-GitHub-Delivery is the id of the delivery, and is none.")
        return id


@dataclass(frozen=True, slots=True)
class _Stripe:
    names: tuple[str, ...]
    needs: ClassVar = ("stripe-signature",)

    def __call__(self, headers: Mapping[str, str], body: bytes, now: datetime) -> str:
        parts = [each.partition("=") for each in _header(headers, "stripe-signature").split(",")]
        times = [value for name, _, value in parts if name.strip() == "t"]
        if len(times) != 1:
            raise SignatureInvalid("Stripe-Signature has one t=.")
        signed = f"{_time(times[0], now)}.".encode() + body
        given = [value for name, _, value in parts if name.strip() == "v1"]
        _compare(given, [_hex(value, signed) for value in _values(self.names)])
        return _id_in(body)


def _id_in(body: bytes) -> str:
    """Of an event that is genuine. One without an id is known by all that it says."""
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    id = found.get("id") if isinstance(found, dict) else None
    return id if isinstance(id, str) and _ID.fullmatch(id) else f"sha256:{sha256(body).hexdigest()}"


def _references(secrets: Sequence[Any]) -> tuple[str, ...]:
    if not 1 <= len(secrets) <= SECRETS_MOST:
        raise TriggerInvalid(f"Name one secret, or up to {SECRETS_MOST} while one takes another's place.")
    names = [name for secret in secrets if (name := named(secret)) is not None]
    if len(names) < len(secrets):  # what was given may be the secret: it is not said again
        raise TriggerInvalid(
            'A secret is named, not written in the program: "env:STRIPE_SECRET" is that variable of the environment.'
        )
    return tuple(names)


def _values(names: Sequence[str]) -> list[str]:
    values = looked_up(names)
    if not values:
        raise TriggerInvalid(
            f"No secret is set, so nothing can be verified: {' or '.join(names)} in the environment of the server."
        )
    return values


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if value is None:
        raise SignatureInvalid(f"The header {name} is missing, or stands twice.")
    return value


def _time(text: str, now: datetime) -> int:
    if not _NUMBER.fullmatch(text):
        raise SignatureInvalid("The time of the delivery is no number of seconds.")
    if abs(now.timestamp() - int(text)) > TOLERANCE.total_seconds():
        raise SignatureInvalid(
            f"The delivery was signed more than {TOLERANCE.total_seconds():g} seconds from now. Is a clock wrong?"
        )
    return int(text)


def _hex(secret: str, signed: bytes) -> str:
    return hmac.digest(secret.encode(), signed, sha256).hex()


def _compare(given: Sequence[str], ours: Sequence[str]) -> None:
    """All with all, so that the time says nothing of which was nearly right."""
    if len(given) > SIGNATURES_MOST:
        raise SignatureInvalid(f"At most {SIGNATURES_MOST} signatures are looked at.")
    same = [hmac.compare_digest(theirs.encode(), own.encode()) for theirs in given for own in ours]
    if not any(same):
        raise SignatureInvalid("The signature is not of this body with a secret of ours.")
