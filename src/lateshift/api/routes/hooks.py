"""Webhooks: what others post to us. No token is asked for: a delivery is let in by its signature, and by nothing else."""

from uuid import UUID

from msgspec import Struct

from lateshift.api.asked import Asked
from lateshift.api.problem import Refused
from lateshift.api.route import PUBLIC, Answer, Route


class Delivery(Struct, frozen=True, kw_only=True):
    """What became of it: a job; none if the program passes it over. `created`: false if this delivery had come before."""

    created: bool
    job: UUID | None


def expect_webhook(asked: Asked) -> None:
    """Before the body is read: whether there is such a webhook, and something to verify the body by."""
    asked.app.expect_delivery(asked.name, asked.headers)


def take_webhook(asked: Asked) -> Answer:
    """Take a delivery that is signed as the program says; each makes one job, however often it comes.

    A repeated delivery is answered with the job that it made. One that no job can be made of is kept for an operator, and answered
    with 422."""
    done = asked.app.deliver(asked.name, asked.headers, asked.body)
    if done.refused is not None:
        why = (done.reason or "the program that takes it cannot read it").rstrip(".")
        raise Refused(
            422, "event-refused",
            f"No job can be made of this: {why}. It is kept as {done.refused}; sending it again changes nothing.",
        )  # fmt: skip
    return Answer(Delivery(created=done.created, job=done.job))


ROUTES = (
    Route(
        method="POST",
        path="/hooks/{name}",
        handler=take_webhook,
        gives=Delivery,
        status=202,
        scope=PUBLIC,
        raw=True,
        before=expect_webhook,
    ),
)
