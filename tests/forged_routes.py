"""Routes that no call of Lateshift makes, as somebody may write them into the row of a job: what a submitter's row is refused for, and what the courier
of every store sends nowhere, whoever has written it."""

from typing import Any
from uuid import UUID

import msgspec

from lateshift.model.job import Lane, Spec
from lateshift.model.reply import REPLY_LIMIT, ROUTES_MOST, Route, Target, written

HEARD = Spec(task="heard", queue="replies", lane=Lane.GUARDED_THREAD)
DELIVERY = Spec(task="lateshift.reply_webhook.hook", queue="replies.hook", lane=Lane.GUARDED_THREAD)
HEARER = "ops-alerts"  # a task that hears alerts
PLACES = {name: place for place, name in enumerate(Spec.__struct_fields__)}


def forged(spec: dict[str, Any] | None = None, target: dict[str, Any] | None = None, **route: Any) -> str:
    """A route to the task `heard`, but for this. `spec`: by the names of its fields."""
    base = msgspec.json.decode(written([Route(target=Target(to="task:heard", spec=HEARD), kinds=1)]) or "")[0]
    for name, value in (spec or {}).items():
        base["target"]["spec"][PLACES[name]] = value
    base["target"] |= target or {}
    return msgspec.json.encode([base | route]).decode()


def told_on(*targets: Target) -> str | None:
    return written([Route(target=target, kinds=1) for target in targets])


def deep(depth: int) -> str:
    return "[" * depth + "]" * depth


TEXT = "x" * 2_000
FORGED_ROUTES: dict[str, str] = {
    "into somebody's batch": forged({"batch": str(UUID(int=7))}),
    "one of Lateshift's own tasks": forged({"task": "lateshift.alert_webhook"}),
    "a delivery outside its queue": forged({"task": DELIVERY.task}),
    "a task that hears alerts": forged({"task": HEARER}),
    "another task among deliveries": forged({"queue": "replies.hook"}),
    "a task without a name": forged({"task": ""}),
    "a task's name too long": forged({"task": "x" * 201}),
    "no queue's name": forged({"queue": "a queue"}),
    "no lane": forged({"lane": 99}),
    "the lane of suspects": forged({"lane": 3}),
    "a lane without a guard": forged({"lane": 0}),
    "no priority": forged({"priority": 101}),
    "no attempts": forged({"attempts": 0}),
    "too many attempts": forged({"attempts": 10**10}),
    "no time": forged({"time_limit": "P0D"}),
    "a time that runs over": forged({"time_limit": "P1000000D"}),
    "a delay that runs over": forged({"delay": "P1000000D"}),
    "a delay into the past": forged({"delay": "-PT1S"}),
    "alone over all machines": forged({"exclusive": "task:heard"}),
    "what is told tells others": forged({"reply": told_on(Target(to="task:heard", spec=HEARD))}),
    "what is told tells another channel": forged({"reply": told_on(Target(to="channel:c"))}),
    "given an event": forged(target={"given": {"event": {"kind": "completed"}}}),
    "given a number": forged(target={"given": {"url": 7}}),
    "given a URL too long": forged(target={"given": {"url": "x" * 3_000}}),
    "no parameter": forged(target={"parameter": ""}),
    "a correlation too long": forged(correlation_id=TEXT),
    "a correlation too long for a channel": msgspec.json.encode(
        [Route(target=Target(to="channel:c"), kinds=1, correlation_id=TEXT)]
    ).decode(),
    "no event": forged(kinds=-1),
    "an event that there is not": forged(kinds=129),
    "no channel": told_on(Target(to="channel:")) or "",
    "no channel's name": told_on(Target(to="channel:a b")) or "",
    "not a channel at all": told_on(Target(to="orders")) or "",
    "another queue's channel": told_on(Target(to="channel:jobs.images.thumbnail")) or "",
    "too many": told_on(*[Target(to="channel:c")] * (ROUTES_MOST + 2)) or "",
    "too long": forged(target={"to": "x" * REPLY_LIMIT}),
    "a channel that is given something": told_on(Target(to="channel:c", given={"url": "x"})) or "",
    "no JSON": "[",
    "no list": "{}",
    "no route": "[7]",
    "too deep": f'[{{"target":{{"to":"channel:c","given":{{"url":{deep(3_000)}}}}},"kinds":1}}]',
    "far too deep": deep(60_000),
}
