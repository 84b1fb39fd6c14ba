"""A webhook that was posted to us: verified, then stored once, with the job that it becomes, before it is answered."""

import re
from collections.abc import Callable, Mapping
from uuid import UUID

from msgspec import Struct

from lateshift.errors import (
    LateshiftError,
    QueueFull,
    SignatureInvalid,
    StoreError,
    TriggerInvalid,
    WebhookClosed,
)
from lateshift.model.ids import JobId
from lateshift.model.triggering.events import Message
from lateshift.model.triggering.sources import WebhookSource
from lateshift.runtime.log import log
from lateshift.store.contract import Store
from lateshift.store.trigger_contract import Received
from lateshift.triggers.refusing import for_sender
from lateshift.triggers.source import Incoming
from lateshift.triggers.trigger import Trigger

# Headers that let in, or prove what has been looked at, are not kept: of some senders, such as GitLab, the secret itself is one. By their
# names, as a program's own `verify` says nothing of what it looks for.
PROOF = re.compile(
    r"authori[sz]ation|cookie|credential|digest|hmac|jwt|passw|secret|signature|token|api-?key|access-?key|auth-?key"
)


class Delivered(Struct, frozen=True, kw_only=True):
    """What became of a delivery: a job, or a refusal and why; neither if the program passed it over, or somebody has dealt with what
    was refused. `created`: it had not come before. `reason`: as its sender may be told; None where the program's own code raised something."""

    created: bool
    job: JobId | None = None
    refused: UUID | None = None
    reason: str | None = None


def deliver(
    store: Store,
    trigger: Trigger,
    app: str,
    declare: Callable[[], None],
    headers: Mapping[str, str],
    body: bytes,
) -> Delivered:
    """Blocking. Raises SignatureInvalid, QueueFull, or WebhookClosed where the sender is to try again."""
    where = trigger.where
    assert isinstance(where, WebhookSource)
    try:
        id = where.verify(headers, body, store.clock.now())
    except TriggerInvalid as error:  # ours, and nothing for the sender to read
        log.error("webhook %s cannot verify anything: %s", trigger.name, error)
        raise WebhookClosed(
            f"The webhook {trigger.name} has no secret to verify with. Try again later."
        ) from None
    if not id:
        raise SignatureInvalid("verify= gives the id of the delivery, and has given none.")
    _require_open(store, trigger.name, app, declare)
    most = trigger.max_ready()
    if most is not None and store.queues.waiting(trigger.queue, most) >= most:
        raise QueueFull(
            f"As many jobs wait in the queue {trigger.queue} as its max_ready, {most:,}. Try again later."
        )
    kept = {name: value for name, value in headers.items() if not PROOF.search(name)}
    message = Message(
        body=body, id=id, headers=kept, content_type=headers.get("content-type"), queue=trigger.name
    )
    incoming = Incoming(id, message)
    arrival = trigger.arrive(incoming)
    try:
        answers = store.triggers.receive(trigger.name, [arrival], keep=where.window)
    except StoreError:
        raise
    except LateshiftError as error:  # such as a key that another call has
        arrival = trigger.refuse(incoming, str(error))
        answers = store.triggers.receive(trigger.name, [arrival], keep=where.window)
    if answers is None:
        raise WebhookClosed(f"The webhook {trigger.name} was paused at this moment. Try again later.")
    return _told(store, trigger, answers[0])


def _require_open(store: Store, name: str, app: str, declare: Callable[[], None]) -> None:
    """A process that only serves may be the first to speak of it."""
    standing = store.triggers.standing(name)
    if standing is None or standing.app != app:
        declare()
        standing = store.triggers.standing(name)
    if standing is None or standing.app != app:
        raise WebhookClosed(
            f"Another app has the trigger {name}, and workers. Give one of the two another name."
        )
    if standing.paused:
        raise WebhookClosed(f"The webhook {name} is paused. Try again later.")


def _told(store: Store, trigger: Trigger, received: Received) -> Delivered:
    if received.refused is None:
        return Delivered(created=received.new, job=received.job)
    found = store.triggers.find_refused(received.refused)
    if found is None:
        return Delivered(created=False)
    if received.new:
        log.warning(
            "webhook %s refused a delivery: %s (`lateshift triggers refused`)", trigger.name, found.reason
        )
    return Delivered(created=received.new, refused=found.id, reason=for_sender(found))
